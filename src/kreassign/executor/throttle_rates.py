"""Choose the rates of a throttle: given ones, ones that follow the traffic, and the lowest that is enough.

All rates are bytes per second of one broker in one direction: one rate for all brokers, others for some
(`ThrottleRates`), or what a broker can carry less what it carries already (`AdaptiveThrottle`). `demand` is what
producers' writes take of a throttle while partitions are copied; a rate below `least_rate` of it never ends.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.model import NO_LEADER, Partition, TopicPartition
from kreassign.model.throttle import AdaptiveThrottle

# Demand: what producers' writes take of a throttle while partitions are copied, and the lowest rate that is enough.
#
# A broker has one budget per direction. Of a partition whose leader is listed, all that followers fetch is counted at
# the leader: what new copies fetch, and also what followers in sync fetch, which is not slowed (KIP-73;
# `docs/concepts/throttles.md`, "What it slows, and what not"). So a partition written at w bytes per second, with f
# followers in sync and c new copies, takes **w · (f + c)** of its leader's budget before any copy gains on the leader,
# and w of the budget of each broker that gets a copy. Partitions that are copied at the same time share budgets: what
# they take adds up.
#
# At just the demand nothing is left to catch up with, and a throttle reaches 11/12 of its rate at best (same page). So
# the least rate that works is taken to be five quarters of the demand, which leaves about a seventh of it for the
# copies.

HEADROOM = 1.25
"""Lowest rate as a multiple of the demand; below, copies do not end in a reasonable time."""


@dataclass(frozen=True, slots=True)
class CopiedPartition:
    """A partition being copied: bytes per second written to it, its leader, followers in sync, and destinations."""

    write_bytes_per_s: float
    leader: int
    followers_in_sync: int
    destinations: tuple[int, ...]

    @property
    def streams(self) -> int:
        """Number of brokers to which its leader sends all writes, from its budget."""
        return self.followers_in_sync + len(self.destinations)

    @property
    def sent_bytes_per_s(self) -> float:
        """Demand on the budget of its leader; 0 if it is not copied, because then it is not listed."""
        return self.write_bytes_per_s * self.streams if self.destinations else 0.0


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes per second that brokers must send, and receive, to keep copies from falling behind; by broker."""

    sent: dict[int, float]
    received: dict[int, float]

    @property
    def most_bytes_per_s(self) -> float:
        """Demand of the broker that has most to send, or to receive."""
        return max((*self.sent.values(), *self.received.values()), default=0.0)


def demand(
    partitions: Iterable[CopiedPartition], *, most_from_one: int | None = None, most_to_one: int | None = None
) -> Demand:
    """Demand of these partitions together, when all are copied at the same time.

    Or at most so many from one leader, and to one destination: then those that take most of its budget.
    """
    sent: dict[int, list[float]] = {}
    received: dict[int, list[float]] = {}
    for one in partitions:
        sent.setdefault(one.leader, []).append(one.sent_bytes_per_s)
        for broker in one.destinations:
            received.setdefault(broker, []).append(one.write_bytes_per_s)
    return Demand(_most(sent, most_from_one), _most(received, most_to_one))


def _most(shares: dict[int, list[float]], count: int | None) -> dict[int, float]:
    return {broker: sum(sorted(each, reverse=True)[:count]) for broker, each in shares.items()}


def least_rate(demand_bytes_per_s: float) -> int:
    """Lowest rate that works for such a demand, in bytes per second."""
    return math.ceil(HEADROOM * demand_bytes_per_s)


# The adaptive throttle: the capacity of a broker less its traffic.
#
# Never below the write rate of the partitions that are copied, or their copies would never end; and a floor where the
# traffic is unknown.

WORTH_A_CHANGE = 0.1
"""A rate that is off by at most this share stays: each change is a request to the broker."""


@dataclass(frozen=True, slots=True)
class BrokerTraffic:
    """Rates that a broker sends to followers in sync, and receives from producers and leaders, without moves."""

    broker: int
    sent_bytes_per_s: float
    received_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class PartitionWrites:
    """Write rate of producers to a partition."""

    topic_partition: TopicPartition
    bytes_per_s: float


def adaptive_rate(
    adaptive: AdaptiveThrottle, broker: int, traffic: float | None, needed: float, present: int | None
) -> int:
    """Rate of a broker in one direction, given its `traffic` (None: not measured), all in bytes per second.

    `needed` is what is written to the partitions that are copied there, `present` its present rate.
    """
    least = max(adaptive.floor_of(broker), least_rate(needed))
    wanted = least if traffic is None else max(least, int(adaptive.capacity_of(broker) - traffic))
    if present is not None and present >= least and abs(wanted - present) <= WORTH_A_CHANGE * present:
        return present
    return wanted


def traffic_of(
    partitions: Iterable[Partition], writes: Mapping[TopicPartition, float], brokers: Iterable[int]
) -> tuple[BrokerTraffic, ...]:
    """Traffic of these brokers, except those with a partition whose write rate is unknown.

    A replica out of sync is left out: its fetches are throttled, or soon over.
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
