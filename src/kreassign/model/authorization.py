"""Operations that a client is allowed (KIP-430), and the permission that a refusal requires.

Permissions per API: Kafka's documentation, "Authorization and ACLs", table "Protocols".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kreassign.errors import ClusterError, Rejected, machine_reason
from kreassign.model import error_codes
from kreassign.model.cluster import ConfigResource, TopicPartition
from kreassign.model.text import some_of

# Kafka's numbers of operations, with the names that kafka-acls takes.
_NAMES = {
    3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction",
    10: "DescribeConfigs", 11: "AlterConfigs", 12: "IdempotentWrite",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AllowedOperations:
    """Names of the operations that a client is allowed, on the cluster, by topic and by group.

    `cluster` is None if the cluster does not report them; topics that the client may not see, or without a report, are
    left out. `groups` has the requested ones, without those that are not reported.
    """

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)


def operation_names(numbers: Iterable[int]) -> frozenset[str]:
    """The names of these operations, without unknown ones."""
    return frozenset(_NAMES[number] for number in numbers if number in _NAMES)


UNKNOWN_PRINCIPAL = "User:NAME"
NAMED = 5
"""Topics beyond this number are counted, not named."""

# Required operation by API: on its topics or group, or on the cluster where Kafka says so.
# Finding the coordinator of a group requires Describe, which Read implies; it is only looked up to join the group.
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


def grant(operation: str, kind: str, names: Collection[str] = (), principal: str | None = None) -> tuple[str, ...]:
    """The command that grants an operation on the cluster, or on the topics or groups in `names`, as words.

    A `principal` that only the brokers know is left to the reader.
    """
    named = () if kind == "cluster" else names if len(names) == 1 else ("*",)
    return (
        "kafka-acls",
        "--add",
        "--allow-principal",
        principal or UNKNOWN_PRINCIPAL,
        "--operation",
        operation,
        f"--{kind}",
        *named,
    )


_MISSING = "permission is missing: "


def is_of_permission(sentence: str) -> bool:
    """True if a sentence of `error_text` is about a missing permission."""
    return sentence.startswith(_MISSING)


def with_advice(sentence: str) -> str:
    """The sentence with the advice to try again, unless it names a missing permission and how to give it."""
    return sentence if _MISSING in sentence else f"{sentence}. Try again"


def missing_permission(operation: str, topics: Collection[str] = (), principal: str | None = None) -> str:
    """A sentence about a missing permission of a client: on these topics, or on the cluster without topics."""
    names = sorted(topics)
    if not names:
        return f"{_MISSING}{operation} on the cluster; {_allow_it(grant(operation, 'cluster', (), principal))}"
    kind = "topic" if len(names) == 1 else "topics"
    allow_it = _allow_it(grant(operation, "topic", names[:1], principal))
    return f"{_MISSING}{operation} on {kind} {some_of(names, NAMED)}; {allow_it}"


@dataclass(frozen=True, slots=True)
class DeniedRight:
    """An operation that was refused to this client: on the cluster, or on one topic or group by name."""

    operation: str
    kind: str
    name: str = ""


def error_text(error: BaseException) -> str:
    """The message of an error; for a refusal the permission that it requires, or the cordon to be lifted.

    For an error of the machine its file and reason, without the number, and the next steps that it notes.
    """
    if isinstance(error, OSError):
        reason = "; ".join((machine_reason(error), *getattr(error, "__notes__", ())))
        return f"{error.filename}: {reason}" if error.filename else reason
    if is_for_cordon(error):
        return f"{error}: uncordon that broker (`kreassign doctor` says how), or plan without it"
    return refused_permission(error) or str(error)


def reason_text(error: ClusterError) -> str:
    """Like `error_text`, without the item, which is named beside it: so that items of the same reason are told once."""
    return error_text(error if refused_permission(error) else error.about(None))


def is_for_cordon(error: BaseException) -> bool:
    """True if Kafka refused a list because it names a broker all of whose directories are cordoned (from 4.4)."""
    is_of_list = isinstance(error, Rejected) and error.code == error_codes.INVALID_REPLICA_ASSIGNMENT
    return is_of_list and "all its log directories are cordoned" in str(error)


def refused_permission(error: BaseException) -> str | None:
    """The missing permission behind a refusal, with API and code; None for other errors, or an unknown topic or group.

    Kafka's own message is empty, or the whole request as the broker prints it.
    """
    if (denied := denied_right(error)) is None or not isinstance(error, Rejected):
        return None
    if denied.kind == "group":
        allow_it = _allow_it(grant(denied.operation, "group", (denied.name,), error.principal))
        sentence = f"{_MISSING}{denied.operation} on group {denied.name}; {allow_it}"
    else:
        sentence = missing_permission(denied.operation, [denied.name] if denied.name else (), error.principal)
    return f"{sentence} ({error.api}, {error.code} {error.name})"


def denied_right(error: BaseException) -> DeniedRight | None:
    """The right that a refusal requires; None for other errors, or an unknown topic or group."""
    if not isinstance(error, Rejected) or error.api not in _NEEDED:
        return None
    operation, topic = _NEEDED[error.api], _topic_of(error.item)
    if error.code == error_codes.CLUSTER_AUTHORIZATION_FAILED:
        return DeniedRight(operation, "cluster")
    if error.code == error_codes.TOPIC_AUTHORIZATION_FAILED and topic is not None:
        return DeniedRight(operation, "topic", topic)
    if error.code == error_codes.GROUP_AUTHORIZATION_FAILED and isinstance(error.item, str):
        return DeniedRight(operation, "group", error.item)
    return None


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
