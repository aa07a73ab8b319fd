"""`kreassign status`: how far a run is or how it ended, from its journal. Asks no cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
from rich.table import Table

from kreassign.cli.live import overall_text
from kreassign.cli.options.run_id import run_id_argument
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, counted, examples, format_option, print_json
from kreassign.cli.run_text import document, origin_lines, pace_text, print_state, print_ways, state_text
from kreassign.executor.history.run_history import RunHistory
from kreassign.operations import steer
from kreassign.operations.journals import all_journals, find_journal, is_active
from kreassign.report.text import format_bytes


@click.command(
    epilog=examples(
        "kreassign status",
        "kreassign status 20270131T220000Z-1a2b --format json",
        "kreassign status --all",
    )
)
@run_id_argument
@click.option(
    "--all", "lists_all", is_flag=True, help="List all runs, and journals that cannot be read, with the reason."
)
@state_dir_option
@format_option
def status(run_id: str | None, lists_all: bool, state_dir: Path, output_format: str) -> None:
    """Show the progress of run RUN_ID, or how it ended.

    Without RUN_ID: of the run that a process executes, or else of the latest one (`last`).
    """
    if lists_all and run_id is not None:
        raise click.UsageError("specify either RUN_ID or --all")
    journals = all_journals(state_dir)
    if lists_all or (run_id is None and not journals):
        _list_runs(state_dir, output_format)
        return
    _show_run(find_journal(state_dir, run_id), output_format)
    if run_id is None and output_format == "text" and len(journals) > 1:
        console().print(f"and {counted(len(journals) - 1, 'other run')}: kreassign status --all")


def _show_run(path: Path, output_format: str) -> None:
    active = is_active(path)
    found, progress = steer.status_and_progress(path)
    if output_format == "json":
        print_json(document(found, is_active=active, progress=progress))
        return
    terminal = console()
    print_state(terminal, found, is_active=active)
    for sentence in origin_lines(found):
        terminal.print(f"  {sentence}", soft_wrap=True)
    if found.ended_ms is None:
        terminal.print(f"  {pace_text(found.pace)}")
        for sentence in found.outlook:
            terminal.print(f"  {sentence}", soft_wrap=True)
        terminal.print(f"  {overall_text(progress)}", soft_wrap=True)
    print_ways(terminal, found, is_active=active)


def _list_runs(state_dir: Path, output_format: str) -> None:
    read = [(steer.status_or_problem(path), is_active(path)) for path in all_journals(state_dir)]
    runs = [(found, active) for found, active in read if isinstance(found, RunHistory)]
    unreadable = [found for found, _ in read if not isinstance(found, RunHistory)]
    if output_format == "json":
        problems = [{"run_id": one.run_id, "journal": str(one.path), "problem": str(one)} for one in unreadable]
        print_json({"runs": [document(found, is_active=active) for found, active in runs], "unreadable": problems})
        return
    if not read:
        console().print(f"no runs in {state_dir}")
        return
    table = Table("run", "cluster", "state", "started", "moves", "copied", box=None, pad_edge=False)
    for found, active in runs:
        table.add_row(found.run_id, found.cluster_id, state_text(found, is_active=active), _moment(found.started_ms),
                      str(len(found.moves)), format_bytes(found.bytes_copied))  # fmt: skip
    if runs:
        console().print(table)
    for one in unreadable:
        console().print(f"run {one.run_id}: {one}. {one.remedy}", soft_wrap=True)


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"
