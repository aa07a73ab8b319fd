"""`kreassign rehearse`: carries a plan out on the twin of a cluster, and says what would happen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kreassign.cli.carrying import exit_code
from kreassign.cli.options.pace import pace_options, read_pace, stepwise_option
from kreassign.cli.options.throttle import rate_options, read_rates
from kreassign.cli.output import format_option, parse_quantity, print_json
from kreassign.cli.plan_files import read_plan_file
from kreassign.cli.rehearsing import Rehearsal
from kreassign.cli.rehearsing import rehearse as carry_out
from kreassign.cli.runs import guards_option
from kreassign.cli.snapshot_files import read_snapshot
from kreassign.executor.guards.settings import settings
from kreassign.executor.preflight.prepare import RunSettings
from kreassign.report.text import format_bytes, format_duration
from kreassign.twin.setup.from_snapshot import Speeds, blueprint_of


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="The cluster, as `kreassign snapshot --out` wrote it; with --rates-over it also knows what is written.",
)
@rate_options("no limit")
@guards_option
@pace_options
@stepwise_option
@click.option(
    "--speeds",
    type=(parse_quantity, parse_quantity),
    default=("500MB/s", "1.25GB/s"),
    show_default=True,
    metavar="DISK NETWORK",
    help="What each log directory reads and writes, and each broker sends and receives; a snapshot cannot tell.",
)
@format_option
@click.pass_context
def rehearse(
    context: click.Context, /, plan: Path, snapshot: Path, speeds: tuple[int, int], output_format: str, **wish: Any
) -> None:  # fmt: skip
    """Carry PLAN out on the twin of a cluster, in virtual time: how long it takes, and what guards would say.

    It is the run that `kreassign run` would make, with the same options; only the cluster is not real.
    """
    seen = read_snapshot(snapshot)
    pace, rates = read_pace(wish, seen.taken_ms), read_rates(wish)
    guards = settings(dict(wish["guards"]))
    chosen = RunSettings("rehearsal", seen.taken_ms, rates.bytes_per_s, guards, pace, rates.own, rates.auto)
    shown = carry_out(read_plan_file(plan), blueprint_of(seen, Speeds(*speeds)), chosen)
    if output_format == "json":
        print_json(asdict(shown))
    else:
        click.echo("\n".join(lines(shown)))
    context.exit(exit_code(shown.history))


def lines(shown: Rehearsal) -> list[str]:
    """A rehearsal for people."""
    history = shown.history
    made = sum(move.status == "complete" for move in history.moves)
    took = "left: no end is in sight" if shown.seconds is None else f"takes {format_duration(shown.seconds)}"
    peaks = [
        f"  broker {broker}: at most {count} moves and {format_bytes(shown.peak_bytes[broker])} still to come in"
        for broker, count in shown.peak_moves.items()
    ]
    problems = [f"  {move.topic}-{move.partition}: {move.problem}" for move in history.moves if move.problem]
    return [
        f"{history.state}; {made} of {len(history.moves)} moves, {format_bytes(history.bytes_copied)} copied; {took}",
        *peaks,
        *problems,
        *(f"  {problem}" for problem in history.problems),
    ]
