"""`kreassign pace`: changes the order of the moves of a run, and the limits of what is in flight, while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kreassign.cli.options.pace import pace_options, read_pace_change
from kreassign.cli.output import format_option
from kreassign.cli.requests import ask, tell_heard
from kreassign.cli.run_text import pace_text
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import PaceRequested
from kreassign.executor.history.run_history import read_history
from kreassign.executor.scheduling import PaceChange


@click.command()
@click.argument("run_id")
@pace_options
@state_dir_option
@format_option
def pace(run_id: str, state_dir: Path, output_format: str, **wishes: Any) -> None:
    """Change the order of the moves of run RUN_ID, their hours, and the limits of what it has in flight.

    What is not named stays as it is. New limits hold from the next start of a move on; what is in flight beyond them
    goes on to its end.
    """
    path, clock = find_journal(state_dir, run_id), SystemClock()
    change = read_pace_change(wishes, clock.now_ms(), read_history(path).pace)
    if change == PaceChange():
        raise click.UsageError("say what shall be otherwise, for example --max-moves-per-broker 5")
    heard = ask(path, lambda number: PaceRequested(clock.now_ms(), number, change), clock)
    tell_heard(path, heard, f"goes on with {pace_text(read_history(path).pace)}", output_format)
