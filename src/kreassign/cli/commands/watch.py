"""`kreassign watch`: follows a run live from its journal, from any terminal. Asks no cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kreassign.cli.live import JsonView, view_for
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, examples, format_option
from kreassign.cli.run_text import document, print_summary
from kreassign.operations import steer
from kreassign.operations.journals import find_journal, is_active


@click.command(
    epilog=examples(
        "kreassign watch 20270131T220000Z-1a2b",
    )
)
@click.argument("run_id")
@state_dir_option
@format_option
def watch(run_id: str, state_dir: Path, output_format: str) -> None:
    """Follow run RUN_ID until it ends, pauses, or its process is gone. Ctrl-C stops watching, not the run.

    As JSON it is one document per line whenever something changed; the last one is that of `kreassign status`.
    """
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
