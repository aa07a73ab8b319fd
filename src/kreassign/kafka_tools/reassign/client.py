"""The calls that the tool makes, with failures in the words of Kafka's client."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kreassign.errors import ClusterError, Rejected, Unsupported
from kreassign.kafka_tools.failures import ToolError, java_exception, java_failure
from kreassign.model import (
    Batch,
    Broker,
    ConfigChange,
    ConfigResource,
    LogDir,
    OngoingReassignment,
    ReplicaStatus,
    Topic,
    TopicPartition,
    TopicPartitionReplica,
)
from kreassign.model.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    REPLICA_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    has_code,
)
from kreassign.model.override import Override

if TYPE_CHECKING:
    from kreassign.admin import AdminClient


Failures = dict[TopicPartition, ClusterError]


class ToolClient:
    """An admin client for one run of the tool. Failures are raised as `ToolError`, unless a method says otherwise."""

    def __init__(self, admin: AdminClient, *, through_controllers: bool) -> None:
        self._admin = admin
        self.through_controllers = through_controllers

    def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is being reassigned, of these partitions or of all."""
        asked = None if partitions is None else tuple(dict.fromkeys(partitions))
        for partition in asked or ():
            _check_name(partition.topic)
            if partition.partition < 0:
                raise _invalid_topic(f"The given partition index {partition.partition} is not valid.")
        with _call("listPartitionReassignments"):
            return self._admin.list_partition_reassignments(asked)

    def risky_overrides(
        self, targets: Mapping[TopicPartition, tuple[int, ...]], ongoing: Mapping[TopicPartition, OngoingReassignment]
    ) -> dict[TopicPartition, Override]:
        """Targets that would override what is ongoing, and not do just what they say."""
        with _call("listPartitionReassignments"):
            return self._admin.risky_overrides(dict(targets), ongoing=ongoing)

    def brokers(self) -> tuple[Broker, ...]:
        """The live brokers, ascending by id; through controllers, the controllers."""
        with _call("listNodes"):
            return tuple(sorted(self._admin.describe_cluster().brokers))

    def topics(self, names: Iterable[str]) -> dict[str, Topic | None]:
        """These topics; None for one that does not exist."""
        asked = sorted(set(names))
        for name in asked:
            _check_name(name)
        with _call("describeTopics"):
            described = self._admin.describe_topics(asked)
            for error in described.failed.values():
                if not has_code(error, UNKNOWN_TOPIC_OR_PARTITION):
                    raise error
        return {name: described.ok.get(name) for name in asked}

    def log_dirs(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[int, tuple[LogDir, ...]]:
        """The log directories of these brokers, with the copies of these partitions or of all."""
        asked = tuple(sorted(set(brokers)))
        if not asked:
            return {}
        with _call("describeReplicaLogDirs"):
            try:
                return self._admin.describe_log_dirs(asked, partitions=partitions).raise_if_any()
            except Unsupported as error:
                if not self.through_controllers:
                    raise
                raise ToolError(_NEEDS_BROKERS) from error

    def statuses(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, tuple[ReplicaStatus, ...]]:
        """The status of the replicas of these partitions; those that no broker could report are left out."""
        with _call("replicaStatus"):
            return self._admin.replica_status(partitions).ok

    def change_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Change configurations; all are tried, then the first failure is raised."""
        with _call("incrementalAlterConfigs"):
            self._admin.incremental_alter_configs(changes).raise_if_any()

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = True,
        expected: Mapping[TopicPartition, tuple[int, ...]] | None = None,
    ) -> Failures:
        """Start reassignments, or cancel them (None); returns the errors of those that were refused.

        Raises `Drifted` if the cluster is not as `expected`; then nothing was sent.
        """
        try:
            outcome = self._admin.alter_partition_reassignments(
                targets,
                allow_replication_factor_change=allow_replication_factor_change,
                expected=expected,
                warns_of_overrides=False,
            )
            return dict(outcome.failed)
        except ClusterError as error:
            return dict.fromkeys(targets, error)

    def without_factor_guard(self, partitions: Collection[TopicPartition]) -> Failures:
        """An error for each of these partitions where the cluster cannot guard replication factors; changes nothing.

        Of anything else that would be refused the request itself will tell.
        """
        with suppress(ClusterError):
            try:
                self._admin.check_reassignment_permission(allow_replication_factor_change=False)
            except Unsupported as error:
                return dict.fromkeys(partitions, error)
        return {}

    def without_permission(self, partitions: Collection[TopicPartition]) -> Failures:
        """An error for each of these partitions where this client may start no reassignments; changes nothing."""
        with suppress(ClusterError):
            try:
                self._admin.check_reassignment_permission()
            except Rejected as error:
                if has_code(error, CLUSTER_AUTHORIZATION_FAILED):
                    return dict.fromkeys(partitions, error)
        return {}

    def check_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Raise what `change_configs` would raise of these, where that is a permission; changes nothing."""
        failed = self._admin.incremental_alter_configs(changes, validate_only=True).failed
        with _call("incrementalAlterConfigs"):
            for error in failed.values():
                if has_code(error, CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED):
                    raise error

    def move_directories(self, targets: Mapping[TopicPartitionReplica, str]) -> set[TopicPartitionReplica]:
        """Move replicas to directories; returns those whose broker has them and accepted the move."""
        outcome: Batch[TopicPartitionReplica, None] = self._admin.alter_replica_log_dirs(targets)
        for replica in sorted(outcome.failed):
            error = outcome.failed[replica]
            if not has_code(error, REPLICA_NOT_AVAILABLE):
                raise ToolError(f"Failed to alter dir for {replica}", reason=error.message) from error
        return set(outcome.ok)


_NEEDS_BROKERS = java_exception(
    "UnsupportedEndpointTypeException",
    "This Admin API is not yet supported when communicating directly with the controller quorum.",
)


@contextmanager
def _call(name: str) -> Iterator[None]:
    """Raise any failure inside as one of the Java client's call of this name."""
    try:
        yield
    except ClusterError as error:
        raise java_failure(error, name) from error


def _check_name(topic: str) -> None:
    if not topic:
        raise _invalid_topic("The given topic name '' cannot be represented in a request.")


def _invalid_topic(message: str) -> ToolError:
    return ToolError(java_exception("InvalidTopicException", message))
