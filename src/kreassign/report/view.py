"""PURE. A run and the snapshots around it → the small records that the page shows.

What comes in is described in `records.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.model.plan_facts import PlanFacts, Reason, Totals
from kreassign.report.plan_limits import bound_sentence
from kreassign.report.records import BreachRecord, LogLineRecord, MoveRecord, Row, RunRecord, RunTrail, SnapshotRows
from kreassign.report.run_pictures import RunPictures, run_pictures
from kreassign.report.verdicts import Check, checks_of

SHOWN_LINES = 500


@dataclass(frozen=True, slots=True)
class Holding:
    """What one broker holds at one time. `write_bytes_per_s` counts every replica that takes the writes.

    It is None where the load of some partition is not known.
    """

    size_bytes: int
    replica_count: int
    leader_count: int
    write_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One broker before and after; None where the snapshot does not have it."""

    broker: int
    rack: str | None
    before: Holding | None
    after: Holding | None


@dataclass(frozen=True, slots=True)
class MoveView:
    """One move. `start_s` counts from the start of the run, `rate_bytes_per_s` is the mean over its duration.

    `reasons` are those of the plan, in sentences; none where they are not known, or the move got another destination.
    """

    name: str
    original: tuple[int, ...]
    target: tuple[int, ...]
    adding: tuple[int, ...]
    bytes_copied: int
    start_s: float | None
    duration_s: float | None
    rate_bytes_per_s: float | None
    problem: str | None
    reasons: tuple[str, ...] = ()

    @property
    def end_s(self) -> float | None:
        """Seconds from the start of the run to the end of the move; None while it is open."""
        return None if self.start_s is None or self.duration_s is None else self.start_s + self.duration_s


@dataclass(frozen=True, slots=True)
class ReceiverView:
    """What one broker received: bytes, seconds in which any move to it was open, and the mean rate over these."""

    broker: int
    bytes_copied: float
    busy_s: float
    rate_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class RateStep:
    """From `start_s` (seconds from the start of the run) on, the moves in flight add up to this rate."""

    start_s: float
    rate_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class RunView:
    """The run in a few numbers. `completed_count` counts moves seen complete."""

    run_id: str
    cluster_id: str
    state: str
    started_ms: int
    duration_s: float | None
    move_count: int
    completed_count: int
    bytes_copied: int
    rate_bytes_per_s: float | None
    throttle_bytes_per_s: int | None
    was_throttle_kept: bool


@dataclass(frozen=True, slots=True)
class GrowthView:
    """Why a broker has other bytes than before: by moves, and by what was written and removed meanwhile."""

    broker: int
    before_bytes: int
    come_bytes: int
    gone_bytes: int
    growth_bytes: int
    after_bytes: int


@dataclass(frozen=True, slots=True)
class BoundView:
    """How near the plan of the run is to the least that any plan copies."""

    totals: Totals
    sentence: str


@dataclass(frozen=True, slots=True)
class ReportView:
    """Everything on the page."""

    run: RunView
    before_ms: int | None
    after_ms: int | None
    brokers: tuple[BrokerView, ...]
    moves: tuple[MoveView, ...]
    receivers: tuple[ReceiverView, ...]
    rate_steps: tuple[RateStep, ...]
    checks: tuple[Check, ...]
    throttle_residue: tuple[str, ...]
    problems: tuple[str, ...]
    pictures: RunPictures | None = None
    breaches: tuple[BreachRecord, ...] = ()
    log: tuple[LogLineRecord, ...] = ()
    more_lines: int = 0
    growths: tuple[GrowthView, ...] = ()
    bound: BoundView | None = None


