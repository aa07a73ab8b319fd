#!/usr/bin/env python3
"""Write docs/images/terminal.svg: the killed run of `kreassign demo` that is resumed, as a terminal shows it.

PYTHONPATH=. python scripts/terminal_animation.py     (or `make animation`; two minutes)

The pauses between lines are shortened, and lines are left out; nothing else is changed. Lines appear by CSS alone, so
that the picture moves where scripts are forbidden; where movement is unwelcome, the last picture stands still.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from kreassign.cli.commands.demo import COMPLETE, KILL, PROMPT

PICTURE = Path("docs/images/terminal.svg")
COLUMNS = 88
COMMAND = f"{PROMPT}kreassign "
KEPT = {
    "doctor": ("distribution", "uneven", "all is well", "needs a remedy", "finding"),
    "plan": ("partitions change", "lower bound"),
    "run": ("run ", " copied, ", COMPLETE),
    "status": ("its process is gone", "throttle in force"),
    "resume": (": done; ",),
    "verify": ("all as planned",),
    "rollback": (": done; ",),
}
"""Lines of the shown commands that are kept, no more than MOST each: those with any of these words."""
MOST = 6
LINE_PX, COLUMN_PX, EDGE_PX = 19, 7.8, 14
STAYS_S = 6
_SECONDS = {"command": 1.6, "output": 0.35, "note": 1.6}
_COLOURS = {
    "ground": ("#f6f8fa", "#0d1117"), "command": ("#0550ae", "#79c0ff"), "output": ("#1f2328", "#e6edf3"),
    "note": ("#cf222e", "#ff7b72"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the terminal: a `command`, `output`, or a `note` about what happens to the process."""

    kind: str
    text: str


def record(demo: Iterable[str]) -> list[Line]:
    """Select the lines of a demo that the picture shows."""
    lines: list[Line] = []
    kept: tuple[str, ...] = ()
    shown = 0
    for line in demo:
        if line.startswith(KILL):
            lines += [Line("note", line), Line("note", "Killed")]
        elif line.startswith(COMMAND):
            kept, shown = KEPT.get(line.split()[2], ()), 0
            lines += [Line("command", line.removeprefix(PROMPT))] if kept else []
        elif shown < MOST and any(part in line for part in kept):
            lines += _output(line)
            shown += 1
    return lines


def _output(line: str) -> Iterator[Line]:
    for part in textwrap.wrap(line, COLUMNS, subsequent_indent="    "):
        yield Line("output", part)


def picture(lines: Iterable[Line]) -> str:
    """The lines as an SVG in which they appear one after the other, for light and dark grounds."""
    lines = list(lines)
    starts, time_s = [], 0.0
    for line in lines:
        starts.append(time_s)
        time_s += _SECONDS[line.kind]
    whole_s = time_s + STAYS_S
    rows = "\n".join(
        f'<text class="line {line.kind}" style="animation-name:l{row}" x="{EDGE_PX}" y="{_y(row)}">'
        f"{escape(PROMPT + line.text if line.kind == 'command' else line.text)}</text>"
        for row, line in enumerate(lines)
    )
    frames = "\n".join(
        f"@keyframes l{row} {{ 0%, {start / whole_s:.2%} {{ opacity: 0 }} "
        f"{start / whole_s + 0.0001:.2%}, 100% {{ opacity: 1 }} }}"
        for row, start in enumerate(starts)
        if start
    )
    light, dark = ("\n".join(_colours(scheme)) for scheme in (0, 1))
    width, height = round(COLUMNS * COLUMN_PX + 2 * EDGE_PX), _y(len(lines) - 1) + EDGE_PX
    says = (
        "A terminal: a plan is run, its process is killed, the run is resumed, no throttle is left, and all is rolled "
        "back."
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{says}">
<style>
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }}
.command {{ font-weight: bold }}
{light}
@media (prefers-color-scheme: dark) {{
{dark}
}}
.line {{ animation-duration: {whole_s:.1f}s; animation-iteration-count: infinite }}
{frames}
@media (prefers-reduced-motion: reduce) {{ .line {{ animation-duration: 0s }} }}
</style>
<rect class="ground" width="{width}" height="{height}" rx="8"/>
{rows}
</svg>
"""


def _y(row: int) -> int:
    return EDGE_PX + LINE_PX * row + 13


def _colours(scheme: int) -> Iterator[str]:
    for name, colours in _COLOURS.items():
        yield f".{name} {{ fill: {colours[scheme]} }}"


def main() -> None:
    """Record a demo and write the picture."""
    command = [sys.executable, "-m", "kreassign", "demo"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    PICTURE.write_text(picture(record(done.stdout.splitlines())), encoding="utf-8")


if __name__ == "__main__":
    main()
