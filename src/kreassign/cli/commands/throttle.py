"""`kreassign throttle`: changes the throttle of a run while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.output import format_option, parse_quantity
from kreassign.cli.requests import ask, tell_heard
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import RateRequested
from kreassign.report.text import format_rate

NO_LIMIT = "none"


def rate(text: str) -> int | None:
    """A rate in bytes per second, or None for no limit."""
    found = None if text == NO_LIMIT else parse_quantity(text)
    if found is not None and found <= 0:
        raise click.BadParameter(f"with {text} no move would ever end; give a rate above 0, or `{NO_LIMIT}`")
    return found


@click.command()
@click.argument("run_id")
@click.argument("limit", metavar="RATE", type=rate)
@state_dir_option
@format_option
def throttle(run_id: str, limit: int | None, state_dir: Path, output_format: str) -> None:
    """Let each broker send and receive up to RATE for the moves of run RUN_ID, or without limit (`none`).

    The values before the run stay in its journal and are restored at its end.
    """
    path, clock = find_journal(state_dir, run_id), SystemClock()
    heard = ask(path, lambda number: RateRequested(clock.now_ms(), number, limit), clock)
    told = "goes on without a throttle" if limit is None else f"throttled to {format_rate(limit)} per broker"
    tell_heard(path, heard, told, output_format)
