"""What the tree itself looks like is compared with its drawing in test_tidy."""

import pytest

from kreassign.errors import IllegalPlan, Infeasible, InvariantBroken, KreassignError, MalformedPlan, Rejected


def test_a_malformed_plan_names_the_file_if_there_is_one() -> None:
    assert str(MalformedPlan("no partitions", path="plan.json")) == "plan.json: no partitions"
    assert MalformedPlan("no partitions", path="plan.json").path == "plan.json"
    assert str(MalformedPlan("no partitions")) == "no partitions"


def test_an_illegal_plan_shows_every_violation() -> None:
    error = IllegalPlan(("first", "second"))
    assert str(error) == "the plan cannot be carried out:\n  - first\n  - second"
    assert error.violations == ("first", "second")


def test_an_infeasible_plan_names_its_goals() -> None:
    assert Infeasible("no room", goals=("disk",)).goals == ("disk",)


def test_a_refusal_keeps_kafkas_words_and_code() -> None:
    error = Rejected("is invalid", api="AlterPartitionReassignments", code=39, name="INVALID_REPLICA_ASSIGNMENT")
    assert str(error) == "is invalid"
    assert (error.api, error.code, error.name) == ("AlterPartitionReassignments", 39, "INVALID_REPLICA_ASSIGNMENT")
    assert error.retriable is False


def test_a_bug_of_ours_is_not_reported_as_the_users_fault() -> None:
    assert not issubclass(InvariantBroken, KreassignError)
    with pytest.raises(AssertionError):
        raise InvariantBroken("cannot be")
