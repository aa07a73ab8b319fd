"""The memory of a run: its events in one SQLite file, append-only, on disk before anything follows from them.

One file per run: `<state directory>/<cluster id>/<run id>.sqlite`, in WAL mode with synchronous=FULL, so that other
processes can read while the run writes, and a written event survives the power cut. Application id 0x6B726561
("krea"), user version 1. One table:

    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,   -- 1, 2, 3 … without gaps
        at_ms    INTEGER NOT NULL,      -- when it happened, ms since the epoch
        kind     TEXT NOT NULL,         -- class of events.py; the first is RunStarted, and only the first
        body     TEXT NOT NULL,         -- its fields as JSON
        digest   TEXT NOT NULL          -- SHA-256 of the digest before, kind and body: a changed row breaks the chain
    )

A file that is not such a journal, has gaps or a broken chain, or belongs to another cluster is refused with
JournalDamaged, for half a memory is worse than none.

The writer holds a lock on `<cluster id>/lock`, in which its run id is written: one run per cluster at a time. The
system drops the lock with the process, however that ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.event_json import from_json, kind_of, to_json
from kreassign.executor.events import Event, RunStarted

APPLICATION_ID = 0x6B726561
SCHEMA_VERSION = 1
SUFFIX = ".sqlite"

_CREATE = f"""
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {SCHEMA_VERSION};
    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        digest TEXT NOT NULL
    );
"""
_INSERT = "INSERT INTO events (sequence, at_ms, kind, body, digest) VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT sequence, at_ms, kind, body, digest FROM events WHERE sequence > ? ORDER BY sequence"


def _cluster_folder(state_dir: Path, cluster_id: str) -> Path:
    """The folder of a cluster. Its id comes from outside and must not lead elsewhere: odd characters are spelt out."""
    return state_dir / quote(cluster_id, safe="").replace(".", "%2E")


def journal_path(state_dir: Path, cluster_id: str, run_id: str) -> Path:
    """Where the journal of a run is, or shall be."""
    return _cluster_folder(state_dir, cluster_id) / f"{run_id}{SUFFIX}"


def find_journals(state_dir: Path, run_id: str | None = None) -> tuple[Path, ...]:
    """The journals of all clusters, or those of one run id, oldest run first (run ids sort by time)."""
    found = state_dir.glob(f"*/{run_id or '*'}{SUFFIX}") if state_dir.is_dir() else iter(())
    return tuple(sorted(found, key=lambda path: (path.stem, path)))


class Journal:
    """A journal that is being written. Only one process can have one per cluster; use it in a `with` statement."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self.path = path
        self._lock = lock
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._sequence = 0
        self._digest = ""

    @classmethod
    def create(cls, state_dir: Path, started: RunStarted) -> Journal:
        """Begin the journal of a new run with its first event.

        Raises InputError when another run is active on the cluster, or this one has a journal already.
        """
        path = journal_path(state_dir, started.cluster_id, started.run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise InputError(f"run {started.run_id} has a journal already: {path}")
        journal = cls(path, _lock(path, started.run_id))
        journal._connection.executescript(_CREATE)
        journal.append(started)
        return journal

    @classmethod
    def resume(cls, path: Path, cluster_id: str) -> tuple[Journal, tuple[Event, ...]]:
        """Go on with an old journal: it, and all its events.

        Raises JournalDamaged when it cannot be trusted or is of another cluster, InputError when a run is active.
        """
        lock = _lock(path, path.stem)
        try:
            events = _events_of(path, cluster_id)
        except BaseException:
            lock.close()
            raise
        journal = cls(path, lock)
        journal._sequence = len(events)
        journal._digest = journal._last_digest()
        return journal, events

    def append(self, event: Event) -> None:
        """Write an event; it is on disk when this returns. Raises JournalDamaged when it cannot be written."""
        kind, body = kind_of(event), to_json(event)
        digest = _digest(self._digest, kind, body)
        try:
            self._connection.execute(_INSERT, (self._sequence + 1, event.at_ms, kind, body, digest))
        except sqlite3.Error as error:
            raise JournalDamaged(
                f"{self.path} cannot be written: {error}. Nothing more is sent; make room and resume the run"
            ) from error
        self._sequence += 1
        self._digest = digest

    def close(self) -> None:
        """Stop writing and let others have the cluster."""
        self._connection.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _last_digest(self) -> str:
        row = self._connection.execute("SELECT digest FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        return str(row[0])


class JournalReader:
    """Reads a journal, also while it is being written: `new_events` gives what came since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sequence = 0
        self._digest = ""

    def new_events(self) -> tuple[Event, ...]:
        """Events not given yet. Raises JournalDamaged when they cannot be trusted, InputError without a journal."""
        with _opened(self._path) as connection:
            rows = connection.execute(_SELECT, (self._sequence,)).fetchall()
        return tuple(self._checked(rows))

    def _checked(self, rows: Iterable[tuple[int, int, str, str, str]]) -> Iterator[Event]:
        for sequence, _, kind, body, digest in rows:
            expected = _digest(self._digest, kind, body)
            if sequence != self._sequence + 1 or digest != expected:
                raise JournalDamaged(
                    f"{self._path} is damaged at event {self._sequence + 1}: rows are missing or were changed. "
                    f"Do not resume from it; look at the cluster with `kreassign verify`"
                )
            try:
                event = from_json(kind, body)
            except ValueError as error:
                raise JournalDamaged(f"{self._path} cannot be understood at event {sequence}: {error}") from error
            self._sequence, self._digest = sequence, digest
            yield event


def read_events(path: Path) -> tuple[Event, ...]:
    """All events of a journal. Raises JournalDamaged when it cannot be trusted, InputError when there is none."""
    events = JournalReader(path).new_events()
    if not events or not isinstance(events[0], RunStarted):
        raise JournalDamaged(f"{path} has no beginning: the run that made it was ended before it wrote anything")
    return events


def _events_of(path: Path, cluster_id: str) -> tuple[Event, ...]:
    events = read_events(path)
    started = events[0]
    assert isinstance(started, RunStarted)
    if started.cluster_id != cluster_id:
        raise JournalDamaged(
            f"{path} is of cluster {started.cluster_id}, but this is cluster {cluster_id}; connect to the former"
        )
    return events


def active_run(state_dir: Path, cluster_id: str) -> str | None:
    """The id of the run that a process is carrying out on this cluster now, if there is one."""
    lock = _cluster_folder(state_dir, cluster_id) / "lock"
    if not lock.exists():
        return None
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().strip() or "(unknown)"
    return None


def _lock(journal: Path, run_id: str) -> IO[str]:
    path = journal.parent / "lock"
    if not path.parent.is_dir():
        raise InputError(f"there is no journal {journal}")
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise InputError(
            f"run {holder} is active on this cluster; watch it with `kreassign watch {holder}`, or stop its process "
            f"(Ctrl-C) and take it over with `kreassign run --resume {holder}`"
        ) from None
    file.truncate(0)
    file.write(f"{run_id}\n")
    file.flush()
    os.fsync(file.fileno())
    return file


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise InputError(f"there is no journal {path}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
                raise JournalDamaged(f"{path} is no journal of this version of kreassign")
            yield connection
    except sqlite3.DatabaseError as error:
        raise JournalDamaged(f"{path} cannot be read: {error}") from error


def _digest(before: str, kind: str, body: str) -> str:
    return hashlib.sha256(f"{before}\n{kind}\n{body}".encode()).hexdigest()
