"""Before a run: is its throttle enough? A copy gains on its leader only by what it is copied faster than written.

A copy of a partition that producers write w bytes per second to never ends at a rate of w or less: t = s / (r - w). The
source sends each new copy separately, so for n of them it needs more than n times w.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.write_rates import sample_offsets
from kreassign.executor.events import PlannedMove
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Starvation:
    """What a throttle is too low for. `is_certain`: no order of moves could help.

    `copies` are those of a partition that share the rate: what is needed is so many times what is written.
    """

    subject: str
    needed_bytes_per_s: float
    rate_bytes_per_s: int
    is_certain: bool
    copies: int = 1

    @property
    def least_bytes_per_s(self) -> int:
        """The lowest rate at which it ends, if nothing more is written than was measured; give more than that."""
        return int(self.needed_bytes_per_s) + 1

    def __str__(self) -> str:
        certainty = "never ends" if self.is_certain else "may never end if all its copies go at the same time"
        times = f" for each of {self.copies} copies" if self.copies > 1 else ""
        return (
            f"{self.subject}: at {self.rate_bytes_per_s} B/s it {certainty}, for producers write "
            f"{self.needed_bytes_per_s / self.copies:.0f} B/s meanwhile{times}; the least rate that works is "
            f"{self.least_bytes_per_s} B/s, give more with --throttle or --throttle-broker"
        )


def measure_writes(
    port: ClusterPort, clock: Clock, moves: Iterable[PlannedMove], seconds: float
) -> dict[TopicPartition, float]:
    """Bytes per second that producers write to what is copied, measured over so long.

    Without those whose leader does not answer. Raises ClusterError when nobody answers at all.
    """
    sizes = {move.topic_partition: move.size_bytes for move in moves if move.adding and move.size_bytes}
    if not sizes:
        return {}
    samples = sample_offsets(port, clock, sizes, seconds)
    rates = {name: samples.write_rate(name, size_bytes) for name, size_bytes in sizes.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}


def starved(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], rates: ThrottleRates
) -> tuple[Starvation, ...]:
    """What these rates are too low for: single partitions first, then destinations with all that comes in."""
    found = list(_partitions(moves := tuple(moves), writes, rates))
    hopeless = {starvation.subject for starvation in found}
    incoming: dict[int, float] = {}
    for move in moves:
        for broker in move.adding if str(move.topic_partition) not in hopeless else ():
            incoming[broker] = incoming.get(broker, 0.0) + writes.get(move.topic_partition, 0.0)
    return (
        *found,
        *(
            Starvation(f"broker {broker}", needed, rate, is_certain=False)
            for broker, needed in sorted(incoming.items())
            if (rate := rates.of(broker)) is not None and needed >= rate
        ),
    )


def _partitions(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], rates: ThrottleRates
) -> Iterator[Starvation]:
    for move in moves:
        written = writes.get(move.topic_partition, 0.0)
        for copies, rate in _passages(move, rates):
            if rate is not None and written * copies >= rate:
                yield Starvation(str(move.topic_partition), written * copies, rate, is_certain=True, copies=copies)
                break


def _passages(move: PlannedMove, rates: ThrottleRates) -> Iterator[tuple[int, int | None]]:
    """How many copies of a move pass a broker, and its rate: where they leave, then where they arrive.

    Any of the old replicas may come to lead, so only what is too much for each of them is too much.
    """
    sending = [rates.of(broker) for broker in move.original]
    way_out = None if None in sending else max((rate for rate in sending if rate is not None), default=None)
    if move.adding:
        yield len(move.adding), way_out
    for broker in move.adding:
        yield 1, rates.of(broker)
