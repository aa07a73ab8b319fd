"""Predict what a run will do before anything is sent: bytes copied, duration, and whether its throttle suffices.

**The time.** A broker that has B bytes to send at rate r needs B / r at least; the run lasts as long as the broker
that needs longest. Throttled copies reach 11/12 of their rate (`scheduling/windows.py`), and what producers write
meanwhile is copied too: of a rate r only r · 11/12 - w is left for what is there already. The end lies between both;
where nothing is left, it is unknown. Without a throttle disks and networks decide, which are unknown.

**The throttle that is proposed** where none was given: what a network of 1 Gbit/s, the slowest that is usual, has
left at the busiest broker of the run when 70 % of it is used; but never less than all copies need to end (`demand` in
`throttle_rates.py`). An operator who knows the network gives a rate, or `auto` with its capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.executor.cluster.measurements import sample_offsets
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import Reading
from kreassign.executor.events import PlannedMove
from kreassign.executor.scheduling.windows import REACHED
from kreassign.executor.throttle_rates import BrokerTraffic, CopiedPartition, Demand, demand, least_rate
from kreassign.model import LogDir, TopicPartition
from kreassign.model.disks import sum_of_disks
from kreassign.model.pace import NO_LIMITS, Cap, Caps
from kreassign.model.plan_facts import PlanFacts
from kreassign.model.text import format_amount, least_rate_option
from kreassign.model.throttle import ThrottleRates

# Check that a throttle is enough for the writes of producers meanwhile.

ONE_AT_A_TIME = Caps(cluster=Cap(moves=1))


@dataclass(frozen=True, slots=True)
class Starvation:
    """A throttle that is too low for its subject. `is_certain`: no order of moves could help.

    The need is the write rate, once for each of the `streams` that share the rate: new copies, and at the leader
    also followers in sync. `is_together` stands for all moves that load a broker at the same time.
    """

    subject: str
    needed_bytes_per_s: float
    rate_bytes_per_s: int
    is_certain: bool
    streams: int = 1
    is_together: bool = False

    def __str__(self) -> str:
        doubt = "may never end if all its copies go at the same time" if self.is_together else "may never end"
        times = f" and {self.streams} replicas share that throttle" if self.streams > 1 else ""
        rate = format_amount(self.rate_bytes_per_s, "B/s")
        written = format_amount(self.needed_bytes_per_s / self.streams, "B/s")
        ends = "never ends" if self.is_certain else doubt
        return f"{self.subject}: at {rate} it {ends}, for producers write {written} meanwhile{times}"


@dataclass(frozen=True, slots=True)
class RateAdvice:
    """Lowest rate with which all moves of a run end, and that for one move at a time. Both in bytes per second.

    One advice for the whole run: advice per move would contradict itself, and that for the brokers.
    """

    bytes_per_s: int
    one_at_a_time_bytes_per_s: int

    def __str__(self) -> str:
        alone = self.one_at_a_time_bytes_per_s
        other = f", or {least_rate_option(alone)} with --max-moves 1" if alone < self.bytes_per_s else ""
        return (
            f"the least rate that works for all moves is {least_rate_option(self.bytes_per_s)}{other}: give every "
            "broker that much, with --throttle and --throttle-broker"
        )


def measure_writes(
    port: ClusterPort, clock: Clock, moves: Iterable[PlannedMove], seconds: float
) -> Reading[TopicPartition, float]:
    """Measure the write rates of the partitions to copy over `seconds`, in bytes per second.

    Absent where the log has no records that would tell their size. Raises ClusterError when no broker answers at all.
    """
    sizes = {move.topic_partition: move.size_bytes for move in moves if move.adding and move.size_bytes}
    if not sizes:
        return Reading({}, frozenset(), {})
    samples = sample_offsets(port, clock, sizes, seconds)
    rates = {name: samples.write_rate(name, size_bytes) for name, size_bytes in sizes.items()}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    return Reading(known, frozenset(rates.keys() - known.keys() - samples.failed.keys()), samples.failed)


def starved(
    moves: Iterable[PlannedMove],
    writes: Mapping[TopicPartition, float],
    rates: ThrottleRates,
    caps: Caps = NO_LIMITS.caps,
) -> tuple[Starvation, ...]:
    """Partitions for which these rates are too low, then brokers with all moves that may load them at a time.

    Assumes that all followers are in sync, and preferred leaders lead.
    """
    copied = _written(moves, writes)
    found = [one for move in copied if (one := _partition(move, writes[move.topic_partition], rates)) is not None]
    known = {starvation.subject for starvation in found}
    rest = [move for move in copied if str(move.topic_partition) not in known]
    return (*found, *_brokers(rest, writes, rates, caps))


def rate_advice(
    moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float], caps: Caps = NO_LIMITS.caps
) -> RateAdvice:
    """Lowest rate with which these moves end if writes stay as measured."""
    copied = _written(moves, writes)
    whole, alone = (_demand(copied, writes, each).most_bytes_per_s for each in (caps, ONE_AT_A_TIME))
    return RateAdvice(least_rate(whole), least_rate(alone))


def _written(moves: Iterable[PlannedMove], writes: Mapping[TopicPartition, float]) -> list[PlannedMove]:
    """Moves that copy a partition with writes."""
    return [move for move in moves if move.adding and writes.get(move.topic_partition)]


def _partition(move: PlannedMove, written: float, rates: ThrottleRates) -> Starvation | None:
    """Worst need of a move: any of the old replicas may become leader, so their best rate counts."""
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
    """Demand on the budgets of brokers, with as many moves at a time as the limits allow."""
    return demand(
        (_copied(move, writes[move.topic_partition]) for move in moves),
        most_from_one=_fewest(caps.cluster.moves, caps.source.moves),
        most_to_one=_fewest(caps.cluster.moves, caps.destination.moves),
    )


def _fewest(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _copied(move: PlannedMove, written: float) -> CopiedPartition:
    return CopiedPartition(written, move.original[0], len(move.original) - 1, move.adding)


# Amounts, times, free space, and the proposed throttle.

ASSUMED_NETWORK_BYTES_PER_S = 125_000_000
"""1 Gbit/s, in each direction."""

FAST_NETWORK_BYTES_PER_S = 12_500_000_000
"""100 Gbit/s: a higher throttle is a slip."""

USED_AT_MOST = 0.7
"""Share of a network that clients, followers and copies use together."""

ROUND_TO = 1_000_000


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """Free bytes of a broker once all copies of a run are there and none of the old ones is deleted."""

    broker: int
    usable_bytes: int
    total_bytes: int

    @property
    def share(self) -> float:
        """Free share of its log directories."""
        return self.usable_bytes / self.total_bytes if self.total_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed throttle in bytes per second, and the traffic of the busiest broker.

    `is_least`: there is less room than all copies need to end, so the rate is what they need.
    """

    bytes_per_s: int
    busiest_broker: int
    busiest_bytes_per_s: float
    is_least: bool = False

    @property
    def text(self) -> str:
        """The rate as an option value."""
        return f"{self.bytes_per_s // 1_000_000}MB/s"


