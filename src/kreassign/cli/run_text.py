"""Show a run: live progress, the result as text, and a document for programs.

Live progress is bars on a terminal, plain lines elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.pace import rates_text
from kreassign.cli.output import console, figures, print_json, text_table
from kreassign.errors import ExecutionError
from kreassign.executor.eta import CALCULATING, HAS_ENDED
from kreassign.executor.events import Request
from kreassign.executor.scheduling.windows import local_time
from kreassign.model import Reassignment
from kreassign.model.pace import Cap, Pace, Schedule
from kreassign.model.run import (
    BrokerProgress,
    Estimate,
    Interval,
    MoveHistory,
    MoveStatus,
    Phase,
    Progress,
    RunHistory,
)
from kreassign.model.text import agreeing, counted, printable
from kreassign.report.text import format_bytes, format_duration, format_rate, run_state

# Live progress: bars on a terminal, plain lines elsewhere.

LINE_EVERY_MS = 5_000
"""Interval of progress lines; changes are printed at once."""

OUTLOOK_EVERY_MS = 60_000
"""Interval of lines about what will not fit into the hours of a run: its figures change with every poll."""

LINES_AROUND_MOVES = 6
LINES_OF_GUARDS = 3
LINES_OF_EVENTS = 4
LEAST_LINES_OF_MOVES = 3
LINES_OF_A_LOW_TERMINAL = 16
"""A terminal of at most this height shows only the totals and the moves."""

LONGEST_BAR, SHORTEST_BAR, SHORTEST_NAME = 30, 6, 8
WIDTH_OF_FIGURES = 52
"""Columns taken by percent, bytes, rate and remaining time, with gaps."""
WIDTH_OF_BYTES = 18
WIDTH_WITH_BYTES = 76
"""On a narrower terminal the bytes of moves are left out: bar and percentage show much the same."""


class View(Protocol):
    """Shows a run repeatedly, with its progress."""

    def show(self, run: RunHistory) -> None:
        """Show the present progress."""
        ...


def view_for(console: Console) -> AbstractContextManager[View]:
    """Bars on an interactive terminal, else lines."""
    return BarsView(console) if console.is_terminal else nullcontext(LinesView(console))


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

    def show(self, run: RunHistory) -> None:
        """Print changes."""
        for move in run.copying:
            self._print_end(move)
        if state_text(run, is_short=True) != self._state:
            self._state = state_text(run, is_short=True)
            self._console.print(state_text(run))
            if run.state is Phase.AWAITING_LEASE:
                self._console.print(f"  {run.measured.why_no_end}", soft_wrap=True)
        self._print_outlook(run)
        self._print_guards(run)
        if run.state is Phase.MOVING and run.measured.at_ms - self._last_ms >= LINE_EVERY_MS:
            self._last_ms = run.measured.at_ms
            self._console.print(f"  {overall_text(run)}", soft_wrap=True)

    def _print_outlook(self, run: RunHistory) -> None:
        is_due = len(run.outlook) > len(self._outlook) or run.measured.at_ms - self._outlook_ms >= OUTLOOK_EVERY_MS
        if run.outlook == self._outlook or not is_due:
            return
        self._outlook, self._outlook_ms = run.outlook, run.measured.at_ms
        for sentence in run.outlook:
            self._console.print(f"  {sentence}", soft_wrap=True)

    def _print_guards(self, run: RunHistory) -> None:
        """Print each guard's message once, until the guard passes again: its figures change with every inspection."""
        said = {text.partition(":")[0]: text for text in run.verdicts}
        for guard, text in said.items():
            if guard not in self._guards:
                self._console.print(f"  guard {text}", soft_wrap=True)
        self._guards = set(said)

    def _print_end(self, move: MoveHistory) -> None:
        name = str(move.name)
        if self._shown.get(name) != move.status and move.status in {MoveStatus.COMPLETE, MoveStatus.FAILED}:
            self._shown[name] = move.status
            self._console.print(f"  {name} {move.problem or 'complete'}", soft_wrap=True)


