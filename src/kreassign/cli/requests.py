"""Asking something of a run that another process carries out, through its journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import connect
from kreassign.cli.output import print_json
from kreassign.cli.runs import is_active
from kreassign.clock import Clock
from kreassign.errors import ExecutionError, InputError
from kreassign.executor.event_json import kind_of
from kreassign.executor.events import Request
from kreassign.executor.journal import JournalReader, post_request

PATIENCE_S = 60.0
"""A run hears requests between two calls; a call to a broker that hangs takes so long at most."""

LOOK_EVERY_S = 0.2


def ask(path: Path, make: Callable[[int], Request], clock: Clock) -> Request:
    """Ask, and wait until the run has heard it.

    Raises InputError when no process carries the run out, ExecutionError when it ended or did not hear in time.
    """
    if not is_active(path):
        raise InputError(f"no process carries out run {path.stem}; see `kreassign status {path.stem}`")
    request = post_request(path, make)
    reader, deadline_s = JournalReader(path), clock.monotonic_s() + PATIENCE_S
    while True:
        goes_on = is_active(path)
        if any(event == request for event in reader.new_events()):
            return request
        if not goes_on:
            raise ExecutionError(f"run {path.stem} was at its end before it heard; see `kreassign status {path.stem}`")
        if clock.monotonic_s() > deadline_s:
            raise ExecutionError(
                f"run {path.stem} has not heard for {PATIENCE_S:.0f} s; it will when its present call returns"
            )
        clock.sleep(LOOK_EVERY_S)


def tell_heard(path: Path, request: Request, sentence: str, output_format: str) -> None:
    """Say that a request was heard."""
    if output_format == "json":
        print_json({"run_id": path.stem, "kind": kind_of(request), **asdict(request)})
    else:
        click.echo(f"run {path.stem}: {sentence}")


def connect_to_take_up(path: Path, bootstrap_server: str | None, command_config: Path | None) -> AdminClient:
    """A client for a run that no process carries out. Raises InputError without an address."""
    if bootstrap_server is None:
        raise InputError(
            f"no process carries out run {path.stem}; give --bootstrap-server, so that this command can take it up"
        )
    return connect(bootstrap_server, command_config)
