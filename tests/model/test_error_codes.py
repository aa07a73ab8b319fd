import pytest
from kafka.errors import kafka_errors

from kreassign.errors import Rejected, Unreachable
from kreassign.model import error_codes as module
from kreassign.model.error_codes import NOT_CONTROLLER, REQUEST_TIMED_OUT, ErrorCode, error_code, error_codes, has_code

CORRUPT_MESSAGE = 2
"""Kafka's client tries again after it, kafka-python does not."""

# What kafka-python calls otherwise than Kafka does.
OTHER_NAMES = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC",
    39: "INVALID_REPLICATION_ASSIGNMENT",
}


@pytest.mark.parametrize(
    ("code", "name", "text", "is_retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", "The server experienced an unexpected error when processing the request.", False),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.", True),
        (7, "REQUEST_TIMED_OUT", "The request timed out.", True),
        (31, "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.", False),
        (39, "INVALID_REPLICA_ASSIGNMENT", "Replica assignment is invalid.", False),
        (41, "NOT_CONTROLLER", "This is not the correct controller for this cluster.", True),
        (60, "REASSIGNMENT_IN_PROGRESS", "A partition reassignment is in progress.", False),
        (80, "PREFERRED_LEADER_NOT_AVAILABLE", "The preferred leader was not available.", True),
        (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "Eligible topic partition leaders are not available.", True),
        (84, "ELECTION_NOT_NEEDED", "Leader election not needed for topic partition.", True),
        (85, "NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.", False),
    ],
)
def test_codes_have_the_names_and_default_texts_of_kafka(code: int, name: str, text: str, is_retriable: bool) -> None:
    known = error_code(code)
    assert (known.code, known.name, known.text, known.retriable) == (code, name, text, is_retriable)


def test_every_code_of_kafka_is_there_once() -> None:
    known = error_codes()
    assert [one.code for one in known.values()] == list(known) == list(range(-1, 137))
    assert len({one.name for one in known.values()}) == len(known)


def test_numbers_and_names_are_those_that_another_client_knows() -> None:
    known = {code.code: (OTHER_NAMES.get(code.code, code.name), code.retriable) for code in error_codes().values()}
    other = {
        code: (error.message, bool(error.retriable) or code == CORRUPT_MESSAGE)
        for code, error in kafka_errors.items()
        if code is not None
    }
    assert known.items() >= other.items()
    assert len(other) == 129


def test_every_constant_is_the_number_of_its_name() -> None:
    constants = {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}
    assert {name: error_code(value).name for name, value in constants.items()} == {name: name for name in constants}


@pytest.mark.parametrize("code", [999, 137, -2])
def test_a_code_of_a_later_kafka_keeps_its_number(code: int) -> None:
    text = f"The broker answered with error code {code}."
    assert error_code(code) == ErrorCode(code, f"UNKNOWN_ERROR_CODE_{code}", "UnknownServerException", text, False)


def test_a_code_is_printed_with_name_and_number() -> None:
    assert str(error_code(39)) == "INVALID_REPLICA_ASSIGNMENT (39)"


def test_a_refusal_has_its_own_code_and_no_other_error_has_one() -> None:
    refused = Rejected("no", api="Metadata", code=NOT_CONTROLLER, name="NOT_CONTROLLER")
    assert has_code(refused, NOT_CONTROLLER)
    assert has_code(refused, REQUEST_TIMED_OUT, NOT_CONTROLLER)
    assert not has_code(refused, REQUEST_TIMED_OUT)
    assert not has_code(Unreachable("no"), NOT_CONTROLLER)
