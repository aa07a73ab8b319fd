"""Drawing of pages: charts as plotly figures, and small charts as SVG text.

Pages of plans and runs use plotly; the page of a load and the web page use SVG. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import Any

from kreassign.model.text import counted, printable

# Charts as plotly figures, each with a description and its numbers.
#
# Colours are names of the page's CSS variables (`--after`), so that one figure serves light, dark and paper; the page's
# script inserts their values. Text is escaped, since plotly interprets some markup in it.

ROW_PX = 22
"""Height of a row of a heat map or of bars, in pixels: a line of text."""

LEAST_PX = 180
MOST_ROWS = 40
"""Most rows shown singly; all others share one row."""

Figure = dict[str, Any]
"""A plotly figure: `data` and `layout`."""


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers of a chart, for screen readers and for copying. `more` rows are left out."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: `says` describes it in words, `height_px` is its height at any width."""

    name: str
    title: str
    says: str
    figure: Figure
    table: Table
    height_px: int = 300


@dataclass(frozen=True, slots=True)
class Grid:
    """Values by row and column, to be shown as colours; None if missing. `texts` are the labels of the cells.

    With a `slot_s`, columns are slots of time since the start, named by their beginnings.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    slot_s: float | None = None

    @property
    def height_px(self) -> int:
        """Height with one line of text per row, in pixels."""
        return max(LEAST_PX, len(self.rows) * ROW_PX + 80)


@dataclass(frozen=True, slots=True)
class Line:
    """A value over time: (seconds, value) points. A stepped line keeps its value up to the next point."""

    name: str
    points: tuple[tuple[float, float | None], ...]
    colour: str = "--after"
    is_stepped: bool = False
    is_filled: bool = False
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A bar from one time to another in a named row; an open one goes on."""

    row: str
    start_s: float
    end_s: float
    text: str
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """An event at a time, drawn as a line with a short name."""

    at_s: float
    name: str
    text: str
    colour: str = "--open"


def text(value: str) -> str:
    """Escape outside text for plotly, which then shows it literally."""
    return escape(printable(value))


def heat_map(
    grid: Grid,
    *,
    middle: float | None = None,
    top: float | None = None,
    unit: str = "",
    colours: tuple[str, str] = ("--cold", "--warm"),
) -> Figure:
    """Heat map: colours from 0 up to `top` or the highest value, or around a `middle` up to at most `top`."""
    known = [value for row in grid.values for value in row if value is not None]
    highest = max([top or 0.0, 2 * (middle or 0.0), *known]) or 1.0
    if top is not None and middle is not None:
        highest = max(top, 2 * middle)
    scale = [[0, colours[0]], [1, colours[1]]]
    if middle is not None:
        scale = [[0, "--cool"], [middle / highest, "--even"], [1, "--hot"]]
    trace = {
        "type": "heatmap",
        **_columns(grid),
        "y": list(map(text, grid.rows)),
        "z": [list(row) for row in grid.values],
        "text": [list(map(text, row)) for row in grid.texts],
        "textfont": {"color": "--ink"},
        "texttemplate": "%{text}" if len(grid.columns) <= 12 else "",
        "hovertemplate": f"%{{y}}, %{{customdata}}: %{{text}}{unit}<extra></extra>",
        "xgap": 2 if grid.slot_s is None else 0,
        "ygap": 2,
        "showscale": False,
        "colorscale": scale,
        "zmin": 0.0,
        "zmax": highest,
    }
    columns = {**_names(), "side": "top"}
    if grid.slot_s is not None:
        columns = _seconds(grid.slot_s * len(grid.columns), room=1.0)
    rows = {**_names(), "autorange": "reversed"}
    return {"data": [trace], "layout": {
        "xaxis": {**columns, "showgrid": False}, "yaxis": {**rows, "showgrid": False},
    }}  # fmt: skip


def _columns(grid: Grid) -> Figure:
    """Places of the columns, and the name of its column for each cell."""
    names = list(map(text, grid.columns))
    places = {"x": names} if grid.slot_s is None else {"x0": grid.slot_s / 2, "dx": grid.slot_s}
    return {**places, "customdata": [names for _ in grid.rows]}


