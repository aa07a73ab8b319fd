"""Before a run: is its throttle enough? A copy gains on its leader only by what it is copied faster than written.

A copy of a partition that producers write w bytes per second to never ends at a rate of w or less: t = s / (r - w). The
source sends each new copy separately, so for n of them it needs more than n times w.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.executor.events import PlannedMove
from kreassign.executor.port import ClusterPort
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Starvation:
    """What a throttle is too low for. `is_certain`: no order of moves could help."""

    subject: str
    needed_bytes_per_s: float
    rate_bytes_per_s: int
    is_certain: bool

    def __str__(self) -> str:
        certainty = "never ends" if self.is_certain else "may never end if all its copies go at the same time"
        return (
            f"{self.subject}: at {self.rate_bytes_per_s} B/s it {certainty}, for producers write "
            f"{self.needed_bytes_per_s:.0f} B/s meanwhile; give more than that with --throttle"
        )


def measure_writes(
    port: ClusterPort, clock: Clock, moves: Iterable[PlannedMove], seconds: float
) -> dict[TopicPartition, float]:
    """Bytes per second that producers write to what is copied: records over so long, times their mean size.

    Without those whose leader does not tell. Raises ClusterError when nobody answers at all.
    """
    sizes = {move.topic_partition: move.size_bytes for move in moves if move.adding and move.size_bytes}
    if not sizes:
        return {}
    starts, ends = port.list_offsets(sizes, earliest=True).ok, port.list_offsets(sizes, earliest=False).ok
    begun_s = clock.monotonic_s()
    clock.sleep(seconds)
    later = port.list_offsets(sizes, earliest=False).ok
    span_s = clock.monotonic_s() - begun_s
    known = [name for name in sizes if name in starts and name in later and ends.get(name, 0) > starts[name]]
    return {
        name: max(0, later[name] - ends[name]) / span_s * sizes[name] / (ends[name] - starts[name]) for name in known
    }


def starved(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], rate_bytes_per_s: int
) -> tuple[Starvation, ...]:
    """What this rate is too low for: single partitions first, then destinations with all that comes in."""
    found = list(_partitions(moves := tuple(moves), writes, rate_bytes_per_s))
    hopeless = {starvation.subject for starvation in found}
    incoming: dict[int, float] = {}
    for move in moves:
        for broker in move.adding if str(move.topic_partition) not in hopeless else ():
            incoming[broker] = incoming.get(broker, 0.0) + writes.get(move.topic_partition, 0.0)
    return (
        *found,
        *(
            Starvation(f"broker {broker}", needed, rate_bytes_per_s, is_certain=False)
            for broker, needed in sorted(incoming.items())
            if needed >= rate_bytes_per_s
        ),
    )


def _partitions(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], rate_bytes_per_s: int
) -> Iterator[Starvation]:
    for move in moves:
        needed = writes.get(move.topic_partition, 0.0) * len(move.adding)
        if needed >= rate_bytes_per_s:
            yield Starvation(str(move.topic_partition), needed, rate_bytes_per_s, is_certain=True)
