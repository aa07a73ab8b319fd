"""PURE. The two drawing systems of pages: charts as plotly's figures, and small charts as SVG text.

Pages of plans and runs have plotly's; the page of a load and the web page have SVG.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import Any

from kreassign.model.text import printable

# PURE. Charts as plotly's figures, each with its words and its numbers: what is drawn is decided elsewhere.
#
# Colours are names of the page's CSS variables (`--after`), so that one figure serves light, dark and paper; the page's
# script puts their values in. Text is escaped, since plotly reads some markup in it.

ROW_PX = 22
"""Height of a row of a heat map or of bars: a line of text."""

LEAST_PX = 180
MOST_ROWS = 40
"""So many rows are shown one by one; what is beyond goes into one row."""

Figure = dict[str, Any]
"""`data` and `layout` as plotly takes them."""


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a chart: for those who do not see it, or want to copy them. `more` rows are left out."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: `says` is in words what it shows, `height_px` how high it is at any width."""

    name: str
    title: str
    says: str
    figure: Figure
    table: Table
    height_px: int = 300


@dataclass(frozen=True, slots=True)
class Grid:
    """Values by row and column, to be shown as colours; None where there is none. `texts` are what cells say."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]

    @property
    def height_px(self) -> int:
        """Enough for a line of text in each row."""
        return max(LEAST_PX, len(self.rows) * ROW_PX + 80)


@dataclass(frozen=True, slots=True)
class Line:
    """A value over time: seconds and values. A stepped one keeps its value up to the next point."""

    name: str
    points: tuple[tuple[float, float | None], ...]
    colour: str = "--after"
    is_stepped: bool = False
    is_filled: bool = False
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A bar from one time to another in the row of somebody; an open one goes on."""

    row: str
    start_s: float
    end_s: float
    text: str
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that happened at a time, shown as a line with a short name."""

    at_s: float
    name: str
    text: str
    colour: str = "--open"


def text(value: str) -> str:
    """A text from outside as plotly shows it: letter by letter."""
    return escape(printable(value))


def heat_map(
    grid: Grid,
    *,
    middle: float | None = None,
    top: float | None = None,
    unit: str = "",
    is_time: bool = False,
    colours: tuple[str, str] = ("--cold", "--warm"),
) -> Figure:
    """Colours by row and column: from nothing upwards to `top` or higher, or around a `middle` to no more than `top`.

    Where columns are times, only some of them are named.
    """
    known = [value for row in grid.values for value in row if value is not None]
    highest = max([top or 0.0, 2 * (middle or 0.0), *known]) or 1.0
    if top is not None and middle is not None:
        highest = max(top, 2 * middle)
    trace = {
        "type": "heatmap",
        "x": list(map(text, grid.columns)),
        "y": list(map(text, grid.rows)),
        "z": [list(row) for row in grid.values],
        "text": [list(map(text, row)) for row in grid.texts],
        "texttemplate": "%{text}" if len(grid.columns) <= 12 else "",
        "hovertemplate": f"%{{y}}, %{{x}}: %{{text}}{unit}<extra></extra>",
        "xgap": 2 if len(grid.columns) <= 60 else 0,
        "ygap": 2,
        "showscale": False,
        "colorscale": _colours(colours, middle, highest),
        "zmin": 0.0,
        "zmax": highest,
    }
    columns = {"nticks": 6, "tickangle": 0} if is_time else {"side": "top"}
    rows = {"autorange": "reversed"}
    return {"data": [trace], "layout": {
        "xaxis": {**_names(), **columns, "showgrid": False}, "yaxis": {**_names(), **rows, "showgrid": False},
    }}  # fmt: skip


def _colours(colours: tuple[str, str], middle: float | None, highest: float) -> list[list[float | str]]:
    """Where which colour is, as parts of the highest value."""
    if middle is None:
        return [[0, colours[0]], [1, colours[1]]]
    return [[0, "--cool"], [middle / highest, "--even"], [1, "--hot"]]


def lines(curves: Sequence[Line], flags: Iterable[Flag] = (), *, unit: str = "B/s", end_s: float = 0.0) -> Figure:
    """Values over time, with what happened meanwhile. Without a unit they are seconds, too."""
    highest = max((value or 0.0 for curve in curves for _, value in curve.points), default=0.0)
    amounts = {"rangemode": "tozero", "ticksuffix": unit, "exponentformat": "SI"}
    layout = {"xaxis": _seconds(end_s), "yaxis": amounts if unit else _seconds(highest), **_flagged(flags)}
    return {"data": [_line(curve, unit or " s") for curve in curves], "layout": layout}


def spans(rows: Sequence[str], bars: Iterable[Span], flags: Iterable[Flag] = (), *, end_s: float = 0.0) -> Figure:
    """Who did what when: bars over time, a row for each of `rows`."""
    kinds: dict[bool, list[Span]] = {False: [], True: []}
    for bar in bars:
        kinds[bar.is_open].append(bar)
    traces = [_spans(name, kinds[is_open], colour) for is_open, name, colour in _SPANS if kinds[is_open]]
    order = {"categoryorder": "array", "categoryarray": list(map(text, rows)), "autorange": "reversed"}
    axes = {"xaxis": _seconds(end_s), "yaxis": {**_names(), **order}}
    layout = {**axes, "barmode": "overlay", "bargap": 0.25, "showlegend": len(traces) > 1}
    flagged = _flagged(flags)
    below = 64 if len(traces) > 1 else 32
    return {"data": traces, "layout": {**layout, **flagged, "margin": {**flagged["margin"], "b": below}}}


def bars(names: Sequence[str], series: Mapping[str, Sequence[float]], colours: Sequence[str], unit: str) -> Figure:
    """Values by name as bars that lie; several series are put one behind the other."""
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": text(name),
            "y": list(map(text, names)),
            "x": list(values),
            "marker": {"color": colour},
            "hovertemplate": f"%{{y}}: %{{x:.3s}}{unit}<extra>{text(name)}</extra>",
        }
        for (name, values), colour in zip(series.items(), colours, strict=False)
    ]
    layout = {
        "barmode": "stack",
        "xaxis": {"ticksuffix": unit, "exponentformat": "SI", "rangemode": "tozero"},
        "yaxis": {**_names(), "autorange": "reversed"},
        "margin": {"b": 60 if len(series) > 1 else 32},
        "showlegend": len(series) > 1,
    }
    return {"data": traces, "layout": layout}


@dataclass(frozen=True, slots=True)
class Ranked:
    """The largest of many, by name, and what all others have together; `count` is how many these are."""

    shown: tuple[int, ...]
    others: tuple[int, ...] = field(default=())

    @property
    def name_of_others(self) -> str:
        """What the row of the others is called."""
        return f"{len(self.others):,} others"


def largest(weights: Mapping[int, float], at_most: int = MOST_ROWS) -> Ranked:
    """Which of them to show one by one: all if they fit, else the heaviest, in the order of their numbers."""
    if len(weights) <= at_most:
        return Ranked(tuple(sorted(weights)))
    ranked = sorted(weights, key=lambda one: (-weights[one], one))
    return Ranked(tuple(sorted(ranked[:at_most])), tuple(sorted(ranked[at_most:])))


_SPANS = ((False, "done", "--after"), (True, "not done", "--open"))


def _spans(name: str, mine: Sequence[Span], colour: str) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [text(bar.row) for bar in mine],
        "base": [round(bar.start_s, 3) for bar in mine],
        "x": [round(bar.end_s - bar.start_s, 3) for bar in mine],
        "customdata": [text(bar.text) for bar in mine],
        "hovertemplate": "%{y}: %{customdata}<extra></extra>",
        "marker": {"color": colour, "opacity": 0.75, "line": {"color": "--card", "width": 1}},
    }


def _line(curve: Line, unit: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(curve.name),
        "x": [round(at, 3) for at, _ in curve.points],
        "y": [value for _, value in curve.points],
        "line": {
            "color": curve.colour,
            "width": 2,
            "shape": "hv" if curve.is_stepped else "linear",
            "dash": "dash" if curve.is_dashed else "solid",
        },
        "fill": "tozeroy" if curve.is_filled else "none",
        "hovertemplate": f"%{{y:.3s}}{unit}<extra>{text(curve.name)}</extra>",
    }


def _flagged(flags: Iterable[Flag]) -> Figure:
    """Lines from top to bottom, and their names above the plot, each a little beside the one before."""
    found = sorted(flags, key=lambda flag: flag.at_s)
    shapes = [
        {
            "type": "line", "xref": "x", "yref": "paper", "x0": flag.at_s, "x1": flag.at_s, "y0": 0, "y1": 1,
            "line": {"color": flag.colour, "width": 1.5, "dash": "dot"},
        }
        for flag in found
    ]  # fmt: skip
    notes = [
        {
            "x": flag.at_s, "y": 1, "xref": "x", "yref": "paper", "yanchor": "bottom", "xanchor": "left",
            "yshift": 12 * (place % 3), "text": text(flag.name), "hovertext": text(flag.text), "showarrow": False,
            "font": {"size": 11, "color": flag.colour},
        }
        for place, flag in enumerate(found)
    ]  # fmt: skip
    return {"shapes": shapes, "annotations": notes, "margin": {"t": 44 if found else 16, "b": 64}}


def _names() -> Figure:
    """An axis of names: numbers of brokers are names, too."""
    return {"type": "category", "automargin": True}


def _seconds(end_s: float) -> Figure:
    """An axis of time since the start."""
    return {"range": [0, end_s * 1.02 or 1], "durations": True}


# PURE. Small charts as SVG text, to be put into a page.
#
# Every chart is as wide as its place and keeps its height, so that bars shrink on a phone and nothing else does. It
# carries no colour: its classes (`before`, `after`, `mark`, `band` and so on) get theirs from the page.

BAR_HEIGHT = 10
PLOT_WIDTH, PLOT_HEIGHT = 1000, 120


def paired_bars(before: float | None, after: float | None, largest: float, label: str) -> str:
    """Two bars, one above the other, as parts of the largest value. A missing value has no bar."""
    bars = _bar("before", 0, before, largest) + _bar("after", BAR_HEIGHT + 2, after, largest)
    return _drawing(2 * BAR_HEIGHT + 2, label, bars)


def marked_bar(value: float | None, mark: float | None, largest: float, label: str) -> str:
    """One bar as part of the largest value, with a mark to compare it with."""
    height = BAR_HEIGHT + 4
    bar = _bar("after", 2, value, largest)
    if mark is not None:
        at = f"{_percent(mark, largest)}%"
        bar += f'<line class="mark" x1="{at}" x2="{at}" y1="0" y2="{height}"/>'
    return _drawing(height, label, bar)


def span_bar(start: float | None, end: float | None, whole: float, label: str) -> str:
    """When something was under way, as a part of the whole time; without an end it goes on to the end of the chart."""
    track = '<rect class="track" x="0" y="4" width="100%" height="2" rx="1"/>'
    if start is None:
        return _drawing(BAR_HEIGHT, label, track)
    left = min(_percent(start, whole), 99.5)
    width = max(0.5, _percent(whole if end is None else end, whole) - left)
    kind = "open" if end is None else "after"
    bar = f'<rect class="{kind}" x="{left:g}%" y="0" width="{width:.3g}%" height="{BAR_HEIGHT}" rx="2"/>'
    return _drawing(BAR_HEIGHT, label, track + bar)


def step_area(steps: Sequence[tuple[float, float]], whole: float, largest: float, label: str) -> str:
    """A value over time as a filled stair; each step is (from when on, value)."""
    outline = [f"0,{PLOT_HEIGHT}"]
    level = 0.0
    for at, value in steps:
        x = PLOT_WIDTH * _percent(at, whole) / 100
        outline += [f"{x:.1f},{_height(level, largest):.1f}", f"{x:.1f},{_height(value, largest):.1f}"]
        level = value
    outline += [f"{PLOT_WIDTH},{_height(level, largest):.1f}", f"{PLOT_WIDTH},{PLOT_HEIGHT}"]
    return _plot(label, f'<polygon class="area" points="{" ".join(outline)}"/>')


def daily_curve(values: Sequence[float | None], largest: float, label: str) -> str:
    """A value by hour of the day as a line, with marks at 6, 12 and 18 o'clock; no line where it is missing."""
    slot = PLOT_WIDTH / len(values)
    ticks = "".join(_tick(PLOT_WIDTH * quarter / 4) for quarter in (1, 2, 3))
    points = [None if value is None else ((hour + 0.5) * slot, value) for hour, value in enumerate(values)]
    return _plot(label, ticks + _svg_line("curve", points, largest))