class JsonView:
    """One JSON document per line on every change: for programs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: dict[str, object] = {}

    def show(self, run: RunHistory) -> None:
        """Print the progress if it changed."""
        now = {
            "phase": run.state.value,
            "state": state_text(run),
            "moves": len(run.moves),
            "finished": run.moves_by_state[MoveStatus.COMPLETE],
            "failed": run.moves_by_state[MoveStatus.FAILED],
            "outlook": list(run.outlook),
            **asdict(run.measured.overall),
            "end": None if run.measured.end is None else asdict(run.measured.end),
            "why_no_end": run.measured.why_no_end,
        }
        if now != self._shown:
            self._shown = now
            self._console.out(json.dumps({"at_ms": run.measured.at_ms, **now}), highlight=False)


class BarsView:
    """Totals, moves, brokers, guards and latest events, redrawn in place; as much as fits."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def show(self, run: RunHistory) -> None:
        """Redraw."""
        self._live.update(screen(run, self._console.width, self._console.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def screen(run: RunHistory, width: int, height: int) -> Group:
    """A run on a terminal of this size: totals and moves, then brokers, guards and events, as far as they fit."""
    room = height - LINES_AROUND_MOVES
    if height <= LINES_OF_A_LOW_TERMINAL:
        return picture(run, max(1, room), width)
    guards = [f"guard {line}" for line in run.verdicts[:LINES_OF_GUARDS]]
    events = [f"{time_text(at_ms)} {text}" for at_ms, text in run.measured.recent[-LINES_OF_EVENTS:]]
    busy = _busiest(run.measured.brokers)
    shown = busy[: max(0, min(len(busy), (room - len(guards) - len(events)) // 3))]
    ends = [] if run.measured.end is None else [eta_text(run.measured)]
    titles = sum(1 for part in (shown, events, ends) if part) + (len(busy) > len(shown) > 0)
    left = room - len(guards) - len(events) - len(shown) - titles
    parts: list[RenderableType] = [picture(run, max(LEAST_LINES_OF_MOVES, left), width)]
    parts += [_one_line(f"  {line}") for line in ends]
    if shown:
        parts.append(_brokers(shown, len(busy) - len(shown)))
    parts += [_one_line(f"  {line}") for line in guards]
    parts += [_one_line("  last events:"), *(_one_line(f"    {line}") for line in events)] if events else []
    return Group(*parts)


def _one_line(text: str) -> Text:
    """A line cut at the end of the terminal, so that the height is known."""
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def time_text(at_ms: int) -> str:
    """The time of day in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"


def _busiest(brokers: Sequence[BrokerProgress]) -> list[BrokerProgress]:
    """Brokers with work left, most bytes first."""
    busy = (one for one in brokers if one.left_bytes or one.left_to_send_bytes)
    return sorted(busy, key=lambda one: (-max(one.left_bytes, one.left_to_send_bytes), one.broker))


def _brokers(shown: Sequence[BrokerProgress], hidden: int) -> Table:
    """Table of what brokers receive and send, and of their throttles."""
    rows: list[tuple[RenderableType, ...]] = [
        (
            f"  {one.broker}", format_rate(one.written_bytes_per_s), _use(one.written_bytes_per_s, one),
            format_rate(one.read_bytes_per_s), _use(one.read_bytes_per_s, one),
            "none" if one.throttle_bytes_per_s is None else format_rate(one.throttle_bytes_per_s),
        )
        for one in shown
    ]  # fmt: skip
    more = [(f"  and {hidden} more",)] if hidden else []
    columns = [
        Column("  broker", no_wrap=True), *figures("in"), Column(no_wrap=True), *figures("out"), Column(no_wrap=True),
        *figures("throttle"),
    ]  # fmt: skip
    return text_table(columns, [*rows, *more])


def _use(rate: float | None, broker: BrokerProgress) -> ProgressBar | str:
    """Used share of a broker's throttle, as a bar."""
    limit = broker.throttle_bytes_per_s
    return ProgressBar(total=float(limit), completed=min(rate or 0.0, limit), width=10) if limit else ""


def picture(run: RunHistory, lines: int, width: int = 120) -> Group:
    """All bars of a run, moves in flight first, with at most `lines` lines of moves.

    On a narrow terminal bars get shorter, then bytes are left out, then names are cut.
    """
    has_bytes = width >= WIDTH_WITH_BYTES
    ordered = run.by_interest
    whole = f"{state_text(run, is_short=True)} {run.moves_by_state[MoveStatus.COMPLETE]}/{len(run.moves)}"
    moves = [f"  {move.name} → {_added(move)}" for move in ordered[:lines]]
    left = width - WIDTH_OF_FIGURES + (0 if has_bytes else WIDTH_OF_BYTES)
    bar_width = max(SHORTEST_BAR, min(LONGEST_BAR, left - max(map(len, (whole, *moves)))))
    columns = [
        Column(no_wrap=True, max_width=max(SHORTEST_NAME, left - bar_width)), Column(no_wrap=True),
        *figures("", *(("",) if has_bytes else ()), "", ""),
    ]  # fmt: skip
    rows: list[tuple[RenderableType, ...]] = []
    figures_of = (_cells(move.estimate, move.status) for move in ordered if move.estimate is not None)
    cells = [(whole, _cells(run.measured.overall)), *zip(moves, figures_of, strict=False)]
    for name, (estimate, percent, size, rate, eta) in cells:
        bar = ProgressBar(total=1.0, completed=estimate.fraction or 0.0, width=bar_width)
        rows.append((name, bar, percent, *((size,) if has_bytes else ()), rate, eta))
    table = text_table(columns, rows, has_titles=False)
    hidden = len(ordered) - lines
    more = [f"and {hidden} more"] if hidden > 0 else []
    told = run.measured.end is not None or run.measured.why_no_end in run.outlook
    no_end = [] if told else [eta_text(run.measured)]
    return Group(table, *(Text(printable(f"  {line}")) for line in (*more, *run.outlook, *no_end)))


def overall_text(run: RunHistory) -> str:
    """Totals of a run in one line."""
    overall = run.measured.overall
    left = "unknown" if overall.left_bytes is None else format_bytes(overall.left_bytes)
    return (
        f"{run.moves_by_state[MoveStatus.COMPLETE]}/{len(run.moves)} moves, {format_bytes(overall.done_bytes)} copied, "
        f"{left} left, {format_rate(overall.rate_bytes_per_s)}, {eta_text(run.measured)}"
    )


def eta_text(progress: Progress) -> str:
    """Predicted end of the run, or the reason why it is unknown."""
    if progress.end is not None:
        return f"ETA {format_duration(progress.end.expected_s)}{_between(progress.end)}"
    why = progress.why_no_end or CALCULATING
    if why.startswith(HAS_ENDED):
        return why
    return f"ETA {why}" if why.startswith(CALCULATING) else f"ETA unknown: {why}"


def _between(end: Interval) -> str:
    """The uncertainty of the end, if large enough to mention."""
    if end.latest_s == 0:
        return ""
    return f" (from {format_duration(end.earliest_s)} to {format_duration(end.latest_s)})"


def _added(move: MoveHistory) -> str:
    adding = Reassignment(move.original, move.target).adding_in_order
    return ",".join(map(str, adding)) or "another log directory"


def _cells(estimate: Estimate, status: MoveStatus = MoveStatus.MOVING) -> tuple[Estimate, str, str, str, str]:
    fraction = estimate.fraction
    total = None if estimate.left_bytes is None else estimate.done_bytes + estimate.left_bytes
    size = format_bytes(estimate.done_bytes) + ("" if total is None else f" of {format_bytes(total)}")
    percent = "" if fraction is None else f"{fraction:.0%}"
    if status is not MoveStatus.MOVING:
        return estimate, percent, size, "", status.value
    return estimate, percent, size, format_rate(estimate.rate_bytes_per_s), format_duration(estimate.eta_s)


# The result of a run, as text and as a document.

SHOWN = 10
INTERRUPTED_EXIT_CODE = 130


def exit_code(found: RunHistory) -> int:
    """0 if done, that of ExecutionError if failed or cancelled, 130 if the run can be resumed."""
    match found.state:
        case "done":
            return 0
        case "failed" | "cancelled":
            return ExecutionError.exit_code
        case _:
            return INTERRUPTED_EXIT_CODE


def document(history: RunHistory) -> dict[str, Any]:
    """A run as a document: every field of its value."""
    return asdict(history) | {"bytes_copied": history.bytes_copied}


def print_summary(console: Console, history: RunHistory) -> None:
    """Print a run: its state or end, problems, and the next command."""
    print_state(console, history)
    print_ways(console, history)


def print_state(console: Console, history: RunHistory) -> None:
    """Print the state or end of a run, and its problems.

    The throttle of an unfinished run is in force; only that of an ended run is left behind.
    """
    moved = [move for move in history.moves if move.status == "complete"]
    console.print(
        f"run {history.run_id}: {state_text(history)}; {len(moved)} of {len(history.moves)} moves "
        f"complete, {format_bytes(history.bytes_copied)} copied{_time(history)}",
        soft_wrap=True,
    )
    _print_list(
        console, "", [f"{move.topic}-{move.partition}: {move.problem}" for move in history.moves if move.problem]
    )
    _print_list(console, "", list(history.problems))
    if history.ended_ms is not None:
        _print_list(console, "throttle left behind: ", list(history.throttle_residue))
    elif limit := _throttle_in_force(history):
        console.print(f"  {limit}", soft_wrap=True)
    if history.is_active and history.ended_ms is None and not (history.problems or history.verdicts or history.outlook):
        console.print("  healthy")


def print_ways(console: Console, history: RunHistory) -> None:
    """Print the next commands."""
    for number, command in enumerate(commands_after(history)):
        console.print(f"{'  or' if number else 'next'}: {command}", soft_wrap=True)


def commands_after(history: RunHistory) -> tuple[str, ...]:
    """Alternatives for the next command after a run, by its state."""
    takes = (*CLUSTER, *STATE)
    if history.is_active:
        return (next_command("resume" if history.is_held else "watch", history.run_id, takes=STATE),)
    if history.ended_ms is None:
        from_afar = (*takes, "--journal-from")
        return tuple(next_command(word, history.run_id, takes=from_afar, of=history) for word in ("resume", "cancel"))
    if history.can_be_resumed:
        return (next_command("resume", history.run_id, takes=takes, of=history),)
    if history.state == "done":
        return (next_command("verify", history.run_id, takes=takes, of=history),)
    if not (history.bytes_copied or any(move.status is MoveStatus.COMPLETE for move in history.moves)):
        return (next_command("doctor", takes=takes, of=history),)
    return (next_command("rollback", history.run_id, "--dry-run", takes=takes, of=history),)


def state_text(found: RunHistory, *, is_short: bool = False) -> str:
    """State of a run as text; short, without ongoing activity."""
    return run_state(
        found.state,
        is_active=found.is_active,
        is_held=found.is_held,
        has_ended=found.ended_ms is not None,
        in_flight=0 if is_short else found.in_flight_count,
    )


def _throttle_in_force(found: RunHistory) -> str:
    limit, count = rates_text(found.rates), len(found.throttle_residue)
    if not (limit and count):
        return ""
    are = agreeing(count, "are restored when the run ends")
    return f"throttle in force: {limit}; its {counted(count, 'setting')} {are}"


def pace_text(pace: Pace) -> str:
    """Order and limits of a run, in one line."""
    caps = pace.caps
    ends = (
        ("in flight", caps.cluster),
        ("per source", caps.source),
        ("per destination", caps.destination),
        ("per log directory", caps.log_dir),
    )
    limits = [f"{limit} {words}" for words, cap in ends for limit in _limits(cap)]
    steps = ", a replica at a time" if pace.is_stepwise else ""
    at_most = f"at most {', '.join(limits)}" if limits else "no limit on moves in flight"
    return (
        f"order {pace.order}, {at_most}, {counted(pace.elections_per_step, 'election')} per step{steps}"
        f"{_hours_text(pace.hours)}"
    )


def _hours_text(hours: Schedule) -> str:
    windows = f", {' and '.join(map(str, hours.windows))} {hours.time_zone}" if hours.windows else ""
    return windows if hours.deadline_ms is None else f"{windows}, by {local_time(hours, hours.deadline_ms)}"


def _limits(cap: Cap) -> list[str]:
    moves = [] if cap.moves is None else [counted(cap.moves, "move")]
    return moves if cap.size_bytes is None else [*moves, format_bytes(cap.size_bytes)]


def _time(history: RunHistory) -> str:
    if history.duration_s is None:
        return ""
    limit = rates_text(history.rates)
    kept = "" if history.was_throttle_kept else ", but not all the time"
    throttled = f", throttled to {limit}{kept}" if limit else ""
    return f" in {format_duration(history.duration_s)}{throttled}"


def _print_list(console: Console, prefix: str, lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        console.print(f"  {prefix}{line}", soft_wrap=True)
    if len(lines) > SHOWN:
        console.print(f"  {prefix}and {len(lines) - SHOWN} more; --format json has all")


def print_end(found: RunHistory, *, is_quiet: bool) -> None:
    """Print how a run ended: a document for programs, a summary for people."""
    if is_quiet:
        print_json(document(found))
    else:
        print_summary(console(), found)


def print_accepted(
    path: Path, request: Request, sentence: str, output_format: str, then: Sequence[tuple[object, ...]] | None = None
) -> None:
    """Print that the run of this journal accepted a request, what it does now, and the next commands (words `then`).

    By default the next command is `watch`; with empty `then` none is printed.
    """
    then = (("watch", path.stem),) if then is None else then
    if output_format == "json":
        print_json({"run_id": path.stem, "kind": type(request).__name__, **asdict(request)})
        return
    click.echo(f"run {path.stem}: {sentence}")
    print_next(*(next_command(*words, takes=STATE) for words in then))
