"""`kreassign watch`: follows a run live from its journal, from any terminal. Asks no cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kreassign.cli.live import JsonView, View, view_for
from kreassign.cli.output import console, format_option
from kreassign.cli.run_text import document, print_summary
from kreassign.cli.runs import find_journal, is_active, state_dir_option
from kreassign.clock import Clock, SystemClock
from kreassign.executor.history.run_history import RunHistory, fold_with_progress, history
from kreassign.executor.journal import JournalReader, read_events
from kreassign.executor.progress.meter import ProgressMeter
from kreassign.executor.state import Replay

LOOK_EVERY_S = 0.5


@click.command()
@click.argument("run_id")
@state_dir_option
@format_option
def watch(run_id: str, state_dir: Path, output_format: str) -> None:
    """Follow run RUN_ID until it ends, pauses, or its process is gone. Ctrl-C ends the watching, not the run.

    As JSON it is one document per line whenever something changed; the last one is that of `kreassign status`.
    """
    path = find_journal(state_dir, run_id)
    view = JsonView(console()) if output_format == "json" else view_for(console())
    try:
        found = follow(path, SystemClock(), view)
    except KeyboardInterrupt:
        return
    if output_format == "json":
        _, meter = fold_with_progress(read_events(path))
        click.echo(json.dumps(document(found, is_active=is_active(path), progress=meter.progress())))
    else:
        print_summary(console(), found)


def follow(path: Path, clock: Clock, shown: View) -> RunHistory:
    """Show a run until nobody carries it out any more; its history then."""
    reader, replay = JournalReader(path), Replay()
    meter = ProgressMeter(replay.execution)
    with shown as view:
        while True:
            # Asked before reading: whatever a process wrote before it went is then among the new events.
            goes_on = is_active(path)
            for event in reader.new_events():
                replay.follow(event)
                meter.follow(event)
            view.show(meter.progress())
            if not goes_on:
                return history(replay.execution)
            clock.sleep(LOOK_EVERY_S)
