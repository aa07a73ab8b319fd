"""Before a run: is its throttle enough for what producers write meanwhile? What it has to be: `throttle/demand.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.write_rates import sample_offsets
from kreassign.executor.events import PlannedMove
from kreassign.executor.scheduling import NO_LIMITS, Cap, Caps
from kreassign.executor.throttle.demand import CopiedPartition, Demand, demand, least_rate
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import TopicPartition

ONE_AT_A_TIME = Caps(cluster=Cap(moves=1))


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

    def __str__(self) -> str:
        doubt = "may never end if all its copies go at the same time" if self.is_together else "may never end"
        times = f" and {self.streams} replicas fetch that from one budget" if self.streams > 1 else ""
        return (
            f"{self.subject}: at {self.rate_bytes_per_s} B/s it {'never ends' if self.is_certain else doubt}, for "
            f"producers write {self.needed_bytes_per_s / self.streams:.0f} B/s meanwhile{times}"
        )


@dataclass(frozen=True, slots=True)
class RateAdvice:
    """The least rate with which all moves of a run end, and that for one move at a time. Both in bytes per second.

    One advice for the whole run: those of single moves would contradict each other, and that of their brokers.
    """

    bytes_per_s: int
    one_at_a_time_bytes_per_s: int

    def __str__(self) -> str:
        alone = self.one_at_a_time_bytes_per_s
        other = f", or {alone} B/s with --max-moves 1" if alone < self.bytes_per_s else ""
        return (
            f"the least rate that works for all moves is {self.bytes_per_s} B/s{other}: give every broker that much, "
            "with --throttle and --throttle-broker"
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
    moves: Iterable[PlannedMove],
    writes: Mapping[TopicPartition, float],
    rates: ThrottleRates,
    caps: Caps = NO_LIMITS.caps,
) -> tuple[Starvation, ...]:
    """What these rates are too low for: single partitions first, then brokers with all that may pass them at a time.

    All followers are supposed to be in sync, and preferred leaders to lead.
    """
    copied = _written(moves, writes)
    found = [one for move in copied if (one := _partition(move, writes[move.topic_partition], rates)) is not None]
    known = {starvation.subject for starvation in found}
    rest = [move for move in copied if str(move.topic_partition) not in known]
    return (*found, *_brokers(rest, writes, rates, caps))


def rate_advice(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], caps: Caps = NO_LIMITS.caps
) -> RateAdvice:
    """The least rate with which these moves end, if no more is written than was measured."""
    copied = _written(moves, writes)
    whole, alone = (_demand(copied, writes, each).most_bytes_per_s for each in (caps, ONE_AT_A_TIME))
    return RateAdvice(least_rate(whole), least_rate(alone))


def _written(moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float]) -> list[PlannedMove]:
    """Those that copy something to which is written."""
    return [move for move in moves if move.adding and writes.get(move.topic_partition)]


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
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], rates: ThrottleRates, caps: Caps
) -> Iterator[Starvation]:
    whole = _demand(moves, writes, caps)
    for broker in sorted(whole.sent.keys() | whole.received.keys()):
        needed, rate = max(whole.sent.get(broker, 0.0), whole.received.get(broker, 0.0)), rates.of(broker)
        if rate is not None and rate < least_rate(needed):
            yield Starvation(f"broker {broker}", needed, rate, is_certain=False, is_together=True)


def _demand(moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], caps: Caps) -> Demand:
    """What they take of budgets, as many at a time as the limits let start."""
    return demand(
        (_copied(move, writes[move.topic_partition]) for move in moves),
        most_from_one=_fewest(caps.cluster.moves, caps.source.moves),
        most_to_one=_fewest(caps.cluster.moves, caps.destination.moves),
    )


def _fewest(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _copied(move: PlannedMove, written: float) -> CopiedPartition:
    return CopiedPartition(written, move.original[0], len(move.original) - 1, move.adding)
