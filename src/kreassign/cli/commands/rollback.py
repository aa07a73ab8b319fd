"""`kreassign rollback`: undoes what a run really did, by a run of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.carrying import (
    Manner,
    begin,
    cancel_left_run,
    exit_code,
    new_run_id,
    read_manner,
    refuse_unless_free,
)
from kreassign.cli.commands.watch import follow
from kreassign.cli.context import cluster_options, connect, controller_option
from kreassign.cli.live import view_for
from kreassign.cli.options.pace import pace_options, read_pace_change
from kreassign.cli.options.throttle import rate_options, read_rates
from kreassign.cli.output import console, format_option, print_json
from kreassign.cli.requests import ask
from kreassign.cli.run_text import document, print_summary
from kreassign.cli.runs import find_journal, guards_option, is_active, poll_option, state_dir_option
from kreassign.clock import SystemClock
from kreassign.errors import ExecutionError
from kreassign.executor.cluster.log_dirs import places
from kreassign.executor.cluster.queries import partitions_of
from kreassign.executor.events import CancelRequested, RunStarted
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.guards.settings import settings
from kreassign.executor.history.rollback_plan import WayBack, way_back
from kreassign.executor.history.run_history import RunHistory, read_history
from kreassign.executor.journal import read_events
from kreassign.executor.preflight.prepare import RunSettings, prepare
from kreassign.executor.scheduling import Hours, PaceChange
from kreassign.executor.throttle.rates import NO_THROTTLE, Rates
from kreassign.model import TopicPartition
from kreassign.model.plan_json import format_plan
from kreassign.report.text import format_bytes

NO_CHANGE = PaceChange()


@dataclass(frozen=True, slots=True)
class Undoing:
    """Which run to undo, and how: what is not said here is as it was for the run, but for its hours.

    `is_dry`: only say what would be done.
    """

    run_id: str
    rates: Rates = NO_THROTTLE
    is_dry: bool = False
    guards: tuple[tuple[GuardName, Reaction], ...] = ()
    pace: PaceChange = NO_CHANGE


@dataclass(frozen=True, slots=True)
class Undone:
    """What there was to undo of a run, and the run that did so; None where nothing was to be done, or only told."""

    done: RunHistory
    back: WayBack
    undoing: RunHistory | None = None

    @property
    def exit_code(self) -> int:
        """That of the run that undoes; where partitions were left alone, never 0."""
        code = 0 if self.undoing is None else exit_code(self.undoing)
        return code or (ExecutionError.exit_code if self.back.left_alone else 0)

    @property
    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "run_id": self.done.run_id,
            "plan": json.loads(format_plan(self.back.plan)),
            "copy_count": self.back.copy_count,
            "copied_bytes": self.back.copied_bytes,
            "left_alone": list(self.back.left_alone),
            "undoing": None if self.undoing is None else document(self.undoing),
        }


@click.command()
@click.argument("run_id")
@cluster_options
@controller_option
@rate_options("as for the run")
@guards_option
@pace_options
@click.option("--dry-run", "is_dry", is_flag=True, help="Say what would be done; change nothing.")
@poll_option
@state_dir_option
@format_option
@click.pass_context
def rollback(
    context: click.Context, /, run_id: str, bootstrap_server: str, command_config: Path | None, is_dry: bool,
    **wishes: Any,
) -> None:  # fmt: skip
    """Bring the partitions of run RUN_ID back to the replicas they had before it, in the order they had.

    A run that goes on is cancelled first. What its moves really did is undone by a run of its own: checked, throttled,
    journalled and resumable like any other. Partitions that somebody else has changed since are left alone and named.
    """
    how = read_manner(wishes, command_config)
    change = read_pace_change(wishes, SystemClock().now_ms())
    with connect(bootstrap_server, command_config) as client:
        undone = undo(client, Undoing(run_id, read_rates(wishes), is_dry, wishes["guards"], change), how)
    if how.is_quiet:
        print_json(undone.document)
    context.exit(undone.exit_code)


def undo(client: AdminClient, wish: Undoing, manner: Manner) -> Undone:
    """End the run, say what undoing it costs, and do so. For people it is all told; for programs nothing is printed."""
    path = find_journal(manner.state_dir, wish.run_id)
    done = read_history(path) if wish.is_dry else _ended(client, path, manner)
    found = Undone(done, find_way_back(client, done))
    if not manner.is_quiet:
        _tell(done, found.back)
    if wish.is_dry or not len(found.back.plan):
        return found
    refuse_unless_free(client, manner)
    started = prepare(client, found.back.plan, _settings(wish, path, done), expected=found.back.expected)
    undoing = begin(client, started, manner)
    if not manner.is_quiet:
        print_summary(console(), undoing)
    return replace(found, undoing=undoing)


def _settings(wish: Undoing, journal: Path, done: RunHistory) -> RunSettings:
    """As of the run that is undone, where nothing else is wished; not its hours, for they may be over."""
    now_ms = SystemClock().now_ms()
    first = read_events(journal)[0]
    assert isinstance(first, RunStarted)
    chosen = {setting.guard: setting.reaction for setting in first.guards} | dict(wish.guards)
    # To undo the undoing would be to do again what a guard wanted undone.
    reactions = {
        guard: Reaction.CANCEL if reaction is Reaction.ROLLBACK else reaction for guard, reaction in chosen.items()
    }
    rates = wish.rates if wish.rates != NO_THROTTLE else done.rates
    pace = replace(done.pace, hours=Hours()).changed(wish.pace)
    return RunSettings(new_run_id(now_ms), now_ms, rates.bytes_per_s, settings(reactions), pace, rates.own, rates.auto)


def end_of_run(client: AdminClient, found: RunHistory, manner: Manner) -> int:
    """Say how a run ended, and undo it if one of its guards wants that; the exit code of the run."""
    if not manner.is_quiet:
        print_summary(console(), found)
    is_to_be_undone = found.wants_rollback and found.ended_ms is not None
    undone = undo(client, Undoing(found.run_id), manner) if is_to_be_undone else None
    if manner.is_quiet:
        print_json(document(found) | ({} if undone is None else {"rollback": undone.document}))
    return exit_code(found)


def find_way_back(client: AdminClient, done: RunHistory) -> WayBack:
    """What undoes a run, as the cluster is now."""
    names = sorted({move.topic for move in done.moves})
    named = {(wish.broker, TopicPartition(move.topic, move.partition)) for move in done.moves for wish in move.log_dirs}
    brokers, partitions = {broker for broker, _ in named}, {name for _, name in named}
    found = client.describe_log_dirs(sorted(brokers), partitions=sorted(partitions)).ok if named else {}
    return way_back(done.moves, partitions_of(client.describe_topics(names)), places(found))


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
