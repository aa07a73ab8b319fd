"""`kreassign run`, `resume`, `cancel` and `rollback`: execute a plan, continue it, end it early, undo it.

`kreassign define-monitoring` writes alert rules for Prometheus and a dashboard for Grafana, which watch such runs.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.next_command import again, next_command, print_next
from kreassign.cli.options.approvals import ApprovalOptions, approval_options
from kreassign.cli.options.cluster import (
    ClusterOptions,
    interrupted_run_cluster_options,
    measure_for_option,
    run_cluster_options,
)
from kreassign.cli.options.pace import PaceOptions, pace_options, rollback_pace_options, throttle_options
from kreassign.cli.options.run import (
    announce,
    clients_options,
    factor_change_option,
    found_options,
    give_up_option,
    guards_option,
    monitoring_options,
    producer_outage_option,
    refuse_monitoring_of_others,
    replan_option,
    run_context_options,
    taken_run_options,
)
from kreassign.cli.options.run_id import meant_journal, run_id_argument
from kreassign.cli.options.values import INPUT_FILE, plan_argument, yes_option
from kreassign.cli.output import console, examples, format_option, print_json, print_verbatim, warn
from kreassign.cli.profiles import typed_words
from kreassign.cli.run_text import exit_code, print_accepted, print_summary
from kreassign.cli.terminal import ask, detach, on_terminal, preview_lines, refuse_unless_asked, show_preview
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ExecutionError, IllegalPlan, InputError, PlanIsMet
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.preview import RunPreview
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model.plan import format_plan
from kreassign.model.run import RunHistory
from kreassign.model.text import agreeing, counted
from kreassign.model.throttle import ThrottleRates
from kreassign.model.typed_json import to_document
from kreassign.operations import run as operation
from kreassign.operations import run_journals, steering
from kreassign.operations.connect import tell_nobody
from kreassign.operations.mirrors import bring, place_at
from kreassign.operations.monitoring import Monitoring, MonitoringFile, monitored, monitoring_file
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.rollback import (
    Rollback,
    RollbackRequest,
    demand_sentence,
    done_since,
    end_run_to_undo,
    is_settled,
    preview_rollback,
    preview_rollback_run,
    refuse_unnamed_rollback,
    rollback_sentences,
    start_rollback,
)
from kreassign.operations.run import RunContext, RunRequest, cancel_interrupted_run, preview_run
from kreassign.operations.run_journals import LAST, is_active
from kreassign.operations.whole_runs import Undo, WholeRun, resume_whole, start_whole


def _meant(context: RunContext, run_id: str | None, cluster: ClusterOptions) -> Path:
    """The journal of the run that is meant, brought here first from where another host kept it."""
    if (destination := context.destination()) is not None:
        with cluster.connect() as client:
            asks = context.lease is not LeasePolicy.OFF
            bring(client, destination, context.state_dir, run_id, asks_lease=asks)
    return meant_journal(context.state_dir, run_id, cluster)


SHOWN_SKIPPED = 20


@examples(
    "kreassign rollback --bootstrap-server localhost:9092 --dry-run",
    "kreassign rollback 20270131T220000Z-1a2b3c4d --bootstrap-server localhost:9092 --throttle 50MB/s",
)
@click.command()
@run_id_argument
@run_cluster_options
@throttle_options("as for the run")
@guards_option
@clients_options
@found_options
@rollback_pace_options
@yes_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Show what would be done; change nothing.")
@taken_run_options
@monitoring_options
@format_option
def rollback(
    run_id: str | None,
    cluster: ClusterOptions,
    throttle: ThrottleRates,
    guards: dict[GuardName, Reaction],
    clients: ClientGuard | None,
    found: FoundThrottles,
    pace: PaceOptions,
    is_agreed: bool,
    is_dry: bool,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Roll back run RUN_ID: restore the replicas its partitions had before it, in the order they had.

    Without RUN_ID: the run that a process executes on the cluster in force, or else its latest one (`last`), unless
    that is itself a rollback.
    A run that is active is cancelled first. What its moves really did is undone by a run of its own: checked,
    throttled, journalled and resumable like any other. Partitions that somebody else has changed since are left alone
    and listed. What will be done is shown first, and it begins when you agree; without a terminal, --yes is needed.
    """
    path = _meant(run_context, run_id, cluster)
    refuse_unless_asked("to begin the rollback", is_agreed=is_agreed or is_dry)
    if run_id is None or run_id == LAST:
        refuse_unnamed_rollback(path)
    change = pace.change(SYSTEM_CLOCK.now_ms())
    request = RollbackRequest(str(path), throttle, guards, change, found, pace.is_stepwise, clients)
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
    raise click.exceptions.Exit(_exit_code(undone))


