"""Pictures of a run: copies over time, rates against the throttle, progress against the plan, in-sync state. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from kreassign.model.cluster import listed_ids
from kreassign.model.run import Arrival, InSync, Mark, MoveHistory, RunHistory, RunTrail, ThrottleStep
from kreassign.model.text import counted
from kreassign.report.broker_loads import flow_matrix
from kreassign.report.charts import MOST_ROWS, Chart, Flag, Grid, Line, Span, Table, heat_map, largest, lines, spans
from kreassign.report.text import format_bytes, format_duration, format_rate

# Copied bytes per slot of time, by receiver and sender, and the part of growth. Pure.

SLOTS = 120
"""Number of slots of a run's time: more would be less than a pixel wide on a phone."""

Slots = dict[int, list[float]]
"""Bytes per slot, by broker."""


@dataclass(frozen=True, slots=True)
class CopyRates:
    """Bytes per slot of `slot_s` seconds: `received` and `sent` by broker, and the part of `growth` of all.

    Growth is the part of a copy beyond its size before the run. `flows` sums bytes by source and destination.
    """

    slot_s: float
    received: Mapping[int, Sequence[float]]
    sent: Mapping[int, Sequence[float]]
    growth: Sequence[float]
    flows: Mapping[tuple[int, int], float] = field(default_factory=dict)

    def busiest(self, of: Mapping[int, Sequence[float]]) -> list[float]:
        """Rate of the busiest broker in each slot, in bytes per second."""
        return [max(slot, default=0.0) / self.slot_s for slot in zip(*of.values(), strict=True)]

    @property
    def total(self) -> list[float]:
        """Bytes received in each slot, summed over brokers."""
        return [sum(slot) for slot in zip(*self.received.values(), strict=True)]


def copy_rates(
    arrivals: Iterable[Arrival], moves: Iterable[MoveHistory], started_ms: int, end_s: float, slots: int = SLOTS
) -> CopyRates:
    """Divide arrived bytes into slots; bytes between two observations count as evenly spread."""
    sizes = {(move.topic, move.partition): move.size_bytes for move in moves}
    slot_s = max(end_s, 0.001) / slots
    received: Slots = defaultdict(lambda: [0.0] * slots)
    sent: Slots = defaultdict(lambda: [0.0] * slots)
    growth, flows = [0.0] * slots, defaultdict[tuple[int, int], float](float)
    before: dict[tuple[str, int, int], tuple[float, int]] = {}
    for one in arrivals:
        at_s, copy = (one.at_ms - started_ms) / 1000, (one.topic, one.partition, one.broker)
        since_s, done = before.get(copy, (at_s, 0))
        before[copy] = at_s, one.done_bytes
        # A restarted copy adds from 0.
        more = one.done_bytes - (done if one.done_bytes >= done else 0)
        if more <= 0:
            continue
        share = min(1.0, max(0, one.done_bytes - max(done, sizes.get(copy[:2], 0))) / more)
        flows[one.source, one.broker] += more
        for slot, part in _parts(since_s, at_s, slot_s, slots):
            received[one.broker][slot] += more * part
            sent[one.source][slot] += more * part
            growth[slot] += more * part * share
    return CopyRates(slot_s, dict(received), dict(sent), growth, dict(flows))


def throttle_over_time(
    steps: Iterable[ThrottleStep], started_ms: int, end_s: float
) -> tuple[list[tuple[float, float | None]], list[tuple[float, float | None]]]:
    """Lowest and highest throttle of any broker, each as a stair: (start, rate or None)."""
    rates: dict[int, int | None] = {}
    by_time: dict[float, list[ThrottleStep]] = defaultdict(list)
    for step in steps:
        by_time[(step.at_ms - started_ms) / 1000].append(step)
    lowest: list[tuple[float, float | None]] = []
    highest: list[tuple[float, float | None]] = []
    for at_s, changed in sorted(by_time.items()):
        rates |= {step.broker: step.bytes_per_s for step in changed}
        known = [rate for rate in rates.values() if rate is not None]
        _step(lowest, at_s, min(known, default=None))
        _step(highest, at_s, max(known) if len(known) == len(rates) else None)
    for stair in (lowest, highest):
        if stair and stair[-1][0] < end_s:
            stair.append((end_s, stair[-1][1]))
    return lowest, highest


