"""A partition and where its copies are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kreassign.errors import InputError
from kreassign.model.printable import shortened
from kreassign.model.whole_number import parse_whole


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then number. Printed as `topic-partition`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Read `topic-partition`, the form that `str` writes; topics may hold dashes."""
        topic, dash, number = text.rpartition("-")
        try:
            return cls(topic, parse_whole(number if dash and topic else ""))
        except ValueError:
            said = f"{shortened(text)!r} is not a partition; write topic-partition, for example orders-3"
            raise InputError(said) from None


class TopicPartitionReplica(NamedTuple):
    """One copy of a partition on one broker; sorts by **broker** first, as Kafka's tool does."""

    broker: int
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of which this is a copy."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """What the cluster's metadata says of a partition.

    `replicas` is the full ordered list: during a reassignment the target order followed by the replicas being
    removed; the first is the preferred leader. `leader` is `NO_LEADER` when there is none. `eligible_leaders`
    and `last_known_eligible_leaders` (KIP-966) are None where the cluster does not report them.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = -1
    offline: tuple[int, ...] = ()
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible_leaders: tuple[int, ...] | None = None

    def __str__(self) -> str:
        leader = "none" if self.leader == NO_LEADER else self.leader
        return f"{self.topic_partition}: replicas {_ids(self.replicas)}, isr {_ids(self.isr)}, leader {leader}"

    @property
    def preferred_leader(self) -> int:
        """The first replica, or `NO_LEADER` for a partition without replicas."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def under_replicated(self) -> bool:
        """Whether a replica is out of sync. During a move this counts the adding replicas too."""
        return not set(self.replicas) <= set(self.isr)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and its partitions, in order of their number."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: tuple[Partition, ...]


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
