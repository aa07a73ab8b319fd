"""`kreassign throttle`: changes the throttle of a run while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.run import state_dir_option
from kreassign.cli.options.throttle import AUTO, CapacityOptions, capacity_options, rate_or_auto, rates_text
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import print_accepted
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.operations import steer
from kreassign.operations.journals import find_journal
from kreassign.report.text import format_rate


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
    type=click.IntRange(0),
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
    print_accepted(path, accepted, _told(ThrottleRates(fixed, (), auto), brokers), output_format)


def _told(rates: ThrottleRates, brokers: tuple[int, ...]) -> str:
    where = f" at broker {', '.join(map(str, brokers))}" if brokers else ""
    if rates.bytes_per_s is not None and brokers:
        return f"throttled to {format_rate(rates.bytes_per_s)}{where}"
    return f"throttled to {rates_text(rates)}" if rates.is_limited else f"continues without a throttle{where}"
