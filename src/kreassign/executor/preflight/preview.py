"""What a run will do, told before anything is sent: what it copies, for how long, and what is left free. Pure.

**The time.** A broker that has B bytes to send at rate r needs B / r at least; the run lasts as long as the broker
that needs longest. Throttled copies reach 11/12 of their rate (`scheduling/windows.py`), and what producers write
meanwhile is copied too: of a rate r only r · 11/12 - w is left for what is there already. Between both lies the end;
where nothing is left, nobody can say. Without a throttle disks and networks decide, which nobody knows.

**The throttle that is proposed** where none was given: what a network of 1 Gbit/s, the slowest that is usual, has left
at the busiest broker of the run when 70 % of it is used; but never less than all copies need to end
(`throttle/demand.py`). Whoever knows the network better gives a rate, or `auto` with its capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.executor.events import PlannedMove
from kreassign.executor.preflight.starvation import rate_advice
from kreassign.executor.scheduling.windows import REACHED
from kreassign.executor.throttle.adaptive import BrokerTraffic
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model import LogDir, TopicPartition
from kreassign.model.plan_facts import PlanFacts

ASSUMED_NETWORK_BYTES_PER_S = 125_000_000
"""1 Gbit/s, in each direction."""

USED_AT_MOST = 0.7
"""Part of a network that clients, followers and copies use together."""

ROUND_TO = 1_000_000


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """What is free at a broker, in bytes, once all copies of a run are there and none of the old ones is deleted."""

    broker: int
    usable_bytes: int
    total_bytes: int

    @property
    def share(self) -> float:
        """The part of its log directories that is free."""
        return self.usable_bytes / self.total_bytes if self.total_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A throttle in bytes per second, and the traffic of the broker that it leaves room for.

    `is_least`: there is less room than all copies need to end, so that it is what they need.
    """

    bytes_per_s: int
    busiest_broker: int
    busiest_bytes_per_s: float
    is_least: bool = False

    @property
    def text(self) -> str:
        """The rate as an option says it."""
        return f"{self.bytes_per_s // 1_000_000}MB/s"


@dataclass(frozen=True, slots=True)
class RunPreview:
    """What a run will do. Amounts in bytes, times in seconds.

    `leader_changes` counts partitions that get another preferred leader. `lowest_free` is of the broker with the
    smallest part free; None where no broker reports it. `shortest_s` and `longest_s` bound the time; None for what
    nobody knows. `others` are partitions that somebody else reassigns now.
    """

    partitions: int
    copies: int
    copied_bytes: int
    leader_changes: int
    log_dir_moves: int
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    rates: ThrottleRates
    lowest_free: FreeSpace | None
    shortest_s: float | None
    longest_s: float | None
    reason: str
    others: int = 0
    proposal: Proposal | None = None


def preview(
    moves: Iterable[PlannedMove],
    rates: ThrottleRates,
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    facts: PlanFacts | None = None,
    others: int = 0,
    proposal: Proposal | None = None,
) -> RunPreview:
    """What these moves do at these rates, or at those that are proposed."""
    moves = tuple(moves)
    at = rates if proposal is None else ThrottleRates(proposal.bytes_per_s)
    received = _received(moves)
    shortest, longest = _time(moves, at)
    return RunPreview(
        partitions=len(moves),
        copies=sum(len(move.adding) for move in moves),
        copied_bytes=sum(move.size_bytes * len(move.adding) for move in moves),
        leader_changes=sum(move.original[:1] != move.target[:1] for move in moves),
        log_dir_moves=sum(len(move.rearranging) for move in moves),
        senders=tuple(sorted({move.original[0] for move in moves if move.adding and move.original})),
        receivers=tuple(sorted(received)),
        rates=rates,
        lowest_free=min(_free(received, log_dirs), key=lambda one: one.share, default=None),
        shortest_s=shortest,
        longest_s=longest,
        reason=_reason(facts),
        others=others,
        proposal=proposal,
    )


def propose(
    moves: Iterable[PlannedMove], traffic: Iterable[BrokerTraffic], writes: Mapping[TopicPartition, float]
) -> Proposal | None:
    """A throttle for a run without one; None where nothing is copied, or nobody knows the traffic of its brokers."""
    moves = tuple(move for move in moves if move.adding)
    brokers = {broker for move in moves for broker in (*move.original, *move.adding)}
    used = {one.broker: max(one.sent_bytes_per_s, one.received_bytes_per_s) for one in traffic if one.broker in brokers}
    if not used:
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
    """Of brokers of which every directory is known: which one Kafka will choose is not."""
    for broker, size_bytes in received.items():
        whole = [one for one in log_dirs.get(broker, ()) if not one.error]
        known = [(one.usable_bytes, one.total_bytes) for one in whole]
        pairs = [(usable, total) for usable, total in known if usable is not None and total is not None]
        if pairs and len(pairs) == len(known):
            yield FreeSpace(broker, sum(usable for usable, _ in pairs) - size_bytes, sum(total for _, total in pairs))


def _time(moves: tuple[PlannedMove, ...], rates: ThrottleRates) -> tuple[float | None, float | None]:
    """The shortest and the longest time that these rates let expect; None for what nobody knows."""
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
    if not needs:
        return 0.0, 0.0
    known = [(needs[end], written[end], rate) for end in needs if (rate := rates.of(end[1])) is not None]
    if rates.adaptive is not None or not known:
        return None, None
    left = [rate * REACHED - writes for _, writes, rate in known]
    is_endless = min(left) <= 0 or len(known) < len(needs)
    longest = None if is_endless else max(size / free for (size, _, _), free in zip(known, left, strict=True))
    return max(size / rate for size, _, rate in known), longest


def _reason(facts: PlanFacts | None) -> str:
    """The task of the plan, and what its changes are for, the most frequent first."""
    if facts is None:
        return ""
    goals = Counter(reason.goal for fact in facts.partitions for reason in fact.reasons)
    told = ", ".join(f"{goal} ({count})" for goal, count in goals.most_common())
    return f"{facts.task}: {told}" if told else facts.task
