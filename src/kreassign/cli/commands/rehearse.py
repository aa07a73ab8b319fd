"""`kreassign rehearse`: execute a plan on a twin of the cluster and report what would happen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.cli.commands.twin import fault_options
from kreassign.cli.next_command import CLUSTER, again, next_command, print_next
from kreassign.cli.options.pace import PaceOptions, pace_options, throttle_options
from kreassign.cli.options.run import factor_change_option, guards_option
from kreassign.cli.options.values import INPUT_FILE, OUTPUT_FILE, parse_speed, plan_argument
from kreassign.cli.output import examples, format_option, print_json
from kreassign.cli.run_text import exit_code
from kreassign.cli.streams import working
from kreassign.executor.guards import GuardName, Reaction
from kreassign.model.text import counted
from kreassign.model.throttle import ThrottleRates
from kreassign.operations import report as operation
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.report import Recording, Rehearsal, rehearsal_page
from kreassign.operations.run import RunRequest
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.operations.twin import PlannedFault, Speeds
from kreassign.operations.whole_file import write_page
from kreassign.report.text import format_bytes, format_duration


@examples(
    "kreassign rehearse plan.json --snapshot cluster.json.gz --throttle 50MB/s",
    "kreassign rehearse plan.json --snapshot cluster.json.gz --max-moves-per-broker 5",
    "kreassign rehearse plan.json --snapshot cluster.json.gz --throttle 50MB/s --report rehearsal.html",
    "kreassign rehearse plan.json --snapshot cluster.json.gz --throttle 50MB/s --fault crash:2@60s+10m",
)
@click.command()
@plan_argument
@click.option(
    "--snapshot",
    type=INPUT_FILE,
    required=True,
    help="Snapshot file of the cluster (from `kreassign snapshot --out`; with --measure-for it has write rates).",
)
@throttle_options("no limit")
@guards_option
@factor_change_option
@pace_options
@fault_options
@click.option(
    "--speeds",
    type=(parse_speed, parse_speed),
    default=("500MB/s", "1.25GB/s"),
    show_default=True,
    metavar="DISK NETWORK",
    help="Speed of each log directory and of each broker's network, in each direction; a snapshot does not have them.",
)
@click.option("--report", type=OUTPUT_FILE, help="Also write an HTML report of the rehearsal.  [default: none]")
@format_option
def rehearse(
    plan: Path,
    snapshot: Path,
    throttle: ThrottleRates,
    guards: dict[GuardName, Reaction],
    pace: PaceOptions,
    faults: tuple[PlannedFault, ...],
    speeds: tuple[int, int],
    report: Path | None,
    allow_factor_change: bool,
    output_format: str,
) -> None:
    """Execute PLAN on the twin of a cluster, in virtual time: how long it takes, and what guards would report.

    It is the run that `kreassign run` would make, with the same options; only the cluster is simulated. Faults, such as
    a broker that dies meanwhile, are counted from the start of the rehearsal.
    """
    seen = read_snapshot(snapshot)
    request = RunRequest(
        read_plan_file(plan), throttle, guards, pace.pace(seen.taken_ms), allow_factor_change=allow_factor_change
    )
    recording = None if report is None else Recording()
    with working("rehearsing in virtual time"):
        shown = operation.rehearse(request, seen, Speeds(*speeds), recording, faults)
    if report is not None and recording is not None:
        write_page(report, rehearsal_page(shown, recording, seen, plan.name, request.plan.facts))
    if output_format == "json":
        print_json(asdict(shown))
    else:
        click.echo("\n".join(lines(shown)))
        if report is not None:
            click.echo(f"report of the rehearsal: {report}")
        if exit_code(shown.history) == 0:
            print_next(next_command("run", plan, takes=(*CLUSTER, "--throttle")))
        else:
            print_next(next_command("plan", "--snapshot", snapshot, "--out", plan), again())
    raise click.exceptions.Exit(exit_code(shown.history))


def lines(shown: Rehearsal) -> list[str]:
    """A rehearsal as text."""
    history = shown.history
    made = sum(move.status == "complete" for move in history.moves)
    took = "left: no end is in sight" if shown.seconds is None else f"takes {format_duration(shown.seconds)}"
    peaks = [
        f"  broker {broker}: peak {counted(count, 'inbound move')}, "
        f"{format_bytes(shown.peak_bytes[broker])} outstanding"
        for broker, count in shown.peak_moves.items()
    ]
    problems = [f"  {move.topic}-{move.partition}: {move.problem}" for move in history.moves if move.problem]
    return [
        *shown.factors,
        *shown.outages,
        f"{history.state}; {made} of {len(history.moves)} moves, {format_bytes(history.bytes_copied)} copied; {took}",
        *peaks,
        *problems,
        *(f"  {problem}" for problem in history.problems),
    ]