def report_view(
    run: RunRecord,
    before: SnapshotRows | None,
    after: SnapshotRows | None,
    write_rates: Mapping[TopicPartition, float | None],
    trail: RunTrail | None = None,
    facts: PlanFacts | None = None,
) -> ReportView:
    """The page of a run. Snapshots that were not taken are None; `write_rates` is empty without a load model.

    Pictures need the `trail` of the run, bound and reasons the `facts` of its plan.
    """
    planned = {} if facts is None else {one.topic_partition: one.reasons for one in facts.partitions}
    moves = tuple(sorted((_move_view(move, run.started_ms, planned) for move in run.moves), key=_by_start))
    return ReportView(
        run=_run_view(run, moves),
        before_ms=before.taken_ms if before else None,
        after_ms=after.taken_ms if after else None,
        brokers=_broker_views(before, after, write_rates),
        moves=moves,
        receivers=receivers(moves),
        rate_steps=rate_steps(moves),
        checks=checks_of(run, after),
        throttle_residue=tuple(run.throttle_residue),
        problems=tuple(run.problems),
        pictures=None if trail is None else run_pictures(run, trail),
        breaches=() if trail is None else tuple(trail.breaches[:SHOWN_LINES]),
        log=() if trail is None else tuple(trail.log[-SHOWN_LINES:]),
        more_lines=0 if trail is None else trail.more_lines + max(0, len(trail.log) - SHOWN_LINES),
        growths=growths(run.moves, before, after),
        bound=None if facts is None else BoundView(facts.totals, bound_sentence(facts.totals)),
    )


def growths(
    moves: Iterable[MoveRecord], before: SnapshotRows | None, after: SnapshotRows | None
) -> tuple[GrowthView, ...]:
    """What became of the bytes of each broker: what came and went by moves, and what producers added or expired."""
    if before is None or after is None:
        return ()
    sizes = {(row["topic"], row["partition"], row["broker"]): row["size_bytes"] or 0 for row in before.replicas}
    come, gone = Counter[int](), Counter[int]()
    for move in moves:
        if move.completed_ms is None:
            continue
        for broker in set(move.target) - set(move.original):
            come[broker] += move.size_bytes
        for broker in set(move.original) - set(move.target):
            gone[broker] += sizes.get((move.topic, move.partition, broker), move.size_bytes)
    earlier, later = holdings(before, {}), holdings(after, {})
    return tuple(
        GrowthView(broker, first, come[broker], gone[broker], last - first - come[broker] + gone[broker], last)
        for broker in sorted(earlier.keys() & later.keys())
        for first, last in [(earlier[broker].size_bytes, later[broker].size_bytes)]
    )


def holdings(snapshot: SnapshotRows, write_rates: Mapping[TopicPartition, float | None]) -> dict[int, Holding]:
    """What each broker of a snapshot holds; copies of unknown size count as empty."""
    mine: dict[int, list[Row]] = {row["broker"]: [] for row in snapshot.brokers}
    for row in snapshot.replicas:
        mine.setdefault(row["broker"], []).append(row)
    return {broker: _holding(rows, write_rates) for broker, rows in sorted(mine.items())}


def receivers(moves: Iterable[MoveView]) -> tuple[ReceiverView, ...]:
    """What each broker received. A move to several brokers counts for each with an equal share."""
    per_broker: dict[int, list[MoveView]] = {}
    for move in moves:
        for broker in move.adding:
            per_broker.setdefault(broker, []).append(move)
    return tuple(_receiver(broker, mine) for broker, mine in sorted(per_broker.items()))


def rate_steps(moves: Iterable[MoveView]) -> tuple[RateStep, ...]:
    """The rate of all moves together over time, each counted with its mean rate while it was open."""
    changes: dict[float, float] = {}
    for move in moves:
        if move.rate_bytes_per_s and move.start_s is not None and move.end_s is not None:
            changes[move.start_s] = changes.get(move.start_s, 0.0) + move.rate_bytes_per_s
            changes[move.end_s] = changes.get(move.end_s, 0.0) - move.rate_bytes_per_s
    total = 0.0
    steps = []
    for at_s, change in sorted(changes.items()):
        total += change
        steps.append(RateStep(at_s, max(0.0, total)))
    return tuple(steps)


