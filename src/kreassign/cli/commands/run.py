"""`kreassign run`: carries a plan out, or goes on with a run that was left."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.live import View, view_for
from kreassign.cli.output import console, format_option, parse_quantity, print_json
from kreassign.cli.plan_files import read_plan
from kreassign.cli.run_text import document, print_summary
from kreassign.cli.runs import find_journal, state_dir_option
from kreassign.clock import SystemClock
from kreassign.errors import ExecutionError
from kreassign.executor.events import Event
from kreassign.executor.history import RunHistory, history
from kreassign.executor.journal import Journal
from kreassign.executor.machine import Execution
from kreassign.executor.preparing import prepare
from kreassign.executor.progress import ProgressMeter
from kreassign.executor.runner import POLL_S, Runner

LEFT_EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Wish:
    """The options of the command: a plan to begin with, or the id of a run to go on with."""

    plan: Path | None
    expect_current: Path | None
    throttle_bytes_per_s: int | None
    resume: str | None
    state_dir: Path
    poll_s: float

    def __post_init__(self) -> None:
        if (self.plan is None) == (self.resume is None):
            raise click.UsageError("give either a plan to carry out or --resume RUN_ID")
        if self.resume is not None and (self.throttle_bytes_per_s is not None or self.expect_current):
            raise click.UsageError("a resumed run keeps its plan and its throttle; leave out the other options")


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@cluster_options
@click.option(
    "--throttle",
    "throttle_bytes_per_s",
    type=parse_quantity,
    metavar="RATE",
    help="What each broker may send and receive for these moves, for example 20MB/s.  [default: no limit]",
)
@click.option(
    "--expect-current",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run only if the partitions still have these replicas (`kreassign plan --current-out`).",
)
@click.option("--resume", metavar="RUN_ID", help="Go on with a run that was paused or killed.")
@click.option(
    "--poll-interval",
    "poll_s",
    type=click.FloatRange(min=0.1),
    default=POLL_S,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks at the cluster.",
)
@state_dir_option
@format_option
@click.pass_context
def run(
    context: click.Context, /, bootstrap_server: str, command_config: Path | None, output_format: str, **wishes: Any
) -> None:
    """Carry PLAN out: throttle, move, elect preferred leaders, restore the throttle, verify.

    PLAN is Kafka's reassignment JSON. It is checked against the cluster first; nothing is sent if anything is wrong.
    Ctrl-C pauses; a second one leaves at once. Either way `--resume` goes on.
    """
    wish = Wish(**wishes)
    with connect(bootstrap_server, command_config) as client:
        found = carry_out(client, wish, is_quiet=output_format == "json")
    if output_format == "json":
        print_json(document(found))
    else:
        print_summary(console(), found)
    context.exit(exit_code(found))


def carry_out(client: AdminClient, wish: Wish, *, is_quiet: bool) -> RunHistory:
    """Begin or resume the run and see it through, showing its progress unless `is_quiet`."""
    clock = SystemClock()
    if wish.plan is not None:
        expected = read_plan(wish.expect_current).replicas if wish.expect_current else {}
        started = prepare(
            client,
            read_plan(wish.plan),
            run_id=new_run_id(clock.now_ms()),
            at_ms=clock.now_ms(),
            throttle_bytes_per_s=wish.throttle_bytes_per_s,
            expected=expected,
        )
        with Journal.create(wish.state_dir, started) as journal, _shown(is_quiet, started.run_id) as view:
            runner = _runner(client, journal, wish, view)
            return _interruptible(runner, lambda: runner.start(started))
    assert wish.resume is not None
    path = find_journal(wish.state_dir, wish.resume)
    journal, events = Journal.resume(path, client.describe_cluster().cluster_id)
    with journal, _shown(is_quiet, path.stem) as view:
        runner = _runner(client, journal, wish, view)
        return _interruptible(runner, lambda: runner.resume(events))


def new_run_id(now_ms: int) -> str:
    """An id that sorts by time, and does not repeat when two runs begin in one second."""
    moment = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def exit_code(found: RunHistory) -> int:
    """0 when all is done, that of ExecutionError when the run failed, 130 when it was left and can be resumed."""
    match found.state:
        case "done":
            return 0
        case "failed":
            return ExecutionError.exit_code
        case _:
            return LEFT_EXIT_CODE


def _runner(client: AdminClient, journal: Journal, wish: Wish, view: View | None) -> Runner:
    meters: list[ProgressMeter] = []

    def listen(event: Event, execution: Execution) -> None:
        if view is not None:
            if not meters:
                meters.append(ProgressMeter(execution))
            meters[0].follow(event)
            view.show(meters[0].progress())

    return Runner(client, SystemClock(), journal, listener=listen, poll_s=wish.poll_s)


@contextmanager
def _shown(is_quiet: bool, run_id: str) -> Iterator[View | None]:
    if is_quiet:
        yield None
        return
    terminal = console()
    terminal.print(f"run {run_id}")
    with view_for(terminal) as view:
        yield view


def _interruptible(runner: Runner, carry_out: Callable[[], RunHistory]) -> RunHistory:
    """Carry out, until the first SIGINT or SIGTERM asks for a pause; the second one leaves at once."""

    def on_signal(_: int, __: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.default_int_handler)
        click.echo("pausing; once more to leave at once", err=True)
        runner.request_stop()

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        return carry_out()
    except KeyboardInterrupt:
        return history(runner.execution)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
