"""Showing a run while it goes on: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kreassign.executor.progress.eta import Estimate
from kreassign.executor.progress.eta_interval import Interval
from kreassign.executor.progress.meter import MoveProgress, Progress
from kreassign.executor.progress.no_end import CALCULATING
from kreassign.executor.state import MoveStatus, Phase
from kreassign.model import Reassignment
from kreassign.model.printable import printable
from kreassign.report.text import format_bytes, format_duration, format_rate

LINE_EVERY_MS = 5_000
"""How often a plain line shows the progress; changes are printed at once."""

OUTLOOK_EVERY_MS = 60_000
"""How often a line says what will not fit into the hours of a run: its figures change with every poll."""

LINES_AROUND_MOVES = 6

INTEREST = (
    MoveStatus.MOVING,
    MoveStatus.CANCELLING,
    MoveStatus.SENT,
    MoveStatus.FAILED,
    MoveStatus.PLANNED,
    MoveStatus.CANCELLED,
    MoveStatus.COMPLETE,
)
"""Moves of which status are shown first."""


class View(Protocol):
    """Shows the progress of a run, again and again."""

    def show(self, progress: Progress) -> None:
        """Show how far the run is now."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def view_for(console: Console) -> View:
    """Bars where someone can see them move, else lines."""
    return BarsView(console) if console.is_terminal else LinesView(console)


class LinesView:
    """One line per change and every few seconds: for logs, pipes and tests."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase = ""
        self._last_ms = 0
        self._shown: dict[str, MoveStatus] = {}
        self._outlook: tuple[str, ...] = ()
        self._outlook_ms = 0

    def show(self, progress: Progress) -> None:
        """Print what is new."""
        for move in progress.moves:
            self._print_end(move)
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._console.print(f"{progress.phase}")
            if progress.phase is Phase.AWAITING_LEASE:
                self._console.print(f"  {progress.why_no_end}", soft_wrap=True)
        self._print_outlook(progress)
        if progress.phase == "moving" and progress.at_ms - self._last_ms >= LINE_EVERY_MS:
            self._last_ms = progress.at_ms
            self._console.print(f"  {overall_text(progress)}", soft_wrap=True)

    def _print_outlook(self, progress: Progress) -> None:
        is_due = len(progress.outlook) > len(self._outlook) or progress.at_ms - self._outlook_ms >= OUTLOOK_EVERY_MS
        if progress.outlook == self._outlook or not is_due:
            return
        self._outlook, self._outlook_ms = progress.outlook, progress.at_ms
        for sentence in progress.outlook:
            self._console.print(f"  {sentence}", soft_wrap=True)

    def _print_end(self, move: MoveProgress) -> None:
        name = str(move.topic_partition)
        if self._shown.get(name) != move.status and move.status in {MoveStatus.COMPLETE, MoveStatus.FAILED}:
            self._shown[name] = move.status
            self._console.print(f"  {name} {move.problem or 'complete'}", soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class JsonView:
    """One JSON document per line, whenever something changed: for programs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: dict[str, object] = {}

    def show(self, progress: Progress) -> None:
        """Print how far the run is, if that is news."""
        now = {
            "phase": progress.phase.value,
            "moves": progress.move_count,
            "finished": progress.finished_count,
            "failed": progress.failed_count,
            "outlook": list(progress.outlook),
            **overall_fields(progress),
        }
        if now != self._shown:
            self._shown = now
            self._console.print(json.dumps({"at_ms": progress.at_ms, **now}), soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class BarsView:
    """A bar for the whole and one for each move, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def show(self, progress: Progress) -> None:
        """Redraw."""
        lines = max(1, self._console.height - LINES_AROUND_MOVES)
        self._live.update(picture(progress, lines), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def picture(progress: Progress, lines: int) -> Group:
    """All bars of a run, the moves that go on first, with at most so many `lines` of moves."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for column in ("name", "bar", "percent", "bytes", "rate", "eta"):
        table.add_column(column, justify="left" if column in {"name", "bar"} else "right", no_wrap=True)
    table.add_row(f"{progress.phase} {progress.finished_count}/{progress.move_count}", *_cells(progress.overall))
    ordered = sorted(progress.moves, key=_interest)
    for move in ordered[:lines]:
        table.add_row(f"  {move.topic_partition} → {_added(move)}", *_cells(move.estimate, move.status))
    hidden = len(ordered) - lines
    more = [f"and {hidden} more"] if hidden > 0 else []
    told = progress.end is not None or progress.why_no_end in progress.outlook
    no_end = [] if told else [eta_text(progress)]
    return Group(table, *(Text(printable(f"  {line}")) for line in (*more, *progress.outlook, *no_end)))


def overall_fields(progress: Progress) -> dict[str, object]:
    """The whole run for programs; `end` is in seconds from now, None where that is unknown, with the reason."""
    end = None if progress.end is None else asdict(progress.end)
    return asdict(progress.overall) | {"end": end, "why_no_end": progress.why_no_end}


def overall_text(progress: Progress) -> str:
    """The whole run in one line."""
    overall = progress.overall
    left = "unknown" if overall.left_bytes is None else format_bytes(overall.left_bytes)
    return (
        f"{progress.finished_count}/{progress.move_count} moves, {format_bytes(overall.done_bytes)} copied, "
        f"{left} left, {format_rate(overall.rate_bytes_per_s)}, {eta_text(progress)}"
    )


def eta_text(progress: Progress) -> str:
    """When the run ends, or why nobody can say."""
    if progress.end is not None:
        return f"ETA {format_duration(progress.end.expected_s)}{_between(progress.end)}"
    why = progress.why_no_end or CALCULATING
    return f"ETA {why}" if why.startswith(CALCULATING) else f"ETA unknown: {why}"


def _between(end: Interval) -> str:
    """How far the end may be off, where that is worth a word."""
    if end.latest_s == 0:
        return ""
    return f" (from {format_duration(end.earliest_s)} to {format_duration(end.latest_s)})"


def _interest(move: MoveProgress) -> tuple[int, str, int]:
    return INTEREST.index(move.status), *move.topic_partition


def _added(move: MoveProgress) -> str:
    adding = Reassignment(move.original, move.target).adding_in_order
    return ",".join(map(str, adding)) or "another log directory"


def _cells(estimate: Estimate, status: MoveStatus = MoveStatus.MOVING) -> tuple[ProgressBar, str, str, str, str]:
    fraction = estimate.fraction
    total = None if estimate.left_bytes is None else estimate.done_bytes + estimate.left_bytes
    bar = ProgressBar(total=1.0, completed=fraction or 0.0, width=30)
    size = format_bytes(estimate.done_bytes) + ("" if total is None else f" of {format_bytes(total)}")
    percent = "" if fraction is None else f"{fraction:.0%}"
    if status is not MoveStatus.MOVING:
        return bar, percent, size, "", status.value
    return bar, percent, size, format_rate(estimate.rate_bytes_per_s), format_duration(estimate.eta_s)
