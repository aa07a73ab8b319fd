"""A throttle that follows the traffic: what a broker can carry, less what it carries already. Pure.

Never below what the partitions that are copied are written at, for then their copies would never end; and where nobody
knows the traffic, a floor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.executor.throttle.demand import least_rate
from kreassign.model import NO_LEADER, Partition, TopicPartition

FLOOR_PART = 0.1
"""Of the capacity of a broker, so much is its floor unless another is given."""

WORTH_A_CHANGE = 0.1
"""A rate that is off by no more than this part stays: each change is a request to the broker."""


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    """What one broker can send, and receive, in all, in bytes per second."""

    broker: int
    bytes_per_s: int


@dataclass(frozen=True, slots=True)
class AdaptiveThrottle:
    """What each broker can send, and receive, in total.

    `per_broker` names brokers with another capacity; `floor_bytes_per_s` is the lowest rate for copies.
    """

    capacity_bytes_per_s: int
    per_broker: tuple[BrokerCapacity, ...] = ()
    floor_bytes_per_s: int | None = None

    def capacity_of(self, broker: int) -> int:
        """What this broker can send and receive."""
        known = (one.bytes_per_s for one in self.per_broker if one.broker == broker)
        return next(known, self.capacity_bytes_per_s)

    def floor_of(self, broker: int) -> int:
        """What it may use for copies in any case."""
        return self.floor_bytes_per_s or max(1, int(FLOOR_PART * self.capacity_of(broker)))


@dataclass(frozen=True, slots=True)
class BrokerTraffic:
    """What a broker sends to followers in sync, and receives from producers and leaders, without copies of moves."""

    broker: int
    sent_bytes_per_s: float
    received_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class PartitionWrites:
    """What producers write to a partition."""

    topic_partition: TopicPartition
    bytes_per_s: float


def adaptive_rate(
    adaptive: AdaptiveThrottle, broker: int, traffic: float | None, needed: float, present: int | None
) -> int:
    """The rate of a broker in one direction, given its `traffic` (None: not measured), all in bytes per second.

    `needed` is what is written to the partitions that are copied there, `present` the rate that it has.
    """
    least = max(adaptive.floor_of(broker), least_rate(needed))
    wanted = least if traffic is None else max(least, int(adaptive.capacity_of(broker) - traffic))
    if present is not None and present >= least and abs(wanted - present) <= WORTH_A_CHANGE * present:
        return present
    return wanted


def traffic_of(
    partitions: Iterable[Partition], writes: Mapping[TopicPartition, float], brokers: Iterable[int]
) -> tuple[BrokerTraffic, ...]:
    """The traffic of these brokers, but for those that have to do with a partition whose writes are not known.

    A replica out of sync is left out: what it fetches is throttled, or soon over.
    """
    sent, received = defaultdict[int, float](float), defaultdict[int, float](float)
    unknown: set[int] = set()
    for partition in partitions:
        bytes_per_s = writes.get(partition.topic_partition)
        if partition.leader == NO_LEADER:
            continue
        if bytes_per_s is None:
            unknown |= {partition.leader, *partition.isr}
            continue
        sent[partition.leader] += bytes_per_s * (len(partition.isr) - 1)
        for broker in partition.isr:
            received[broker] += bytes_per_s
    return tuple(BrokerTraffic(broker, sent[broker], received[broker]) for broker in sorted({*brokers} - unknown))
