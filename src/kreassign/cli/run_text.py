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
from typing import Protocol, Self

import click
from rich.cells import cell_len, chop_cells
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.output import figures, least_width, print_json, text_table
from kreassign.cli.streams import folded
from kreassign.errors import ExecutionError
from kreassign.executor.eta import CALCULATING, HAS_ENDED
from kreassign.executor.events import Request
from kreassign.model import Reassignment
from kreassign.model.run import BrokerProgress, Estimate, MoveHistory, MoveStatus, Phase, Progress, RunHistory
from kreassign.model.text import agreeing, counted, printable
from kreassign.report.text import format_bytes, format_duration, format_rate, rates_text, run_state

# Live progress: bars on a terminal, plain lines elsewhere.

LINE_EVERY_MS = 5_000
"""Interval of progress lines; changes are printed at once."""

OUTLOOK_EVERY_MS = 60_000
"""Interval of lines about what will not fit into the hours of a run: its figures change with every poll."""

LINES_TO_SPARE = 2
"""Below the screen: how many moves are not shown, and the cursor."""
LINES_OF_EVENTS = 4
LEAST_MOVES = 3
LINES_OF_A_LOW_TERMINAL = 16
"""A terminal of at most this height shows only totals, guards and moves."""

LONGEST_BAR, SHORTEST_BAR, BAR_OF_A_BROKER = 30, 6, 10
WIDTH_OF_FIGURES = 52
"""Columns taken by percent, bytes, rate and remaining time, with gaps."""
WIDTH_OF_BYTES = 18


