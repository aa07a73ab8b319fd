"""A simple planner: one replica after the other from a full broker to an empty one, then leaders without copying.

Deterministic: the same problem gives the same plan. It moves, from the fullest broker that can give, the replica
that removes the most imbalance per byte, as long as some move removes any; no swaps and no looking ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.planner.leaders import spread_leaders
from kreassign.planner.thin import ByteBand, ByteProblem, PartitionLoad


@dataclass(frozen=True, slots=True)
class Candidate:
    """One replica that could go from one broker to another; `gain` is the imbalance, in bytes, that this removes."""

    load: PartitionLoad
    source: int
    destination: int
    gain: int

    @property
    def rank(self) -> tuple[float, int, TopicPartition, int]:
        """Sorts the best first: most gain per byte, then the larger, then by name so that nothing is left to chance."""
        size = self.load.size_bytes
        return -self.gain / size, -size, self.load.topic_partition, self.destination


class Placement:
    """Where every replica is while the search goes on, with the load of each broker kept up to date."""

    def __init__(self, problem: ByteProblem) -> None:
        self.band: ByteBand = problem.band
        self.racks = problem.racks
        self.replicas = problem.current
        self.load_bytes = dict.fromkeys(problem.broker_ids, 0)
        self._hosted: dict[int, dict[TopicPartition, PartitionLoad]] = {broker: {} for broker in problem.broker_ids}
        for load in problem.partitions:
            for broker in load.replicas:
                self.load_bytes[broker] += load.size_bytes
                self._hosted[broker][load.topic_partition] = load

    def candidates(self, source: int) -> Iterator[Candidate]:
        """Every legal move away from a broker that removes imbalance."""
        receivers = [broker for broker, load in self.load_bytes.items() if load < self.load_bytes[source]]
        for load in self._hosted[source].values():
            if load.may_move:
                for destination in receivers:
                    gain = self._gain(load.size_bytes, source, destination)
                    if gain > 0 and self._allows(load.topic_partition, source, destination):
                        yield Candidate(load, source, destination, gain)

    def apply(self, move: Candidate) -> None:
        """Carry a move out; the new broker takes the place of the old one in the list."""
        partition = move.load.topic_partition
        self.replicas[partition] = self._replaced(partition, move.source, move.destination)
        self.load_bytes[move.source] -= move.load.size_bytes
        self.load_bytes[move.destination] += move.load.size_bytes
        self._hosted[move.destination][partition] = self._hosted[move.source].pop(partition)

    def _gain(self, size: int, source: int, destination: int) -> int:
        full, empty, missed = self.load_bytes[source], self.load_bytes[destination], self.band.missed
        return missed(full) - missed(full - size) + missed(empty) - missed(empty + size)

    def _allows(self, partition: TopicPartition, source: int, destination: int) -> bool:
        replicas = self.replicas[partition]
        if destination in replicas:
            return False
        after = self._replaced(partition, source, destination)
        return not self.racks or self._rack_count(after) >= self._rack_count(replicas)

    def _replaced(self, partition: TopicPartition, source: int, destination: int) -> tuple[int, ...]:
        return tuple(destination if broker == source else broker for broker in self.replicas[partition])

    def _rack_count(self, replicas: tuple[int, ...]) -> int:
        return len({self.racks[broker] for broker in replicas})


def rebalance(problem: ByteProblem) -> dict[TopicPartition, tuple[int, ...]]:
    """The new replica list of every partition that shall change, sorted; empty when all is well.

    What it cannot bring into the band stays outside: ask `evaluate`.
    """
    placement = Placement(problem)
    while (move := _best_move(placement)) is not None:
        placement.apply(move)
    pinned = {load.topic_partition for load in problem.partitions if not load.may_move}
    targets = spread_leaders(placement.replicas, problem.broker_ids, pinned)
    current = problem.current
    return {partition: targets[partition] for partition in sorted(targets) if targets[partition] != current[partition]}


def _best_move(placement: Placement) -> Candidate | None:
    fullest_first = sorted(placement.load_bytes, key=lambda broker: (-placement.load_bytes[broker], broker))
    for source in fullest_first:
        best = min(placement.candidates(source), key=lambda move: move.rank, default=None)
        if best is not None:
            return best
    return None
