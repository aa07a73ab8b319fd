"""The tool's requests to brokers: reassignments, log directories and throttles.

Failures are in the words of Kafka's client.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kreassign.clock import Clock
from kreassign.errors import ClusterError, Rejected, Unsupported
from kreassign.kafka_tools.command_line import TerseError, ToolError, java_exception, java_failure
from kreassign.kafka_tools.reassign import messages
from kreassign.kafka_tools.reassign.messages import say
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
    error_codes,
    throttle,
)
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan
from kreassign.model.reassignment import Override
from kreassign.model.throttle import ThrottledMove

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
        """Ongoing reassignments of these partitions, or of all; an empty list is asked for once more."""
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
        """Targets that would override an ongoing move with unexpected results."""
        with _call("listPartitionReassignments"):
            return self._admin.risky_overrides(dict(targets), ongoing=ongoing)

    def brokers(self) -> tuple[Broker, ...]:
        """The live brokers, ascending by id; with bootstrap controllers, the controllers."""
        with _call("listNodes"):
            return tuple(sorted(self._admin.describe_cluster().brokers))

    def topics(self, names: Iterable[str]) -> dict[str, Topic | None]:
        """Topics by name; None for a topic that does not exist."""
        asked = sorted(set(names))
        for name in asked:
            _check_name(name)
        with _call("describeTopics"):
            found = self._admin.describe_topics(asked).raise_if_any(error_codes.UNKNOWN_TOPIC_OR_PARTITION)
        return {name: found.get(name) for name in asked}

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
        """Status of the replicas of these partitions, without partitions that no broker could report."""
        with _call("replicaStatus"):
            return self._admin.replica_status(partitions).ok

    def change_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Change configurations; try all, then raise the first failure."""
        with _call("incrementalAlterConfigs"):
            self._admin.incremental_alter_configs(changes).raise_if_any()

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = True,
        expected: Mapping[TopicPartition, tuple[int, ...]] | None = None,
    ) -> Failures:
        """Start reassignments, or cancel them (None); return the errors of refused ones.

        Raises `Drifted` before sending anything if the cluster is not as `expected`, by two brokers: one that lags
        shows the lists from before a change.
        """
        try:
            if expected:
                from kreassign.kafka_tools.reassign import expectation

                expectation.compare(self._admin, expected)
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
        """An error for each of these partitions if the cluster cannot guard replication factors; changes nothing.

        Other refusals are left to the request itself.
        """
        with suppress(ClusterError):
            try:
                self._admin.check_reassignment_permission(allow_replication_factor_change=False)
            except Unsupported as error:
                return dict.fromkeys(partitions, error)
        return {}

    def without_permission(self, partitions: Collection[TopicPartition]) -> Failures:
        """An error for each of these partitions if this client may not start reassignments; changes nothing."""
        with suppress(ClusterError):
            try:
                self._admin.check_reassignment_permission()
            except Rejected as error:
                if error_codes.has_code(error, error_codes.CLUSTER_AUTHORIZATION_FAILED):
                    return dict.fromkeys(partitions, error)
        return {}

    def check_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Raise the missing permission that `change_configs` would raise for these changes; changes nothing."""
        failed = self._admin.incremental_alter_configs(changes, validate_only=True).failed
        with _call("incrementalAlterConfigs"):
            for error in failed.values():
                if error_codes.has_code(
                    error, error_codes.CLUSTER_AUTHORIZATION_FAILED, error_codes.TOPIC_AUTHORIZATION_FAILED
                ):
                    raise error

    def move_directories(self, targets: Mapping[TopicPartitionReplica, str]) -> set[TopicPartitionReplica]:
        """Move replicas to directories; return those that their brokers host and accepted."""
        outcome: Batch[TopicPartitionReplica, None] = self._admin.alter_replica_log_dirs(targets)
        for replica in sorted(outcome.failed):
            error = outcome.failed[replica]
            if not error_codes.has_code(error, error_codes.REPLICA_NOT_AVAILABLE):
                raise ToolError(f"Failed to alter dir for {replica}", reason=error.message) from error
        return set(outcome.ok)


_NEEDS_BROKERS = java_exception(
    "UnsupportedEndpointTypeException",
    "This Admin API is not yet supported when communicating directly with the controller quorum.",
)


@contextmanager
def _call(name: str) -> Iterator[None]:
    """Raise failures inside the block as those of the Java client's call of this name."""
    try:
        yield
    except ClusterError as error:
        raise java_failure(error, name) from error


def _check_name(topic: str) -> None:
    if not topic:
        raise _invalid_topic("The given topic name '' cannot be represented in a request.")


def _invalid_topic(message: str) -> ToolError:
    return ToolError(java_exception("InvalidTopicException", message))


# Log directories of replicas, plans that name them, and moves between them.
#
# Only the broker that hosts a replica can move it to another directory.

_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class ReplicaDirs:
    """The directory of a replica, and the one that it moves to; None without one."""

    current: str | None = None
    future: str | None = None

    @property
    def is_moving(self) -> bool:
        """True while a copy in another directory is being built."""
        return self.current is not None and self.future is not None

    @property
    def is_settled(self) -> bool:
        """True if the replica is hosted and not moving."""
        return self.current is not None and self.future is None


Found = Mapping[TopicPartitionReplica, ReplicaDirs]


Assigned = Mapping[TopicPartition, tuple[int, ...]]


def replicas_of(assignments: Mapping[TopicPartition, Iterable[int]]) -> tuple[TopicPartitionReplica, ...]:
    """Every copy of these partitions."""
    return tuple(
        TopicPartitionReplica(broker, *partition) for partition, brokers in assignments.items() for broker in brokers
    )


