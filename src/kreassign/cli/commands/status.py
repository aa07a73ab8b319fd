"""`kreassign status`: how far a run is or how it ended, from its journal. Asks no cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
from rich.table import Table

from kreassign.cli.live import overall_text
from kreassign.cli.options.state_dir import state_dir_option
from kreassign.cli.output import console, examples, format_option, print_json
from kreassign.cli.run_text import document, origin_lines, pace_text, print_summary
from kreassign.executor.history.run_history import RunHistory
from kreassign.operations import steer
from kreassign.operations.journals import all_journals, find_journal, is_active
from kreassign.report.text import format_bytes


@click.command(
    epilog=examples(
        "kreassign status",
        "kreassign status 20270131T220000Z-1a2b --format json",
    )
)
@click.argument("run_id", required=False)
@state_dir_option
@format_option
def status(run_id: str | None, state_dir: Path, output_format: str) -> None:
    """Show the progress of run RUN_ID, or how it ended. Without RUN_ID: list all runs.

    Runs whose journal cannot be read are listed too, with the reason.
    """
    if run_id is None:
        _list_runs(state_dir, output_format)
    else:
        _show_run(find_journal(state_dir, run_id), output_format)


def _show_run(path: Path, output_format: str) -> None:
    active = is_active(path)
    found, progress = steer.status_and_progress(path)
    if output_format == "json":
        print_json(document(found, is_active=active, progress=progress))
        return
    terminal = console()
    print_summary(terminal, found, is_active=active)
    for sentence in origin_lines(found):
        terminal.print(f"  {sentence}", soft_wrap=True)
    if found.ended_ms is None:
        terminal.print(f"  {pace_text(found.pace)}")
        for sentence in found.outlook:
            terminal.print(f"  {sentence}", soft_wrap=True)
        terminal.print(f"  {overall_text(progress)}", soft_wrap=True)
        if not active and found.state != "paused":
            terminal.print(f"  its process is gone; to continue: kreassign resume {found.run_id} --bootstrap-server …")


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
        table.add_row(found.run_id, found.cluster_id, _state(found, is_active=active), _moment(found.started_ms),
                      str(len(found.moves)), format_bytes(found.bytes_copied))  # fmt: skip
    if runs:
        console().print(table)
    for one in unreadable:
        console().print(f"run {one.run_id}: {one}. {one.remedy}", soft_wrap=True)


def _state(found: RunHistory, *, is_active: bool) -> str:
    if found.is_held and found.ended_ms is None and is_active:
        return f"{found.state} (held)"
    left = found.ended_ms is None and not is_active and found.state != "paused"
    return f"{found.state} (its process is gone)" if left else found.state


def _moment(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S} UTC"
