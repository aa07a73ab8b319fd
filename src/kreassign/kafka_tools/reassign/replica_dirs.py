"""Where replicas are among the log directories of their brokers, and how far their moves between them are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.model import LogDir, TopicPartition, TopicPartitionReplica


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
        """Whether nothing is going on: the replica is in the directory wished for, or nobody moves it there."""
        return self.current is not None and self.future is None


Found = Mapping[TopicPartitionReplica, ReplicaDirs]


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


def replica_on(broker: int, partition: TopicPartition) -> TopicPartitionReplica:
    """The copy of a partition on a broker."""
    return TopicPartitionReplica(broker, partition.topic, partition.partition)


def replicas_of(assignments: Mapping[TopicPartition, Iterable[int]]) -> tuple[TopicPartitionReplica, ...]:
    """Every copy of these partitions."""
    return tuple(replica_on(broker, partition) for partition, brokers in assignments.items() for broker in brokers)


def sentence(replica: TopicPartitionReplica, wanted: str, dirs: ReplicaDirs | None) -> str:
    """`--verify`: how a replica stands to the directory wished for; None when its broker said nothing of it."""
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
