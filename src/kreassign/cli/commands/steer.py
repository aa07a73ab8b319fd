"""Commands without a cluster: `status`, `watch`, `pause`, `throttle`, `pace`, `forget` and `approve`.

They read the journal of a run, write requests into it, or write beside a plan; another process may execute the run.
Nothing here imports the Kafka client, so that they start quickly. Only where no run is named, or a cluster beside it,
is the cluster asked who it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import click
from click.core import ParameterSource, augment_usage_errors
from rich.table import Column

from kreassign.cli.next_command import CLUSTER, STATE, next_command, print_next
from kreassign.cli.options.approvals import key_option
from kreassign.cli.options.cluster import ClusterOptions, of_run_options
from kreassign.cli.options.pace import (
    AUTO,
    CapacityOptions,
    PaceOptions,
    capacity_options,
    pace_change_options,
    rate_or_auto,
)
from kreassign.cli.options.run_id import meant_journal, run_id_argument, shown_journal, shown_journals, state_dir_option
from kreassign.cli.options.values import BROKER_ID, plan_argument, yes_option
from kreassign.cli.output import (
    console,
    examples,
    form_of_documents,
    format_option,
    names,
    print_json,
    print_verbatim,
    text_table,
    warn,
)
from kreassign.cli.run_text import (
    JsonView,
    overall_text,
    print_accepted,
    print_state,
    print_summary,
    print_ways,
    state_text,
    view_for,
)
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ExecutionError
from kreassign.executor.scheduling.windows import pace_text
from kreassign.model.cluster import named_brokers
from kreassign.model.pace import PaceChange
from kreassign.model.plan_facts import plan_id
from kreassign.model.run import AT_REST, IN_FLIGHT, RunHistory
from kreassign.model.text import agreeing, counted
from kreassign.model.throttle import ThrottleRates
from kreassign.model.typed_json import to_document
from kreassign.operations import approvals, run_journals, steering
from kreassign.operations.plan_files import approval_path, read_plan_file, request_path, revoke
from kreassign.operations.plan_files import approve as approve_plan
from kreassign.operations.run_journals import all_journals, forget_brokers, forget_journal, named_journal, this_operator
from kreassign.report.text import format_bytes, format_rate, format_time, rates_text


@examples(
    "kreassign status",
    "kreassign status 20270131T220000Z-1a2b3c4d --format json",
    "kreassign status --all",
)
@click.command()
@run_id_argument
@click.option(
    "--all", "lists_all", is_flag=True, help="List all runs, and journals that cannot be read, with the reason."
)
@click.option(
    "--journal-from",
    metavar="DEST",
    help="Show a run whose journal another host keeps there (its --journal-to); needs --bootstrap-server.  "
    "[default: of --state-dir]",
)
@of_run_options
@state_dir_option
@format_option
def status(
    run_id: str | None,
    lists_all: bool,
    journal_from: str | None,
    cluster: ClusterOptions,
    state_dir: Path,
    output_format: str,
) -> None:
    """Show the progress of run RUN_ID, or how it ended.

    Without RUN_ID: of the run that a process executes on the cluster in force, or else of its latest one (`last`).
    """
    if lists_all and run_id is not None:
        raise click.UsageError("specify either RUN_ID or --all")
    if journal_from is None:
        _show(run_id, lists_all, cluster, state_dir, output_format)
        return
    from kreassign.cli.options.connections import seen_from_afar

    with cluster.connect() as client, seen_from_afar(client, journal_from, run_id, is_all=lists_all) as elsewhere:
        click.echo(f"as {journal_from} has it; `kreassign doctor` says which host executes a run now", err=True)
        _show(run_id, lists_all, cluster, elsewhere, output_format)


def _show(run_id: str | None, lists_all: bool, cluster: ClusterOptions, state_dir: Path, output_format: str) -> None:
    journals = all_journals(state_dir)
    if lists_all or (run_id is None and not journals):
        _list_runs(journals, state_dir, output_format)
        return
    shown = shown_journals(state_dir, run_id, cluster)
    if len(shown) > 1:
        _list_runs(shown, state_dir, output_format)
        return
    _show_run(shown[0], output_format)
    if run_id is None and output_format == "text" and len(journals) > 1:
        listing = next_command("status", "--all", takes=STATE)
        console().print(f"and {counted(len(journals) - 1, 'other run')}: {listing}", soft_wrap=True)


def _show_run(path: Path, output_format: str) -> None:
    found = run_journals.status_and_progress(path)
    if output_format == "json":
        print_json(to_document(found))
        return
    terminal = console()
    print_state(terminal, found)
    for sentence in found.about:
        terminal.print(f"  {sentence}", soft_wrap=True)
    if found.ended_ms is None:
        terminal.print(f"  {pace_text(found.pace)}")
        for sentence in found.outlook:
            terminal.print(f"  {sentence}", soft_wrap=True)
        terminal.print(f"  {overall_text(found)}", soft_wrap=True)
    print_ways(terminal, found)


def _list_runs(journals: Sequence[Path], state_dir: Path, output_format: str) -> None:
    read = [run_journals.status_or_problem(path) for path in journals]
    runs = [found for found in read if isinstance(found, RunHistory)]
    unreadable = [found for found in read if not isinstance(found, RunHistory)]
    if output_format == "json":
        problems = [{"run_id": one.run_id, "journal": str(one.path), "problem": str(one)} for one in unreadable]
        print_json({"runs": [to_document(found) for found in runs], "unreadable": problems})
        return
    if not read:
        console().print(f"no runs in {state_dir}", soft_wrap=True)
        print_next(next_command("plan", "--out", "plan.json", takes=CLUSTER))
        return
    rows = [
        (found.run_id, found.cluster_id, state_text(found), format_time(found.started_ms),
         str(len(found.moves)), format_bytes(found.bytes_copied))
        for found in runs
    ]  # fmt: skip
    if rows:
        # Other commands take the id of a run: it is never cut or wrapped.
        columns = [Column("run", no_wrap=True), *names("cluster", "state", "started", "moves", "copied")]
        console().print(text_table(columns, rows))
    for one in unreadable:
        console().print(f"run {one.run_id}: {one}. {one.remedy}", soft_wrap=True)


@examples(
    "kreassign watch",
    "kreassign watch 20270131T220000Z-1a2b3c4d",
)
@click.command()
@run_id_argument
@of_run_options
@state_dir_option
@format_option
def watch(run_id: str | None, cluster: ClusterOptions, state_dir: Path, output_format: str) -> None:
    """Follow run RUN_ID until it ends, pauses, or its process is gone. Ctrl-C stops watching, not the run.

    Without RUN_ID: the run that a process executes on the cluster in force, or else its latest one (`last`).
    As JSON it is one document per line whenever something changed; the last one is that of `kreassign status`.
    """
    if (form := form_of_documents()) is not None:
        raise click.UsageError(f"watch prints text or JSON lines; {form} is not supported")
    path = shown_journal(state_dir, run_id, cluster)
    try:
        with nullcontext(JsonView(console())) if output_format == "json" else view_for(console()) as view:
            for found in run_journals.watch(path):
                view.show(found)
    except KeyboardInterrupt:
        return
    if output_format == "json":
        print_verbatim(json.dumps(to_document(found)))
    else:
        print_summary(console(), found)


@examples(
    "kreassign pause",
    "kreassign pause 20270131T220000Z-1a2b3c4d --drain",
)
@click.command()
@run_id_argument
@click.option("--drain", "drains", is_flag=True, help="Return when no move is in flight any more.")
@of_run_options
@state_dir_option
@format_option
def pause(run_id: str | None, drains: bool, cluster: ClusterOptions, state_dir: Path, output_format: str) -> None:
    """Pause run RUN_ID, or that of the cluster in force: start no new moves.

    Moves in flight continue, watched and throttled; `kreassign resume` starts moves again. To end the process of the
    run instead, send it SIGINT or SIGTERM.
    """
    path = meant_journal(state_dir, run_id, cluster)
    request = steering.pause(path)
    holds = steering.in_force(path, request, "starts no new moves", steering.LOOKS_AGAIN)
    found = run_journals.status_and_progress(path)
    sentence = f"{holds}; nothing is in flight"
    if count := found.in_flight_count:
        lefts = [one.estimate.left_bytes for one in found.moves if one.status in IN_FLIGHT and one.estimate is not None]
        known = [left for left in lefts if left is not None]
        left = format_bytes(sum(known)) if len(known) == len(lefts) else "an unknown amount"
        sentence = f"{holds}; {count} in flight continue, {left} left of them"
    if found.silence is not None:
        sentence = f"{holds}; {count} were in flight"
    is_waiting = bool(drains and count)
    ways = (("resume", path.stem), *((("throttle", path.stem, "RATE"), ("cancel", path.stem)) if count else ()))
    print_accepted(path, request, sentence, output_format, then=() if is_waiting else ways)
    if is_waiting:
        _drain(path, output_format)


def _drain(path: Path, output_format: str) -> None:
    """Follow the run until no move is in flight. Raises ExecutionError if its process ends before."""
    is_quiet = output_format == "json"
    with view_for(console(stderr=is_quiet)) as view:
        for run in run_journals.watch(path):
            view.show(run)
            if run.state in AT_REST or not run.in_flight_count:
                break
    if count := run.in_flight_count:
        raise ExecutionError(
            f"no process executes run {path.stem} any more: {counted(count, 'move')} had not ended, and brokers go on "
            f"with what is in flight. Go on with `kreassign resume {path.stem}`, or look with `kreassign doctor`"
        )
    if not is_quiet:
        click.echo(f"run {path.stem}: nothing is in flight")
        print_next(next_command("resume", path.stem, takes=STATE))


@examples(
    "kreassign throttle 20MB/s",
    "kreassign throttle 20270131T220000Z-1a2b3c4d 5MB/s --broker 3",
    "kreassign throttle 20270131T220000Z-1a2b3c4d none",
    "kreassign throttle --remove-left --bootstrap-server localhost:9092",
)
@click.command()
@run_id_argument
@click.argument("limit", metavar="RATE", type=rate_or_auto, required=False)
@click.option(
    "--broker",
    "brokers",
    type=BROKER_ID,
    multiple=True,
    metavar="ID",
    help="Change the limit of this broker only; may be repeated.  [default: all brokers]",
)
@click.option(
    "--remove-left",
    "removes_left",
    is_flag=True,
    help="Remove throttles that no run and no move needs; no run is changed. Asks, or needs --yes.",
)
@capacity_options
@yes_option
@click.option("--dry-run", "is_dry", is_flag=True, help="With --remove-left: show what was left; change nothing.")
@of_run_options
@state_dir_option
@format_option
@click.pass_context
def throttle(
    context: click.Context,
    /,
    run_id: str | None,
    limit: int | str | None,
    brokers: tuple[int, ...],
    removes_left: bool,
    capacity: CapacityOptions,
    is_agreed: bool,
    is_dry: bool,
    cluster: ClusterOptions,
    state_dir: Path,
    output_format: str,
) -> None:
    """Limit what each broker sends and receives for the moves of run RUN_ID to RATE, or remove the limit (`none`).

    Without RUN_ID: of the run that a process executes on the cluster in force, or else of its latest one (`last`).
    With `auto`, the limit adapts to the other traffic of each broker. The values from before the run stay in its
    journal and are restored at its end.
    With --remove-left: remove from the cluster what `kreassign doctor` finds left behind, and print what sets it again.
    """
    if removes_left:
        from kreassign.cli.left_throttles import remove_left

        if run_id is not None or limit is not None or brokers or capacity.auto(is_wanted=False) is not None:
            raise click.UsageError("--remove-left changes no run; leave out RUN_ID, RATE and --broker")
        remove_left(cluster, state_dir, output_format, is_agreed=is_agreed, is_dry=is_dry)
        return
    # KREASSIGN_YES in the environment is for all commands.
    if is_dry or context.get_parameter_source("is_agreed") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--yes and --dry-run go with --remove-left")
    if context.get_parameter_source("limit") is ParameterSource.DEFAULT:
        run_id, limit = None, _only_argument(context, run_id)
    auto = capacity.auto(is_wanted=limit == AUTO)
    if auto is not None and brokers:
        raise click.UsageError("`auto` applies to all brokers; leave out --broker, or specify a rate")
    path = meant_journal(state_dir, run_id, cluster)
    fixed = limit if isinstance(limit, int) else None
    accepted = steering.set_throttle(path, fixed, brokers, auto)
    throttled = _throttled(ThrottleRates(fixed, (), auto), brokers)
    sentence = steering.in_force(path, accepted, throttled, "as soon as its settings are written")
    for starved in steering.starved_moves(path)[:SHOWN_STARVED]:
        warn(starved)
    print_accepted(path, accepted, sentence, output_format)


SHOWN_STARVED = 5


def _only_argument(context: click.Context, word: str | None) -> int | str | None:
    """The rate, if it is the only argument."""
    limit = next(one for one in context.command.params if one.name == "limit")
    if word is None:
        raise click.MissingParameter(ctx=context, param=limit)
    with augment_usage_errors(context, param=limit):
        found: int | str | None = limit.type_cast_value(context, word)
    return found


def _throttled(rates: ThrottleRates, brokers: tuple[int, ...]) -> str:
    where = f" at {named_brokers(brokers)}" if brokers else ""
    if rates.bytes_per_s is not None and brokers:
        return f"throttled to {format_rate(rates.bytes_per_s)}{where}"
    return f"throttled to {rates_text(rates)}" if rates.is_limited else f"continues without a throttle{where}"


@examples(
    "kreassign pace --max-moves-per-broker 5",
    "kreassign pace 20270131T220000Z-1a2b3c4d --deadline 06:00 --time-zone Europe/Berlin",
)
@click.command()
@run_id_argument
@pace_change_options
@of_run_options
@state_dir_option
@format_option
def pace(run_id: str | None, pace: PaceOptions, cluster: ClusterOptions, state_dir: Path, output_format: str) -> None:
    """Change order, hours and limits of run RUN_ID, or of that of the cluster in force.

    What is not specified stays as it is. New limits apply when the next moves start; moves in flight beyond them
    continue.
    """
    path = meant_journal(state_dir, run_id, cluster)
    change = pace.change(SYSTEM_CLOCK.now_ms(), run_journals.status(path).pace)
    if change == PaceChange():
        raise click.UsageError("specify at least one change, for example --max-moves-per-broker 5")
    accepted = steering.change_pace(path, change)
    paced = f"continues with {pace_text(run_journals.status(path).pace)}"
    sentence = steering.in_force(path, accepted, paced, steering.LOOKS_AGAIN)
    print_accepted(path, accepted, sentence, output_format)


@examples(
    "kreassign forget 20270131T220000Z-1a2b3c4d --broker 4",
    "kreassign forget 20270131T220000Z-1a2b3c4d",
)
@click.command()
@click.argument("run_id")
@click.option(
    "--broker",
    "brokers",
    type=BROKER_ID,
    multiple=True,
    metavar="ID",
    help="Lost broker; may be repeated.  [default: none]",
)
@state_dir_option
@format_option
def forget(run_id: str, brokers: tuple[int, ...], state_dir: Path, output_format: str) -> None:
    """Give up what interrupted run RUN_ID can never settle, so that new runs can begin; change nothing on the cluster.

    With --broker: restore nothing any more on that broker, which is lost for good. What stays set there is printed.
    Without: set the journal of the run aside, which must be unreadable. The file is kept under another name; moves and
    throttles of that run stay as they are, and `kreassign doctor` names them.
    """
    if brokers:
        _forget_brokers(named_journal(state_dir, run_id), brokers, output_format)
    else:
        _forget_journal(named_journal(state_dir, run_id), output_format)


def _forget_brokers(path: Path, brokers: tuple[int, ...], output_format: str) -> None:
    found = forget_brokers(path, brokers)
    if output_format == "json":
        print_json({"run_id": path.stem, "brokers": list(brokers), **asdict(found)})
        return
    for sentence in found.left_behind:
        click.echo(f"given up: {sentence}")
    click.echo("should such a broker come back, `kreassign throttle --remove-left` removes these")
    if found.residue:
        click.echo(
            f"{counted(len(found.residue), 'setting')} {agreeing(len(found.residue), 'are')} still to be restored"
        )
        print_next(next_command("resume", path.stem, takes=(*CLUSTER, *STATE)))


def _forget_journal(path: Path, output_format: str) -> None:
    found, kept = forget_journal(path)
    if output_format == "json":
        print_json({"run_id": found.run_id, "problem": str(found), "kept_as": str(kept)})
        return
    click.echo(f"run {found.run_id} no longer stands in the way of others; its journal is kept as {kept}")
    click.echo("what it left on the cluster stays: `kreassign doctor` names reassignments and throttles")
    print_next(next_command("doctor", takes=CLUSTER))


@examples(
    "kreassign approve plan.json",
    "kreassign approve plan.json --note 'change 4711'",
    "kreassign approve plan.json --propose --key ~/.ssh/id_ed25519",
    "kreassign approve plan.json --key ~/.ssh/id_ed25519",
    "kreassign approve plan.json --revoke",
)
@click.command()
@plan_argument
@click.option("--note", default="", metavar="TEXT", help="Note to keep with an unsigned approval.  [default: none]")
@click.option(
    "--propose", "proposes", is_flag=True, help="Ask others for signed approvals of the plan; needs --key too."
)
@key_option
@click.option("--revoke", "is_revoked", is_flag=True, help="Take approvals back, and the request for signed ones.")
def approve(plan: Path, note: str, proposes: bool, key: Path | None, is_revoked: bool) -> None:
    """Approve PLAN as it is now: `kreassign run --require-approval` executes it, until it is changed.

    Without --key the approval is a file beside the plan, with the name of the user. With --key it is signed by
    `ssh-keygen`: one person proposes the plan (--propose), others sign that request, and `kreassign run
    --require-approval --allowed-signers FILE` counts them.
    """
    if proposes and key is None:
        raise click.UsageError("a request is signed by who proposes; specify --key too")
    if is_revoked:
        _revoke(plan)
        return
    if key is not None:
        _sign(plan, key, proposes=proposes)
        return
    seen = plan_id(read_plan_file(plan).plan)
    found = approve_plan(plan, seen, this_operator().user, note, SYSTEM_CLOCK.now_ms())
    click.echo(f"{plan.name}: plan {found.plan_id} approved by {found.approved_by}")
    print_next(next_command("run", plan, "--require-approval", takes=CLUSTER))


def _revoke(plan: Path) -> None:
    is_withdrawn = approvals.withdraw(request_path(plan))
    if not is_withdrawn or approval_path(plan).exists():
        revoke(plan)
    click.echo(f"{plan.name}: not approved any more")


def _sign(plan: Path, key: Path, *, proposes: bool) -> None:
    path = request_path(plan)
    if proposes:
        request = approvals.propose(plan, key, this_operator(), SYSTEM_CLOCK.now_ms())
        click.echo(f"{path}: proposed until {format_time(request.expires_ms)}; others approve it")
        print_next(next_command("approve", plan, "--key", "FILE"))
        return
    signature = approvals.approve_request(path, key, this_operator().user)
    click.echo(f"{plan.name}: approved, in {signature}")
    print_next(next_command("run", plan, "--require-approval", "--allowed-signers", "FILE", takes=CLUSTER))
