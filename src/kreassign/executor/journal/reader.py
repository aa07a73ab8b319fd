"""Reading a journal, also while a run writes it: every row is checked before it counts.

A file that is not a journal, has gaps or a broken chain is refused with JournalDamaged: going on from incomplete
records could repeat or skip changes. A journal of an earlier version is read as it is (`migration.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kreassign.errors import JournalDamaged
from kreassign.executor.event_json import from_json
from kreassign.executor.events import Event, RunStarted
from kreassign.executor.journal.file import SELECT, chained, opened, unstored, version_of
from kreassign.executor.journal.migration import CURRENT_VERSION, migrated
from kreassign.executor.journal.polls import KIND, polls_of
from kreassign.executor.journal.snapshots import Position

BEGINNING = Position()
_FIRST = "SELECT kind, body FROM events ORDER BY sequence LIMIT 1"
_LAST = "SELECT kind, body FROM events ORDER BY sequence DESC LIMIT 1"
Row = tuple[int, int, str, str | bytes, str]


class JournalReader:
    """Reads a journal, also while it is being written: `new_events` gives what came since the last call.

    It begins at the first event, or after the one at `start`.
    """

    def __init__(self, path: Path, start: Position = BEGINNING) -> None:
        self._path = path
        self._version = CURRENT_VERSION
        self._sequence, self._digest = start

    @property
    def position(self) -> Position:
        """The last event that was read."""
        return Position(self._sequence, self._digest)

    def new_events(self) -> tuple[Event, ...]:
        """Events not given yet. Raises JournalDamaged when they cannot be trusted, InputError without a journal."""
        with opened(self._path) as connection:
            version = version_of(connection)
            if version != self._version:
                # The writer has migrated the journal: every digest is another one, so it is read from the beginning.
                rows = connection.execute(SELECT, (0,)).fetchall()
                known, self._version, self._sequence, self._digest = self._sequence, version, 0, ""
                return tuple(self._checked(rows))[known:]
            rows = connection.execute(SELECT, (self._sequence,)).fetchall()
        return tuple(self._checked(rows))

    def _checked(self, rows: Iterable[Row]) -> Iterator[Event]:
        for sequence, _, kind, body, digest in rows:
            if sequence != self._sequence + 1 or digest != self._expected(kind, body):
                raise JournalDamaged(
                    f"{self._path} is damaged at event {self._sequence + 1}: rows are missing or were changed"
                )
            try:
                events = _events(self._version, kind, body)
            except ValueError as error:
                raise JournalDamaged(f"{self._path} cannot be understood at event {sequence}: {error}") from error
            self._sequence, self._digest = sequence, digest
            yield from events

    def _expected(self, kind: str, body: str | bytes) -> str | None:
        """The digest that this row should have next; None where it cannot be read at all."""
        try:
            return chained(self._digest, kind, unstored(body))
        except ValueError:
            return None


def read_events(path: Path) -> tuple[Event, ...]:
    """All events of a journal. Raises JournalDamaged when it cannot be trusted, InputError when there is none."""
    events = JournalReader(path).new_events()
    _start(path, events[0] if events else None)
    return events


def _start(path: Path, event: Event | None) -> RunStarted:
    if not isinstance(event, RunStarted):
        raise JournalDamaged(f"{path} has no beginning: its first events are lost")
    return event


def first_event(path: Path) -> RunStarted:
    """The start of a run, taken at its word. Raises JournalDamaged, or InputError without a journal."""
    return _start(path, _at_its_word(path, _FIRST, "beginning"))


def last_event(path: Path) -> Event | None:
    """The latest event of a journal, taken at its word; None if there is none. Raises JournalDamaged."""
    return _at_its_word(path, _LAST, "end")


def _at_its_word(path: Path, query: str, where: str) -> Event | None:
    with opened(path) as connection:
        row = connection.execute(query).fetchone()
        version = version_of(connection)
    try:
        return None if row is None else _events(version, *row)[-1]
    except (ValueError, TypeError, LookupError) as error:
        raise JournalDamaged(f"{path} cannot be understood at its {where}: {error}") from error


def _events(version: int, kind: str, body: str | bytes) -> tuple[Event, ...]:
    """The events of a row: one, or polls that showed nothing. Raises ValueError."""
    text = unstored(body)
    return tuple(polls_of(text)) if kind == KIND else (from_json(*migrated(version, kind, text)),)
