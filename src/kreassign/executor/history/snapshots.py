"""Runs from their journals without reading them from the beginning: a snapshot, and the events since.

Where no snapshot can be used (a journal of an earlier version, or of another build) all events are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kreassign.errors import JournalDamaged
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.journal import Journal, JournalReader, Position, StoredSnapshot, stored_snapshots
from kreassign.executor.progress.meter import ProgressMeter
from kreassign.executor.state import AT_REST, Machine, RunView

EVERY_MS = 30_000
"""A snapshot is kept so often, of the events' time: so few polls are left to read, each of which costs milliseconds."""

EVERY_BYTE_MS = 0.05
"""A long plan makes long snapshots; they are kept so much more seldom."""


class Start(NamedTuple):
    """Where reading begins: after this event, with a machine and a meter that have taken it in."""

    machine: Machine
    meter: ProgressMeter
    position: Position


def latest_start(path: Path) -> Start:
    """The latest snapshot that can be used; the beginning where there is none. Raises JournalDamaged, InputError."""
    usable = (start for one in stored_snapshots(path) if (start := _usable(one)) is not None)
    return next(usable, None) or _beginning()


def read_view(path: Path) -> RunView:
    """What a journal says of its run. Raises JournalDamaged, or InputError when there is none."""
    return _followed(path, with_meter=False).machine.view


def read_progress(path: Path) -> tuple[RunView, ProgressMeter]:
    """The same, with a meter that has followed it."""
    start = _followed(path, with_meter=True)
    return start.machine.view, start.meter


def _followed(path: Path, *, with_meter: bool) -> Start:
    start = latest_start(path)
    events = JournalReader(path, start.position).new_events()
    if start.position == Position() and not (events and isinstance(events[0], RunStarted)):
        raise JournalDamaged(f"{path} has no beginning: its first events are lost")
    for event in events:
        start.machine.replay(event)
        if with_meter:
            start.meter.follow(event)
    return start


def _beginning() -> Start:
    machine = Machine()
    return Start(machine, ProgressMeter(machine.view), Position())


def _usable(stored: StoredSnapshot) -> Start | None:
    try:
        machine, meter = Machine.from_snapshot(stored.text)
        return Start(machine, ProgressMeter.restored(machine.view, meter), stored.position)
    except ValueError:
        return None


@dataclass(slots=True)
class SnapshotKeeper:
    """Keeps snapshots of a run that goes on, now and then and when it is at rest; its `meter` follows the run."""

    journal: Journal
    snapshot: Callable[[dict[str, object]], str]
    meter: ProgressMeter | None = None
    every_ms: int = EVERY_MS
    every_byte_ms: float = EVERY_BYTE_MS
    _kept_ms: int | None = None
    _size_bytes: int = 0

    def follow(self, event: Event, run: RunView) -> ProgressMeter:
        """Take note of an event, after the run has taken it in; the meter that has followed it too."""
        self.meter = self.meter or ProgressMeter(run)
        self.meter.follow(event)
        if self._kept_ms is None:
            self._kept_ms = event.at_ms
        waited_ms = abs(event.at_ms - self._kept_ms)
        if run.phase in AT_REST or waited_ms >= max(self.every_ms, self.every_byte_ms * self._size_bytes):
            text = self.snapshot(self.meter.state())
            self.journal.keep_snapshot(text)
            self._kept_ms, self._size_bytes = event.at_ms, len(text)
        return self.meter
