"""PURE. The page of a run: one self-contained HTML document; nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kreassign.report.broker_loads import BrokerLoad, Hottest, Resource, heat_maps, hottest
from kreassign.report.chart import MOST_ROWS, Chart
from kreassign.report.page import render_page
from kreassign.report.text import format_bytes, format_rate
from kreassign.report.verdicts import Outcome
from kreassign.report.view import BrokerView, Holding, MoveView, ReceiverView, ReportView

SHOWN_MOVES = 200
SHOWN_DETAILS = 10


@dataclass(frozen=True, slots=True)
class Measure:
    """One property of brokers to compare: its title and unit, how to read it from a `Holding`, how to format it."""

    title: str
    unit: str
    of: Callable[[Holding], float | None]
    text: Callable[[float | None], str]


MEASURES = (
    Measure("Data on disk", "B", lambda holding: holding.size_bytes, format_bytes),
    Measure("Replicas", "", lambda holding: holding.replica_count, lambda count: f"{count:,.0f}" if count else "0"),
    Measure("Leaders", "", lambda holding: holding.leader_count, lambda count: f"{count:,.0f}" if count else "0"),
    Measure("Write rate", "B/s", lambda holding: holding.write_bytes_per_s, format_rate),
)


@dataclass(frozen=True, slots=True)
class AuditView:
    """What an audit found of a run: what was promised and what happened, by name, and findings in sentences."""

    rows: tuple[tuple[str, str, str], ...]
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasureView:
    """One measure of all brokers: largest value, and the spread (largest over mean) before and after."""

    title: str
    rows: tuple[tuple[BrokerView, float | None, float | None], ...]
    largest: float
    spread_before: float | None
    spread_after: float | None
    text: Callable[[float | None], str]


def render(view: ReportView, heading: str | None = None, audit: AuditView | None = None) -> str:
    """The whole page, under its run's id or another heading; with what an audit found, if there was one."""
    heat, most = broker_pictures(view.brokers)
    pictures = view.pictures.charts if view.pictures else ()
    return render_page(
        "report.html",
        (*heat, *pictures),
        view=view,
        heading=heading or f"Reassignment {view.run.run_id}",
        audit=audit,
        Outcome=Outcome,
        steps=[] if pictures else [(step.start_s, step.rate_bytes_per_s) for step in view.rate_steps],
        verdict=verdict(view),
        heat=heat,
        hottest=most,
        measures=tuple(shown for measure in MEASURES if (shown := measure_view(measure, view.brokers)).largest),
        has_few_brokers=len(view.brokers) <= MOST_ROWS,
        shown_brokers=MOST_ROWS,
        receivers=most_received(view.receivers, MOST_ROWS),
        shown_moves=longest_moves(view.moves, SHOWN_MOVES),
        shown_details=SHOWN_DETAILS,
        whole_s=_whole_s(view),
        largest_step=max((step.rate_bytes_per_s for step in view.rate_steps), default=0.0),
        largest_rate=_largest_rate(view),
    )


def broker_pictures(brokers: Sequence[BrokerView]) -> tuple[tuple[Chart, ...], tuple[Hottest, ...]]:
    """The heat maps of brokers before and after, and who is hottest."""
    resources = tuple(
        Resource(one.title, one.unit, _mean(one, brokers, before=True), _mean(one, brokers, before=False))
        for one in MEASURES
    )
    loads = tuple(BrokerLoad(one.broker, _loads(one.before), _loads(one.after)) for one in brokers)
    return heat_maps(resources, loads), hottest(resources, loads)


def _loads(holding: Holding | None) -> dict[str, float] | None:
    if holding is None:
        return None
    return {one.title: value for one in MEASURES if (value := one.of(holding)) is not None}


def _mean(measure: Measure, brokers: Iterable[BrokerView], *, before: bool) -> float | None:
    """Of the brokers that are there, also those that have nothing."""
    sides = (one.before if before else one.after for one in brokers)
    known = [value for side in sides if side is not None and (value := measure.of(side)) is not None]
    return sum(known) / len(known) if known else None


def verdict(view: ReportView) -> tuple[str, str]:
    """The page in one word for its colour (`passed`, `failed`, `unknown`) and one sentence."""
    outcomes = {check.outcome for check in view.checks}
    if Outcome.FAILED in outcomes or view.problems:
        return "failed", "Some checks failed, or the run had problems."
    if Outcome.UNKNOWN in outcomes:
        return "unknown", "No check failed, but not everything could be checked."
    return "passed", "Every move completed, and the cluster matches the plan."


def measure_view(measure: Measure, brokers: Iterable[BrokerView]) -> MeasureView:
    """One measure of all brokers."""
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
    """Largest over mean of the known values: 1 is even. None when there is nothing to compare."""
    known = [value for value in values if value is not None]
    total = sum(known)
    return max(known) * len(known) / total if total else None


def longest_moves(moves: tuple[MoveView, ...], limit: int) -> tuple[MoveView, ...]:
    """All moves, or the longest ones when there are too many for a page; unfinished ones count as longest."""
    if len(moves) <= limit:
        return moves
    ranked = sorted(moves, key=lambda move: -(float("inf") if move.duration_s is None else move.duration_s))
    kept = {move.name for move in ranked[:limit]}
    return tuple(move for move in moves if move.name in kept)


def most_received(receivers: Sequence[ReceiverView], limit: int) -> tuple[ReceiverView, ...]:
    """All of them in the order of their ids, or those that received most when they are too many for a page."""
    ranked = sorted(receivers, key=lambda one: (-one.bytes_copied, one.broker))[:limit]
    return tuple(sorted(ranked, key=lambda one: one.broker))


def _value(measure: Measure, holding: Holding | None) -> float | None:
    return None if holding is None else measure.of(holding)


def _whole_s(view: ReportView) -> float:
    """Seconds that the charts over time span: from the start of the run to the last thing that is known of it."""
    ends = [move.end_s for move in view.moves if move.end_s is not None]
    return max([view.run.duration_s or 0.0, *ends])


def _largest_rate(view: ReportView) -> float:
    rates = [receiver.rate_bytes_per_s or 0.0 for receiver in view.receivers]
    return max([view.run.throttle_bytes_per_s or 0.0, *rates]) * 1.02
