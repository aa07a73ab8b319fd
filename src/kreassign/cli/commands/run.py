"""`kreassign run`: executes a plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.commands.rollback import report_end
from kreassign.cli.confirm import ask, lines, refuse_unless_asked, show, yes_option
from kreassign.cli.detach import detach
from kreassign.cli.next_command import next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, measure_for_option, run_cluster_options
from kreassign.cli.options.monitoring import announce, monitoring_options
from kreassign.cli.options.pace import PaceOptions, pace_options
from kreassign.cli.options.run import found_options, guards_option, replan_option, run_context_options
from kreassign.cli.options.throttle import throttle_options
from kreassign.cli.output import examples, format_option, print_json, warn
from kreassign.cli.signals import on_terminal
from kreassign.cli.typed import typed_words
from kreassign.clock import SystemClock
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.throttle.originals import FoundThrottles
from kreassign.executor.throttle.rates import ThrottleRates
from kreassign.operations import run as operation
from kreassign.operations.approvals import require_approval as check_approval
from kreassign.operations.monitoring import Monitoring, monitored
from kreassign.operations.plan_files import read_plan, read_plan_file
from kreassign.operations.preview import RunPreview, preview_run
from kreassign.operations.run import RunContext, RunRequest


@click.command(
    epilog=examples(
        "kreassign run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s",
        "kreassign run plan.json --bootstrap-server localhost:9092 --dry-run",
        "kreassign run plan.json --bootstrap-server localhost:9092 --window 22:00-06:00 --time-zone Europe/Berlin",
        "kreassign run plan.json --bootstrap-server localhost:9092 --throttle auto --broker-capacity 120MB/s",
        "kreassign run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s --yes --detach",
    )
)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@run_cluster_options
@throttle_options("no limit")
@click.option(
    "--expect-current",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run only if the partitions still have the replicas in FILE (from `kreassign plan --current-out`).  "
    "[default: whatever they have]",
)
@click.option(
    "--require-approval", is_flag=True, help="Run only if the plan, as it is now, was approved (`kreassign approve`)."
)
@guards_option
@found_options
@replan_option
@pace_options
@measure_for_option("With a throttle: how long to measure write rates first; 0 to skip.")
@yes_option
@click.option("--dry-run", "is_dry", is_flag=True, help="Check the plan, show what the run would do, and send nothing.")
@click.option("--detach", "is_detached", is_flag=True, help="Continue in the background once the run has begun.")
@run_context_options
@monitoring_options
@format_option
@click.pass_context
def run(
    context: click.Context,
    /,
    plan: Path,
    cluster: ClusterOptions,
    throttle: ThrottleRates,
    expect_current: Path | None,
    require_approval: bool,
    guards: dict[GuardName, Reaction],
    found: FoundThrottles,
    replan: bool,
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
    expected = read_plan(expect_current).replicas if expect_current else None
    chosen_pace = pace.pace(SystemClock().now_ms())
    file = read_plan_file(plan)
    if require_approval:
        check_approval(plan, file)
    request = RunRequest(file, throttle, guards, chosen_pace, expected, measure_for, found, replan)
    refuse_unless_asked(is_agreed=is_agreed or is_dry)
    is_quiet = output_format == "json"
    seen = None
    if is_dry or not is_agreed:
        seen = _look_first(cluster, request, run_context, is_dry=is_dry, output_format=output_format)
    started = detach(run_context.state_dir, output_format) if is_detached else lambda _: None
    with (
        cluster.connect() as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet, started=started) as shown,
        monitored(shown, monitoring, announce) as watched,
    ):
        ended = _execute(client, request, watched, seen, shows=is_agreed and sys.stderr.isatty())
        code = report_end(client, ended, watched, is_quiet=is_quiet)
    context.exit(code)


def _look_first(
    cluster: ClusterOptions, request: RunRequest, context: RunContext, *, is_dry: bool, output_format: str
) -> RunStarted:
    """Show what the run would do, and ask whether it shall; a dry run ends here. Nothing is sent."""
    with cluster.connect() as client, cluster.connect_controllers() as controllers:
        if request.measure_for_s:
            click.echo(f"checking the plan, and measuring traffic for {request.measure_for_s:g} s", err=True)
        started = operation.prepare_run(client, request, replace(context, controllers=controllers, warn=warn))
        found = preview_run(client, started, request)
    if not is_dry:
        ask(lines(found))
        return started
    if output_format == "json":
        print_json(asdict(found))
    else:
        show(lines(found))
        print_next(*_next_commands(found))
    raise click.exceptions.Exit(0)


def _next_commands(found: RunPreview) -> Iterator[str]:
    """The run itself, with the throttle that is proposed where none was given."""
    proposed = () if found.proposal is None else ("--throttle", found.proposal.text)
    yield next_command(*(word for word in typed_words() if word != "--dry-run"), *proposed)


def _execute(
    client: AdminClient, request: RunRequest, context: RunContext, seen: RunStarted | None, *, shows: bool
) -> RunHistory:
    """Check and begin. Of what was `seen` before somebody agreed only the write rates still hold: answers take time."""
    if seen is None:
        started = operation.prepare_run(client, request, context)
    else:
        known = {move.topic_partition: move.write_bytes_per_s for move in seen.moves}
        again = operation.prepare_run(client, replace(request, measure_for_s=0.0), replace(context, warn=_silent))
        moves = tuple(replace(move, write_bytes_per_s=known.get(move.topic_partition, 0.0)) for move in again.moves)
        started = replace(again, moves=moves)
    if shows:
        show(lines(preview_run(client, started, replace(request, measure_for_s=0.0))))
    return operation.start_run(client, started, context, request.plan.facts)


def _silent(_: str) -> None:
    """The same warnings were given before somebody agreed."""
