"""Why a change is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Reason(IntEnum):
    """The error codes of KIP-179, with Kafka's numbers."""

    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_TOPIC_EXCEPTION = 17
    UNKNOWN_MEMBER_ID = 25
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_REQUEST = 42
    REASSIGNMENT_IN_PROGRESS = 60


@dataclass(frozen=True, slots=True)
class Refusal:
    """One item that will not be done, and the sentence that says why."""

    reason: Reason
    message: str
