"""The process of a run dies: no clean-up, no last words; what it wrote is all that is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kreassign.admin import AdminClient
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


CHANGES = (
    "alter_partition_reassignments",
    "elect_leaders",
    "incremental_alter_configs",
    "commit_offsets",
    "unregister_broker",
)
"""Calls that change the cluster or what it keeps."""
NEVER = 10**6
"""A change that no process comes to."""


@dataclass
class Fate:
    """Death of a process at its change of the number `at`: before that is sent, or when it is done."""

    at: int
    is_sent: bool
    is_dead: bool = False


class Mortal:
    """A client of a process with such a fate, which all its clients share.

    Nothing is sent after the death, so the lease of the process stays until the cluster lets it go.
    """

    def __init__(self, client: AdminClient, fate: Fate) -> None:
        self._client, self._fate = client, fate

    def __getattr__(self, method: str) -> Any:
        real, fate = getattr(self._client, method), self._fate

        def call(*args: Any, **named: Any) -> Any:
            if fate.is_dead:
                raise Died
            if method not in CHANGES or named.get("validate_only"):
                return real(*args, **named)
            fate.at -= 1
            fate.is_dead = fate.at == 0
            if fate.is_dead and not fate.is_sent:
                raise Died
            answer = real(*args, **named)
            if fate.is_dead:
                raise Died
            return answer

        return call if callable(real) else real
