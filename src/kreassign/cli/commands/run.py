"""`kreassign run`: carries a plan out, or goes on with a run that was left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.carrying import Manner, begin, new_run_id, refuse_unless_free, take_up
from kreassign.cli.commands.rollback import end_of_run
from kreassign.cli.context import cluster_options, connect, controller_option
from kreassign.cli.forecasting import tell_outlook
from kreassign.cli.options.pace import pace_options, read_pace, stepwise_option
from kreassign.cli.options.throttle import rate_options, read_rates
from kreassign.cli.output import format_option
from kreassign.cli.plan_files import read_plan, read_plan_file
from kreassign.cli.runs import find_journal, guards_option, poll_option, state_dir_option
from kreassign.clock import Clock, SystemClock
from kreassign.errors import IllegalPlan
from kreassign.executor.events import RunStarted
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.guards.settings import settings
from kreassign.executor.history.run_history import RunHistory
from kreassign.executor.preflight.prepare import RunSettings, prepare
from kreassign.executor.preflight.starvation import measure_writes, starved
from kreassign.executor.scheduling import NO_LIMITS, Pace
from kreassign.executor.throttle.rates import NO_THROTTLE, Rates


@dataclass(frozen=True, slots=True)
class Wish:
    """What to carry out: a plan, or the run of this id."""

    plan: Path | None
    expect_current: Path | None
    rates: Rates
    resume: str | None
    guards: tuple[tuple[GuardName, Reaction], ...] = ()
    rates_over: float = 0.0
    pace: Pace = NO_LIMITS

    def __post_init__(self) -> None:
        if (self.plan is None) == (self.resume is None):
            raise click.UsageError("give either a plan to carry out or --resume RUN_ID")
        if self.resume is not None and (
            self.rates != NO_THROTTLE or self.expect_current or self.guards or self.pace != NO_LIMITS
        ):
            raise click.UsageError("a resumed run keeps plan, throttle, guards and pace; leave out the other options")


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@cluster_options
@controller_option
@rate_options("no limit")
@click.option(
    "--expect-current",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run only if the partitions still have these replicas (`kreassign plan --current-out`).",
)
@guards_option
@pace_options
@stepwise_option
@click.option(
    "--rates-over",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With --throttle: how long to measure first what is written to the partitions; 0 does not.",
)
@click.option("--resume", metavar="RUN_ID", help="Go on with a run that was paused or killed.")
@poll_option
@state_dir_option
@format_option
@click.pass_context
def run(
    context: click.Context, /, bootstrap_server: str, command_config: Path | None, poll_s: float, state_dir: Path,
    output_format: str, **wishes: Any,
) -> None:  # fmt: skip
    """Carry PLAN out: throttle, move, elect preferred leaders, restore the throttle, verify.

    PLAN is Kafka's reassignment JSON. It is checked against the cluster first; nothing is sent if anything is wrong.
    Ctrl-C pauses; a second one leaves at once. Either way `kreassign resume` goes on.
    """
    manner = Manner(state_dir, output_format, poll_s, wishes.pop("bootstrap_controller"), command_config)
    wish = Wish(pace=read_pace(wishes, SystemClock().now_ms()), rates=read_rates(wishes), **wishes)
    with connect(bootstrap_server, command_config) as client:
        code = end_of_run(client, carry_out(client, wish, manner), manner)
    context.exit(code)


def carry_out(client: AdminClient, wish: Wish, manner: Manner) -> RunHistory:
    """Begin or resume the run and see it through."""
    if wish.resume is not None:
        return take_up(client, find_journal(manner.state_dir, wish.resume), manner)
    assert wish.plan is not None
    refuse_unless_free(client, manner)
    found = read_plan_file(wish.plan)
    expected = read_plan(wish.expect_current).replicas if wish.expect_current else found.expected
    now_ms, rates = SystemClock().now_ms(), wish.rates
    chosen = RunSettings(
        new_run_id(now_ms), now_ms, rates.bytes_per_s, settings(dict(wish.guards)), wish.pace, rates.own, rates.auto
    )
    started = prepare(client, found.plan, chosen, expected=expected)
    if started.rates.is_limited and wish.rates_over > 0:
        started = measured(client, started, wish.rates_over, SystemClock())
    tell_outlook(started)
    return begin(client, started, manner)


def measured(client: AdminClient, started: RunStarted, seconds: float, clock: Clock) -> RunStarted:
    """The run with what is written to its partitions.

    Raises IllegalPlan if a copy would never end at this throttle; warns if it may not.
    """
    writes = measure_writes(client, clock, started.moves, seconds)
    found = starved(started.moves, writes, started.rates)
    hopeless = tuple(str(starvation) for starvation in found if starvation.is_certain)
    if hopeless:
        raise IllegalPlan(hopeless)
    for starvation in found:
        click.echo(f"warning: {starvation}", err=True)
    moves = tuple(replace(move, write_bytes_per_s=writes.get(move.topic_partition, 0.0)) for move in started.moves)
    return replace(started, moves=moves)
