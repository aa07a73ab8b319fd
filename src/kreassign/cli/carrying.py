"""Carrying a run out from the command line: its journal, what is shown of it, and the signals that pause it."""

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
from kreassign.cli.context import connect_controllers
from kreassign.cli.live import View, view_for
from kreassign.cli.output import console, print_json
from kreassign.cli.run_text import document, print_summary
from kreassign.clock import SystemClock
from kreassign.errors import ExecutionError, InputError
from kreassign.executor.events import CancelRequested, Event, RunStarted
from kreassign.executor.history.interrupted_runs import refuse_beside_left_runs
from kreassign.executor.history.run_history import RunHistory, history, read_history
from kreassign.executor.journal import Journal, post_request, refuse_second_run
from kreassign.executor.progress.meter import ProgressMeter
from kreassign.executor.runner import POLL_S, Runner
from kreassign.executor.state import Execution

LEFT_EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run is carried out: where its journal is, how often it looks, in which format it is shown.

    `bootstrap_controller` and `command_config` say how controllers are reached, for the throttle of dead brokers.
    """

    state_dir: Path
    output_format: str = "text"
    poll_s: float = POLL_S
    bootstrap_controller: str | None = None
    command_config: Path | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether programs read along, so that nothing but the end is told."""
        return self.output_format == "json"


def read_manner(given: dict[str, Any], command_config: Path | None) -> Manner:
    """Take the options of commands that carry runs out, out of what was given."""
    chosen = {name: given.pop(name) for name in ("state_dir", "output_format", "poll_s", "bootstrap_controller")}
    return Manner(command_config=command_config, **chosen)


def refuse_unless_free(client: AdminClient, manner: Manner, run_id: str | None = None) -> None:
    """Raise InputError if another run than this one is carried out on the cluster, or was left half-way."""
    cluster_id = client.describe_cluster().cluster_id
    refuse_second_run(manner.state_dir, cluster_id)
    refuse_beside_left_runs(manner.state_dir, cluster_id, run_id)


def begin(client: AdminClient, started: RunStarted, manner: Manner) -> RunHistory:
    """Carry out a run that was prepared. Raises InputError when another is active on the cluster."""
    with (
        Journal.create(manner.state_dir, started) as journal,
        _shown(manner, started.run_id) as view,
        _runner(client, journal, manner, view) as runner,
    ):
        return _interruptible(runner, lambda: runner.start(started))


def take_up(client: AdminClient, path: Path, manner: Manner) -> RunHistory:
    """Go on with the run of this journal. Raises InputError when a process carries out a run of its cluster."""
    refuse_unless_free(client, manner, path.stem)
    journal, events = Journal.resume(path, client.describe_cluster().cluster_id)
    with journal, _shown(manner, path.stem) as view, _runner(client, journal, manner, view) as runner:
        return _interruptible(runner, lambda: runner.resume(events))


def cancel_left_run(client: AdminClient, path: Path, manner: Manner, *, is_now: bool) -> RunHistory:
    """Take up the run of this journal and bring it to its end. Raises InputError when it is there already."""
    found = read_history(path)
    if found.ended_ms is not None and not found.throttle_residue:
        raise InputError(f"run {path.stem} is {found.state} and owes nothing: there is nothing to cancel")
    now_ms = SystemClock().now_ms()
    post_request(path, lambda number: CancelRequested(now_ms, number, is_now))
    return take_up(client, path, manner)


def new_run_id(now_ms: int) -> str:
    """An id that sorts by time, and does not repeat when two runs begin in one second."""
    moment = datetime.fromtimestamp(now_ms / 1000, tz=UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def tell_end(found: RunHistory, manner: Manner) -> int:
    """Say how a run ended; the exit code for that."""
    if manner.is_quiet:
        print_json(document(found))
    else:
        print_summary(console(), found)
    return exit_code(found)


def exit_code(found: RunHistory) -> int:
    """0 when all is done, that of ExecutionError when it failed or was cancelled, 130 when it can be resumed."""
    match found.state:
        case "done":
            return 0
        case "failed" | "cancelled":
            return ExecutionError.exit_code
        case _:
            return LEFT_EXIT_CODE


@contextmanager
def _runner(client: AdminClient, journal: Journal, manner: Manner, view: View | None) -> Iterator[Runner]:
    meters: list[ProgressMeter] = []

    def listen(event: Event, execution: Execution) -> None:
        if view is not None:
            if not meters:
                meters.append(ProgressMeter(execution))
            meters[0].follow(event)
            view.show(meters[0].progress())

    with connect_controllers(manner.bootstrap_controller, manner.command_config) as controllers:
        yield Runner(client, SystemClock(), journal, listener=listen, poll_s=manner.poll_s, controllers=controllers)


@contextmanager
def _shown(manner: Manner, run_id: str) -> Iterator[View | None]:
    if manner.is_quiet:
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
