"""Kafka's error codes: number, name, the Java client's exception and the default text of an error without a message.

`error_codes.json` has all codes of Kafka 4.4's class `org.apache.kafka.common.protocol.Errors`, because
operators search for the names and scripts match the texts; `python scripts/release_data.py` writes it. It is read when
the first name or text is needed. The constants are the codes that kreassign's modules compare with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from kreassign.errors import Rejected
from kreassign.model.text import packaged_text

NONE = 0
UNKNOWN_SERVER_ERROR = -1
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
REPLICA_NOT_AVAILABLE = 9
OFFSET_METADATA_TOO_LARGE = 12
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
INVALID_TOPIC_EXCEPTION = 17
ILLEGAL_GENERATION = 22
INCONSISTENT_GROUP_PROTOCOL = 23
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
INVALID_SESSION_TIMEOUT = 26
REBALANCE_IN_PROGRESS = 27
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_SASL_MECHANISM = 33
ILLEGAL_SASL_STATE = 34
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
POLICY_VIOLATION = 44
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
SECURITY_DISABLED = 54
KAFKA_STORAGE_ERROR = 56
LOG_DIR_NOT_FOUND = 57
SASL_AUTHENTICATION_FAILED = 58
REASSIGNMENT_IN_PROGRESS = 60
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
OFFSET_NOT_AVAILABLE = 78
MEMBER_ID_REQUIRED = 79
PREFERRED_LEADER_NOT_AVAILABLE = 80
GROUP_MAX_SIZE_REACHED = 81
FENCED_INSTANCE_ID = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
GROUP_SUBSCRIBED_TO_TOPIC = 86
RESOURCE_NOT_FOUND = 91
DUPLICATE_RESOURCE = 92
INVALID_UPDATE_VERSION = 95
UNKNOWN_TOPIC_ID = 100
BROKER_ID_NOT_REGISTERED = 102
TRANSACTIONAL_ID_NOT_FOUND = 105
INELIGIBLE_REPLICA = 107
NEW_LEADER_ELECTED = 108
MISMATCHED_ENDPOINT_TYPE = 114
UNSUPPORTED_ENDPOINT_TYPE = 115
REBOOTSTRAP_REQUIRED = 129


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One code; `java_exception` is a class of `org.apache.kafka.common.errors`, "" for NONE."""

    code: int
    name: str
    java_exception: str
    text: str
    retriable: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"


def error_code(code: int) -> ErrorCode:
    """The code of this number. Codes of a later Kafka are server errors with the number in name and text."""
    return error_codes().get(code) or ErrorCode(
        code,
        f"UNKNOWN_ERROR_CODE_{code}",
        "UnknownServerException",
        f"The broker answered with error code {code}.",
        retriable=False,
    )


@cache
def error_codes() -> dict[int, ErrorCode]:
    """All codes, by number."""
    rows = json.loads(packaged_text(__name__, "error_codes.json"))
    return {row["code"]: ErrorCode(**row) for row in rows}


def has_code(error: BaseException, *codes: int) -> bool:
    """True if an error is Kafka's refusal with one of these codes."""
    return isinstance(error, Rejected) and error.code in codes
