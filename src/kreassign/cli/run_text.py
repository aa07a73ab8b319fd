"""What became of a run, in words and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from kreassign.cli.live import overall_fields
from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.throttle import rates_text
from kreassign.cli.output import console, print_json
from kreassign.errors import ExecutionError
from kreassign.executor.events import Request
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.progress.meter import Progress
from kreassign.executor.scheduling import Cap, Pace, Schedule
from kreassign.executor.scheduling.windows import moment
from kreassign.executor.state import IN_FLIGHT
from kreassign.report.run_state import run_state
from kreassign.report.text import format_bytes, format_duration

SHOWN = 10
INTERRUPTED_EXIT_CODE = 130


def exit_code(found: RunHistory) -> int:
    """0 when all is done, that of ExecutionError when it failed or was cancelled, 130 when it can be resumed."""
    match found.state:
        case "done":
            return 0
        case "failed" | "cancelled":
            return ExecutionError.exit_code
        case _:
            return INTERRUPTED_EXIT_CODE


def document(history: RunHistory, *, is_active: bool = False, progress: Progress | None = None) -> dict[str, Any]:
    """A run for programs: every field of its history, whether a process executes it, and its progress."""
    found = asdict(history) | {"bytes_copied": history.bytes_copied, "is_active": is_active}
    if progress is not None:
        found["progress"] = overall_fields(progress)
    return found


def print_summary(console: Console, history: RunHistory, *, is_active: bool = False) -> None:
    """A run for people: how it is or ended, what is wrong, and what to do next."""
    print_state(console, history, is_active=is_active)
    print_ways(console, history, is_active=is_active)


def print_state(console: Console, history: RunHistory, *, is_active: bool = False) -> None:
    """How a run is or ended, and what is wrong.

    What a run that goes on has set is in force, and only what one left that has ended is left behind.
    """
    moved = [move for move in history.moves if move.status == "complete"]
    console.print(
        f"run {history.run_id}: {state_text(history, is_active=is_active)}; {len(moved)} of {len(history.moves)} moves "
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
    if is_active and history.ended_ms is None and not (history.problems or history.verdicts or history.outlook):
        console.print("  healthy")


def print_ways(console: Console, history: RunHistory, *, is_active: bool = False) -> None:
    """The command to give next."""
    for number, command in enumerate(commands_after(history, is_active=is_active)):
        console.print(f"{'  or' if number else 'next'}: {command}", soft_wrap=True)


def commands_after(history: RunHistory, *, is_active: bool) -> tuple[str, ...]:
    """The commands of which one comes next for a run as it is, or ended."""
    takes = (*CLUSTER, *STATE)
    if is_active:
        return (next_command("resume" if history.is_held else "watch", history.run_id, takes=STATE),)
    if history.ended_ms is None:
        return tuple(next_command(word, history.run_id, takes=takes, of=history) for word in ("resume", "cancel"))
    if history.throttle_residue:
        return (next_command("resume", history.run_id, takes=takes, of=history),)
    if history.state == "done":
        return (next_command("verify", history.run_id, takes=takes, of=history),)
    return (next_command("rollback", history.run_id, "--dry-run", takes=takes, of=history),)


def state_text(found: RunHistory, *, is_active: bool) -> str:
    """The state of a run in words."""
    return run_state(
        found.state,
        is_active=is_active,
        is_held=found.is_held,
        has_ended=found.ended_ms is not None,
        in_flight=in_flight(found),
    )


def in_flight(found: RunHistory) -> int:
    """How many moves were sent and have not ended."""
    return sum(move.status in IN_FLIGHT for move in found.moves)


def _throttle_in_force(found: RunHistory) -> str:
    limit, count = rates_text(found.rates), len(found.throttle_residue)
    if not (limit and count):
        return ""
    return f"throttle in force: {limit}; the {count} settings of it are restored when the run ends"


def origin_lines(history: RunHistory) -> Iterator[str]:
    """Which plan a run executes, who did so by which commands, and with which lease; nothing that nobody wrote down."""
    if history.plan_id:
        yield f"plan {history.plan_id}"
    for number, operator in enumerate(history.operators):
        yield f"{'resumed' if number else 'started'} by {operator}"
    if history.lease:
        yield f"lease of the cluster: {history.lease}"


def pace_text(pace: Pace) -> str:
    """The order and the limits of a run, in one line."""
    caps = pace.caps
    ends = (
        ("in flight", caps.cluster),
        ("per source", caps.source),
        ("per destination", caps.destination),
        ("per log directory", caps.log_dir),
    )
    limits = [f"{limit} {words}" for words, cap in ends for limit in _limits(cap)]
    steps = ", a replica at a time" if pace.is_stepwise else ""
    at_most = f"at most {', '.join(limits)}" if limits else "no limit of what is in flight"
    return f"order {pace.order}, {at_most}, {pace.elections_per_step} elections a step{steps}{_hours_text(pace.hours)}"


def _hours_text(hours: Schedule) -> str:
    windows = f", {' and '.join(map(str, hours.windows))} {hours.time_zone}" if hours.windows else ""
    return windows if hours.deadline_ms is None else f"{windows}, by {moment(hours, hours.deadline_ms)}"


def _limits(cap: Cap) -> list[str]:
    moves = [] if cap.moves is None else [f"{cap.moves} moves"]
    return moves if cap.size_bytes is None else [*moves, format_bytes(cap.size_bytes)]


def _time(history: RunHistory) -> str:
    if history.ended_ms is None:
        return ""
    seconds = (history.ended_ms - history.started_ms) / 1000
    limit = rates_text(history.rates)
    kept = "" if history.was_throttle_kept else ", but not all the time"
    throttled = f", throttled to {limit}{kept}" if limit else ""
    return f" in {format_duration(seconds)}{throttled}"


def _print_list(console: Console, prefix: str, lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        console.print(f"  {prefix}{line}", soft_wrap=True)
    if len(lines) > SHOWN:
        console.print(f"  {prefix}and {len(lines) - SHOWN} more; --format json has all")


def print_end(found: RunHistory, *, is_quiet: bool) -> None:
    """How a run ended: one document for programs, a summary for people."""
    if is_quiet:
        print_json(document(found))
    else:
        print_summary(console(), found)


def print_accepted(
    path: Path, request: Request, sentence: str, output_format: str, then: tuple[object, ...] | None = None
) -> None:
    """That the run of this journal accepted a request, what it does now, and the words of the command to give then.

    Unless they are given, that is to watch it; with none, nothing is to be given yet.
    """
    then = ("watch", path.stem) if then is None else then
    if output_format == "json":
        print_json({"run_id": path.stem, "kind": type(request).__name__, **asdict(request)})
        return
    click.echo(f"run {path.stem}: {sentence}")
    if then:
        print_next(next_command(*then, takes=STATE))
