"""`kreassign throttle`: changes the throttle of a run while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.output import format_option
from kreassign.cli.rate_options import rate
from kreassign.cli.requests import ask, tell_heard
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import RateRequested
from kreassign.report.text import format_rate


@click.command()
@click.argument("run_id")
@click.argument("limit", metavar="RATE", type=rate)
@click.option(
    "--broker",
    "brokers",
    type=click.IntRange(0),
    multiple=True,
    metavar="ID",
    help="Change the rate of this broker only, and let the others keep theirs. Can be repeated.",
)
@state_dir_option
@format_option
def throttle(run_id: str, limit: int | None, brokers: tuple[int, ...], state_dir: Path, output_format: str) -> None:
    """Let each broker send and receive up to RATE for the moves of run RUN_ID, or without limit (`none`).

    The values before the run stay in its journal and are restored at its end.
    """
    path, clock = find_journal(state_dir, run_id), SystemClock()
    heard = ask(path, lambda number: RateRequested(clock.now_ms(), number, limit, brokers), clock)
    where = f" at broker {', '.join(map(str, brokers))}" if brokers else ""
    limited = "" if limit is None else f"throttled to {format_rate(limit)}{where or ' per broker'}"
    told = limited or f"goes on without a throttle{where}"
    tell_heard(path, heard, told, output_format)
