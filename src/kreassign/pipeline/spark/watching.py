"""How far the work of a Spark session is, told while it goes on.

Spark draws its own bar of progress on the error stream of Java, which is our log. A session on this machine is asked by
a thread, for the job that is watched waits for Spark; a server of Spark Connect tells by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of the stages that Spark works on: how many of them are done. Spark counts no rows of these."""

    done: int
    count: int

    def __str__(self) -> str:
        return f"{self.done} of {self.count} tasks"


@contextmanager
def watched(session: Any, tell: Callable[[Tasks], None]) -> Iterator[None]:
    """Tell how far a session is, every half a second while it works, from a thread of its own."""
    watch = _asked if isinstance(session, SparkSession) else _told_by_server
    with watch(session, tell):
        yield


@contextmanager
def _asked(session: SparkSession, tell: Callable[[Tasks], None]) -> Iterator[None]:
    end = threading.Event()

    def ask() -> None:
        tracker = session.sparkContext.statusTracker()
        # A session that goes away meanwhile has no progress to tell.
        with suppress(Py4JError, OSError):
            while not end.wait(EVERY_S):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                if found := _sum((one.numCompletedTasks, one.numTasks) for one in stages if one is not None):
                    tell(found)

    thread = threading.Thread(target=ask, name="progress of Spark", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@contextmanager
def _told_by_server(session: Any, tell: Callable[[Tasks], None]) -> Iterator[None]:
    def hear(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        del inflight_tasks, operation_id, done
        active = ((one.num_completed_tasks, one.num_tasks) for one in stages or ())
        if found := _sum((done, count) for done, count in active if done < count):
            tell(found)

    session.registerProgressHandler(hear)
    try:
        yield
    finally:
        session.removeProgressHandler(hear)


def _sum(stages: Iterable[tuple[int, int]]) -> Tasks | None:
    found = list(stages)
    return Tasks(sum(done for done, _ in found), sum(count for _, count in found)) if found else None
