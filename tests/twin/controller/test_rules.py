"""The rules of each release."""

import pytest

from kreassign.errors import InputError
from kreassign.twin.controller.decision import LATEST_RULES, CompletionRule, rules_of


@pytest.mark.parametrize(("release", "completion", "has_eligible_leaders", "has_cordoning", "cordons_bind"), [
    ("3.7", CompletionRule.V1, False, False, False),
    ("3.9", CompletionRule.V2, False, False, False),
    ("4.2", CompletionRule.V2, True, False, False),
    ("4.3", CompletionRule.V3, True, True, False),
    ("4.4", CompletionRule.V3, True, True, True),
])  # fmt: skip
def test_every_release_has_its_rules(release, completion, has_eligible_leaders, has_cordoning, cordons_bind):
    rules = rules_of(release)
    assert rules.completion is completion
    assert (rules.has_eligible_leaders, rules.has_cordoning) == (has_eligible_leaders, has_cordoning)
    assert rules.cordons_bind is cordons_bind


def test_the_latest_rules_are_those_of_the_newest_release():
    assert rules_of("4.4") is LATEST_RULES


def test_an_unknown_release_is_refused_with_those_that_are_known():
    with pytest.raises(InputError, match=r"Kafka 2\.0; choose one of 3\.7, 3\.9, 4\.2, 4\.3, 4\.4"):
        rules_of("2.0")
