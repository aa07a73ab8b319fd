"""Random placement and sizes of the partitions of a topic: the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.model import striped


@dataclass(frozen=True, slots=True)
class Place:
    """Brokers that may hold replicas, in order, and the rack of each (None where it has none).

    Without `skew` Kafka's own placement is used. With it the broker at place k (from 0) is chosen (k + 1)^-skew times
    as often as the first: 1 means half as often for the second, a third as often for the third.
    """

    racks: Mapping[int, str | None]
    skew: float = 0.0

    def draw(self, partitions: int, replication_factor: int, rng: random.Random) -> Sequence[tuple[int, ...]]:
        """Replica lists of so many partitions of one topic, different racks first where all brokers name one."""
        if len(self.racks) < replication_factor:
            raise InputError(f"{replication_factor} replicas need as many brokers; there are {sorted(self.racks)}")
        if not self.skew:
            brokers = [striped.UsableBroker(*each) for each in self._known_racks.items()]
            return striped.place(brokers, partitions, replication_factor, rng)
        return [self._draw_skewed(replication_factor, rng) for _ in range(partitions)]

    @property
    def _known_racks(self) -> Mapping[int, str | None]:
        """The racks, if every broker has one: Kafka does not keep racks apart either where one has none."""
        return dict.fromkeys(self.racks) if None in self.racks.values() else self.racks

    def _draw_skewed(self, replication_factor: int, rng: random.Random) -> tuple[int, ...]:
        racks, chosen = self._known_racks, list[int]()
        while len(chosen) < replication_factor:
            taken = {racks[broker] for broker in chosen}
            free = [broker for broker in racks if broker not in chosen]
            # A rack gets a second replica when every other one has its first.
            apart = [broker for broker in free if racks[broker] not in taken] or free
            places = {broker: place for place, broker in enumerate(racks)}
            chosen += rng.choices(apart, [(places[broker] + 1) ** -self.skew for broker in apart])
        return tuple(chosen)


def shares(count: int, spread: float, rng: random.Random) -> Iterator[float]:
    """Parts of so many partitions, 1 on average: log-normal with the standard deviation `spread` of the logarithm.

    0 makes all equal; with 1 the largest of a hundred partitions is usually about seven times the mean.
    """
    # The mean of a log-normal distribution is exp(mu + sigma²/2).
    return (rng.lognormvariate(-(spread**2) / 2, spread) if spread else 1.0 for _ in range(count))
