"""The page of a run: one self-contained HTML document that fetches nothing.

Converts a run and the snapshots around it, as in `records.py`, to the small records that the page shows. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.model.plan_facts import GoalMean, PlanFacts, Reason, reason_sentences
from kreassign.model.run import REHEARSAL, Breach, LogLine, MoveHistory, RunHistory, RunTrail
from kreassign.report.broker_loads import BrokerLoad, Hottest, heat_maps, hottest
from kreassign.report.charts import MOST_ROWS, Chart
from kreassign.report.page import render_page
from kreassign.report.run_checks import Check, CheckResult, Row, SnapshotRows, checks_of
from kreassign.report.run_pictures import RunPictures, run_pictures
from kreassign.report.text import bound_amount, bound_sentence, format_bytes, format_rate

# Convert a run and the snapshots around it to the records that the page shows.

SHOWN_LINES = 500


@dataclass(frozen=True, slots=True)
class Holding:
    """Load of one broker at one time. `write_bytes_per_s` counts every replica that takes the writes.

    It is None if the load of any partition is unknown.
    """

    size_bytes: int
    replica_count: int
    leader_count: int
    write_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """One broker before and after; None if the snapshot lacks it."""

    broker: int
    rack: str | None
    before: Holding | None
    after: Holding | None


@dataclass(frozen=True, slots=True)
class MoveView:
    """One move. `start_s` counts from the start of the run, `rate_bytes_per_s` is the mean over its duration.

    `reasons` are the plan's, as sentences; empty if unknown, or if the move got another destination.
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
    """Copies received by one broker: bytes, seconds with any open move to it, and the mean rate over these."""

    broker: int
    bytes_copied: float
    busy_s: float
    rate_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class GrowthView:
    """Change of a broker's bytes: by moves, and by writes and expiry meanwhile."""

    broker: int
    before_bytes: int
    come_bytes: int
    gone_bytes: int
    growth_bytes: int
    after_bytes: int


@dataclass(frozen=True, slots=True)
class ReportView:
    """Content of the whole page. `rate_bytes_per_s` is the mean rate while moves copied.

    `bound` is the least that any plan copies, with a note on the run's plan.
    """

    run: RunHistory
    rate_bytes_per_s: float | None
    before_ms: int | None
    after_ms: int | None
    brokers: tuple[BrokerChange, ...]
    moves: tuple[MoveView, ...]
    receivers: tuple[ReceiverView, ...]
    checks: tuple[Check, ...]
    pictures: RunPictures
    breaches: tuple[Breach, ...]
    log: tuple[LogLine, ...]
    more_lines: int
    growths: tuple[GrowthView, ...]
    bound: tuple[str, str] | None


def report_view(
    run: RunHistory,
    before: SnapshotRows | None,
    after: SnapshotRows | None,
    write_rates: Mapping[TopicPartition, float | None],
    trail: RunTrail | None = None,
    facts: PlanFacts | None = None,
) -> ReportView:
    """View of a run. Missing snapshots are None; `write_rates` is empty without a load model.

    Without a `trail` pictures show only moves; bound and reasons need the `facts` of the run's plan.
    """
    trail = trail or RunTrail(run)
    planned = {} if facts is None else {one.topic_partition: one.reasons for one in facts.partitions}
    views = (_move_view(move, run.started_ms, planned) for move in run.moves)
    moves = tuple(sorted(views, key=lambda move: (math.inf if move.start_s is None else move.start_s, move.name)))
    copying_s = busy_s(_spans(move for move in moves if move.bytes_copied))
    return ReportView(
        run=run,
        rate_bytes_per_s=sum(move.bytes_copied for move in moves) / copying_s if copying_s else None,
        before_ms=before.taken_ms if before else None,
        after_ms=after.taken_ms if after else None,
        brokers=_broker_views(before, after, write_rates),
        moves=moves,
        receivers=receivers(moves),
        checks=checks_of(run, after),
        pictures=run_pictures(run, trail),
        breaches=trail.breaches[:SHOWN_LINES],
        log=trail.timeline.log[-SHOWN_LINES:],
        more_lines=trail.timeline.more_lines + max(0, len(trail.timeline.log) - SHOWN_LINES),
        growths=growths(run.moves, before, after),
        bound=None if facts is None else (bound_amount(facts.totals), bound_sentence(facts.totals)),
    )


