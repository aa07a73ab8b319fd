"""`kreassign run`: executes a plan."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.commands.rollback import report_end
from kreassign.cli.detach import detach
from kreassign.cli.options.cluster import ClusterOptions, run_cluster_options
from kreassign.cli.options.pace import PaceOptions, pace_options
from kreassign.cli.options.run import found_options, guards_option, replan_option, run_context_options
from kreassign.cli.options.throttle import throttle_options
from kreassign.cli.options.values import LONGEST_S, FiniteRange
from kreassign.cli.output import examples, format_option
from kreassign.cli.signals import on_terminal
from kreassign.clock import SystemClock
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.throttle.originals import FoundThrottles
from kreassign.executor.throttle.rates import NO_THROTTLE, ThrottleRates
from kreassign.operations import run as operation
from kreassign.operations.journals import find_journal
from kreassign.operations.plan_files import read_plan, read_plan_file
from kreassign.operations.run import RunContext, RunRequest


@click.command(
    epilog=examples(
        "kreassign run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s",
        "kreassign run plan.json --bootstrap-server localhost:9092 --window 22:00-06:00 --time-zone Europe/Berlin",
        "kreassign run plan.json --bootstrap-server localhost:9092 --throttle auto --broker-capacity 120MB/s",
        "kreassign run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s --detach",
    )
)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@run_cluster_options
@throttle_options("no limit")
@click.option(
    "--expect-current",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run only if the partitions still have the replicas in FILE (from `kreassign plan --current-out`).  "
    "[default: whatever they have]",
)
@guards_option
@found_options
@replan_option
@pace_options
@click.option(
    "--measure-for",
    type=FiniteRange(min=0, max=LONGEST_S),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With a throttle: how long to measure write rates first; 0 to skip.",
)
@click.option("--resume", "resumed", metavar="RUN_ID", help="Resume this run, as `kreassign resume` does.  "
              "[default: begin one]")  # fmt: skip
@click.option("--detach", "is_detached", is_flag=True, help="Continue in the background once the run has begun.")
@run_context_options
@format_option
@click.pass_context
def run(
    context: click.Context,
    /,
    plan: Path | None,
    cluster: ClusterOptions,
    throttle: ThrottleRates,
    expect_current: Path | None,
    guards: dict[GuardName, Reaction],
    found: FoundThrottles,
    replan: bool,
    pace: PaceOptions,
    measure_for: float,
    resumed: str | None,
    is_detached: bool,
    run_context: RunContext,
    output_format: str,
) -> None:
    """Execute PLAN: throttle, move, elect preferred leaders, restore the throttle, verify.

    PLAN is Kafka's reassignment JSON. It is checked against the cluster first; nothing is sent if anything is wrong.
    Ctrl-C pauses, and so does closing the terminal, unless with --detach or `nohup`; a second Ctrl-C quits at once.
    Either way `kreassign resume` continues.
    """
    if (plan is None) == (resumed is None):
        raise click.UsageError("specify either a plan to execute or --resume RUN_ID")
    given = (throttle != NO_THROTTLE, expect_current, guards, found is not FoundThrottles.REFUSE, pace != PaceOptions())
    if resumed is not None and any(given):
        raise click.UsageError("a resumed run keeps plan, throttle, guards and pace; leave out the other options")
    request = None
    if plan is not None:
        expected = read_plan(expect_current).replicas if expect_current else None
        chosen_pace = pace.pace(SystemClock().now_ms())
        file = read_plan_file(plan)
        request = RunRequest(file, throttle, guards, chosen_pace, expected, measure_for, found, replan)
    is_quiet = output_format == "json"
    started = detach(run_context.state_dir, output_format) if is_detached else lambda _: None
    with (
        cluster.connect() as client,
        on_terminal(cluster, run_context, is_quiet=is_quiet, started=started) as watched,
    ):
        if request is not None:
            ended = operation.run(client, request, watched)
        else:
            ended = operation.resume_run(client, find_journal(watched.state_dir, str(resumed)), watched, replan=replan)
        code = report_end(client, ended, watched, is_quiet=is_quiet)
    context.exit(code)