def _step(stair: list[tuple[float, float | None]], at_s: float, rate: float | None) -> None:
    """Add a step; a gap begins where the line before it ends, or that line would not be drawn."""
    if rate is None and stair and stair[-1][1] is not None:
        stair.append((at_s, stair[-1][1]))
    stair.append((at_s, rate))


def _parts(since_s: float, until_s: float, slot_s: float, slots: int) -> Iterable[tuple[int, float]]:
    """Fraction of the time span that falls into each slot."""
    first, last = _slot(since_s, slot_s, slots), _slot(until_s, slot_s, slots)
    if first == last or until_s <= since_s:
        return [(last, 1.0)]
    whole = until_s - since_s
    edges = [since_s, *((place + 1) * slot_s for place in range(first, last)), until_s]
    return [
        (place, max(0.0, edges[place - first + 1] - edges[place - first]) / whole) for place in range(first, last + 1)
    ]


def _slot(at_s: float, slot_s: float, slots: int) -> int:
    return min(slots - 1, max(0, int(at_s / slot_s)))


SHOWN_SPANS = 400
SHOWN_ROWS = 48
SHOWN_MARKS = 40
SLOTS_OF_GRIDS = 48
COLOURS: Mapping[str, str] = {
    "killed": "--bad", "guard": "--bad", "lease lost": "--bad", "cancelled": "--bad", "resumed": "--good",
    "released": "--good", "all clear": "--good", "throttle": "--third",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark with the number that represents it in all pictures."""

    number: int
    at_s: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class RunPictures:
    """Charts of a run, in the order of the page, without those that have nothing to show."""

    charts: tuple[Chart, ...]
    marks: tuple[Marked, ...]
    planned_bytes: int
    growth_bytes: float


def run_pictures(run: RunHistory, trail: RunTrail) -> RunPictures:
    """Draw all pictures of a run."""
    end_s = _end_s(run, trail)
    rates = copy_rates(trail.copy_progress, run.moves, run.started_ms, end_s)
    marks = marked(trail.timeline.marks, run.started_ms)
    flags = [Flag(one.at_s, str(one.number), one.text, COLOURS.get(one.kind, "--open")) for one in marks]
    charts = (
        _timeline(run, flags, end_s),
        _rates(run, trail, rates, flags, end_s),
        _by_broker(rates),
        _progress(run, trail, rates, flags, end_s),
        _etas(run, trail, end_s),
        _in_sync(trail.timeline.in_sync, run.started_ms, end_s),
        flow_matrix(
            ((source, broker, size) for (source, broker), size in rates.flows.items()),
            "Bytes that were copied, from leaders (rows) to brokers that got a replica (columns).",
        ),
    )
    return RunPictures(
        charts=tuple(chart for chart in charts if chart is not None),
        marks=marks,
        planned_bytes=planned_bytes(run.moves),
        growth_bytes=sum(rates.growth),
    )


def planned_bytes(moves: Iterable[MoveHistory]) -> int:
    """Bytes to copy, by the sizes at the start of the run."""
    return sum(move.size_bytes * len(move.adding) for move in moves)


def marked(marks: Sequence[Mark], started_ms: int) -> tuple[Marked, ...]:
    """Number the first `SHOWN_MARKS` marks."""
    return tuple(
        Marked(number, max(0.0, (mark.at_ms - started_ms) / 1000), mark.kind, mark.text)
        for number, mark in enumerate(marks[:SHOWN_MARKS], 1)
    )


def _end_s(run: RunHistory, trail: RunTrail) -> float:
    """Length of the time axis in seconds: to the end of the run, or to the last known event."""
    parts = (trail.copy_progress, trail.timeline.log, trail.timeline.marks)
    ends = [run.ended_ms, *(part[-1].at_ms for part in parts if part)]
    return max([1.0, *((end - run.started_ms) / 1000 for end in ends if end is not None)])


def _timeline(run: RunHistory, flags: Sequence[Flag], end_s: float) -> Chart | None:
    """Moves by receiving broker as bars; as counts over time if there are too many for bars."""
    spans_of: dict[int, list[Span]] = {}
    for move in run.moves:
        if move.submitted_ms is not None:
            for broker in move.adding:
                spans_of.setdefault(broker, []).append(_span(move, run.started_ms, end_s))
    if not spans_of:
        return None
    rows = _rows(spans_of)
    count = sum(map(len, spans_of.values()))
    if len(rows) > SHOWN_ROWS or count > SHOWN_SPANS:
        return _crowd(spans_of, end_s)
    placed = [Span(row, one.start_s, one.end_s, one.text, one.is_open) for row, mine in rows.items() for one in mine]
    table = [
        (one.text, f"broker {broker}", format_duration(one.start_s), format_duration(one.end_s - one.start_s))
        for broker, mine in sorted(spans_of.items())
        for one in mine
    ]
    return Chart(
        "timeline",
        "Moves by receiving broker",
        f"Each bar is a copy under way, {count} in all; who receives is at the left.{_numbers(flags)}",
        spans(list(rows), placed, flags, end_s=end_s),
        Table(("move", "to", "begun at", "took"), tuple(table)),
        max(220, 24 * len(rows) + 110),
    )


def _span(move: MoveHistory, started_ms: int, end_s: float) -> Span:
    start_s = max(0.0, ((move.submitted_ms or started_ms) - started_ms) / 1000)
    is_open = move.ended_ms is None
    until_s = end_s if move.ended_ms is None else max(start_s, (move.ended_ms - started_ms) / 1000)
    path = f"{listed_ids(move.original)} → {listed_ids(move.target)}"
    return Span("", start_s, until_s, f"{move.topic_partition}: {path}", is_open)


def _rows(spans_of: Mapping[int, Sequence[Span]]) -> dict[str, list[Span]]:
    """Rows of bars by label; overlapping bars of a broker get rows of their own."""
    found: dict[str, list[Span]] = {}
    for broker, mine in sorted(spans_of.items()):
        rows: list[list[Span]] = []
        for one in sorted(mine, key=lambda span: (span.start_s, span.end_s)):
            free = next((row for row in rows if row[-1].end_s <= one.start_s), None)
            if free is None:
                rows.append(free := [])
            free.append(one)
        for number, row in enumerate(rows):
            found[f"broker {broker}" + (f" ({number + 1})" if number else "")] = row
    return found


def _numbers(flags: Sequence[Flag]) -> str:
    return " Numbers stand for what happened meanwhile, in the list below." if flags else ""


def _crowd(spans_of: Mapping[int, Sequence[Span]], end_s: float) -> Chart:
    """Heat map of the number of copies to each broker over time."""
    slot_s = end_s / SLOTS_OF_GRIDS
    weights = {broker: float(len(mine)) for broker, mine in spans_of.items()}
    by_row = _heaviest(weights, lambda broker: _at_once(spans_of[broker], slot_s))
    count = sum(map(len, spans_of.values()))
    rows = tuple((name, f"{max(values):,.0f}") for name, values in by_row)
    grid = _over_time(by_row, slot_s, lambda value: f"{value:.0f}")
    return Chart(
        "timeline",
        "Moves by receiving broker",
        f"How many copies each broker received at a time; {counted(count, 'copy', 'copies')} "
        f"to {counted(len(spans_of), 'broker')}.",
        heat_map(grid, unit=" copies"),
        Table(("", "most at a time"), rows),
        grid.height_px,
    )


def _heaviest(weights: Mapping[int, float], values: Callable[[int], list[float]]) -> list[tuple[str, list[float]]]:
    """Rows of the heaviest brokers by label, and a row with the most of the others."""
    ranked = largest(weights)
    rows = [(f"broker {broker}", values(broker)) for broker in ranked.shown]
    if ranked.others:
        together = zip(*map(values, ranked.others), strict=True)
        rows.append((f"most of {ranked.name_of_others}", list(map(max, together))))
    return rows


def _at_once(mine: Sequence[Span], slot_s: float) -> list[float]:
    """Number of open bars in each slot."""
    changes = [0.0] * (SLOTS_OF_GRIDS + 1)
    for one in mine:
        first = min(SLOTS_OF_GRIDS - 1, int(one.start_s / slot_s))
        last = min(SLOTS_OF_GRIDS - 1, int(one.end_s / slot_s))
        changes[first] += 1
        changes[last + 1] -= 1
    return list(accumulate(changes))[:-1]


def _rates(run: RunHistory, trail: RunTrail, rates: CopyRates, flags: Sequence[Flag], end_s: float) -> Chart | None:
    """Rates of the busiest brokers against the throttle over time."""
    if not rates.received:
        return None
    lowest, highest = throttle_over_time(trail.timeline.throttle, run.started_ms, end_s)
    into, out = rates.busiest(rates.received), rates.busiest(rates.sent)
    curves = [
        Line("into the busiest broker", _stair(into, rates.slot_s), is_stepped=True, is_filled=True),
        Line("out of the busiest broker", _stair(out, rates.slot_s), "--second", is_stepped=True),
    ]
    if any(rate is not None for _, rate in lowest):
        curves.append(Line("throttle per broker", tuple(lowest), "--open", is_stepped=True, is_dashed=True))
    if lowest != highest and any(rate is not None for _, rate in highest):
        curves.append(Line("highest throttle", tuple(highest), "--third", is_stepped=True, is_dashed=True))
    limits = sorted({rate for _, rate in (*lowest, *highest) if rate is not None})
    throttle = f"The throttle was {' and '.join(map(format_rate, limits[:6]))}." if limits else "There was no throttle."
    return Chart(
        "rates",
        "Rate against the throttle",
        f"Measured bytes per second of whichever broker was busiest: at most {format_rate(max(into))} in, "
        f"{format_rate(max(out))} out. {throttle}",
        lines(curves, flags, end_s=end_s),
        _rates_table(rates),
        340,
    )


def _rates_table(rates: CopyRates) -> Table:
    brokers = sorted({*rates.received, *rates.sent})
    rows = [
        (f"broker {broker}", *_amounts(rates.received.get(broker), rates), *_amounts(rates.sent.get(broker), rates))
        for broker in brokers
    ]
    head = ("", "received", "fastest", "sent", "fastest")
    return Table(head, tuple(rows[:MOST_ROWS]), max(0, len(rows) - MOST_ROWS))


def _amounts(slots: Sequence[float] | None, rates: CopyRates) -> tuple[str, str]:
    return ("-", "-") if slots is None else (format_bytes(sum(slots)), format_rate(max(slots) / rates.slot_s))


def _by_broker(rates: CopyRates) -> Chart | None:
    """Heat map of the rate at which each broker received."""
    if not rates.received:
        return None
    weights = {broker: sum(slots) for broker, slots in rates.received.items()}
    rows = _heaviest(weights, lambda broker: _coarse(rates.received[broker], rates.slot_s))
    slot_s = rates.slot_s * _each(len(next(iter(rates.received.values()))))
    grid = _over_time(rows, slot_s, format_rate)
    return Chart(
        "by-broker",
        "Received by each broker",
        "How fast each broker received, over time: the darker or brighter, the faster.",
        heat_map(grid),
        Table(("", "fastest"), tuple((name, format_rate(max(values))) for name, values in rows)),
        grid.height_px,
    )


def _each(slots: int) -> int:
    return max(1, slots // SLOTS_OF_GRIDS)


def _coarse(slots: Sequence[float], slot_s: float) -> list[float]:
    """Rates over several slots each."""
    each = _each(len(slots))
    parts = (slots[place : place + each] for place in range(0, len(slots), each))
    return [sum(part) / (slot_s * len(part)) for part in parts]


def _progress(run: RunHistory, trail: RunTrail, rates: CopyRates, flags: Sequence[Flag], end_s: float) -> Chart | None:
    """Copied bytes, and the part written meanwhile, against the plan's progress."""
    planned = planned_bytes(run.moves)
    if not rates.received or not planned:
        return None
    copied = list(accumulate(rates.total))
    growth = list(accumulate(rates.growth))
    begun_s = min(((move.submitted_ms or run.started_ms) - run.started_ms) / 1000 for move in run.moves)
    curves = [
        Line("copied", _curve(copied, rates.slot_s), is_filled=True),
        Line("of that written meanwhile", _curve(growth, rates.slot_s), "--fourth", is_filled=True),
    ]
    plan = f"The plan had {format_bytes(planned)} to copy"
    if trail.planned_s:
        ends_s = begun_s + trail.planned_s
        points = ((begun_s, 0.0), (ends_s, float(planned)), (max(ends_s, end_s), float(planned)))
        curves.append(Line("planned", points, "--before", is_dashed=True))
        plan += f", in {format_duration(trail.planned_s)} at the throttle it began with"
    copied_in = f"in {format_duration(end_s)} {format_bytes(copied[-1])} were copied"
    return Chart(
        "progress",
        "Planned and achieved",
        f"{plan}; {copied_in}, of which {format_bytes(growth[-1])} had been written meanwhile.",
        lines(curves, flags, unit="B", end_s=end_s),
        Table(
            ("", "planned", "achieved"),
            (
                ("bytes", format_bytes(planned), format_bytes(copied[-1])),
                ("written meanwhile", "-", format_bytes(growth[-1])),
                ("time", format_duration(trail.planned_s), format_duration(end_s - begun_s)),
            ),
        ),
        320,
    )


def _etas(run: RunHistory, trail: RunTrail, end_s: float) -> Chart | None:
    """Predicted end of the run, by the time of the prediction."""
    told = [
        (at_s, at_s + one.eta_s)
        for one in trail.eta_history
        if one.topic is None
        for at_s in [(one.at_ms - run.started_ms) / 1000]
    ]
    if len(told) < 2:
        return None
    ended_s = max((((move.ended_ms or 0) - run.started_ms) / 1000 for move in run.moves), default=end_s)
    curves = [Line("expected end", tuple(told))]
    if run.ended_ms is not None:
        curves.append(Line("last move", ((0.0, ended_s), (end_s, ended_s)), "--open", is_dashed=True))
    figure = lines(curves, unit="", end_s=end_s)
    rows = tuple((format_duration(at_s), format_duration(end)) for at_s, end in told[:: max(1, len(told) // 20)])
    return Chart(
        "etas",
        "When the end was expected",
        f"The end as it was expected at each time, from the start; at last {format_duration(told[-1][1])}.",
        figure,
        Table(("predicted at", "expected end"), rows),
        260,
    )


_TROUBLES = (
    ("moving", "of the run, out of sync"),
    ("under_replicated", "of the cluster, out of sync"),
    ("under_min_isr", "below min.insync.replicas"),
    ("offline", "without a leader"),
)


def _in_sync(seen: Sequence[InSync], started_ms: int, end_s: float) -> Chart | None:
    """A strip per kind of trouble: number of affected partitions over time."""
    if not seen:
        return None
    slot_s = end_s / SLOTS_OF_GRIDS
    strips = [(name, strip) for field, name in _TROUBLES if (strip := _strip(seen, field, started_ms, slot_s))]
    most = [(name, max((value for value in strip if value is not None), default=0)) for name, strip in strips]
    troubled = ", ".join(f"at most {count:,.0f} {name}" for name, count in most if count)
    grid = _over_time(strips, slot_s, lambda value: f"{value:.0f}")
    return Chart(
        "in-sync",
        "Replicas in sync",
        f"Partitions in trouble, but for replicas that the run itself adds: {troubled or 'none at any time'}.",
        heat_map(grid, top=1.0, unit=" partitions", colours=("--even", "--hot")),
        Table(("partitions", "most at a time"), tuple((name, f"{count:,.0f}") for name, count in most)),
        34 * len(strips) + 90,
    )


def _strip(seen: Sequence[InSync], field: str, started_ms: int, slot_s: float) -> list[float | None] | None:
    """Maximum of each slot; the last observation holds until the next."""
    values = [(one.at_ms, getattr(one, field)) for one in seen if getattr(one, field) is not None]
    if not values:
        return None
    ends_ms = [started_ms + (place + 1) * slot_s * 1000 for place in range(SLOTS_OF_GRIDS)]
    # What is seen after the last slot has a place of its own.
    by_slot: list[list[float]] = [[] for _ in range(SLOTS_OF_GRIDS + 1)]
    for at_ms, value in values:
        by_slot[bisect_left(ends_ms, at_ms)].append(value)
    held = accumulate(by_slot, lambda before, now: [*before[-1:], *now])
    return [max(slot, default=None) for slot in held][:SLOTS_OF_GRIDS]


def _over_time(rows: Sequence[tuple[str, Sequence[float | None]]], slot_s: float, text: Callable[[float], str]) -> Grid:
    """Rows of values by slot of time; column names are times."""
    slots = len(rows[0][1]) if rows else 0
    text_of_time = format_duration if slot_s >= 1 else "{:.2f} s".format
    return Grid(
        tuple(name for name, _ in rows),
        tuple(text_of_time(place * slot_s) for place in range(slots)),
        tuple(tuple(values) for _, values in rows),
        tuple(tuple("" if value is None else text(value) for value in values) for _, values in rows),
        slot_s,
    )


def _stair(values: Sequence[float], slot_s: float) -> tuple[tuple[float, float | None], ...]:
    """Values of slots as a line; the last one extends to the end of its slot."""
    points = [(place * slot_s, value) for place, value in enumerate(values)]
    return (*points, (len(values) * slot_s, values[-1]))


def _curve(values: Sequence[float], slot_s: float) -> tuple[tuple[float, float | None], ...]:
    """Cumulated values at the end of each slot."""
    return ((0.0, 0.0), *(((place + 1) * slot_s, value) for place, value in enumerate(values)))
