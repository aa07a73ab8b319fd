"""`kreassign throttle`: changes the throttle of a run while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kreassign.cli.options.throttle import AUTO, auto_options, rate_or_auto, rates_text, read_auto
from kreassign.cli.output import format_option
from kreassign.cli.requests import ask, tell_heard
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import RateRequested
from kreassign.executor.throttle.rates import Rates
from kreassign.report.text import format_rate


@click.command()
@click.argument("run_id")
@click.argument("limit", metavar="RATE", type=rate_or_auto)
@click.option(
    "--broker",
    "brokers",
    type=click.IntRange(0),
    multiple=True,
    metavar="ID",
    help="Change the rate of this broker only, and let the others keep theirs. Can be repeated.",
)
@auto_options
@state_dir_option
@format_option
def throttle(
    run_id: str, limit: int | str | None, brokers: tuple[int, ...], state_dir: Path, output_format: str, **given: Any
) -> None:
    """Let each broker send and receive up to RATE for the moves of run RUN_ID, or without limit (`none`).

    With `auto`, each gets what its other traffic leaves over. The values before the run stay in its journal and are
    restored at its end.
    """
    auto = read_auto(given, is_wanted=limit == AUTO)
    if auto is not None and brokers:
        raise click.UsageError("`auto` is for all brokers; leave out --broker, or give a rate")
    path, clock = find_journal(state_dir, run_id), SystemClock()
    fixed = limit if isinstance(limit, int) else None
    heard = ask(path, lambda number: RateRequested(clock.now_ms(), number, fixed, brokers, auto), clock)
    tell_heard(path, heard, _told(Rates(fixed, (), auto), brokers), output_format)


def _told(rates: Rates, brokers: tuple[int, ...]) -> str:
    where = f" at broker {', '.join(map(str, brokers))}" if brokers else ""
    if rates.bytes_per_s is not None and brokers:
        return f"throttled to {format_rate(rates.bytes_per_s)}{where}"
    return f"throttled to {rates_text(rates)}" if rates.is_limited else f"goes on without a throttle{where}"
