"""The tree of errors is compared with its drawing in test_tidy."""

import pytest

from kreassign.errors import (
    ClusterError,
    IllegalPlan,
    Infeasible,
    InvariantBroken,
    KreassignError,
    MalformedPlan,
    OutcomeUnknown,
    Rejected,
    Unreachable,
)


def test_a_malformed_plan_names_the_file_if_there_is_one() -> None:
    assert str(MalformedPlan("no partitions", path="plan.json")) == "plan.json: no partitions"
    assert MalformedPlan("no partitions", path="plan.json").path == "plan.json"
    assert str(MalformedPlan("no partitions")) == "no partitions"


def test_an_illegal_plan_shows_every_violation() -> None:
    error = IllegalPlan(("first", "second"))
    assert str(error) == "the plan cannot be executed:\n  - first\n  - second"
    assert error.violations == ("first", "second")


def test_a_long_list_of_violations_is_shown_in_part() -> None:
    error = IllegalPlan(tuple(map(str, range(100_000))))
    assert len(str(error).splitlines()) == 22
    assert str(error).endswith("\n  - 19\n  and 99,980 more")
    assert len(error.violations) == 100_000


def test_an_infeasible_plan_names_its_goals() -> None:
    assert Infeasible("no room", goals=("disk",)).goals == ("disk",)


def test_a_refusal_keeps_kafkas_words_and_code() -> None:
    error = Rejected("is invalid", api="AlterPartitionReassignments", code=39, name="INVALID_REPLICA_ASSIGNMENT")
    assert error.message == "is invalid"
    assert (error.api, error.code, error.name) == ("AlterPartitionReassignments", 39, "INVALID_REPLICA_ASSIGNMENT")
    assert error.retriable is False
    assert error.item is None


REFUSED = Rejected("is invalid", api="Metadata", code=17, name="INVALID_TOPIC_EXCEPTION", item="foo")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (REFUSED, "is invalid (foo, Metadata, 17 INVALID_TOPIC_EXCEPTION)"),
        (Rejected("no", api="Metadata", code=31, name="X"), "no (Metadata, 31 X)"),
        (Unreachable("could not connect"), "could not connect"),
        (Unreachable("could not connect", item=3), "could not connect (3)"),
        (OutcomeUnknown("timed out", item="foo-0", api="ElectLeaders"), "timed out (foo-0, ElectLeaders)"),
    ],
)
def test_the_text_of_an_error_names_item_api_and_code(error: ClusterError, text: str) -> None:
    assert str(error) == text


def test_what_the_message_names_itself_is_not_said_twice() -> None:
    assert str(Unreachable("foo-0 has no leader", item="foo-0")) == "foo-0 has no leader"


def test_the_representation_of_an_error_has_all_that_is_known() -> None:
    assert repr(REFUSED) == (
        "Rejected('is invalid', item='foo', api='Metadata', code=17, name='INVALID_TOPIC_EXCEPTION', retriable=False, "
        "principal=None)"
    )
    assert repr(Unreachable("down")) == "Unreachable('down', item=None, api=None)"


def test_the_error_of_a_whole_request_can_be_told_of_each_item() -> None:
    about = Rejected("no", api="Metadata", code=31, name="X").about("foo")
    assert isinstance(about, Rejected)
    assert (about.item, about.code, str(about)) == ("foo", 31, "no (foo, Metadata, 31 X)")


def test_a_bug_of_ours_is_not_reported_as_the_users_fault() -> None:
    assert not issubclass(InvariantBroken, KreassignError)
    with pytest.raises(AssertionError):
        raise InvariantBroken("cannot be")
