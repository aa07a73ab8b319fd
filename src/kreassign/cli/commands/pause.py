"""`kreassign pause`: keeps a run from starting new moves until it is resumed."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.run import state_dir_option
from kreassign.cli.output import examples, format_option
from kreassign.cli.run_text import print_accepted
from kreassign.operations import steer
from kreassign.operations.journals import find_journal


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