class View(Protocol):
    """Shows a run repeatedly, with its progress."""

    def show(self, run: RunHistory) -> None:
        """Show the present progress."""


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
        name = str(move.topic_partition)
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
    """A run on a terminal of this size: totals, moves and guards, then brokers and events, as far as they fit.

    No name is cut, and no sentence that says what to do.
    """
    bars = Bars(run, width, height)
    room = height - LINES_TO_SPARE
    guards = _guards(run.verdicts, width, room - bars.height(1))
    room -= len(guards)
    if height <= LINES_OF_A_LOW_TERMINAL:
        return Group(bars.picture(bars.moves_in(room)), *guards)
    end = [] if run.measured.end is None else _lines(f"  {eta_text(run.measured)}", width)
    room -= len(end)
    free = room - bars.height(LEAST_MOVES)
    events = _events(run.measured, width, min(LINES_OF_EVENTS, free - 1))
    brokers, height_of_brokers = _brokers(run.measured, width, min(room // 3, free - len(events)))
    room -= len(events) + height_of_brokers
    return Group(bars.picture(bars.moves_in(room)), *end, *brokers, *guards, *events)


def _lines(text: str, width: int) -> list[Text]:
    """The text in lines of at most this width, broken at words where it can be."""
    lines = (part for line in folded(printable(text), width).split("\n") for part in chop_cells(line, width))
    return [Text(line, no_wrap=True) for line in lines]


def _guards(verdicts: Sequence[str], width: int, room: int) -> list[Text]:
    """Messages of guards, each whole, and the number of those left out."""
    shown: list[Text] = []
    for number, verdict in enumerate(verdicts):
        lines, is_last = _lines(f"  guard {verdict}", width), number + 1 == len(verdicts)
        if len(shown) + len(lines) + (not is_last) > room:
            return [
                *shown,
                *_lines(f"  {counted(len(verdicts) - number, 'guard')} not shown: `kreassign status`", width),
            ][: max(0, room)]
        shown += lines
    return shown


def _events(progress: Progress, width: int, room: int) -> list[Text]:
    """The latest events that fit whole, below a title."""
    shown: list[Text] = []
    for at_ms, text in reversed(progress.recent):
        lines = _lines(f"    {datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S} {text}", width)
        if len(shown) + len(lines) > room:
            break
        shown = [*lines, *shown]
    return [Text("  last events:"), *shown] if shown else []


STILL = "nothing moves: no broker sends or receives anything"
_WAYS = ("in", "out", "within")
"""Ways of bytes at a broker; within are copies between its log directories, which no throttle of a run limits."""


def _rates(broker: BrokerProgress) -> tuple[float | None, ...]:
    """Rate of each way, None until measured."""
    return broker.written_bytes_per_s, broker.read_bytes_per_s, broker.within_bytes_per_s


def _busiest(brokers: Sequence[BrokerProgress]) -> list[BrokerProgress]:
    """Brokers that send or receive, or were not measured yet; those with most bytes left first."""
    busy = (one for one in brokers if any(rate != 0 for rate in _rates(one)))
    return sorted(busy, key=lambda one: (-max(one.left_bytes, one.left_to_send_bytes), one.broker))


def _brokers(progress: Progress, width: int, room: int) -> tuple[Sequence[RenderableType], int]:
    """Brokers with most bytes left, and their lines: a table, or sentences where it is wider than the terminal."""
    waiting = [one for one in progress.brokers if one.left_bytes or one.left_to_send_bytes]
    busy = _busiest(waiting)
    if not busy:
        still = _lines(f"  {STILL}", width) if waiting else []
        return (still, len(still)) if len(still) <= room else ([], 0)
    table = _table_of_brokers(busy[: max(0, room - 2)], len(busy))
    if least_width(table) <= width:
        return ([table], table.row_count + 1) if room > 2 else ([], 0)
    shown: list[Text] = []
    for number, broker in enumerate(busy):
        lines = _lines(f"  broker {broker.broker}: {_traffic(broker)}", width)
        if len(shown) + len(lines) + 1 > room:
            shown += [Text(f"  and {counted(len(busy) - number, 'more broker')}")] if shown else []
            break
        shown += lines
    return shown, len(shown)


def _table_of_brokers(shown: Sequence[BrokerProgress], count: int) -> Table:
    """Table of what brokers receive, send and copy between their directories, as far as any does, and of throttles."""
    ways = [way for way, rates in enumerate(zip(*map(_rates, shown), strict=True)) if any(rate != 0 for rate in rates)]
    rows: list[tuple[RenderableType, ...]] = [
        (
            f"  {one.broker}",
            *(cell for way in ways for cell in (format_rate(_rates(one)[way]), _use(way, one))),
            _throttle(one),
        )
        for one in shown
    ]
    more = [(f"  and {count - len(shown)} more",)] if count > len(shown) else []
    titles = (column for way in ways for column in (*figures(_WAYS[way]), Column(no_wrap=True)))
    return text_table([Column("  broker", no_wrap=True), *titles, *figures("throttle")], [*rows, *more])


def _traffic(broker: BrokerProgress) -> str:
    rates = [f"{word} {format_rate(rate)}" for word, rate in zip(_WAYS, _rates(broker), strict=True) if rate != 0]
    return ", ".join((*rates, f"throttle {_throttle(broker)}"))


def _throttle(broker: BrokerProgress) -> str:
    return "none" if broker.throttle_bytes_per_s is None else format_rate(broker.throttle_bytes_per_s)


def _use(way: int, broker: BrokerProgress) -> ProgressBar | str:
    """Used share of a broker's throttle, as a bar."""
    limit, rate = broker.throttle_bytes_per_s, _rates(broker)[way] or 0.0
    if not limit or _WAYS[way] == "within":
        return ""
    return ProgressBar(total=float(limit), completed=min(rate, limit), width=BAR_OF_A_BROKER)


class Bars:
    """The whole of a run and its first moves: a row each, or figures below names where a row has no room for names.

    Moves that copy come first, then others in flight. On a narrow terminal bars get shorter, then bytes are left out.
    """

    def __init__(self, run: RunHistory, width: int = 120, most: int = 100) -> None:
        moves = sorted(run.by_interest, key=lambda move: not _is_copying(move))
        self._hidden, moves = len(moves[most:]), moves[:most]
        whole = f"{state_text(run, is_short=True)} {run.moves_by_state[MoveStatus.COMPLETE]}/{len(run.moves)}"
        names = [whole, *(f"  {move.topic_partition} → {_added(move)}" for move in moves)]
        self._cells = [
            _cells(run.measured.overall), *(_cells(move.estimate, move.status) for move in moves if move.estimate),
        ]  # fmt: skip
        longest = max(map(cell_len, names))
        beside = width - longest - SHORTEST_BAR - WIDTH_OF_FIGURES
        self._has_bytes, self._has_rows = beside >= 0, beside + WIDTH_OF_BYTES >= 0
        taken = WIDTH_OF_FIGURES - (0 if self._has_bytes else WIDTH_OF_BYTES) + (longest if self._has_rows else 2)
        self._bar_width = max(SHORTEST_BAR, min(LONGEST_BAR, width - taken))
        self._names = [[Text(printable(name))] for name in names]
        if not self._has_rows:
            self._names = [
                _lines(f"{name}  {size}", width) for name, (_, _, size, _, _) in zip(names, self._cells, strict=True)
            ]
        told = run.measured.end is not None or run.measured.why_no_end in run.outlook
        sentences = (*run.outlook, *(() if told else (eta_text(run.measured),)))
        self._sentences = [line for sentence in sentences for line in _lines(f"  {sentence}", width)]

    def height(self, moves: int) -> int:
        """Lines of the picture with so many moves, without the one that counts others."""
        names = self._names[: moves + 1]
        return sum(len(lines) + (not self._has_rows) for lines in names) + len(self._sentences)

    def moves_in(self, lines: int) -> int:
        """Number of moves with which the picture has at most so many lines."""
        return max((count for count in range(len(self._names)) if self.height(count) <= lines), default=0)

    def picture(self, moves: int) -> Group:
        """The whole, so many moves, the number of others, and why the end is not known."""
        rows = [*zip(self._names, self._cells, strict=True)][: moves + 1]
        hidden = self._hidden + len(self._names) - len(rows)
        more = [Text(f"  and {hidden} more")] if hidden else []
        if self._has_rows:
            return Group(
                self._table([(*lines, *self._figures(cells)) for lines, cells in rows]), *more, *self._sentences
            )
        blocks: list[Text | Table] = []
        for lines, cells in rows:
            blocks += [*lines, self._table([("", *self._figures(cells))])]
        return Group(*blocks, *more, *self._sentences)

    def _figures(self, cells: Cells) -> tuple[RenderableType, ...]:
        estimate, percent, size, rate, eta = cells
        bar = ProgressBar(total=1.0, completed=estimate.fraction or 0.0, width=self._bar_width)
        return (bar, percent, *((size,) if self._has_bytes else ()), rate, eta)

    def _table(self, rows: Sequence[tuple[RenderableType, ...]]) -> Table:
        if self._has_rows:
            columns = figures(*("",) * (len(rows[0]) - 2))
        else:
            columns = [Column(width=width, justify="right", no_wrap=True) for width in (4, 9, 9)]
        return text_table([Column(no_wrap=True), Column(no_wrap=True), *columns], rows, has_titles=False)


def _is_copying(move: MoveHistory) -> bool:
    """True unless the move waits, in the run or in the queue of a broker."""
    rate = None if move.estimate is None else move.estimate.rate_bytes_per_s
    return move.status is MoveStatus.MOVING and rate != 0


def overall_text(run: RunHistory) -> str:
    """Totals of a run in one line."""
    overall = run.measured.overall
    left = "unknown" if overall.left_bytes is None else format_bytes(overall.left_bytes)
    rate = "" if overall.rate_bytes_per_s is None else f" {format_rate(overall.rate_bytes_per_s)},"
    return (
        f"{run.moves_by_state[MoveStatus.COMPLETE]}/{counted(len(run.moves), 'move')}, "
        f"{format_bytes(overall.done_bytes)} copied, {left} left,{rate} {eta_text(run.measured)}"
    )


def eta_text(progress: Progress) -> str:
    """Predicted end of the run, or the reason why it is unknown."""
    if (end := progress.end) is not None:
        between = f" (from {format_duration(end.earliest_s)} to {format_duration(end.latest_s)})"
        return f"ETA {format_duration(end.expected_s)}{between if end.latest_s else ''}"
    why = progress.why_no_end or CALCULATING
    if why.startswith(HAS_ENDED):
        return why
    return f"ETA {why}" if why.startswith(CALCULATING) else f"ETA unknown: {why}"


def _added(move: MoveHistory) -> str:
    """Brokers that get a copy, and log directories that get one from another directory of their broker."""
    adding = map(str, Reassignment(move.original, move.target).adding_in_order)
    return ",".join((*adding, *(f"{one.broker}:{one.path}" for one in move.log_dirs if one.is_move)))


Cells = tuple[Estimate, str, str, str, str]
"""A progress, and as text its percentage, bytes, rate and remaining time."""


def _cells(estimate: Estimate, status: MoveStatus = MoveStatus.MOVING) -> Cells:
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
    limit, count = rates_text(found.rates), found.open_settings
    if not (limit and count):
        return ""
    are = agreeing(count, "are restored when the run ends")
    return f"throttle in force: {limit}; its {counted(count, 'setting')} {are}"


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
