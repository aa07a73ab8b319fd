"""Cluster calls that executing a plan needs: a protocol in model types. `AdminClient` fits it by its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from kreassign.model import (
    AllowedOperations,
    Batch,
    Cluster,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ElectionType,
    LogDir,
    OffsetSpec,
    OngoingReassignment,
    Partition,
    ReplicaStatus,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.requests import CommittedOffset, Group, GroupCandidate, Membership, NewTopic


class ConfigPort(Protocol):
    """The controllers' own endpoint, which takes settings of brokers that are down. Raises ClusterError."""

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, timeout_ms: int | None
    ) -> Batch[ConfigResource, None]:
        """Change single keys of any broker."""
        ...


class ClusterPort(Protocol):
    """All calls that executing a plan needs, with the meaning that `AdminClient` gives them. All raise ClusterError."""

    @property
    def principal(self) -> str | None:
        """The client's principal; None if only the brokers know it. Nothing is sent."""
        ...

    def describe_cluster(self, *, include_fenced: bool = False, broker: int | None = None) -> Cluster:
        """The live brokers, from this broker, or any; with `include_fenced` all that are registered.

        Unsupported with `include_fenced` before Kafka 4.0.
        """
        ...

    def describe_topics(self, names: Iterable[str] | None, *, broker: int | None = None) -> Batch[str, Topic]:
        """Topics with their partitions (None: all), from this broker, or any; may be behind the controller."""
        ...

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, names: Iterable[str] | None, broker: int | None = None
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Values of these keys; those of topics as this broker shows them."""
        ...

    def list_offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        *,
        known: Mapping[TopicPartition, Partition] = ...,
    ) -> Batch[TopicPartition, int]:
        """This offset of each partition at its leader; leaders in `known` are not looked up."""
        ...

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, OngoingReassignment]:
        """Ongoing reassignments of the partitions (None: all), from the controller."""
        ...

    def describe_log_dirs(
        self, brokers: Iterable[int] | None, *, partitions: Iterable[TopicPartition] | None
    ) -> Batch[int, tuple[LogDir, ...]]:
        """Directory and size of each copy."""
        ...

    def offered_versions(self, brokers: Iterable[int]) -> Batch[int, frozenset[tuple[str, int, int]]]:
        """APIs and features of brokers, each with its first and last version."""
        ...

    def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool) -> Batch[str, None]:
        """Validate topics; a run creates none."""
        ...

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = True,
        warns_of_overrides: bool = True,
    ) -> Batch[TopicPartition, None]:
        """Start moves or cancel them; Unsupported where the cluster cannot check the factor (before Kafka 4.1).

        A run overrides no reassignment, so it skips the extra listing for a warning.
        """
        ...

    def check_reassignment_permission(self, *, timeout_ms: int | None = None) -> None:
        """Raise the error that starting moves would meet at once, and change nothing."""
        ...

    def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartitionReplica, None]:
        """Move copies into other directories of their brokers."""
        ...

    def elect_leaders(
        self, partitions: Iterable[TopicPartition], election_type: ElectionType
    ) -> Batch[TopicPartition, None]:
        """Elect the first replica of each partition as leader."""
        ...

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None,
    ) -> Batch[ConfigResource, None]:
        """Change single keys; those of a broker are sent to that broker."""
        ...

    def replica_status(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, Partition], timeout_ms: int | None
    ) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        """Progress of each copy; partitions in `known` are not described again."""
        ...

    # --- permissions, groups and offsets ---

    def allowed_operations(self) -> AllowedOperations:
        """Operations that the cluster allows this client (KIP-430)."""
        ...

    def describe_group(self, group_id: str, *, timeout_ms: int | None) -> Group:
        """A group with its members."""
        ...

    def join_group(self, candidate: GroupCandidate, *, timeout_ms: int | None) -> Membership:
        """Join a group."""
        ...

    def heartbeat(self, membership: Membership, *, timeout_ms: int | None) -> None:
        """Stay a member of the group."""
        ...

    def leave_group(self, group_id: str, instance_id: str, *, member_id: str, timeout_ms: int | None) -> None:
        """Remove a member from a group."""
        ...

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None
    ) -> Batch[TopicPartition, CommittedOffset]:
        """Committed offsets of a group."""
        ...


# Calls that change a cluster. Each time that one of their requests is sent is confirmed right before: a client sends a
# request again, sends large calls in parts, and asks each broker about its own.

WRITES = frozenset({
    "alter_partition_reassignments", "alter_replica_log_dirs", "elect_leaders", "incremental_alter_configs",
    "unregister_broker",
})  # fmt: skip
"""Names of the calls that change a cluster; they take a `confirm`."""

AnyPort = TypeVar("AnyPort")


class _Confirmed:
    def __init__(self, port: object, confirm: Callable[[], object]) -> None:
        self._port, self._confirm = port, confirm

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return partial(method, confirm=_OfOneCall(self._confirm)) if name in WRITES else method


class _OfOneCall:
    """A confirmation of each request of one call; once it fails for one, it fails for all others."""

    def __init__(self, confirm: Callable[[], object]) -> None:
        self._confirm = confirm
        self._failure: Exception | None = None

    def __call__(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._confirm()
        except Exception as error:
            self._failure = error
            raise


def confirmed_writes(port: AnyPort, confirm: Callable[[], object]) -> AnyPort:
    """Call `confirm` before each request by which a port changes the cluster; it raises if nothing may be changed."""
    return cast(AnyPort, _Confirmed(port, confirm))
