"""Runs that the process of the page executes, each in a thread of its own.

They are journaled like those of the command line. When the page ends they are paused, and can be resumed on the page or
on the command line; after a crash as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from kreassign.admin import AdminClient
from kreassign.errors import InputError
from kreassign.operations.connect import connect, connect_controllers
from kreassign.operations.run import RunContext
from kreassign.operations.run_journals import this_operator
from kreassign.web.settings import Reach, User

Execute = Callable[[AdminClient, RunContext], object]
_LOG = logging.getLogger(__name__)
MOST = 16
"""Runs at a time: a cluster has one, so that only refused ones come besides."""


def connected(reach: Reach) -> AdminClient:
    """A connected client, to be used in a `with` statement. Raises InputError, Unreachable."""
    return connect(reach.bootstrap_server, reach.properties)


def _controllers(reach: Reach) -> AbstractContextManager[AdminClient | None]:
    if reach.bootstrap_controller is None:
        return nullcontext()
    return connect_controllers(reach.bootstrap_controller, reach.properties)


class RunsHere:
    """Executes runs in threads until it is closed."""

    def __init__(self) -> None:
        self._stops: dict[str, Callable[[], None]] = {}
        self._threads = ThreadPoolExecutor(MOST, "run")
        self._is_closing = False

    def begin(self, reach: Reach, context: RunContext, execute: Execute) -> str:
        """Execute a run, and return its id once it has begun. Raises what prevents it from beginning."""
        begun: Future[str] = Future()
        ended = self._threads.submit(self._execute, reach, context, execute, begun)
        either: tuple[Future[Any], ...] = (begun, ended)
        wait(either, return_when=FIRST_COMPLETED)
        if begun.done():
            ended.add_done_callback(_log_failure)
            return begun.result()
        ended.result()
        raise InputError("there is nothing to do any more; look again")

    def close(self) -> None:
        """Pause all runs and wait until they are at rest."""
        self._is_closing = True
        for stop in list(self._stops.values()):
            stop()
        self._threads.shutdown()

    def _execute(self, reach: Reach, context: RunContext, execute: Execute, begun: Future[str]) -> None:
        @contextmanager
        def watch(run_id: str, stop: Callable[[], None] | None) -> Iterator[None]:
            if stop is not None:
                self._stops[run_id] = stop
                if self._is_closing:
                    stop()
            if not begun.done():  # a run that a guard ends may be followed by its rollback
                begun.set_result(run_id)
            try:
                yield None
            finally:
                self._stops.pop(run_id, None)

        with connected(reach) as client, _controllers(reach) as controllers:
            execute(client, replace(context, controllers=controllers, watch=watch))


def _log_failure(ended: Future[None]) -> None:
    if (error := ended.exception()) is not None:
        _LOG.error("a run was left, because it failed: %s", error)


def context_of(state_dir: Path, user: User | None, state_dirs: tuple[Path, ...]) -> RunContext:
    """Context of a run that the page executes: its journal names the user, and runs of all `state_dirs` count."""
    operator = this_operator()
    if user is not None and user.name:
        operator = replace(operator, user=user.name)
    return RunContext(state_dir, warn=_LOG.warning, operator=operator, beside=state_dirs)
