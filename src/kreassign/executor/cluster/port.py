"""Cluster calls that executing a plan needs: a protocol in model types. `AdminClient` fits it by its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from kreassign.model import (
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
from kreassign.model.requests import NewTopic


class ConfigPort(Protocol):
    """The controllers' own endpoint, which takes settings of brokers that are down. Raises ClusterError."""

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, timeout_ms: int | None
    ) -> Batch[ConfigResource, None]:
        """Change single keys of any broker."""
        ...


class TopicsPort(Protocol):
    """Brokers and topics, with the meaning that `AdminClient` gives them. All raise ClusterError."""

    def describe_cluster(self, *, include_fenced: bool = False) -> Cluster:
        """The live brokers; with `include_fenced` all that are registered, Unsupported before Kafka 4.0."""
        ...

    def describe_topics(self, names: Iterable[str] | None, *, broker: int | None = None) -> Batch[str, Topic]:
        """Topics with their partitions (None: all), from this broker, or any; may be behind the controller."""
        ...


class SettingsPort(TopicsPort, Protocol):
    """Brokers, topics and settings, with the meaning that `AdminClient` gives them. All raise ClusterError."""

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, names: Iterable[str] | None
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Values of these keys."""
        ...


class ClusterPort(SettingsPort, Protocol):
    """Cluster calls, with the meaning that `AdminClient` gives them. All raise ClusterError."""

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, OngoingReassignment]:
        """Ongoing reassignments of the partitions (None: all), from the controller."""
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

    def list_offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        *,
        known: Mapping[TopicPartition, Partition] = ...,
    ) -> Batch[TopicPartition, int]:
        """This offset of each partition at its leader; leaders in `known` are not looked up."""
        ...

    def replica_status(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, Partition], timeout_ms: int | None
    ) -> Batch[TopicPartition, tuple[ReplicaStatus, ...]]:
        """Progress of each copy; partitions in `known` are not described again."""
        ...


# Calls that change a cluster, each confirmed right before it is sent.

WRITES = frozenset({
    "alter_partition_reassignments", "alter_replica_log_dirs", "commit_offsets", "elect_leaders",
    "incremental_alter_configs", "unregister_broker",
})  # fmt: skip
"""Names of the calls that change a cluster, for runs and for changes to single brokers."""

AnyPort = TypeVar("AnyPort")


class _Confirmed:
    def __init__(self, port: object, confirm: Callable[[], object]) -> None:
        self._port, self._confirm = port, confirm

    def __getattr__(self, name: str) -> Any:
        return self._confirmed(getattr(self._port, name)) if name in WRITES else getattr(self._port, name)

    def _confirmed(self, call: Callable[..., object]) -> Callable[..., object]:
        def confirmed(*values: object, **named: object) -> object:
            self._confirm()
            return call(*values, **named)

        return confirmed


def confirmed_writes(port: AnyPort, confirm: Callable[[], object]) -> AnyPort:
    """Call `confirm`, which raises if nothing may be changed, before each call of a port that changes the cluster."""
    return cast(AnyPort, _Confirmed(port, confirm))