def growths(
    moves: Iterable[MoveHistory], before: SnapshotRows | None, after: SnapshotRows | None
) -> tuple[GrowthView, ...]:
    """Change of each broker's bytes: by arriving and leaving moves, and by writes and expiry."""
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
    """Load of each broker of a snapshot; copies of unknown size count as empty."""
    mine: dict[int, list[Row]] = {row["broker"]: [] for row in snapshot.brokers}
    for row in snapshot.replicas:
        mine.setdefault(row["broker"], []).append(row)
    return {broker: _holding(rows, write_rates) for broker, rows in sorted(mine.items())}


def receivers(moves: Iterable[MoveView]) -> tuple[ReceiverView, ...]:
    """Copies received by each broker. A move to several brokers counts for each with an equal share."""
    per_broker: dict[int, list[MoveView]] = {}
    for move in moves:
        for broker in move.adding:
            per_broker.setdefault(broker, []).append(move)
    return tuple(_receiver(broker, mine) for broker, mine in sorted(per_broker.items()))


def busy_s(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds inside at least one of the spans (start, end)."""
    total, covered = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, covered))
        covered = max(covered, end)
    return total


def _move_view(move: MoveHistory, started_ms: int, planned: Mapping[TopicPartition, tuple[Reason, ...]]) -> MoveView:
    submitted, ended = move.submitted_ms, move.ended_ms
    duration_s = None if submitted is None or ended is None else max(0, ended - submitted) / 1000
    partition = move.topic_partition
    # A run may have replaced a lost destination: then the plan's reason does not explain the new one.
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
        reasons=reason_sentences(reasons),
    )


def _spans(moves: Iterable[MoveView]) -> list[tuple[float, float]]:
    return [(move.start_s, move.end_s) for move in moves if move.start_s is not None and move.end_s is not None]


def _receiver(broker: int, moves: Sequence[MoveView]) -> ReceiverView:
    done = [move for move in moves if move.end_s is not None]
    seconds = busy_s(_spans(done))
    received = sum(move.bytes_copied / len(move.adding) for move in done)
    return ReceiverView(broker, received, seconds, received / seconds if seconds else None)


def _broker_views(
    before: SnapshotRows | None, after: SnapshotRows | None, write_rates: Mapping[TopicPartition, float | None]
) -> tuple[BrokerChange, ...]:
    earlier = holdings(before, write_rates) if before else {}
    later = holdings(after, write_rates) if after else {}
    known = [snapshot for snapshot in (before, after) if snapshot]
    racks = {row["broker"]: row["rack"] for snapshot in known for row in snapshot.brokers}
    return tuple(
        BrokerChange(broker, racks.get(broker), earlier.get(broker), later.get(broker))
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


# Render these records as the document.

SHOWN_MOVES = 200
SHOWN_DETAILS = 10


@dataclass(frozen=True, slots=True)
class BrokerMeasure:
    """A property of brokers to compare: its title and unit, how to read it from a `Holding`, how to format it."""

    title: str
    unit: str
    of: Callable[[Holding], float | None]
    text: Callable[[float | None], str]


MEASURES = (
    BrokerMeasure("Data on disk", "B", lambda holding: holding.size_bytes, format_bytes),
    BrokerMeasure(
        "Replicas", "", lambda holding: holding.replica_count, lambda count: f"{count:,.0f}" if count else "0"
    ),
    BrokerMeasure("Leaders", "", lambda holding: holding.leader_count, lambda count: f"{count:,.0f}" if count else "0"),
    BrokerMeasure("Write rate", "B/s", lambda holding: holding.write_bytes_per_s, format_rate),
)


@dataclass(frozen=True, slots=True)
class AuditView:
    """Findings of an audit of a run: promised and actual values by name, and sentences."""

    rows: tuple[tuple[str, str, str], ...]
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasureView:
    """One measure of all brokers: largest value, and the spread (largest over mean) before and after."""

    title: str
    rows: tuple[tuple[BrokerChange, float | None, float | None], ...]
    largest: float
    spread_before: float | None
    spread_after: float | None
    text: Callable[[float | None], str]


def render_run(
    view: ReportView, heading: str | None = None, audit: AuditView | None = None, told_first: Sequence[str] = ()
) -> str:
    """Render the page under the run's id or another heading, with the audit's findings, if any.

    `told_first` are sentences that stand before everything else.
    """
    heat, most = broker_pictures(view.brokers)
    rates = [view.run.throttle_bytes_per_s or 0.0, *(one.rate_bytes_per_s or 0.0 for one in view.receivers)]
    return render_page(
        "report.html",
        (*heat, *view.pictures.charts),
        view=view,
        heading=heading or f"Reassignment {view.run.run_id}",
        audit=audit,
        told_first=told_first,
        CheckResult=CheckResult,
        verdict=verdict(view),
        heat=heat,
        hottest=most,
        measures=tuple(shown for measure in MEASURES if (shown := measure_view(measure, view.brokers)).largest),
        has_few_brokers=len(view.brokers) <= MOST_ROWS,
        shown_brokers=MOST_ROWS,
        receivers=most_received(view.receivers, MOST_ROWS),
        shown_moves=longest_moves(view.moves, SHOWN_MOVES),
        shown_details=SHOWN_DETAILS,
        # The time axis goes to the last known event.
        whole_s=max([view.run.duration_s or 0.0, *(move.end_s or 0.0 for move in view.moves)]),
        largest_rate=max(rates) * 1.02,
    )


def broker_pictures(brokers: Sequence[BrokerChange]) -> tuple[tuple[Chart, ...], tuple[Hottest, ...]]:
    """Heat maps of brokers before and after, and the hottest brokers."""
    resources = tuple(
        GoalMean(one.title, one.unit, _mean(one, brokers, before=True), _mean(one, brokers, before=False))
        for one in MEASURES
    )
    loads = tuple(BrokerLoad(one.broker, _loads(one.before), _loads(one.after)) for one in brokers)
    return heat_maps(resources, loads), hottest(resources, loads)


def _loads(holding: Holding | None) -> dict[str, float] | None:
    if holding is None:
        return None
    return {one.title: value for one in MEASURES if (value := one.of(holding)) is not None}


def _mean(measure: BrokerMeasure, brokers: Iterable[BrokerChange], *, before: bool) -> float:
    """Mean over the brokers in the snapshot, including empty ones; 0 if unknown."""
    sides = (one.before if before else one.after for one in brokers)
    known = [value for side in sides if side is not None and (value := measure.of(side)) is not None]
    return sum(known) / len(known) if known else 0.0


def verdict(view: ReportView) -> tuple[str, str]:
    """Verdict for the page's colour (`passed`, `failed`, `unknown`), and one sentence."""
    outcomes = {check.outcome for check in view.checks}
    if CheckResult.FAILED in outcomes or view.run.problems:
        colour = "failed"
    else:
        colour = "unknown" if CheckResult.UNKNOWN in outcomes else "passed"
    return colour, (_REHEARSED if view.run.run_id == REHEARSAL else _RAN)[colour]


_RAN = {
    "failed": "Some checks failed, or the run had problems.",
    "unknown": "No check failed, but not everything could be checked.",
    "passed": "Every move completed, and the cluster matches the plan.",
}
_REHEARSED = {
    "failed": "Simulated: some checks would fail, or the run would have problems. Nothing was changed.",
    "unknown": "Simulated: no check would fail, but not everything could be checked. Nothing was changed.",
    "passed": "Simulated: every move would complete, and the cluster would match the plan. Nothing was changed.",
}


def measure_view(measure: BrokerMeasure, brokers: Iterable[BrokerChange]) -> MeasureView:
    """View of one measure of all brokers."""
    rows = tuple((broker, _value(measure, broker.before), _value(measure, broker.after)) for broker in brokers)
    return MeasureView(
        title=measure.title,
        rows=rows,
        largest=max((value for row in rows for value in row[1:] if value is not None), default=0.0),
        spread_before=spread(row[1] for row in rows),
        spread_after=spread(row[2] for row in rows),
        text=measure.text,
    )


def spread(values: Iterable[float | None]) -> float | None:
    """Largest over mean of the known values: 1 is even. None if there is nothing to compare."""
    known = [value for value in values if value is not None]
    total = sum(known)
    return max(known) * len(known) / total if total else None


def longest_moves(moves: tuple[MoveView, ...], limit: int) -> tuple[MoveView, ...]:
    """All moves, or only the longest if they exceed the limit; unfinished ones count as longest."""
    if len(moves) <= limit:
        return moves
    ranked = sorted(moves, key=lambda move: -(float("inf") if move.duration_s is None else move.duration_s))
    kept = {move.name for move in ranked[:limit]}
    return tuple(move for move in moves if move.name in kept)


def most_received(receivers: Sequence[ReceiverView], limit: int) -> tuple[ReceiverView, ...]:
    """All receivers in the order of their ids, or only those that received most if they exceed the limit."""
    ranked = sorted(receivers, key=lambda one: (-one.bytes_copied, one.broker))[:limit]
    return tuple(sorted(ranked, key=lambda one: one.broker))


def _value(measure: BrokerMeasure, holding: Holding | None) -> float | None:
    return None if holding is None else measure.of(holding)
