"""The rules of each release."""

import pytest

from kreassign.errors import InputError
from kreassign.twin.controller.decision import LATEST_RULES, rules_of


def test_the_latest_rules_are_those_of_the_newest_release():
    assert rules_of("4.4") is LATEST_RULES


def test_an_unknown_release_is_refused_with_those_that_are_known():
    with pytest.raises(InputError, match=r"Kafka 2\.0; choose one of 3\.7, 3\.9, 4\.2, 4\.3, 4\.4"):
        rules_of("2.0")
