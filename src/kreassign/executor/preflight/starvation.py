"""Before a run: is its throttle enough for what producers write meanwhile? What it has to be: `throttle/demand.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.write_rates import sample_offsets
from kreassign.executor.events import PlannedMove
from kreassign.executor.throttle.demand import CopiedPartition, demand, least_rate
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Starvation:
    """What a throttle is too low for. `is_certain`: no order of moves could help.

    What is needed is what is written, once for each of the `streams` that share the rate: new copies, and at the leader
    also followers in sync. `is_together` is all moves that load a broker, when they are under way at the same time.
    """

    subject: str
    needed_bytes_per_s: float
    rate_bytes_per_s: int
    is_certain: bool
    streams: int = 1
    is_together: bool = False

    @property
    def least_bytes_per_s(self) -> int:
        """The lowest rate at which it ends in a reasonable time, if no more is written than was measured."""
        return least_rate(self.needed_bytes_per_s)

    def __str__(self) -> str:
        doubt = "may never end if all its copies go at the same time" if self.is_together else "may never end"
        times = f" and {self.streams} replicas fetch that from one budget" if self.streams > 1 else ""
        return (
            f"{self.subject}: at {self.rate_bytes_per_s} B/s it {'never ends' if self.is_certain else doubt}, for "
            f"producers write {self.needed_bytes_per_s / self.streams:.0f} B/s meanwhile{times}; the least rate that "
            f"works is {self.least_bytes_per_s} B/s, give that with --throttle or --throttle-broker"
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
    """What these rates are too low for: single partitions first, then brokers with all that passes them.

    All followers are supposed to be in sync, and preferred leaders to lead.
    """
    copied = [move for move in moves if move.adding and writes.get(move.topic_partition)]
    found = [one for move in copied if (one := _partition(move, writes[move.topic_partition], rates)) is not None]
    known = {starvation.subject for starvation in found}
    rest = [move for move in copied if str(move.topic_partition) not in known]
    return (*found, *_brokers(rest, writes, rates))


def _partition(move: PlannedMove, written: float, rates: ThrottleRates) -> Starvation | None:
    """The worst of what a move needs: any of the old replicas may come to lead, so the best rate of theirs counts."""
    streams = _copied(move, written).streams
    sending = [rates.of(broker) for broker in move.original]
    known = [rate for rate in sending if rate is not None]
    passages = [(1, rates.of(broker)) for broker in move.adding]
    if len(known) == len(sending):
        passages.append((streams, max(known, default=None)))
    short = [
        Starvation(str(move.topic_partition), written * times, rate, written * times >= rate, times)
        for times, rate in passages
        if rate is not None and rate < least_rate(written * times)
    ]
    return max(short, key=lambda one: (one.is_certain, one.needed_bytes_per_s), default=None)


def _brokers(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], rates: ThrottleRates
) -> Iterator[Starvation]:
    whole = demand(_copied(move, writes[move.topic_partition]) for move in moves)
    for broker in sorted(whole.sent.keys() | whole.received.keys()):
        needed, rate = max(whole.sent.get(broker, 0.0), whole.received.get(broker, 0.0)), rates.of(broker)
        if rate is not None and rate < least_rate(needed):
            yield Starvation(f"broker {broker}", needed, rate, is_certain=False, is_together=True)


def _copied(move: PlannedMove, written: float) -> CopiedPartition:
    return CopiedPartition(written, move.original[0], len(move.original) - 1, move.adding)
