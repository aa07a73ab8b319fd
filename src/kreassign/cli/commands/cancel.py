"""`kreassign cancel`: brings a run to its end before all its moves are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kreassign.cli.carrying import Manner, cancel_left_run, tell_end
from kreassign.cli.context import cluster_options_if_needed, controller_option
from kreassign.cli.output import format_option
from kreassign.cli.requests import ask, connect_to_take_up, tell_heard
from kreassign.cli.runs import find_journal, is_active, poll_option, state_dir_option
from kreassign.clock import SystemClock
from kreassign.executor.events import CancelRequested


@click.command()
@click.argument("run_id")
@click.option("--now", "is_now", is_flag=True, help="Cancel what is in flight too; its copies are thrown away.")
@cluster_options_if_needed
@controller_option
@poll_option
@state_dir_option
@format_option
@click.pass_context
def cancel(
    context: click.Context, /, run_id: str, is_now: bool, bootstrap_server: str | None, command_config: Path | None,
    **manner: Any,
) -> None:  # fmt: skip
    """Bring run RUN_ID to its end: finish what is in flight, start nothing more, restore the throttle.

    If no process carries it out any more, this one does, and needs --bootstrap-server.
    """
    how = Manner(command_config=command_config, **manner)
    path = find_journal(how.state_dir, run_id)
    if is_active(path):
        clock = SystemClock()
        heard = ask(path, lambda number: CancelRequested(clock.now_ms(), number, is_now), clock)
        told = "what is in flight is cancelled" if is_now else "comes to its end when what is in flight is done"
        tell_heard(path, heard, told, how.output_format)
        return
    with connect_to_take_up(path, bootstrap_server, command_config) as client:
        found = cancel_left_run(client, path, how, is_now=is_now)
    context.exit(tell_end(found, how))
