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
from kreassign.executor.journal.file import SELECT, chained, opened, version_of
from kreassign.executor.journal.migration import CURRENT_VERSION, migrated

Row = tuple[int, int, str, str, str]


class JournalReader:
    """Reads a journal, also while it is being written: `new_events` gives what came since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = CURRENT_VERSION
        self._sequence = 0
        self._digest = ""

    @property
    def sequence(self) -> int:
        """Number of the last event that was read; 0 before the first."""
        return self._sequence

    @property
    def digest(self) -> str:
        """Digest of that event."""
        return self._digest

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
            expected = chained(self._digest, kind, body)
            if sequence != self._sequence + 1 or digest != expected:
                raise JournalDamaged(
                    f"{self._path} is damaged at event {self._sequence + 1}: rows are missing or were changed"
                )
            try:
                event = from_json(*migrated(self._version, kind, body))
            except ValueError as error:
                raise JournalDamaged(f"{self._path} cannot be understood at event {sequence}: {error}") from error
            self._sequence, self._digest = sequence, digest
            yield event


def read_events(path: Path) -> tuple[Event, ...]:
    """All events of a journal. Raises JournalDamaged when it cannot be trusted, InputError when there is none."""
    reader = JournalReader(path)
    return beginning_with_start(path, reader.new_events())


def beginning_with_start(path: Path, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """These events. Raises JournalDamaged unless they are those of a run from its beginning."""
    if not events or not isinstance(events[0], RunStarted):
        raise JournalDamaged(f"{path} has no beginning: its first events are lost")
    return events


def last_event(path: Path) -> Event | None:
    """The latest event of a journal, taken at its word; None if there is none. Raises JournalDamaged."""
    with opened(path) as connection:
        row = connection.execute("SELECT kind, body FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        version = version_of(connection)
    try:
        return None if row is None else from_json(*migrated(version, *row))
    except (ValueError, TypeError) as error:
        raise JournalDamaged(f"{path} cannot be understood at its end: {error}") from error
