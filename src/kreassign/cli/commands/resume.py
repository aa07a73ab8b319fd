"""`kreassign resume`: lets a run go on that was paused, left or killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kreassign.cli.carrying import Manner, take_up
from kreassign.cli.commands.rollback import end_of_run
from kreassign.cli.context import cluster_options_if_needed, controller_option
from kreassign.cli.output import format_option
from kreassign.cli.requests import ask, connect_to_take_up, tell_heard
from kreassign.cli.runs import find_journal, is_active, poll_option, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import ReleaseRequested


@click.command()
@click.argument("run_id")
@cluster_options_if_needed
@controller_option
@poll_option
@state_dir_option
@format_option
@click.pass_context
def resume(
    context: click.Context, /, run_id: str, bootstrap_server: str | None, command_config: Path | None, **manner: Any
) -> None:  # fmt: skip
    """Let run RUN_ID start moves again after `kreassign pause`.

    If no process carries it out any more, this one does, and needs --bootstrap-server: it looks at the cluster before
    it sends anything.
    """
    how, clock = Manner(command_config=command_config, **manner), SystemClock()
    path = find_journal(how.state_dir, run_id)
    if is_active(path):
        heard = ask(path, lambda number: ReleaseRequested(clock.now_ms(), number), clock)
        tell_heard(path, heard, "starts moves again", how.output_format)
        return
    with connect_to_take_up(path, bootstrap_server, command_config) as client:
        code = end_of_run(client, take_up(client, path, how), how)
    context.exit(code)