def _show_only(client: AdminClient, request: RollbackRequest, context: RunContext, *, is_quiet: bool) -> Rollback:
    """Print what the rollback would do."""
    seen = preview_rollback(client, request, context)
    run = preview_rollback_run(client, seen, request, context)
    if is_quiet:
        print_json(_document(seen) | {"preview": None if run is None else asdict(run)})
        return seen
    for line in _preview(seen, run):
        console().print(line, soft_wrap=True)
    if _does_anything(seen):
        print_next(again(but="--dry-run"))
    return seen


def _does_anything(seen: Rollback) -> bool:
    return bool(len(seen.plan.plan)) or not is_settled(seen.undone)


def _ask(client: AdminClient, request: RollbackRequest, context: RunContext) -> Rollback:
    """Show what the rollback will do and ask; skip the question if there is nothing to do."""
    seen = preview_rollback(client, request, context)
    run = preview_rollback_run(client, seen, request, context)
    tell = ask if _does_anything(seen) else show_preview
    tell(_preview(seen, run))
    return seen


def _preview(seen: Rollback, run: RunPreview | None) -> Iterator[str]:
    """Yield lines on the partitions that go back, and on the run that takes them, whose bytes are those of now."""
    yield from _lines(seen, has_cost=run is None)
    yield from () if run is None else preview_lines(run)


def undo(
    client: AdminClient,
    request: RollbackRequest,
    context: RunContext,
    *,
    is_quiet: bool,
    seen: Rollback | None = None,
) -> Rollback:
    """End the run, print what the rollback costs unless that was `seen`, and do it; prints nothing if `is_quiet`.

    Raises Drifted if it would do anything else than was seen, but for what the run did since.
    """
    prepared = end_run_to_undo(client, request, context)
    if not is_quiet and (seen is None or seen.plan != prepared.plan):
        since = "" if seen is None else done_since(seen, prepared)
        for line in (*([since] if since else ()), *_lines(prepared)):
            console().print(line, soft_wrap=True)
    undone = start_rollback(client, prepared, request, context, seen=seen)
    if undone.run is not None and not is_quiet:
        print_summary(console(), undone.run)
    return undone


def shown_undo(client: AdminClient, context: RunContext, *, is_quiet: bool) -> Undo:
    """The rollback that a guard demands: how the run ended is printed before it."""

    def make(found: RunHistory) -> Rollback:
        if not is_quiet:
            print_summary(console(), found)
        return undo(client, RollbackRequest(found.run_id), context, is_quiet=is_quiet)

    return make


def report_end(ended: WholeRun, context: RunContext, *, is_quiet: bool) -> int:
    """Print how a run ended, unless before its rollback, and return its exit code. Raises why it is not rolled back."""
    found, undone = ended.run, ended.rollback
    if ended.failure is not None:
        context.warn(demand_sentence(found.run_id))
        raise ended.failure
    if is_quiet:
        print_json(to_document(found) | ({} if undone is None else {"rollback": _document(undone)}))
    elif undone is None:
        print_summary(console(), found)
    return exit_code(found)


