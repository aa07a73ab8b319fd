"""Where replicas are among the log directories of their brokers, plans that name them, and moves between them.

Only the broker that hosts a replica can move it to another directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.kafka_tools.failures import TerseError
from kreassign.kafka_tools.reassign import messages
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.messages import say
from kreassign.model import Broker, LogDir, TopicPartition, TopicPartitionReplica
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment, Plan

_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class ReplicaDirs:
    """The directory where a replica is, and the one that it is being moved to; None where there is none."""

    current: str | None = None
    future: str | None = None

    @property
    def is_moving(self) -> bool:
        """Whether a copy in another directory is being built."""
        return self.current is not None and self.future is not None

    @property
    def is_settled(self) -> bool:
        """Whether the replica is not being moved, wherever it is."""
        return self.current is not None and self.future is None


Found = Mapping[TopicPartitionReplica, ReplicaDirs]


Assigned = Mapping[TopicPartition, tuple[int, ...]]


def replica_on(broker: int, partition: TopicPartition) -> TopicPartitionReplica:
    """The copy of a partition on a broker."""
    return TopicPartitionReplica(broker, partition.topic, partition.partition)


def replicas_of(assignments: Mapping[TopicPartition, Iterable[int]]) -> tuple[TopicPartitionReplica, ...]:
    """Every copy of these partitions."""
    return tuple(replica_on(broker, partition) for partition, brokers in assignments.items() for broker in brokers)


def find_replicas(answers: Mapping[int, tuple[LogDir, ...]]) -> dict[TopicPartitionReplica, ReplicaDirs]:
    """Every replica that is in a live directory of the brokers that answered."""
    found: dict[TopicPartitionReplica, ReplicaDirs] = {}
    for broker, directories in answers.items():
        for directory in directories:
            for copy in directory.replicas:
                replica = replica_on(broker, copy.topic_partition)
                known = found.get(replica, ReplicaDirs())
                if copy.is_future:
                    found[replica] = ReplicaDirs(known.current, directory.path)
                else:
                    found[replica] = ReplicaDirs(directory.path, known.future)
    return found


def find(client: ToolClient, replicas: Iterable[TopicPartitionReplica]) -> Found:
    """Where these replicas are, as their brokers say; all of their brokers must answer."""
    wanted = tuple(replicas)
    partitions = tuple(dict.fromkeys(replica.topic_partition for replica in wanted))
    found = find_replicas(client.log_dirs({replica.broker for replica in wanted}, partitions))
    return {replica: found.get(replica, ReplicaDirs()) for replica in wanted}


def start(client: ToolClient, targets: Mapping[TopicPartitionReplica, str], timeout_ms: int, clock: Clock) -> None:
    """Order replicas into directories, until every broker has its replica and took the order.

    A replica that is still to be created on its broker cannot be ordered yet; the order is repeated. Raises
    `TerseError` after `timeout_ms`; what was started goes on.
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
    """The given replica lists with the directories of the replicas; only live brokers are asked for them."""
    ids = {broker.id for broker in live}
    found = find(client, (one for one in replicas_of(assigned) if one.broker in ids))
    return plan_with_dirs(assigned, {replica: dirs.current for replica, dirs in found.items()})


def plan_with_dirs(assigned: Assigned, log_dirs: Mapping[TopicPartitionReplica, str | None]) -> Plan:
    """The given replica lists with the directories that are known, `any` for the others."""
    return Plan(
        tuple(
            PartitionAssignment(
                partition,
                brokers,
                tuple(log_dirs.get(replica_on(broker, partition)) or ANY_LOG_DIR for broker in brokers),
            )
            for partition, brokers in assigned.items()
        )
    )


def sentence(replica: TopicPartitionReplica, wanted: str, dirs: ReplicaDirs | None) -> str:
    """`--verify`: how a replica stands to the directory that the plan names; None: its broker said nothing of it."""
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
