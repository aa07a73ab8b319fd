#!/usr/bin/env python3
"""Write docs/images/terminal.svg: a killed run that is resumed, as a terminal shows it, from commands run on a twin.

PYTHONPATH=. python scripts/terminal_animation.py     (or `make animation`; two minutes)

The pauses between lines are shortened, and lines are left out; nothing else is changed. Lines appear by CSS alone, so
that the picture moves where scripts are forbidden; where movement is unwelcome, the last picture stands still.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path

from testbed.waiting import wait_until

PICTURE = Path("docs/images/terminal.svg")
COLUMNS = 88
PROMPT = "$ "
THROTTLE = "100MB/s"
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


def record(folder: Path, *words: str) -> list[Line]:
    """Plan, run, kill, resume and check on a twin, which gets these options; what a terminal shows of it."""
    with _twin(folder, *words) as servers:
        environment = {
            **os.environ, "KREASSIGN_BOOTSTRAP_SERVER": servers, "KREASSIGN_STATE_DIR": str(folder / "state"),
            "COLUMNS": str(COLUMNS),
        }  # fmt: skip

        def lines(*command: str, only: Iterable[str]) -> list[Line]:
            done = subprocess.run(
                [sys.executable, "-m", "kreassign", *command],
                capture_output=True, text=True, check=True, env=environment, cwd=folder,
            )  # fmt: skip
            chosen = [line for line in (done.stdout + done.stderr).splitlines() if any(part in line for part in only)]
            return [Line("command", " ".join(("kreassign", *command))), *_output(chosen)]

        planned = lines("plan", "--out", "plan.json", only=("partitions change", "lower bound", "written to"))
        killed = _run_and_kill(folder, environment)
        return [
            *planned,
            *killed,
            *lines("status", only=("its process is gone", "throttle in force")),
            *lines("resume", only=("done; ",)),
            *lines("verify", "plan.json", only=("as planned",)),
            *lines("doctor", only=("all is well", "finding")),
        ]


def _run_and_kill(folder: Path, environment: dict[str, str]) -> list[Line]:
    words = ("run", "plan.json", "--throttle", THROTTLE, "--yes")
    shown = folder / "run.txt"
    with shown.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kreassign", *words, "--poll-interval", "0.2"],
            stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder,
        )  # fmt: skip
        try:
            wait_until(lambda: shown.read_text().count(" complete\n") > 2, what="moves of the run to complete")
        finally:
            process.kill()
            process.wait()
    text = shown.read_text().splitlines()
    chosen = [line for line in text if line.startswith("run ") or " copied, " in line or line.endswith(" complete")]
    return [
        Line("command", " ".join(("kreassign", *words))),
        *_output(chosen[:6]),
        Line("note", f"$ kill -9 {process.pid}"),
        Line("note", "Killed"),
    ]


def _output(lines: Iterable[str]) -> Iterator[Line]:
    for line in lines:
        for part in textwrap.wrap(line, COLUMNS, subsequent_indent="    ", drop_whitespace=False) or [""]:
            yield Line("output", part)


@contextmanager
def _twin(folder: Path, *words: str) -> Iterator[str]:
    """A twin of the scenario `skewed` while the block runs; its bootstrap servers."""
    command = [sys.executable, "-m", "kreassign", "twin", "start", "--scenario", "skewed", "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            yield next(line.split(": ")[1].strip() for line in lines if line.startswith("bootstrap servers: "))
        finally:
            process.terminate()


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
    says = "A terminal: a plan is run, its process is killed, the run is resumed, and no throttle is left."
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
    """Record it and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(picture(record(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
