"""`kreassign pause`: lets a run start nothing more until it is resumed."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.output import format_option
from kreassign.cli.requests import ask, tell_heard
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import HoldRequested


@click.command()
@click.argument("run_id")
@state_dir_option
@format_option
def pause(run_id: str, state_dir: Path, output_format: str) -> None:
    """Let run RUN_ID start nothing more for now.

    What is in flight goes on to its end, watched and throttled; `kreassign resume` lets it start moves again. To end
    the process of the run instead, send it SIGINT or SIGTERM.
    """
    path, clock = find_journal(state_dir, run_id), SystemClock()
    heard = ask(path, lambda number: HoldRequested(clock.now_ms(), number), clock)
    tell_heard(path, heard, "nothing more is started; what is in flight goes on", output_format)
