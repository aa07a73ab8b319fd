"""What a client may do, as a cluster tells it (KIP-430), and which permission a refusal asks for.

Permissions per API: Kafka's documentation, "Authorization and ACLs", table "Protocols".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kreassign.errors import Rejected
from kreassign.model.cluster import ConfigResource, TopicPartition
from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
)

# By the number that Kafka gives each operation, with the names that kafka-acls takes.
_NAMES = {
    3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction",
    10: "DescribeConfigs", 11: "AlterConfigs", 12: "IdempotentWrite",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AllowedOperations:
    """Names of the operations that a client is allowed, on the cluster and by topic.

    `cluster` is None where the cluster does not tell; topics that the client may not see, or that do not tell, are
    left out. `groups` are those that were asked about, but for those that do not tell.
    """

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)


def operation_names(numbers: Iterable[int]) -> frozenset[str]:
    """The names of these operations; those that nobody knows are left out."""
    return frozenset(_NAMES[number] for number in numbers if number in _NAMES)


UNKNOWN_PRINCIPAL = "User:NAME"
NAMED = 5
"""So many topics are named; the rest is counted."""

# By the name of the API, what it needs: of its topics or its group, or of the cluster where Kafka says so.
# To find the coordinator of a group takes Describe, which Read contains; nobody here finds one but to join it.
_NEEDED = {
    "AlterConfigs": "AlterConfigs",
    "AlterPartitionReassignments": "Alter",
    "AlterReplicaLogDirs": "Alter",
    "CreatePartitions": "Alter",
    "CreateTopics": "Create",
    "DeleteTopics": "Delete",
    "DescribeConfigs": "DescribeConfigs",
    "DescribeLogDirs": "Describe",
    "DescribeTopicPartitions": "Describe",
    "ElectLeaders": "Alter",
    "FindCoordinator": "Read",
    "IncrementalAlterConfigs": "AlterConfigs",
    "JoinGroup": "Read",
    "ListOffsets": "Describe",
    "ListPartitionReassignments": "Describe",
    "Metadata": "Describe",
    "OffsetCommit": "Read",
    "SyncGroup": "Read",
    "UnregisterBroker": "Alter",
}


def grant(
    operation: str, kind: str, names: Collection[str] = (), principal: str = UNKNOWN_PRINCIPAL
) -> tuple[str, ...]:
    """The command that grants an operation on the cluster, or on the topics or groups of these names, as words."""
    named = () if kind == "cluster" else names if len(names) == 1 else ("*",)
    return ("kafka-acls", "--add", "--allow-principal", principal, "--operation", operation, f"--{kind}", *named)


_MISSING = "permission is missing: "


def is_of_permission(sentence: str) -> bool:
    """Whether a sentence of `error_text` is of a permission that is missing."""
    return sentence.startswith(_MISSING)


def missing_permission(operation: str, topics: Collection[str] = ()) -> str:
    """A sentence on a permission that is not there: of these topics, or of the cluster if there are none."""
    names = sorted(topics)
    if not names:
        return f"{_MISSING}{operation} on the cluster; {_allow_it(grant(operation, 'cluster'))}"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    shown = ", ".join(names[:NAMED])
    kind = "topic" if len(names) == 1 else "topics"
    allow_it = _allow_it(grant(operation, "topic", names[:1]))
    return f"{_MISSING}{operation} on {kind} {shown}{more}; {allow_it}"


def error_text(error: BaseException) -> str:
    """What to say of an error: of a refusal the permission that it asks for, of all others their own words."""
    return refused_permission(error) or str(error)


def refused_permission(error: BaseException) -> str | None:
    """The same of a refusal, with its API and code; None for other errors, and where the topic or group is not told.

    Kafka's own words for it are none at all, or the whole request as the broker prints it.
    """
    if not isinstance(error, Rejected) or error.api not in _NEEDED:
        return None
    operation, topic = _NEEDED[error.api], _topic_of(error.item)
    if error.code == CLUSTER_AUTHORIZATION_FAILED:
        sentence = missing_permission(operation)
    elif error.code == TOPIC_AUTHORIZATION_FAILED and topic is not None:
        sentence = missing_permission(operation, (topic,))
    elif error.code == GROUP_AUTHORIZATION_FAILED and isinstance(error.item, str):
        allow_it = _allow_it(grant(operation, "group", (error.item,)))
        sentence = f"{_MISSING}{operation} on group {error.item}; {allow_it}"
    else:
        return None
    return f"{sentence} ({error.api}, {error.code} {error.name})"


def _topic_of(item: object) -> str | None:
    match item:
        case str():
            return item
        case TopicPartition():
            return item.topic
        case ConfigResource():
            return item.name
    return None


def _allow_it(command: tuple[str, ...]) -> str:
    return f"allow it with `{' '.join(command)}`"
