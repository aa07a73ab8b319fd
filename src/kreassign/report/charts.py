"""PURE. Small charts as SVG text, to be put into a page.

Every chart is as wide as its place and keeps its height, so that bars shrink on a phone and nothing else does. It
carries no colour: the classes `before`, `after`, `mark` and `track` get theirs from the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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
    return (
        f'<svg class="plot" role="img" viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" preserveAspectRatio="none">'
        f'<title>{escape(printable(label))}</title><polygon class="area" points="{" ".join(outline)}"/></svg>'
    )


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
