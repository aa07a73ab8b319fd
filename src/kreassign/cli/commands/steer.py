"""Steering a run that another process executes: its moves, its throttle and its pace.

`kreassign pause`, `throttle` and `pace`.
"""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.pace import PaceOptions, pace_change_options
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.options.throttle import AUTO, CapacityOptions, capacity_options, rate_or_auto, rates_text
from kreassign.cli.options.values import BROKER_ID
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import pace_text, print_accepted
from kreassign.clock import SystemClock
from kreassign.executor.scheduling import PaceChange
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.operations import steer
from kreassign.operations.journals import find_journal
from kreassign.report.text import format_rate


@click.command(
    epilog=examples(
        "kreassign pause 20270131T220000Z-1a2b",
    )
)
@click.argument("run_id")
@state_dir_option
@format_option
def pause(run_id: str, state_dir: Path, output_format: str) -> None:
    """Pause run RUN_ID: start no new moves.

    Moves in flight continue, watched and throttled; `kreassign resume` starts moves again. To end the process of the
    run instead, send it SIGINT or SIGTERM.
    """
    path = find_journal(state_dir, run_id)
    print_accepted(path, steer.pause(path), "starts no new moves; moves in flight continue", output_format)


@click.command(
    epilog=examples(
        "kreassign throttle 20270131T220000Z-1a2b 20MB/s",
        "kreassign throttle 20270131T220000Z-1a2b 5MB/s --broker 3",
        "kreassign throttle 20270131T220000Z-1a2b none",
    )
)
@click.argument("run_id")
@click.argument("limit", metavar="RATE", type=rate_or_auto)
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
def throttle(
    run_id: str,
    limit: int | str | None,
    brokers: tuple[int, ...],
    capacity: CapacityOptions,
    state_dir: Path,
    output_format: str,
) -> None:
    """Limit what each broker sends and receives for the moves of run RUN_ID to RATE, or remove the limit (`none`).

    With `auto`, the limit adapts to the other traffic of each broker. The values from before the run stay in its
    journal and are restored at its end.
    """
    auto = capacity.auto(is_wanted=limit == AUTO)
    if auto is not None and brokers:
        raise click.UsageError("`auto` applies to all brokers; leave out --broker, or specify a rate")
    path = find_journal(state_dir, run_id)
    fixed = limit if isinstance(limit, int) else None
    accepted = steer.set_throttle(path, fixed, brokers, auto)
    print_accepted(path, accepted, _throttled(ThrottleRates(fixed, (), auto), brokers), output_format)


def _throttled(rates: ThrottleRates, brokers: tuple[int, ...]) -> str:
    where = f" at broker {', '.join(map(str, brokers))}" if brokers else ""
    if rates.bytes_per_s is not None and brokers:
        return f"throttled to {format_rate(rates.bytes_per_s)}{where}"
    return f"throttled to {rates_text(rates)}" if rates.is_limited else f"continues without a throttle{where}"


@click.command(
    epilog=examples(
        "kreassign pace 20270131T220000Z-1a2b --max-moves-per-broker 5",
        "kreassign pace 20270131T220000Z-1a2b --deadline 06:00 --time-zone Europe/Berlin",
    )
)
@click.argument("run_id")
@pace_change_options
@state_dir_option
@format_option
def pace(run_id: str, pace: PaceOptions, state_dir: Path, output_format: str) -> None:
    """Change order, hours and limits of run RUN_ID.

    What is not specified stays as it is. New limits apply when the next moves start; moves in flight beyond them
    continue.
    """
    path = find_journal(state_dir, run_id)
    change = pace.change(SystemClock().now_ms(), steer.status(path).pace)
    if change == PaceChange():
        raise click.UsageError("specify at least one change, for example --max-moves-per-broker 5")
    accepted = steer.change_pace(path, change)
    print_accepted(path, accepted, f"continues with {pace_text(steer.status(path).pace)}", output_format)
