"""Steering a run that another process executes: its moves, its throttle and its pace.

`kreassign pause`, `throttle` and `pace`.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from kreassign.cli.live import view_for
from kreassign.cli.next_command import STATE, next_command, print_next
from kreassign.cli.options.pace import PaceOptions, pace_change_options
from kreassign.cli.options.run_id import run_id_argument
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.options.throttle import AUTO, CapacityOptions, capacity_options, rate_or_auto, rates_text
from kreassign.cli.options.values import BROKER_ID
from kreassign.cli.output import console, examples, format_option
from kreassign.cli.run_text import in_flight, pace_text, print_accepted
from kreassign.clock import SystemClock
from kreassign.executor.scheduling import PaceChange
from kreassign.executor.state import AT_REST, IN_FLIGHT
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.operations import steer
from kreassign.operations.journals import find_journal
from kreassign.report.text import format_bytes, format_rate


@click.command(
    epilog=examples(
        "kreassign pause",
        "kreassign pause 20270131T220000Z-1a2b --drain",
    )
)
@run_id_argument
@click.option("--drain", "drains", is_flag=True, help="Return when no move is in flight any more.")
@state_dir_option
@format_option
def pause(run_id: str | None, drains: bool, state_dir: Path, output_format: str) -> None:
    """Pause run RUN_ID, or the only or latest one: start no new moves.

    Moves in flight continue, watched and throttled; `kreassign resume` starts moves again. To end the process of the
    run instead, send it SIGINT or SIGTERM.
    """
    path = find_journal(state_dir, run_id)
    request = steer.pause(path)
    found = steer.status(path)
    left = sum(
        max(0, move.size_bytes * len(move.adding) - move.bytes_copied)
        for move in found.moves
        if move.status in IN_FLIGHT
    )
    sentence = "starts no new moves; nothing is in flight"
    if count := in_flight(found):
        sentence = f"starts no new moves; {count} in flight continue, {format_bytes(left)} left of them"
    is_waiting = bool(drains and count)
    print_accepted(path, request, sentence, output_format, then=() if is_waiting else ("resume", path.stem))
    if is_waiting:
        _drain(path, output_format)


def _drain(path: Path, output_format: str) -> None:
    """Follow the run until nothing is in flight."""
    is_quiet = output_format == "json"
    with view_for(console(stderr=is_quiet)) as view:
        for progress in steer.watch(path):
            view.show(progress)
            if progress.phase in AT_REST or not any(move.status in IN_FLIGHT for move in progress.moves):
                break
    if not is_quiet:
        click.echo(f"run {path.stem}: nothing is in flight")
        print_next(next_command("resume", path.stem, takes=STATE))


@click.command(
    epilog=examples(
        "kreassign throttle 20MB/s",
        "kreassign throttle 20270131T220000Z-1a2b 5MB/s --broker 3",
        "kreassign throttle 20270131T220000Z-1a2b none",
    )
)
@run_id_argument
@click.argument("limit", metavar="RATE", type=rate_or_auto, required=False)
@click.option(
    "--broker",
    "brokers",
    type=BROKER_ID,
    multiple=True,
    metavar="ID",
    help="Change the limit of this broker only; may be repeated.  [default: all brokers]",
)
@capacity_options
@state_dir_option
@format_option
@click.pass_context
def throttle(
    context: click.Context,
    /,
    run_id: str | None,
    limit: int | str | None,
    brokers: tuple[int, ...],
    capacity: CapacityOptions,
    state_dir: Path,
    output_format: str,
) -> None:
    """Limit what each broker sends and receives for the moves of run RUN_ID to RATE, or remove the limit (`none`).

    Without RUN_ID: of the run that a process executes, or else of the latest one (`last`).
    With `auto`, the limit adapts to the other traffic of each broker. The values from before the run stay in its
    journal and are restored at its end.
    """
    if context.get_parameter_source("limit") is ParameterSource.DEFAULT:
        run_id, limit = None, _only_argument(context, run_id)
    auto = capacity.auto(is_wanted=limit == AUTO)
    if auto is not None and brokers:
        raise click.UsageError("`auto` applies to all brokers; leave out --broker, or specify a rate")
    path = find_journal(state_dir, run_id)
    fixed = limit if isinstance(limit, int) else None
    accepted = steer.set_throttle(path, fixed, brokers, auto)
    print_accepted(path, accepted, _throttled(ThrottleRates(fixed, (), auto), brokers), output_format)


def _only_argument(context: click.Context, word: str | None) -> int | str | None:
    """The rate, where it is the only argument."""
    limit = next(one for one in context.command.params if one.name == "limit")
    if word is None:
        raise click.MissingParameter(ctx=context, param=limit)
    found: int | str | None = limit.type_cast_value(context, word)
    return found


def _throttled(rates: ThrottleRates, brokers: tuple[int, ...]) -> str:
    where = f" at broker {', '.join(map(str, brokers))}" if brokers else ""
    if rates.bytes_per_s is not None and brokers:
        return f"throttled to {format_rate(rates.bytes_per_s)}{where}"
    return f"throttled to {rates_text(rates)}" if rates.is_limited else f"continues without a throttle{where}"


@click.command(
    epilog=examples(
        "kreassign pace --max-moves-per-broker 5",
        "kreassign pace 20270131T220000Z-1a2b --deadline 06:00 --time-zone Europe/Berlin",
    )
)
@run_id_argument
@pace_change_options
@state_dir_option
@format_option
def pace(run_id: str | None, pace: PaceOptions, state_dir: Path, output_format: str) -> None:
    """Change order, hours and limits of run RUN_ID, or the only or latest one.

    What is not specified stays as it is. New limits apply when the next moves start; moves in flight beyond them
    continue.
    """
    path = find_journal(state_dir, run_id)
    change = pace.change(SystemClock().now_ms(), steer.status(path).pace)
    if change == PaceChange():
        raise click.UsageError("specify at least one change, for example --max-moves-per-broker 5")
    accepted = steer.change_pace(path, change)
    print_accepted(path, accepted, f"continues with {pace_text(steer.status(path).pace)}", output_format)
