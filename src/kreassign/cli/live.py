"""Showing a run while it goes on: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kreassign.executor.progress.eta import Estimate
from kreassign.executor.progress.eta_interval import Interval
from kreassign.executor.progress.meter import BrokerProgress, MoveProgress, Progress
from kreassign.executor.progress.no_end import CALCULATING, HAS_ENDED
from kreassign.executor.state import ENDED, MoveStatus, Phase
from kreassign.model import Reassignment
from kreassign.model.printable import printable
from kreassign.report.run_state import run_state
from kreassign.report.text import format_bytes, format_duration, format_rate

LINE_EVERY_MS = 5_000
"""How often a plain line shows the progress; changes are printed at once."""

OUTLOOK_EVERY_MS = 60_000
"""How often a line says what will not fit into the hours of a run: its figures change with every poll."""

LINES_AROUND_MOVES = 6
LINES_OF_GUARDS = 3
LINES_OF_EVENTS = 4
LEAST_LINES_OF_MOVES = 3
LINES_OF_A_LOW_TERMINAL = 16
"""A terminal that is not higher shows only the whole and its moves."""

LONGEST_BAR, SHORTEST_BAR, SHORTEST_NAME = 30, 6, 8
WIDTH_OF_FIGURES = 52
"""Columns that percent, bytes, rate and remaining time take, with what is between columns."""
WIDTH_OF_BYTES = 18
WIDTH_WITH_BYTES = 76
"""On a narrower terminal the bytes of moves are left out: the bar and the percentage tell much the same."""

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
        self._state = ""
        self._last_ms = 0
        self._shown: dict[str, MoveStatus] = {}
        self._outlook: tuple[str, ...] = ()
        self._outlook_ms = 0
        self._guards: set[str] = set()

    def show(self, progress: Progress) -> None:
        """Print what is new."""
        for move in progress.moves:
            self._print_end(move)
        if state_text(progress, is_short=True) != self._state:
            self._state = state_text(progress, is_short=True)
            self._console.print(state_text(progress))
            if progress.phase is Phase.AWAITING_LEASE:
                self._console.print(f"  {progress.why_no_end}", soft_wrap=True)
        self._print_outlook(progress)
        self._print_guards(progress)
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

    def _print_guards(self, progress: Progress) -> None:
        """What a guard says, once per guard until it is content again: its figures change with every inspection."""
        said = {text.partition(":")[0]: text for text in progress.verdicts}
        for guard, text in said.items():
            if guard not in self._guards:
                self._console.print(f"  guard {text}", soft_wrap=True)
        self._guards = set(said)

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
            "state": state_text(progress),
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
    """The whole, moves, brokers, guards and what happened last, redrawn in place; as much of it as fits."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def show(self, progress: Progress) -> None:
        """Redraw."""
        self._live.update(screen(progress, self._console.width, self._console.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def screen(progress: Progress, width: int, height: int) -> Group:
    """A run on a terminal of this size: whole and moves, then brokers, guards and events, as far as they fit."""
    room = height - LINES_AROUND_MOVES
    if height <= LINES_OF_A_LOW_TERMINAL:
        return picture(progress, max(1, room), width)
    guards = [f"guard {line}" for line in progress.verdicts[:LINES_OF_GUARDS]]
    events = [f"{time_text(at_ms)} {text}" for at_ms, text in progress.recent[-LINES_OF_EVENTS:]]
    busy = _busiest(progress.brokers)
    shown = busy[: max(0, min(len(busy), (room - len(guards) - len(events)) // 3))]
    ends = [] if progress.end is None else [eta_text(progress)]
    titles = sum(1 for part in (shown, events, ends) if part) + (len(busy) > len(shown) > 0)
    left = room - len(guards) - len(events) - len(shown) - titles
    parts: list[RenderableType] = [picture(progress, max(LEAST_LINES_OF_MOVES, left), width)]
    parts += [_one_line(f"  {line}") for line in ends]
    if shown:
        parts.append(_brokers(shown, len(busy) - len(shown)))
    parts += [_one_line(f"  {line}") for line in guards]
    parts += [_one_line("  last events:"), *(_one_line(f"    {line}") for line in events)] if events else []
    return Group(*parts)


def _one_line(text: str) -> Text:
    """A line that is cut where the terminal ends, so that the height is known."""
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def time_text(at_ms: int) -> str:
    """The time of day in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"


def _busiest(brokers: Sequence[BrokerProgress]) -> list[BrokerProgress]:
    """Those that have something to do, who has most left first."""
    busy = (one for one in brokers if one.left_bytes or one.left_to_send_bytes)
    return sorted(busy, key=lambda one: (-max(one.left_bytes, one.left_to_send_bytes), one.broker))


def _brokers(shown: Sequence[BrokerProgress], hidden: int) -> Table:
    """What brokers receive and send, and of which throttle."""
    table = Table(box=None, pad_edge=False, show_footer=bool(hidden))
    for title in ("  broker", "in", "", "out", "", "throttle"):
        footer = f"  and {hidden} more" if title == "  broker" and hidden else ""
        table.add_column(title, footer, justify="left" if not title or "broker" in title else "right", no_wrap=True)
    for one in shown:
        limit = one.throttle_bytes_per_s
        table.add_row(
            f"  {one.broker}", format_rate(one.written_bytes_per_s), _use(one.written_bytes_per_s, limit),
            format_rate(one.read_bytes_per_s), _use(one.read_bytes_per_s, limit),
            "none" if limit is None else format_rate(limit),
        )  # fmt: skip
    return table


def _use(rate: float | None, limit: int | None) -> ProgressBar | str:
    """How much of its throttle a broker uses, as a bar."""
    return ProgressBar(total=float(limit), completed=min(rate or 0.0, limit), width=10) if limit else ""


def picture(progress: Progress, lines: int, width: int = 120) -> Group:
    """All bars of a run, the moves that go on first, with at most so many `lines` of moves.

    On a narrow terminal bars get shorter, then bytes are left out, then names are cut.
    """
    table = Table(box=None, pad_edge=False, show_header=False)
    has_bytes = width >= WIDTH_WITH_BYTES
    ordered = sorted(progress.moves, key=_interest)
    whole = f"{state_text(progress, is_short=True)} {progress.finished_count}/{progress.move_count}"
    names = [f"  {move.topic_partition} → {_added(move)}" for move in ordered[:lines]]
    left = width - WIDTH_OF_FIGURES + (0 if has_bytes else WIDTH_OF_BYTES)
    bar_width = max(SHORTEST_BAR, min(LONGEST_BAR, left - max(map(len, (whole, *names)))))
    for column in ("name", "bar", "percent", *(("bytes",) if has_bytes else ()), "rate", "eta"):
        table.add_column(
            column,
            justify="left" if column in {"name", "bar"} else "right",
            no_wrap=True,
            max_width=max(SHORTEST_NAME, left - bar_width) if column == "name" else None,
        )
    rows = [(whole, _cells(progress.overall)), *zip(names, map(_cells_of, ordered), strict=False)]
    for name, (estimate, percent, size, rate, eta) in rows:
        bar = ProgressBar(total=1.0, completed=estimate.fraction or 0.0, width=bar_width)
        table.add_row(name, bar, percent, *((size,) if has_bytes else ()), rate, eta)
    hidden = len(ordered) - lines
    more = [f"and {hidden} more"] if hidden > 0 else []
    told = progress.end is not None or progress.why_no_end in progress.outlook
    no_end = [] if told else [eta_text(progress)]
    return Group(table, *(Text(printable(f"  {line}")) for line in (*more, *progress.outlook, *no_end)))


def state_text(progress: Progress, *, is_short: bool = False) -> str:
    """How a run is that a process executes, in words; short, without what goes on meanwhile."""
    return run_state(
        progress.phase,
        is_active=True,
        is_held=progress.is_held,
        has_ended=progress.phase in ENDED,
        in_flight=0 if is_short else progress.in_flight_count,
    )


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
    if why.startswith(HAS_ENDED):
        return why
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


def _cells_of(move: MoveProgress) -> tuple[Estimate, str, str, str, str]:
    return _cells(move.estimate, move.status)


def _cells(estimate: Estimate, status: MoveStatus = MoveStatus.MOVING) -> tuple[Estimate, str, str, str, str]:
    fraction = estimate.fraction
    total = None if estimate.left_bytes is None else estimate.done_bytes + estimate.left_bytes
    size = format_bytes(estimate.done_bytes) + ("" if total is None else f" of {format_bytes(total)}")
    percent = "" if fraction is None else f"{fraction:.0%}"
    if status is not MoveStatus.MOVING:
        return estimate, percent, size, "", status.value
    return estimate, percent, size, format_rate(estimate.rate_bytes_per_s), format_duration(estimate.eta_s)