@dataclass(frozen=True, slots=True)
class RunPreview:
    """Predicted effects of a run. Amounts in bytes, times in seconds.

    `leader_changes` counts partitions that get another preferred leader. `lowest_free` is that of the broker with the
    smallest free share; None if no broker reports it. `unsized` are brokers that receive and whose free space is not
    known: a directory did not answer, or reports none (Kafka before 3.3), so that no guard sees it fill. `shortest_s`
    and `longest_s` bound the duration; None if unknown. `opening` says when moves may be in flight, None at any time.
    `others` are partitions being reassigned by others now. `factors` has a sentence per change of replication factors,
    `outages` one per topic whose producers with acks=all are refused meanwhile. `made_for` is the cluster that the plan
    names; None if it names none.
    """

    partitions: int
    copies: int
    copied_bytes: int
    leader_changes: int
    log_dir_moves: int
    log_dir_bytes: int
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    rates: ThrottleRates
    lowest_free: FreeSpace | None
    unsized: tuple[int, ...]
    shortest_s: float | None
    longest_s: float | None
    reason: str
    others: int = 0
    proposal: Proposal | None = None
    factors: tuple[str, ...] = ()
    outages: tuple[str, ...] = ()
    made_for: str | None = None
    opening: str | None = None


def preview(
    moves: Iterable[PlannedMove],
    rates: ThrottleRates,
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    facts: PlanFacts | None = None,
    others: int = 0,
    proposal: Proposal | None = None,
) -> RunPreview:
    """Predict the effects of these moves at these rates, or at the proposed rate."""
    moves = tuple(moves)
    at = rates if proposal is None else ThrottleRates(proposal.bytes_per_s)
    received = _received(moves)
    shortest, longest = _time(moves, at)
    free = {one.broker: one for one in _free(received, log_dirs)}
    return RunPreview(
        partitions=len(moves),
        copies=sum(len(move.adding) for move in moves),
        copied_bytes=sum(move.size_bytes * len(move.adding) for move in moves),
        leader_changes=sum(move.original[:1] != move.target[:1] for move in moves),
        log_dir_moves=sum(len(move.rearranging) for move in moves),
        log_dir_bytes=sum(move.size_bytes * len(move.rearranging) for move in moves),
        senders=tuple(sorted({move.original[0] for move in moves if move.adding and move.original})),
        receivers=tuple(sorted(received)),
        rates=rates,
        lowest_free=min(free.values(), key=lambda one: one.share, default=None),
        unsized=tuple(sorted(received.keys() - free.keys())),
        shortest_s=shortest,
        longest_s=longest,
        reason=_reason(facts),
        others=others,
        proposal=proposal,
    )


