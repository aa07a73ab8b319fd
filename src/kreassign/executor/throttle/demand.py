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

    @property
    def most_bytes_per_s(self) -> float:
        """What the broker with most of it has to send, or to receive."""
        return max((*self.sent.values(), *self.received.values()), default=0.0)


def demand(
    partitions: Iterable[CopiedPartition], *, most_from_one: int | None = None, most_to_one: int | None = None
) -> Demand:
    """What these partitions take together, when all are copied at the same time.

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
    """The least rate that works for such a demand, in bytes per second."""
    return math.ceil(HEADROOM * demand_bytes_per_s)
