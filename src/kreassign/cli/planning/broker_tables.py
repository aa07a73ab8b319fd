"""Brokers before and after a plan: one row each that fits 80 columns, or every goal of every broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table

from kreassign.model.amount import format_load
from kreassign.model.plan_facts import GoalMean, PlanFacts
from kreassign.planner import Evaluation
from kreassign.planner.results.outcome import means_of
from kreassign.report.text import format_bytes

WIDTH = 80
LONGEST_BAR, SHORTEST_BAR = 22, 6
SHOWN_BROKERS = 40
COPIED = ("in", "out", "peak disk")
_GAP = 2


@dataclass(frozen=True, slots=True)
class Row:
    """A broker: its loads by goal before and after, and what the plan copies, where it copies anything."""

    broker: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    copied: tuple[str, ...] = ()


def plan_rows(facts: PlanFacts) -> list[Row]:
    """The brokers of a plan."""
    return [
        Row(one.broker, one.before, one.after, tuple(map(format_bytes, (one.bytes_in, one.bytes_out, one.peak_bytes))))
        for one in facts.brokers
    ]


def evaluated_rows(found: Evaluation) -> list[Row]:
    """The brokers where nothing is copied."""
    loads = zip(found.broker_ids, found.before.tolist(), found.after.tolist(), strict=True)
    goals = found.goals
    return [
        Row(broker, dict(zip(goals, before, strict=True)), dict(zip(goals, after, strict=True)))
        for broker, before, after in loads
    ]


def plan_tables(facts: PlanFacts, *, is_wide: bool) -> Iterator[RenderableType]:
    """What to print of the brokers of a plan."""
    return _tables(plan_rows(facts), facts.means, is_wide=is_wide)


def evaluated_tables(found: Evaluation, *, is_wide: bool) -> Iterator[RenderableType]:
    """The same where nothing is copied."""
    return _tables(evaluated_rows(found), means_of(found), is_wide=is_wide)


def _tables(rows: Sequence[Row], means: Sequence[GoalMean], *, is_wide: bool) -> Iterator[RenderableType]:
    if not rows:
        return
    if is_wide or not means:
        yield wide_table(rows, means)
        return
    first, shown = means[0], rows
    if len(rows) > SHOWN_BROKERS:
        shown = sorted(rows, key=lambda one: (-_most(one, first.goal), one.broker))[:SHOWN_BROKERS]
    yield f"{first.goal} of brokers (█ stays ▒ comes ░ goes):"
    yield narrow_table(shown, first)
    if hidden := len(rows) - len(shown):
        yield f"and {hidden} brokers more with less {first.goal} before and after; --wide shows all"


def _most(row: Row, goal: str) -> float:
    return max(row.before[goal], row.after[goal])


def narrow_table(rows: Sequence[Row], mean: GoalMean) -> Table:
    """One row per broker in 80 columns: one goal before and after, as figures and as a bar, and what it copies.

    Where figures leave no room for the bar, there is none.
    """
    goal = mean.goal
    titles = ("broker", "before", "after", *(COPIED if rows and rows[0].copied else ()))
    cells = [(str(one.broker), _amount(mean, one.before), f"→ {_amount(mean, one.after)}", *one.copied) for one in rows]
    width = sum(max(map(len, column)) for column in zip(titles, *cells, strict=True)) + _GAP * len(titles)
    longest = min(LONGEST_BAR, WIDTH - width)
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="left" if title == "after" else "right", no_wrap=True)
        if title == "after" and longest >= SHORTEST_BAR:
            table.add_column("", no_wrap=True)
    most = max((_most(one, goal) for one in rows), default=0.0)
    for one, (broker, before, after, *copied) in zip(rows, cells, strict=True):
        bar = (_bar(one.before[goal], one.after[goal], most, longest),) if longest >= SHORTEST_BAR else ()
        table.add_row(broker, before, after, *bar, *copied)
    return table


def wide_table(rows: Sequence[Row], means: Sequence[GoalMean]) -> Table:
    """One row per broker with every goal before and after."""
    table = Table(box=None, pad_edge=False)
    titles = (f"{one.goal} {when}" for one in means for when in ("before", "after"))
    for title in ("broker", *titles, *(COPIED if rows and rows[0].copied else ())):
        table.add_column(title, justify="right", no_wrap=True)
    for one in rows:
        loads = [_amount(mean, when) for mean in means for when in (one.before, one.after)]
        table.add_row(str(one.broker), *loads, *one.copied)
    return table


def _bar(before: float, after: float, most: float, longest: int) -> str:
    if most <= 0:
        return ""
    held, either = (round(longest * amount / most) for amount in (min(before, after), max(before, after)))
    return "█" * held + ("▒" if after > before else "░") * (either - held)


def _amount(mean: GoalMean, loads: Mapping[str, float]) -> str:
    """A load with its unit; an estimate beside the mean before the plan."""
    return format_load(loads[mean.goal], mean.unit, mean.before)
