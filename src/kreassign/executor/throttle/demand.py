"""What producers' writes take of a throttle while partitions are copied, and the least rate that is enough. Pure.

A broker has one budget per direction. Of a partition whose leader is listed, all that followers fetch is counted at
the leader: what new copies fetch, and also what followers in sync fetch, which is not slowed (KIP-73;
`docs/concepts/throttles.md`, "What it slows, and what not"). So a partition written at w bytes per second, with f
followers in sync and c new copies, takes **w · (f + c)** of its leader's budget before any copy gains on the leader,
and w of the budget of each broker that gets a copy. Partitions that are copied at the same time share budgets: what
they take adds up.

At just the demand nothing is left to catch up with, and a throttle reaches 11/12 of its rate at best (same page). So
the least rate that works is taken to be five quarters of the demand, which leaves about a seventh of it for the copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

HEADROOM = 1.25
"""Rates are at least so many times the demand, for else copies do not end in a reasonable time."""


@dataclass(frozen=True, slots=True)
class CopiedPartition:
    """A partition that is copied: bytes per second written to it, its leader, followers in sync, where copies go."""

    write_bytes_per_s: float
    leader: int
    followers_in_sync: int
    destinations: tuple[int, ...]

    @property
    def streams(self) -> int:
        """To how many brokers its leader sends everything that is written, from its budget."""
        return self.followers_in_sync + len(self.destinations)

    @property
    def sent_bytes_per_s(self) -> float:
        """What it takes of the budget of its leader; nothing where it is not copied, for then it is not listed."""
        return self.write_bytes_per_s * self.streams if self.destinations else 0.0


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes per second that brokers have to send, and to receive, lest copies fall behind; by broker."""

    sent: dict[int, float]
    received: dict[int, float]


def demand(partitions: Iterable[CopiedPartition]) -> Demand:
    """What these partitions take together, when all are copied at the same time."""
    found = Demand({}, {})
    for one in partitions:
        found.sent[one.leader] = found.sent.get(one.leader, 0.0) + one.sent_bytes_per_s
        for broker in one.destinations:
            found.received[broker] = found.received.get(broker, 0.0) + one.write_bytes_per_s
    return found


def least_rate(demand_bytes_per_s: float) -> int:
    """The least rate that works for such a demand, in bytes per second."""
    return math.ceil(HEADROOM * demand_bytes_per_s)
