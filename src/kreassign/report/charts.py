"""PURE. Small charts as SVG text, to be put into a page.

Every chart is as wide as its place and keeps its height, so that bars shrink on a phone and nothing else does. It
carries no colour: its classes (`before`, `after`, `mark`, `band` and so on) get theirs from the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from kreassign.model.printable import printable

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
    return _plot(label, ticks + _line("curve", points, largest))


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
        drawn += _line("ahead", [here, (end, ahead[1])], largest)
    return _plot(label, drawn + _line("curve", [*line, here], largest))


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


def _line(kind: str, points: Sequence[tuple[float, float] | None], largest: float) -> str:
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
