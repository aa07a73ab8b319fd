"""The process of a run dies: no clean-up, no last words; what it wrote is all that is left."""

from __future__ import annotations

import pytest

from kreassign.executor.events import Event, Request, RunStarted
from kreassign.executor.journal import Journal
from tests.executor.twin_runs import TwinRig


class Died(BaseException):
    """The process is gone."""


class Dying:
    """A journal in whose process the lights go out at one row, counted from 1, or at the first event of a kind.

    With `is_written` the event can still be read afterwards, and what it announces was not done; without it was done,
    and nobody wrote that down.
    """

    def __init__(self, journal: Journal, at: int | type[Event], *, is_written: bool = True) -> None:
        self._journal = journal
        self._at = at
        self._is_written = is_written
        self._rows = 0

    def append(self, event: Event) -> None:
        self._rows += 1
        is_last = self._rows == self._at if isinstance(self._at, int) else isinstance(event, self._at)
        if self._is_written or not is_last:
            self._journal.append(event)
        if is_last:
            raise Died

    def requests_after(self, number: int) -> tuple[Request, ...]:
        return self._journal.requests_after(number)


def die(rig: TwinRig, started: RunStarted, at: int | type[Event], *, is_written: bool = True) -> None:
    """Begin the run, which dies there."""
    with Journal.create(rig.state_dir, started) as journal, pytest.raises(Died):
        rig.new_runner(Dying(journal, at, is_written=is_written)).start(started)