def _exit_code(found: Rollback) -> int:
    """The exit code of the rollback's run; not 0 if partitions were skipped."""
    code = 0 if found.run is None else exit_code(found.run)
    return code or (ExecutionError.exit_code if found.plan.skipped else 0)


def _document(found: Rollback) -> dict[str, Any]:
    return {
        "run_id": found.undone.run_id,
        "run_state": found.undone.state,
        "in_flight": found.in_flight,
        "plan": json.loads(format_plan(found.plan.plan)),
        "copy_count": found.plan.copy_count,
        "copied_bytes": found.plan.copied_bytes,
        "left_alone": list(found.plan.skipped),
        "factors": list(found.factors),
        "outages": list(found.outages),
        "rollback_run": None if found.run is None else to_document(found.run),
    }


def _lines(found: Rollback, *, has_cost: bool = True) -> Iterator[str]:
    yield from (*found.factors, *found.outages, *rollback_sentences(found, has_cost=has_cost))
    for sentence in found.plan.reasons[:SHOWN_SKIPPED]:
        yield f"  left alone: {sentence}"
    if (more := len(found.plan.reasons) - SHOWN_SKIPPED) > 0:
        yield f"  and {more:,} more; --format json has all"


@examples(
    "kreassign run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s",
    "kreassign run plan.json --bootstrap-server localhost:9092 --dry-run",
    "kreassign run plan.json --bootstrap-server localhost:9092 --window 22:00-06:00 --time-zone Europe/Berlin",
    "kreassign run plan.json --bootstrap-server localhost:9092 --throttle auto --broker-capacity 120MB/s",
    "kreassign run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s --yes --detach",
)
@click.command()
@plan_argument
@run_cluster_options
@throttle_options("no limit")
@click.option(
    "--expect-current",
    type=INPUT_FILE,
    help="Run only if the partitions still have the replicas in FILE (from `kreassign plan --current-out`).  "
    "[default: whatever they have]",
)
@approval_options
@guards_option
@clients_options
@found_options
@replan_option
@give_up_option
@producer_outage_option
@factor_change_option
@pace_options
@measure_for_option("With a throttle: how long to measure write rates first; 0 to skip.")
@yes_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Check the plan, show what the run would do, and send nothing.")
@click.option("--detach", "is_detached", is_flag=True, help="Continue in the background once the run has begun.")
@run_context_options
@monitoring_options
@format_option
def run(
    plan: Path,
    cluster: ClusterOptions,
    throttle: ThrottleRates,
    expect_current: Path | None,
    approval: ApprovalOptions,
    guards: dict[GuardName, Reaction],
    clients: ClientGuard | None,
    found: FoundThrottles,
    replan: bool,
    give_up_after: float | None,
    allow_producer_outage: bool,
    allow_factor_change: bool,
    pace: PaceOptions,
    measure_for: float,
    is_agreed: bool,
    is_dry: bool,
    is_detached: bool,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Execute PLAN: throttle, move, elect preferred leaders, restore the throttle, verify.

    PLAN is Kafka's reassignment JSON. It is checked against the cluster first; nothing is sent if anything is wrong.
    What the run will do is shown then, and it begins when you agree; without a terminal, --yes is needed.
    Ctrl-C pauses, and so does closing the terminal, unless with --detach or `nohup`; a second Ctrl-C quits at once.
    Either way `kreassign resume` continues.
    """
    expected = read_plan_file(expect_current) if expect_current else None
    chosen_pace = pace.pace(SYSTEM_CLOCK.now_ms())
    file = read_plan_file(plan)
    approval.refuse_unapproved(plan, file)
    request = RunRequest(
        file,
        throttle,
        guards,
        chosen_pace,
        expected,
        measure_for,
        found,
        replan,
        allow_producer_outage,
        allow_factor_change,
        give_up_after,
        approval.signed(plan),
        clients,
    )
    refuse_unless_asked(is_agreed=is_agreed or is_dry)
    is_quiet = output_format == "json"
    seen = None
    if is_dry or not is_agreed:
        with _naming(plan, expect_current):
            seen = _look_first(cluster, request, run_context, is_dry=is_dry, output_format=output_format)
        approval.refuse_unapproved(plan, file)  # it may have been taken back while the question was open
    started = detach(run_context.state_dir, output_format) if is_detached else tell_nobody
    with (
        _naming(plan, expect_current),
        cluster.connect() as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet, started=started) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        undo_it = shown_undo(client, watched, is_quiet=is_quiet)
        ended = _execute(client, request, watched, seen, undo_it, shows=is_agreed and sys.stderr.isatty())
        code = report_end(ended, watched, is_quiet=is_quiet)
    raise click.exceptions.Exit(code)


@contextmanager
def _naming(plan: Path, expect_current: Path | None) -> Iterator[None]:
    """Name the files in refusals that are about them."""
    try:
        yield
    except PlanIsMet as error:
        raise PlanIsMet(error.run_id, shlex.quote(str(plan))) from error
    except IllegalPlan as error:
        if expect_current is None or error.drifted < len(error.violations):
            raise
        lists = counted(error.drifted, "replica list")
        raise InputError(
            f"{expect_current} does not describe the cluster, where {lists} {agreeing(error.drifted, 'are')} not as it "
            "says; nothing was sent. Plan again, with --current-out"
        ) from error


def _look_first(
    cluster: ClusterOptions, request: RunRequest, context: RunContext, *, is_dry: bool, output_format: str
) -> RunStarted:
    """Show what the run would do and ask whether to begin; exit after a dry run. Sends nothing."""
    with cluster.connect() as client, cluster.connect_controllers() as controllers:
        if (destination := context.destination()) is not None:  # the run does not begin without it
            place_at(destination, client).names(client.describe_cluster().cluster_id)
        if request.measure_for_s:
            click.echo(f"checking the plan, and measuring traffic for {request.measure_for_s:g} s", err=True)
        started = operation.prepare_run(client, request, replace(context, controllers=controllers, warn=warn))
        found = preview_run(client, started, request)
    _say_who_approved(started)
    if not is_dry:
        ask(preview_lines(found))
        return started
    if output_format == "json":
        print_json(asdict(found))
    else:
        show_preview(preview_lines(found))
        # Suggest the run itself, with the proposed throttle if none was given.
        proposed = () if found.proposal is None else ("--throttle", found.proposal.text)
        print_next(next_command(*(word for word in typed_words() if word != "--dry-run"), *proposed))
    raise click.exceptions.Exit(0)


def _execute(
    client: AdminClient,
    request: RunRequest,
    context: RunContext,
    seen: RunStarted | None,
    undo_it: Undo,
    *,
    shows: bool,
) -> WholeRun:
    """Check and begin; again where it was `seen`, for the question may have been open for long."""
    if seen is None:
        started = operation.prepare_run(client, request, context)
        _say_who_approved(started)
    else:
        started = operation.prepare_as_seen(client, request, replace(context, warn=tell_nobody), seen)
    if shows:
        show_preview(preview_lines(preview_run(client, started, replace(request, measure_for_s=0.0))))
    return start_whole(client, started, context, request.plan.facts, undo=undo_it)


def _say_who_approved(started: RunStarted) -> None:
    if started.approval is not None:
        click.echo(str(started.approval), err=True)


@examples(
    "kreassign resume",
    "kreassign resume 20270131T220000Z-1a2b3c4d --bootstrap-server localhost:9092",
)
@click.command()
@run_id_argument
@interrupted_run_cluster_options
@replan_option
@give_up_option
@clients_options
@taken_run_options
@monitoring_options
@format_option
def resume(
    run_id: str | None,
    cluster: ClusterOptions,
    replan: bool,
    give_up_after: float | None,
    clients: ClientGuard | None,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Resume run RUN_ID, or that of the cluster in force, after `kreassign pause`, Ctrl-C or a crash.

    If no process executes it any more, this one does, and needs --bootstrap-server: it checks the cluster before it
    sends anything. A run that was begun with --replan, --give-up-after, --guard-query or --guard-command keeps doing
    so.
    """
    path = _meant(run_context, run_id, cluster)
    if is_active(path):
        refuse_monitoring_of_others(path.stem)
        given = {"--replan": replan, "--give-up-after": give_up_after is not None, "--guard-…": clients is not None}
        if option := next((name for name, is_given in given.items() if is_given), ""):
            raise InputError(
                f"a process executes run {path.stem}; {option} is for a run that is resumed: end that process "
                f"(Ctrl-C), then resume the run with {option}"
            )
        accepted = steering.release(path)
        sentence = steering.in_force(path, accepted, "starts moves again", steering.LOOKS_AGAIN)
        if (held := run_journals.status(path).why_held) is not None:
            sentence = f"{sentence}, but {held}"
        print_accepted(path, accepted, sentence, output_format)
        return
    steering.refuse_if_over(path, "resume")
    is_quiet = output_format == "json"
    with (
        cluster.connect_to_resume(path.stem) as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        undo_it = shown_undo(client, watched, is_quiet=is_quiet)
        resumed = resume_whole(
            client, path, watched, replan=replan, give_up_after_s=give_up_after, clients=clients, undo=undo_it
        )
        code = report_end(resumed, watched, is_quiet=is_quiet)
    raise click.exceptions.Exit(code)


@examples(
    "kreassign cancel",
    "kreassign cancel 20270131T220000Z-1a2b3c4d --drain",
    "kreassign cancel 20270131T220000Z-1a2b3c4d --bootstrap-server localhost:9092",
)
@click.command()
@run_id_argument
@click.option("--drain", "drains", is_flag=True, help="Let moves in flight finish; start no new ones.")
@interrupted_run_cluster_options
@taken_run_options
@monitoring_options
@format_option
def cancel(
    run_id: str | None,
    drains: bool,
    cluster: ClusterOptions,
    run_context: RunContext,
    monitoring: Monitoring,
    output_format: str,
) -> None:
    """Cancel run RUN_ID, or that of the cluster in force: cancel moves in flight, restore the throttle.

    Copies that are not complete are discarded, as Kafka does when a reassignment is cancelled; moves that are complete
    stay. If no process executes the run any more, this one does, and needs --bootstrap-server.
    """
    path = _meant(run_context, run_id, cluster)
    if is_active(path):
        refuse_monitoring_of_others(path.stem)
        flying = run_journals.status(path).in_flight_count
        moves = f"{counted(flying, 'move')} in flight"
        sentence = f"draining: {moves} {agreeing(flying, 'finish')}, then it ends" if drains else f"cancelling {moves}"
        print_accepted(path, steering.cancel(path, is_now=not drains), sentence, output_format)
        return
    steering.refuse_if_over(path, "cancel")
    is_quiet = output_format == "json"
    with (
        cluster.connect_to_resume(path.stem) as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        found = cancel_interrupted_run(client, path, watched, is_now=not drains)
        if is_quiet:
            print_json(to_document(found))
        else:
            print_summary(console(), found)
    raise click.exceptions.Exit(exit_code(found))


PORT = 9464
"""Port of the metrics in the examples of `kreassign run`."""


@examples(
    "kreassign define-monitoring alerts",
    "kreassign define-monitoring dashboard",
)
@click.command("define-monitoring")
@click.argument("what", type=click.Choice([kind.name.lower() for kind in MonitoringFile]))
def define_monitoring(what: str) -> None:
    """Write alert rules for Prometheus, or a dashboard for Grafana, of what `kreassign run --metrics-port` serves.

    Nothing is read and nothing is changed.
    """
    print_verbatim(monitoring_file(MonitoringFile[what.upper()]), nl=False)
    print_next(next_command("run", "plan.json", "--metrics-port", PORT))