def history_and_band(
    days: Sequence[tuple[float, float]],
    now: float | None,
    ahead: tuple[float, float, float, float] | None,
    largest: float,
    label: str,
) -> str:
    """A value by day, and its forecast: a line up to the present, then a dashed one in a band.

    `days` are (days ago, value), oldest first; `ahead` is (in how many days, value, low, high).
    """
    before = max((age for age, _ in days), default=0.0) + 0.5
    whole = before + (ahead[0] if ahead else 0.0)
    at = PLOT_WIDTH / whole if whole else 0.0
    line = [((before - age - 0.5) * at, value) for age, value in days]
    here = None if now is None else (before * at, now)
    drawn = _tick(before * at)
    if ahead and here:
        end = PLOT_WIDTH
        corners = (here, (end, ahead[3]), (end, ahead[2]))
        drawn += f'<polygon class="band" points="{_points(corners, largest)}"/>'
        drawn += _svg_line("ahead", [here, (end, ahead[1])], largest)
    return _plot(label, drawn + _svg_line("curve", [*line, here], largest))


def columns(values: Sequence[float], largest: float, label: str) -> str:
    """A value of each of many as columns side by side. What is more than 0 is never too low to be seen."""
    slot = PLOT_WIDTH / max(len(values), 1)
    width = min(slot * 0.8, PLOT_WIDTH / 12)
    bars = (
        f'<rect class="column" x="{place * slot + (slot - width) / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{PLOT_HEIGHT - top:.1f}"/>'
        for place, value in enumerate(values)
        if value
        for top in [min(_height(value, largest), PLOT_HEIGHT - 2)]
    )
    return _plot(label, "".join(bars))


