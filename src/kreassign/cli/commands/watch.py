"""`kreassign watch`: follows a run live from its journal, from any terminal. Asks no cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kreassign.cli.live import JsonView, view_for
from kreassign.cli.options.run_id import run_id_argument
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, examples, form_of_documents, format_option
from kreassign.cli.run_text import document, print_summary
from kreassign.operations import steer
from kreassign.operations.journals import find_journal, is_active


@click.command(
    epilog=examples(
        "kreassign watch",
        "kreassign watch 20270131T220000Z-1a2b",
    )
)
@run_id_argument
@state_dir_option
@format_option
def watch(run_id: str | None, state_dir: Path, output_format: str) -> None:
    """Follow run RUN_ID until it ends, pauses, or its process is gone. Ctrl-C stops watching, not the run.

    Without RUN_ID: the run that a process executes, or else the latest one (`last`).
    As JSON it is one document per line whenever something changed; the last one is that of `kreassign status`.
    """
    if (form := form_of_documents()) is not None:
        raise click.UsageError(f"what goes on is told line by line: as text or json, not as {form}")
    path = find_journal(state_dir, run_id)
    try:
        with JsonView(console()) if output_format == "json" else view_for(console()) as view:
            for progress in steer.watch(path):
                view.show(progress)
    except KeyboardInterrupt:
        return
    found = steer.status(path)
    if output_format == "json":
        click.echo(json.dumps(document(found, is_active=is_active(path), progress=progress)))
    else:
        print_summary(console(), found)