def propose(
    moves: Iterable[PlannedMove],
    traffic: Iterable[BrokerTraffic],
    writes: Mapping[TopicPartition, float],
    live: Iterable[int],
) -> Proposal | None:
    """Propose a throttle for a run without one; None without copies, or if traffic of a live broker is unknown."""
    moves = tuple(move for move in moves if move.adding)
    brokers = {broker for move in moves for broker in (*move.original, *move.adding)}
    used = {one.broker: max(one.sent_bytes_per_s, one.received_bytes_per_s) for one in traffic if one.broker in brokers}
    if not used or not brokers.intersection(live) <= used.keys():  # The busiest may be one of which nothing is known.
        return None
    busiest = max(sorted(used), key=lambda broker: used[broker])
    left = USED_AT_MOST * ASSUMED_NETWORK_BYTES_PER_S - used[busiest]
    least = rate_advice(moves, writes).bytes_per_s
    roomy, needed = int(left) // ROUND_TO * ROUND_TO, -(-least // ROUND_TO) * ROUND_TO
    return Proposal(max(ROUND_TO, roomy, needed), busiest, used[busiest], is_least=needed > roomy)


def _received(moves: Iterable[PlannedMove]) -> dict[int, int]:
    found: dict[int, int] = {}
    for move in moves:
        for broker in move.receiving:
            found[broker] = found.get(broker, 0) + move.size_bytes
    return found


def _free(received: Mapping[int, int], log_dirs: Mapping[int, tuple[LogDir, ...]]) -> Iterator[FreeSpace]:
    """Brokers of which every directory is known, because Kafka chooses the directory."""
    for broker, size_bytes in received.items():
        total, usable = sum_of_disks(one for one in log_dirs.get(broker, ()) if not one.error)
        if total is not None and usable is not None:
            yield FreeSpace(broker, usable - size_bytes, total)


def _time(moves: tuple[PlannedMove, ...], rates: ThrottleRates) -> tuple[float | None, float | None]:
    """Shortest and longest duration at these rates; None if unknown."""
    needs: Counter[tuple[str, int]] = Counter()
    written: Counter[tuple[str, int]] = Counter()
    for move in moves:
        if not (move.adding and move.original):
            continue
        ends = [("out", move.original[0])] * len(move.adding) + [("in", broker) for broker in move.adding]
        for end in ends:
            needs[end] += move.size_bytes
            written[end] += round(move.write_bytes_per_s)
        written["out", move.original[0]] += round(move.write_bytes_per_s) * (len(move.original) - 1)
    is_beside = any(move.rearranging for move in moves)  # a throttle does not slow copies between directories
    if not needs:
        return (None, None) if is_beside else (0.0, 0.0)
    known = [(needs[end], written[end], rate) for end in needs if (rate := rates.of(end[1])) is not None]
    if rates.adaptive is not None or not known:
        return None, None
    left = [rate * REACHED - writes for _, writes, rate in known]
    is_endless = min(left) <= 0 or len(known) < len(needs) or is_beside
    longest = None if is_endless else max(size / free for (size, _, _), free in zip(known, left, strict=True))
    return max(size / rate for size, _, rate in known), longest


def _reason(facts: PlanFacts | None) -> str:
    """Task of the plan and the causes of its changes, the most frequent first."""
    if facts is None:
        return ""
    causes = Counter(reason.cause for fact in facts.partitions for reason in fact.reasons)
    told = ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())
    return f"{facts.task}: {told}" if told else facts.task