def busy_s(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that are inside at least one of the spans (start, end)."""
    total, covered = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, covered))
        covered = max(covered, end)
    return total


def _run_view(run: RunRecord, moves: Sequence[MoveView]) -> RunView:
    bytes_copied = sum(move.bytes_copied for move in moves)
    copying_s = busy_s(_spans(move for move in moves if move.bytes_copied))
    return RunView(
        run_id=run.run_id,
        cluster_id=run.cluster_id,
        state=run.state,
        started_ms=run.started_ms,
        duration_s=None if run.ended_ms is None else (run.ended_ms - run.started_ms) / 1000,
        move_count=len(moves),
        completed_count=sum(move.completed_ms is not None for move in run.moves),
        bytes_copied=bytes_copied,
        rate_bytes_per_s=bytes_copied / copying_s if copying_s else None,
        throttle_bytes_per_s=run.throttle_bytes_per_s,
        was_throttle_kept=run.was_throttle_kept,
    )


def _move_view(move: MoveRecord, started_ms: int, planned: Mapping[TopicPartition, tuple[Reason, ...]]) -> MoveView:
    submitted, completed = move.submitted_ms, move.completed_ms
    duration_s = None if submitted is None or completed is None else max(0, completed - submitted) / 1000
    partition = TopicPartition(move.topic, move.partition)
    # A run may have replaced a destination that was lost: the plan's reason is not why the move goes where it went.
    reasons = [one for one in planned.get(partition, ()) if one.destination in {None, *move.target}]
    return MoveView(
        name=str(partition),
        original=move.original,
        target=move.target,
        adding=move.adding,
        bytes_copied=move.bytes_copied,
        start_s=None if submitted is None else max(0, submitted - started_ms) / 1000,
        duration_s=duration_s,
        rate_bytes_per_s=move.bytes_copied / duration_s if duration_s and move.adding else None,
        problem=move.problem,
        reasons=tuple(map(str, reasons)),
    )


def _by_start(move: MoveView) -> tuple[float, str]:
    return (float("inf") if move.start_s is None else move.start_s, move.name)


def _spans(moves: Iterable[MoveView]) -> list[tuple[float, float]]:
    return [(move.start_s, move.end_s) for move in moves if move.start_s is not None and move.end_s is not None]


def _receiver(broker: int, moves: Sequence[MoveView]) -> ReceiverView:
    done = [move for move in moves if move.end_s is not None]
    seconds = busy_s(_spans(done))
    received = sum(move.bytes_copied / len(move.adding) for move in done)
    return ReceiverView(broker, received, seconds, received / seconds if seconds else None)


def _broker_views(
    before: SnapshotRows | None, after: SnapshotRows | None, write_rates: Mapping[TopicPartition, float | None]
) -> tuple[BrokerView, ...]:
    earlier = holdings(before, write_rates) if before else {}
    later = holdings(after, write_rates) if after else {}
    known = [snapshot for snapshot in (before, after) if snapshot]
    racks = {row["broker"]: row["rack"] for snapshot in known for row in snapshot.brokers}
    return tuple(
        BrokerView(broker, racks.get(broker), earlier.get(broker), later.get(broker))
        for broker in sorted(earlier.keys() | later.keys())
    )


def _holding(replicas: Sequence[Row], write_rates: Mapping[TopicPartition, float | None]) -> Holding:
    rates = [write_rates.get(TopicPartition(row["topic"], row["partition"])) for row in replicas]
    known = [rate for rate in rates if rate is not None]
    return Holding(
        size_bytes=sum(row["size_bytes"] or 0 for row in replicas),
        replica_count=len(replicas),
        leader_count=sum(row["is_leader"] for row in replicas),
        write_bytes_per_s=sum(known) if write_rates and len(known) == len(rates) else None,
    )
