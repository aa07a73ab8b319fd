"""`kreassign forget`: takes out of the way what an interrupted run can never settle."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.options.run import state_dir_option
from kreassign.cli.output import examples, format_option, print_json
from kreassign.operations.forget import forget_journal
from kreassign.operations.journals import find_journal


@click.command(
    epilog=examples(
        "kreassign forget 20270131T220000Z-1a2b",
    )
)
@click.argument("run_id")
@state_dir_option
@format_option
def forget(run_id: str, state_dir: Path, output_format: str) -> None:
    """Set the journal of run RUN_ID aside if it cannot be read, so that new runs can begin.

    The file is kept under another name. Nothing is changed on the cluster: moves and throttles of that run stay as they
    are, and `kreassign doctor` names them.
    """
    found, kept = forget_journal(find_journal(state_dir, run_id))
    if output_format == "json":
        print_json({"run_id": found.run_id, "problem": str(found), "kept_as": str(kept)})
        return
    click.echo(f"run {found.run_id} no longer stands in the way of others; its journal is kept as {kept}")
    click.echo("what it left on the cluster stays: `kreassign doctor` names reassignments and throttles")
