"""`kreassign watch`: follows a run live from its journal, from any terminal. Asks no cluster."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.live import view_for
from kreassign.cli.output import console
from kreassign.cli.run_text import print_summary
from kreassign.cli.runs import find_journal, is_active, state_dir_option
from kreassign.clock import Clock, SystemClock
from kreassign.executor.history import RunHistory, history
from kreassign.executor.journal import JournalReader
from kreassign.executor.machine import Execution, handle
from kreassign.executor.progress import ProgressMeter

LOOK_EVERY_S = 0.5


@click.command()
@click.argument("run_id")
@state_dir_option
def watch(run_id: str, state_dir: Path) -> None:
    """Follow run RUN_ID until it ends, pauses, or its process is gone. Ctrl-C ends the watching, not the run."""
    path = find_journal(state_dir, run_id)
    try:
        found = follow(path, SystemClock())
    except KeyboardInterrupt:
        return
    print_summary(console(), found)


def follow(path: Path, clock: Clock) -> RunHistory:
    """Show a run until nobody carries it out any more; its history then."""
    reader, execution = JournalReader(path), Execution()
    meter = ProgressMeter(execution)
    with view_for(console()) as view:
        while True:
            # Asked before reading: whatever a process wrote before it went is then among the new events.
            goes_on = is_active(path)
            for event in reader.new_events():
                handle(execution, event)
                meter.follow(event)
            view.show(meter.progress())
            if not goes_on:
                return history(execution)
            clock.sleep(LOOK_EVERY_S)
