"""`kreassign rollback`: undoes what a run really did, by a run of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.carrying import Manner, begin, cancel_left_run, new_run_id, tell_end
from kreassign.cli.commands.watch import follow
from kreassign.cli.context import cluster_options, connect, controller_option
from kreassign.cli.live import view_for
from kreassign.cli.output import console, format_option, parse_quantity, print_json
from kreassign.cli.requests import ask
from kreassign.cli.runs import find_journal, is_active, poll_option, state_dir_option
from kreassign.clock import SystemClock
from kreassign.errors import ExecutionError
from kreassign.executor.events import CancelRequested
from kreassign.executor.guards.settings import settings
from kreassign.executor.history import RunHistory, read_history
from kreassign.executor.inverse import WayBack, way_back
from kreassign.executor.preparing import RunSettings, prepare
from kreassign.executor.reading import partitions_of
from kreassign.model.plan_json import format_plan
from kreassign.report.text import format_bytes


@dataclass(frozen=True, slots=True)
class Undoing:
    """Which run to undo, at which rate (None: as it had), and whether only to say what would be done."""

    run_id: str
    throttle_bytes_per_s: int | None = None
    is_dry: bool = False


@click.command()
@click.argument("run_id")
@cluster_options
@controller_option
@click.option(
    "--throttle",
    "throttle_bytes_per_s",
    type=parse_quantity,
    metavar="RATE",
    help="What each broker may send and receive meanwhile.  [default: as for the run]",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Say what would be done; change nothing.")
@poll_option
@state_dir_option
@format_option
@click.pass_context
def rollback(
    context: click.Context, /, run_id: str, bootstrap_server: str, command_config: Path | None, is_dry: bool,
    throttle_bytes_per_s: int | None, **manner: Any,
) -> None:  # fmt: skip
    """Bring the partitions of run RUN_ID back to the replicas they had before it, in the order they had.

    A run that goes on is cancelled first. What its moves really did is undone by a run of its own: checked, throttled,
    journalled and resumable like any other. Partitions that somebody else has changed since are left alone and named.
    """
    wish, how = Undoing(run_id, throttle_bytes_per_s, is_dry), Manner(command_config=command_config, **manner)
    with connect(bootstrap_server, command_config) as client:
        context.exit(undo(client, wish, how))


def undo(client: AdminClient, wish: Undoing, manner: Manner) -> int:
    """End the run, say what undoing it costs, and do so; the exit code."""
    path = find_journal(manner.state_dir, wish.run_id)
    done = read_history(path) if wish.is_dry else _ended(client, path, manner)
    back = find_way_back(client, done)
    if wish.is_dry and manner.is_quiet:
        print_json({"run_id": done.run_id, **_document(back)})
    elif not manner.is_quiet:
        _tell(done, back)
    if wish.is_dry or not len(back.plan):
        return ExecutionError.exit_code if back.left_alone else 0
    now_ms = SystemClock().now_ms()
    started = prepare(
        client,
        back.plan,
        RunSettings(new_run_id(now_ms), now_ms, wish.throttle_bytes_per_s or done.throttle_bytes_per_s, settings()),
        expected=back.expected,
    )
    code = tell_end(begin(client, started, manner), manner)
    return code or (ExecutionError.exit_code if back.left_alone else 0)


def find_way_back(client: AdminClient, done: RunHistory) -> WayBack:
    """What undoes a run, as the cluster is now."""
    names = sorted({move.topic for move in done.moves})
    return way_back(done.moves, partitions_of(client.describe_topics(names)))


def _ended(client: AdminClient, path: Path, manner: Manner) -> RunHistory:
    """The run at its end: cancelled at once if it goes on or was left."""
    clock = SystemClock()
    if is_active(path):
        ask(path, lambda number: CancelRequested(clock.now_ms(), number, is_now=True), clock)
        return follow(path, clock, view_for(console(stderr=manner.is_quiet)))
    found = read_history(path)
    if found.ended_ms is None or found.throttle_residue:
        return cancel_left_run(client, path, manner, is_now=True)
    return found


def _tell(done: RunHistory, back: WayBack) -> None:
    click.echo(
        f"to undo run {done.run_id}: {len(back.plan)} of {len(done.moves)} partitions move back, {back.copy_count} "
        f"copies, {format_bytes(back.copied_bytes)}"
    )
    for sentence in back.left_alone:
        click.echo(f"  left alone: {sentence}")


def _document(back: WayBack) -> dict[str, Any]:
    return {
        "plan": json.loads(format_plan(back.plan)),
        "copy_count": back.copy_count,
        "copied_bytes": back.copied_bytes,
        "left_alone": list(back.left_alone),
    }
