"""`kreassign pace`: changes the order, the hours and the limits of a run while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.pace import PaceOptions, pace_change_options
from kreassign.cli.options.run import state_dir_option
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import pace_text, print_accepted
from kreassign.clock import SystemClock
from kreassign.executor.scheduling import PaceChange
from kreassign.operations import steer
from kreassign.operations.journals import find_journal


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