def find_replicas(answers: Mapping[int, tuple[LogDir, ...]]) -> dict[TopicPartitionReplica, ReplicaDirs]:
    """Every replica in a live directory of the brokers that answered."""
    found: dict[TopicPartitionReplica, ReplicaDirs] = {}
    for broker, directories in answers.items():
        for directory in directories:
            for copy in directory.replicas:
                replica = TopicPartitionReplica(broker, *copy.topic_partition)
                known = found.get(replica, ReplicaDirs())
                if copy.is_future:
                    found[replica] = ReplicaDirs(known.current, directory.path)
                else:
                    found[replica] = ReplicaDirs(directory.path, known.future)
    return found


def find_directory_moves(client: ToolClient, replicas: Iterable[TopicPartitionReplica]) -> Found:
    """Directories of these replicas; all their brokers must answer."""
    wanted = tuple(replicas)
    partitions = tuple(dict.fromkeys(replica.topic_partition for replica in wanted))
    found = find_replicas(client.log_dirs({replica.broker for replica in wanted}, partitions))
    return {replica: found.get(replica, ReplicaDirs()) for replica in wanted}


def start_directory_moves(
    client: ToolClient, targets: Mapping[TopicPartitionReplica, str], timeout_ms: int, clock: Clock
) -> None:
    """Request these directories for replicas until every broker hosts its replica and accepts.

    A broker that does not host its replica yet refuses; the request is repeated. Raises `TerseError` after
    `timeout_ms`; moves that started go on.
    """
    pending = dict(targets)
    deadline_s = clock.monotonic_s() + timeout_ms / 1000
    while True:
        for replica in sorted(client.move_directories(pending)):
            say(messages.directory_move_started(replica, pending.pop(replica)))
        if not pending:
            return
        if clock.monotonic_s() >= deadline_s:
            raise TerseError(messages.directory_moves_timed_out(pending))
        clock.sleep(_PAUSE_S)


def current_plan(client: ToolClient, assigned: Assigned, live: Iterable[Broker]) -> Plan:
    """The given replica lists with the directories of the replicas, as live brokers report them."""
    ids = {broker.id for broker in live}
    found = find_directory_moves(client, (one for one in replicas_of(assigned) if one.broker in ids))
    return plan_with_dirs(assigned, {replica: dirs.current for replica, dirs in found.items()})


def plan_with_dirs(assigned: Assigned, log_dirs: Mapping[TopicPartitionReplica, str | None]) -> Plan:
    """The given replica lists with known directories, `any` for the others."""
    return Plan(
        tuple(
            PartitionAssignment(
                partition,
                brokers,
                tuple(log_dirs.get(TopicPartitionReplica(broker, *partition)) or ANY_LOG_DIR for broker in brokers),
            )
            for partition, brokers in assigned.items()
        )
    )


def directory_move_sentence(replica: TopicPartitionReplica, wanted: str, dirs: ReplicaDirs | None) -> str:
    """`--verify`: a replica's progress to its planned directory; `dirs` is None if its broker did not report it."""
    where = f"Partition {replica.topic_partition} on broker {replica.broker}"
    match dirs:
        case None:
            return (
                f"Partition {replica.topic_partition} cannot be found in any live log directory "
                f"on broker {replica.broker}."
            )
        case ReplicaDirs(current=None):
            return (
                f"Partition {replica.topic_partition} is not found in any live log dir on broker {replica.broker}. "
                "There is likely an offline log directory on the broker."
            )
        case ReplicaDirs(current=current, future=None) if current == wanted:
            return f"Reassignment of replica {replica} completed successfully."
        case ReplicaDirs(current=current, future=None):
            return f"{where} is not being moved from log dir {current} to {wanted}."
        case ReplicaDirs(future=future) if future == wanted:
            return f"Reassignment of replica {replica} is still in progress."
        case ReplicaDirs(future=future):
            return f"{where} is being moved to log dir {future} instead of {wanted}."


# Setting and clearing throttles.


class Configurable(Protocol):
    """A cluster on which throttles can be set, through its brokers or its ZooKeeper."""

    def brokers(self) -> tuple[Broker, ...]:
        """The live brokers."""

    def change_configs(self, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
        """Change configurations."""


def limit_moves(client: Configurable, moves: Mapping[TopicPartition, ThrottledMove], bytes_per_s: int) -> None:
    """List the moving replicas in their topics, then set the rate on every broker involved."""
    client.change_configs(throttle.topic_changes(moves))
    client.change_configs(throttle.rate_changes(throttle.involved_brokers(moves), bytes_per_s))
    say(messages.rate_set("inter-broker", bytes_per_s))


def limit_directory_moves(client: Configurable, brokers: Iterable[int], bytes_per_s: int) -> None:
    """Set the rate of moves between directories on these brokers."""
    client.change_configs(throttle.log_dir_rate_changes(brokers, bytes_per_s))
    say(messages.rate_set("replica-alter-dir", bytes_per_s))


def clear_throttles(client: Configurable, named_brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Clear the rates of these brokers and of all listed brokers, then the lists of these topics."""
    brokers = sorted({broker.id for broker in client.brokers()}.union(named_brokers))
    say(messages.clearing("broker", "broker", brokers))
    client.change_configs(throttle.clear_broker_changes(brokers))
    names = sorted(set(topics))
    say(messages.clearing("topic", "topic", names))
    client.change_configs(throttle.clear_topic_changes(names))
