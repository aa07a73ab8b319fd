"""One run as somebody sees it who follows its journal: figures, brokers, moves, what is wrong. Asks no cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kreassign.executor.history.run_history import RunHistory, history
from kreassign.executor.history.snapshots import latest_start
from kreassign.executor.journal import JournalReader
from kreassign.executor.progress.meter import MoveProgress, Progress
from kreassign.executor.state import MoveStatus
from kreassign.monitoring.run_metrics import RunMetrics, run_metrics
from kreassign.operations.journals import is_active
from kreassign.operations.steer import seen_from_outside

INTEREST = (
    MoveStatus.MOVING,
    MoveStatus.CANCELLING,
    MoveStatus.SENT,
    MoveStatus.FAILED,
    MoveStatus.PLANNED,
    MoveStatus.CANCELLED,
    MoveStatus.COMPLETE,
)
"""Moves of which status are shown first."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run at one moment, and whether a process executes it."""

    history: RunHistory
    metrics: RunMetrics
    progress: Progress
    is_active: bool


class RunFollower:
    """Follows a run from its journal: each look reads what came since the last one. Raises what reading raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._machine, self._meter, position = latest_start(path)
        self._reader = JournalReader(path, position)

    def look(self) -> LiveRun:
        """The run as it is now."""
        # Asked before reading: whatever a process wrote before it went is then among the new events.
        goes_on = is_active(self._path)
        for event in self._reader.new_events():
            self._machine.replay(event)
            self._meter.follow(event)
        run = self._machine.view if goes_on else self._machine.view.as_left
        progress = seen_from_outside(self._path, self._meter.progress(), is_executed=goes_on)
        return LiveRun(history(run), run_metrics(run, self._meter), progress, goes_on)


def interesting(moves: Iterable[MoveProgress]) -> list[MoveProgress]:
    """Moves in the order in which somebody wants to see them: those that go on first."""
    return sorted(moves, key=lambda move: (INTEREST.index(move.status), *move.topic_partition))
