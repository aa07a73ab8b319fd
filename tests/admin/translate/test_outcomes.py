import pytest

from kreassign.admin.call import NOT_NAMED, outcomes, raise_if_failed, readings
from kreassign.errors import OutcomeUnknown, ProtocolViolation, Rejected
from kreassign.wire import api

ALTER = api.ALTER_PARTITION_REASSIGNMENTS


def test_every_key_gets_its_own_outcome() -> None:
    batch = outcomes(ALTER, [("a", 0, None), ("b", 39, "broken"), ("c", 0, "")], NOT_NAMED)
    assert dict(batch.ok) == {"a": None, "c": None}
    refused = batch.failed["b"]
    assert isinstance(refused, Rejected)
    assert (refused.api, refused.code, refused.name, refused.message, refused.retriable) == (
        "AlterPartitionReassignments", 39, "INVALID_REPLICA_ASSIGNMENT", "broken", False,
    )  # fmt: skip


@pytest.mark.parametrize("message", [None, ""])
def test_an_absent_message_becomes_the_default_text_of_its_code(message: str | None) -> None:
    batch = outcomes(ALTER, [("a", 85, message)], NOT_NAMED)
    assert batch.failed["a"].message == "No partition reassignment is in progress."


def test_an_unknown_code_shows_its_number() -> None:
    (refused,) = outcomes(ALTER, [("a", 999, None)], NOT_NAMED).failed.values()
    assert isinstance(refused, Rejected)
    assert (refused.code, refused.message) == (999, "The broker answered with error code 999.")


def test_what_may_be_tried_again_says_so() -> None:
    (refused,) = outcomes(ALTER, [("a", 41, None)], NOT_NAMED).failed.values()
    assert isinstance(refused, Rejected)
    assert refused.retriable


def test_a_key_without_an_answer_is_a_violation_of_the_protocol() -> None:
    batch = outcomes(ALTER, [("a", 0, None), ("b", 3, None)], asked=["a", "b", "c"])
    assert list(batch.failed) == ["b", "c"]
    assert isinstance(batch.failed["c"], ProtocolViolation)
    assert "says nothing about c" in str(batch.failed["c"])


def test_no_error_code_raises_nothing() -> None:
    raise_if_failed(ALTER, 0, None)
    with pytest.raises(Rejected, match="no alter permission"):
        raise_if_failed(ALTER, 31, "no alter permission")


def test_a_broker_that_stopped_waiting_has_not_refused() -> None:
    batch = outcomes(ALTER, [("a", 7, None), ("b", 39, "no such broker")], NOT_NAMED)
    assert isinstance(batch.failed["a"], OutcomeUnknown)
    assert isinstance(batch.failed["b"], Rejected)
    with pytest.raises(OutcomeUnknown, match=r"The request timed out\."):
        raise_if_failed(ALTER, 7)


@pytest.mark.parametrize("codes", [(0, 39), (39, 0)])
def test_what_is_answered_both_ways_is_a_violation_of_the_protocol(codes: tuple[int, int]) -> None:
    batch = outcomes(ALTER, [("a", codes[0], None), ("b", 0, None), ("a", codes[1], None)], asked=["a", "b"])
    assert dict(batch.ok) == {"b": None}
    assert list(batch.failed) == ["a"]
    assert isinstance(batch.failed["a"], ProtocolViolation)
    assert "says twice what became of a" in str(batch.failed["a"])


@pytest.mark.parametrize("codes", [(0, 35), (35, 0)])
def test_an_item_read_and_refused_at_once_violates_the_protocol(codes: tuple[int, int]) -> None:
    entry = api.DESCRIBE_LOG_DIRS.response.DescribeLogDirsResult
    answered = [("dir", entry(error_code=code, log_dir="dir", topics=[])) for code in codes]
    batch = readings(api.DESCRIBE_LOG_DIRS, answered, lambda _, one: one.log_dir, asked=["dir"])
    assert dict(batch.ok) == {}
    assert isinstance(batch.failed["dir"], ProtocolViolation)
