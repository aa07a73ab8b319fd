"""`kreassign rollback`: undoes what a run really did, by a run of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.confirm import ask, lines, refuse_unless_asked, yes_option
from kreassign.cli.next_command import again, print_next
from kreassign.cli.options.cluster import ClusterOptions, run_cluster_options
from kreassign.cli.options.monitoring import announce, monitoring_options
from kreassign.cli.options.pace import PaceOptions, pace_change_options
from kreassign.cli.options.run import found_options, guards_option, run_context_options
from kreassign.cli.options.run_id import run_id_argument
from kreassign.cli.options.throttle import throttle_options
from kreassign.cli.output import console, examples, format_option, print_json
from kreassign.cli.run_text import document, exit_code, print_summary
from kreassign.cli.signals import on_terminal
from kreassign.clock import SystemClock
from kreassign.errors import ExecutionError
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.throttle.originals import FoundThrottles
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.model.plan_json import format_plan
from kreassign.operations.journals import find_journal
from kreassign.operations.monitoring import Monitoring, monitored
from kreassign.operations.rollback import (
    Rollback,
    RollbackRequest,
    end_run_to_undo,
    is_settled,
    preview_rollback,
    preview_rollback_run,
    start_rollback,
)
from kreassign.operations.run import RunContext
from kreassign.report.text import format_bytes


@click.command(
    epilog=examples(
        "kreassign rollback --bootstrap-server localhost:9092 --dry-run",
        "kreassign rollback 20270131T220000Z-1a2b --bootstrap-server localhost:9092 --throttle 50MB/s",
    )
)
@run_id_argument
@run_cluster_options
@throttle_options("as for the run")
@guards_option
@found_options
@pace_change_options
@yes_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Show what would be done; change nothing.")
@run_context_options
@monitoring_options
@format_option
@click.pass_context
def rollback(
    context: click.Context,
    /,
    run_id: str | None,
    cluster: ClusterOptions,
    throttle: ThrottleRates,
    guards: dict[GuardName, Reaction],
    found: FoundThrottles,
    pace: PaceOptions,
    is_agreed: bool,
    is_dry: bool,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Roll back run RUN_ID: restore the replicas its partitions had before it, in the order they had.

    Without RUN_ID: the run that a process executes, or else the latest one (`last`).
    A run that is active is cancelled first. What its moves really did is undone by a run of its own: checked,
    throttled, journalled and resumable like any other. Partitions that somebody else has changed since are left alone
    and listed. What will be done is shown first, and it begins when you agree; without a terminal, --yes is needed.
    """
    refuse_unless_asked("the rollback", is_agreed=is_agreed or is_dry)
    path = find_journal(run_context.state_dir, run_id)
    request = RollbackRequest(run_id or path.stem, throttle, guards, pace.change(SystemClock().now_ms()), found)
    is_quiet = output_format == "json"
    with (
        cluster.connect() as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        if is_dry:
            undone = _show_only(client, request, watched, is_quiet=is_quiet)
        else:
            seen = None if is_agreed else _ask(client, request, watched)
            undone = undo(client, request, watched, is_quiet=is_quiet, seen=seen)
            if is_quiet:
                print_json(_document(undone))
    context.exit(_exit_code(undone))


def _show_only(client: AdminClient, request: RollbackRequest, context: RunContext, *, is_quiet: bool) -> Rollback:
    """Print what would be done."""
    seen = preview_rollback(client, request.run_id, context)
    run = preview_rollback_run(client, seen, request, context)
    if is_quiet:
        print_json(_document(seen) | {"preview": None if run is None else asdict(run)})
        return seen
    for line in (*_lines(seen), *(() if run is None else lines(run))):
        console().print(line, soft_wrap=True)
    print_next(again(but="--dry-run"))
    return seen


def _ask(client: AdminClient, request: RollbackRequest, context: RunContext) -> Rollback:
    """Show what will be done and ask whether it shall; where nothing is to be done, nobody is asked."""
    seen = preview_rollback(client, request.run_id, context)
    run = preview_rollback_run(client, seen, request, replace(context, warn=_silent))
    if len(seen.plan.plan) or not is_settled(seen.undone):
        ask((*_lines(seen), *(() if run is None else lines(run))))
    return seen


def _silent(_: str) -> None:
    """The same warnings were given a moment ago."""


def undo(
    client: AdminClient,
    request: RollbackRequest,
    context: RunContext,
    *,
    is_quiet: bool,
    seen: Rollback | None = None,
) -> Rollback:
    """End the run, print what the rollback costs unless that was `seen`, and do it; prints nothing if `is_quiet`."""
    prepared = end_run_to_undo(client, request.run_id, context)
    if not is_quiet and (seen is None or seen.plan != prepared.plan):
        for line in _lines(prepared):
            console().print(line, soft_wrap=True)
    undone = start_rollback(client, prepared, request, context)
    if undone.run is not None and not is_quiet:
        print_summary(console(), undone.run)
    return undone


def report_end(client: AdminClient, found: RunHistory, context: RunContext, *, is_quiet: bool) -> int:
    """Print how a run ended, and undo it if one of its guards wants that; the exit code of the run."""
    if not is_quiet:
        print_summary(console(), found)
    is_to_be_undone = found.wants_rollback and found.ended_ms is not None
    undone = undo(client, RollbackRequest(found.run_id), context, is_quiet=is_quiet) if is_to_be_undone else None
    if is_quiet:
        print_json(document(found) | ({} if undone is None else {"rollback": _document(undone)}))
    return exit_code(found)


def _exit_code(found: Rollback) -> int:
    """That of the run that undoes; where partitions were left alone, never 0."""
    code = 0 if found.run is None else exit_code(found.run)
    return code or (ExecutionError.exit_code if found.plan.skipped else 0)


def _document(found: Rollback) -> dict[str, Any]:
    return {
        "run_id": found.undone.run_id,
        "plan": json.loads(format_plan(found.plan.plan)),
        "copy_count": found.plan.copy_count,
        "copied_bytes": found.plan.copied_bytes,
        "left_alone": list(found.plan.skipped),
        "rollback_run": None if found.run is None else document(found.run),
    }


def _lines(found: Rollback) -> Iterator[str]:
    undone, plan = found.undone, found.plan
    if not is_settled(undone):
        yield f"run {undone.run_id} is not at its end ({undone.state}): it is cancelled first"
    yield (
        f"rollback of run {undone.run_id}: {len(plan.plan)} of {len(undone.moves)} partitions move back, "
        f"{plan.copy_count} copies, {format_bytes(plan.copied_bytes)}"
    )
    for sentence in plan.skipped:
        yield f"  left alone: {sentence}"
