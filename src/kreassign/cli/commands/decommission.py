"""`kreassign decommission`: remove brokers from the cluster for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, STATE, again, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, measure_for_option, run_cluster_options
from kreassign.cli.options.pace import PaceOptions, pace_options, throttle_options
from kreassign.cli.options.plan import goals_file_option, parse_brokers, read_policy
from kreassign.cli.options.run import (
    clients_options,
    found_options,
    give_up_option,
    guards_option,
    producer_outage_option,
    replan_option,
    run_context_options,
)
from kreassign.cli.options.values import REGEX, yes_option
from kreassign.cli.output import console, examples, format_option, print_json
from kreassign.cli.run_text import exit_code, print_state
from kreassign.cli.terminal import ask, on_terminal, preview_lines, refuse_unless_asked
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import ExecutionError
from kreassign.executor.brokers import Blocked, Finished
from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.decommission import Step, Unregister
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.throttle_ledger import FoundThrottles
from kreassign.model.throttle import ThrottleRates
from kreassign.model.typed_json import to_document
from kreassign.operations import decommission as operation
from kreassign.operations.connect import tell_nobody
from kreassign.operations.decommission import WITHOUT_PLAN, DecommissionPreview, DecommissionRequest, DecommissionResult
from kreassign.operations.decommission_undo import CancelledDecommission, cancel_decommission
from kreassign.operations.rollback import demand_sentence
from kreassign.operations.run import RunContext


@examples(
    "kreassign decommission 3 --bootstrap-server localhost:9092 --throttle 50MB/s",
    "kreassign decommission 3,4 --replace-with 13,14 --bootstrap-server localhost:9092",
    "kreassign decommission 3 --bootstrap-server localhost:9092 --unregister",
    "kreassign decommission 3 --bootstrap-server localhost:9092 --cancel",
)
@click.command("decommission")
@click.argument("brokers", callback=parse_brokers, metavar="IDS")
@run_cluster_options
@click.option(
    "--replace-with",
    "successors",
    callback=parse_brokers,
    metavar="IDS",
    help="Give all replicas of each broker to one of these, in the same place of every list.  "
    "[default: to where they serve the goals best]",
)
@click.option(
    "--may-stay",
    "may_stay",
    type=REGEX,
    multiple=True,
    metavar="REGEX",
    help="Topics whose replicas may stay on the brokers; may be repeated.  [default: none]",
)
@click.option("--unregister", is_flag=True, help="Unregister the brokers when they are empty and stopped.")
@click.option("--cancel", "is_cancelled", is_flag=True, help="Call it off: cancel the run, uncordon the brokers.")
@yes_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Show the next step; change nothing.")
@goals_file_option
@throttle_options("no limit")
@guards_option
@clients_options
@found_options
@replan_option
@give_up_option
@producer_outage_option
@pace_options
@measure_for_option("With a throttle: how long to measure write rates before each run; 0 to skip.")
@run_context_options
@format_option
def command(
    brokers: tuple[int, ...],
    cluster: ClusterOptions,
    successors: tuple[int, ...],
    may_stay: tuple[str, ...],
    unregister: bool,
    is_cancelled: bool,
    is_agreed: bool,
    is_dry: bool,
    goals_file: Path | None,
    throttle: ThrottleRates,
    guards: dict[GuardName, Reaction],
    clients: ClientGuard | None,
    found: FoundThrottles,
    replan: bool,
    give_up_after: float | None,
    allow_producer_outage: bool,
    pace: PaceOptions,
    measure_for: float,
    run_context: RunContext,
    output_format: str,
) -> None:
    """Take brokers IDS out of the cluster: cordon, drain, prove that they are empty.

    Where it stands is read from the cluster: the same command, given again by anybody from anywhere, goes on where an
    earlier one was left. With --unregister, stop the brokers once they are empty, and give it once more.
    What will be done is shown first, and it begins when you agree; without a terminal, --yes is needed.
    """
    if is_cancelled and is_dry:
        raise click.UsageError("specify either --cancel or --dry-run")
    refuse_unless_asked("to begin the decommission", is_agreed=is_agreed or is_dry or is_cancelled)
    how = replace(
        WITHOUT_PLAN,
        throttle=throttle,
        guards=guards,
        pace=pace.pace(SYSTEM_CLOCK.now_ms()),
        measure_for_s=measure_for,
        found=found,
        replan=replan,
        allow_producer_outage=allow_producer_outage,
        give_up_after_s=give_up_after,
        clients=clients,
    )
    request = DecommissionRequest(brokers, successors, unregister, how, read_policy(goals_file), may_stay)
    is_quiet, code = output_format == "json", 0
    following: str | None = next_command("doctor", takes=(*CLUSTER, *STATE))
    with cluster.connect() as client, on_terminal(cluster, run_context, is_quiet=is_quiet) as watched:
        if is_cancelled:
            _print_cancelled(cancel_decommission(client, brokers, watched), is_quiet=is_quiet)
        elif is_dry:
            seen = operation.preview_decommission(client, request, watched)
            print_preview(seen, is_quiet=is_quiet)
            following, code = _after_look(seen.next_step)
        else:
            quiet = replace(watched, warn=tell_nobody)
            agreed = is_agreed or is_begun(operation.preview_decommission(client, request, quiet))
            tell = tell_nobody if is_quiet else click.echo
            done = operation.decommission(client, request, watched, tell, is_agreed=agreed)
            _print_result(done, is_quiet=is_quiet)
            code = _exit_code(done)
            following = following if done.is_finished else again()
    if not is_quiet and following is not None:
        print_next(following)
    raise click.exceptions.Exit(code)


def _after_look(step: Step) -> tuple[str | None, int]:
    """The command to suggest after a dry run, and its exit code."""
    if isinstance(step, Finished):
        return next_command("doctor", takes=(*CLUSTER, *STATE)), 0
    # What unblocks it is in the reason; the command alone would be blocked again.
    return (None, ExecutionError.exit_code) if isinstance(step, Blocked) else (again(but="--dry-run"), 0)


def is_begun(seen: DecommissionPreview) -> bool:
    """Ask whether to begin; False without a question if nothing can or need be done."""
    if isinstance(seen.next_step, Blocked | Finished) and not seen.resumed:
        return False
    ask(_lines(seen))
    return True


def _lines(seen: DecommissionPreview) -> Iterator[str]:
    words: dict[type, str] = {Blocked: "blocked", Finished: "finished"}
    yield f"{words.get(type(seen.next_step), 'first')}: {seen.next_step}"
    for sentence in seen.open_ways:
        yield f"  {sentence}"
    if seen.resumed:
        yield f"  run {', '.join(seen.resumed)} is resumed first"
    if seen.rolled_back:
        yield f"  run {', '.join(seen.rolled_back)} is rolled back then: a guard demanded that"
    for run_id in seen.demanded_rollbacks:
        yield f"  {demand_sentence(run_id)}"
    if seen.drain is not None:
        yield "to drain:"
        for line in preview_lines(seen.drain):
            yield f"  {line}"
    if seen.unregistered:
        yield f"after the drain: {Unregister(seen.unregistered)}"


def _print_result(done: DecommissionResult, *, is_quiet: bool) -> None:
    if is_quiet:
        print_json({
            "is_finished": done.is_finished,
            "steps": list(done.steps),
            "next": str(done.next_step),
            "runs": [to_document(run) for run in done.runs],
        })  # fmt: skip
        return
    for run in done.runs:
        print_state(console(), run)
    click.echo(str(done.next_step))


def print_preview(seen: DecommissionPreview, *, is_quiet: bool) -> None:
    """Print what would be done, as JSON if it `is_quiet`."""
    if is_quiet:
        drain = None if seen.drain is None else asdict(seen.drain)
        print_json({
            "next": str(seen.next_step),
            "open_ways": list(seen.open_ways),
            "resumed": list(seen.resumed),
            "rolled_back": list(seen.rolled_back),
            "demanded_rollbacks": list(seen.demanded_rollbacks),
            "drain": drain,
            "unregistered": list(seen.unregistered),
        })  # fmt: skip
        return
    for line in _lines(seen):
        click.echo(line)


def _print_cancelled(done: CancelledDecommission, *, is_quiet: bool) -> None:
    if is_quiet:
        print_json({"steps": list(done.steps), "runs": list(done.run_ids)})
        return
    for sentence in done.steps:
        click.echo(sentence)
    for run_id in done.run_ids:
        rollback = next_command("rollback", run_id, takes=(*CLUSTER, *STATE))
        click.echo(f"what run {run_id} moved stays where it is; to move it back: {rollback}")


def _exit_code(done: DecommissionResult) -> int:
    """0 if finished; else the code of the first run that did not end well, or that of ExecutionError."""
    codes = (code for run in done.runs if (code := exit_code(run)))
    return 0 if done.is_finished else next(codes, ExecutionError.exit_code)
