import pytest
from kafka.errors import kafka_errors

from kreassign.wire import error_code as module
from kreassign.wire.error_code import CODES, by_name, error_code

# What kafka-python calls otherwise than Kafka does.
OTHER_NAMES = {
    -1: "UNKNOWN",
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


def test_every_spelled_out_code_is_there_once_and_found_by_its_name() -> None:
    assert len({known.code for known in CODES}) == len({known.name for known in CODES}) == len(CODES)
    assert all(error_code(known.code) is known and by_name(known.name) is known for known in CODES)
    assert [known.code for known in CODES] == sorted(known.code for known in CODES)


def test_numbers_and_names_are_those_that_another_client_knows() -> None:
    known = {code.code: (OTHER_NAMES.get(code.code, code.name), code.retriable) for code in CODES}
    assert known == {code: (kafka_errors[code].message, bool(kafka_errors[code].retriable)) for code in known}


def test_every_constant_is_the_number_of_its_name() -> None:
    constants = {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, int)}
    assert constants.pop("NONE") == 0
    assert {name: error_code(value).name for name, value in constants.items()} == {name: name for name in constants}


def test_a_code_that_no_admin_api_answers_with_still_has_its_name() -> None:
    assert error_code(30).name == "GROUP_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("code", [999, 130, -2])
def test_a_code_of_a_later_kafka_keeps_its_number(code: int) -> None:
    unknown = error_code(code)
    assert unknown.code == code
    assert unknown.name == f"UNKNOWN_ERROR_CODE_{code}"
    assert str(code) in unknown.text
    assert not unknown.retriable


def test_a_name_that_is_not_spelled_out_is_not_found() -> None:
    assert by_name("NO_SUCH_CODE") is None


def test_a_code_is_printed_with_name_and_number() -> None:
    assert str(error_code(39)) == "INVALID_REPLICA_ASSIGNMENT (39)"