def _plot(label: str, inside: str) -> str:
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" preserveAspectRatio="none">'
        f"<title>{escape(printable(label))}</title>{inside}</svg>"
    )


def _tick(x: float) -> str:
    return f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{PLOT_HEIGHT}"/>'


def _svg_line(kind: str, points: Sequence[tuple[float, float] | None], largest: float) -> str:
    """Points as lines, broken where one is missing; a point between two missing ones is a dot."""
    runs = [list(run) for is_there, run in groupby(points, lambda point: point is not None) if is_there]
    return "".join(_run(kind, [point for point in run if point is not None], largest) for run in runs)


def _run(kind: str, points: Sequence[tuple[float, float]], largest: float) -> str:
    if len(points) > 1:
        return f'<polyline class="{kind}" points="{_points(points, largest)}"/>'
    ((x, value),) = points
    y = _height(value, largest)
    return f'<line class="dot" x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'


def _points(points: Sequence[tuple[float, float]], largest: float) -> str:
    return " ".join(f"{x:.1f},{_height(value, largest):.1f}" for x, value in points)


def _drawing(height: int, label: str, inside: str) -> str:
    return f'<svg role="img" width="100%" height="{height}"><title>{escape(printable(label))}</title>{inside}</svg>'


def _bar(kind: str, top: int, value: float | None, largest: float) -> str:
    if value is None:
        return ""
    # A sliver for what is there at all, so that little does not look like nothing.
    width = max(0.4, _percent(value, largest)) if value else 0.0
    return f'<rect class="{kind}" x="0" y="{top}" width="{width:.4g}%" height="{BAR_HEIGHT}" rx="2"/>'


def _percent(value: float, whole: float) -> float:
    return max(0.0, min(100.0, 100.0 * value / whole)) if whole > 0 else 0.0


def _height(value: float, largest: float) -> float:
    return PLOT_HEIGHT * (1 - _percent(value, largest) / 100)