def lines(curves: Sequence[Line], flags: Iterable[Flag] = (), *, unit: str = "B/s", end_s: float = 0.0) -> Figure:
    """Values over time, with events. Without a unit the values are seconds too."""
    highest = max((value or 0.0 for curve in curves for _, value in curve.points), default=0.0)
    amounts = {"rangemode": "tozero", "ticksuffix": unit, "exponentformat": "SI"}
    layout = {"xaxis": _seconds(end_s), "yaxis": amounts if unit else _seconds(highest), **_flagged(flags)}
    return {"data": [_line(curve, unit or " s") for curve in curves], "layout": layout}


def spans(rows: Sequence[str], bars: Iterable[Span], flags: Iterable[Flag] = (), *, end_s: float = 0.0) -> Figure:
    """Bars over time, in the given `rows`."""
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
    """Horizontal bars of values by name; several series overlap."""
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
    """Ids to show singly, and the ids of all others, which share a row."""

    shown: tuple[int, ...]
    others: tuple[int, ...] = field(default=())

    @property
    def name_of_others(self) -> str:
        """Label of the row of the others."""
        return counted(len(self.others), "other")


def largest(weights: Mapping[int, float], at_most: int = MOST_ROWS) -> Ranked:
    """Choose what to show singly, in order of id: all if they fit, else the heaviest."""
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
    """Vertical lines with their names above the plot, staggered."""
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
    """Axis of names; broker ids are names too."""
    return {"type": "category", "automargin": True}


def _seconds(end_s: float, room: float = 1.02) -> Figure:
    """Axis of time since the start, in seconds."""
    return {"range": [0, end_s * room or 1], "durations": True}


# Small charts as SVG text, to be embedded in a page.
#
# Every chart is as wide as its container and keeps its height, so that only bars shrink on a phone. Its classes
# (`before`, `after`, `mark`, `band` and so on) get their colours from the page.

BAR_HEIGHT = 10
PLOT_WIDTH, PLOT_HEIGHT = 1000, 120


def paired_bars(before: float | None, after: float | None, largest: float, label: str) -> str:
    """Two bars, one above the other, relative to the largest value. A missing value has no bar."""
    bars = _bar("before", 0, before, largest) + _bar("after", BAR_HEIGHT + 2, after, largest)
    return _drawing(2 * BAR_HEIGHT + 2, label, bars)


def marked_bar(value: float | None, mark: float | None, largest: float, label: str) -> str:
    """One bar relative to the largest value, with a mark to compare with."""
    height = BAR_HEIGHT + 4
    bar = _bar("after", 2, value, largest)
    if mark is not None:
        at = f"{_percent(mark, largest)}%"
        bar += f'<line class="mark" x1="{at}" x2="{at}" y1="0" y2="{height}"/>'
    return _drawing(height, label, bar)


def span_bar(start: float | None, end: float | None, whole: float, label: str) -> str:
    """Bar from start to end, relative to the whole time; without an end it extends to the end of the chart."""
    track = '<rect class="track" x="0" y="4" width="100%" height="2" rx="1"/>'
    if start is None:
        return _drawing(BAR_HEIGHT, label, track)
    left = min(_percent(start, whole), 99.5)
    width = max(0.5, _percent(whole if end is None else end, whole) - left)
    kind = "open" if end is None else "after"
    bar = f'<rect class="{kind}" x="{left:g}%" y="0" width="{width:.3g}%" height="{BAR_HEIGHT}" rx="2"/>'
    return _drawing(BAR_HEIGHT, label, track + bar)


def daily_curve(values: Sequence[float | None], largest: float, label: str) -> str:
    """A value by hour of the day as a line, with marks at 6, 12 and 18 o'clock; gaps where it is missing."""
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
    """A value by day with its forecast: a line up to the present, then a dashed line in a band.

    `days` are (days ago, value), oldest first; `ahead` is (days ahead, value, low, high).
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
    """One column per value, side by side. Values above 0 are always tall enough to be seen."""
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
    """Points as lines, broken at missing ones; a point between two missing ones is a dot."""
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
    # A minimum width for values above 0, so that little does not look like nothing.
    width = max(0.4, _percent(value, largest)) if value else 0.0
    return f'<rect class="{kind}" x="0" y="{top}" width="{width:.4g}%" height="{BAR_HEIGHT}" rx="2"/>'


def _percent(value: float, whole: float) -> float:
    return max(0.0, min(100.0, 100.0 * value / whole)) if whole > 0 else 0.0


def _height(value: float, largest: float) -> float:
    return PLOT_HEIGHT * (1 - _percent(value, largest) / 100)
