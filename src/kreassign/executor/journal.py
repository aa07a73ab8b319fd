"""The memory of a run: its events in one SQLite file, append-only, on disk before anything follows from them.

One file per run: `<state directory>/<cluster id>/<run id>.sqlite`, in WAL mode with synchronous=FULL, so that other
processes can read while the run writes, and a written event survives the power cut. Application id 0x6B726561
("krea"), user version 4. Two tables, both append-only:

    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,   -- 1, 2, 3 … without gaps
        at_ms    INTEGER NOT NULL,      -- when it happened, ms since the epoch
        kind     TEXT NOT NULL,         -- class of events.py; the first is RunStarted, and only the first
        body     TEXT NOT NULL,         -- its fields as JSON
        digest   TEXT NOT NULL          -- SHA-256 of the digest before, kind and body: a changed row breaks the chain
    )
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,     -- 1, 2, 3 …
        kind   TEXT NOT NULL,           -- class of events.py, one of `Request`
        body   TEXT NOT NULL            -- its fields as JSON
    )

`events` is written by the process that executes the run, `requests` by anyone who wants something of it. A request
is taken in when an event with its number is among the events.

A file that is not such a journal, has gaps or a broken chain, or belongs to another cluster is refused with
JournalDamaged: resuming from incomplete records could repeat or skip changes. A journal of an earlier version is read
as it is (`journal_migration.py` has the names) and rewritten, in one transaction, before anything is appended to it.

The writer holds a lock on `<cluster id>/lock`, in which its run id is written: one run per cluster at a time. The
system drops the lock with the process, however that ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.event_json import from_json, kind_of, to_json
from kreassign.executor.events import Event, Request, RunStarted
from kreassign.executor.journal_migration import CURRENT_VERSION, READABLE_VERSIONS, migrated

APPLICATION_ID = 0x6B726561
SUFFIX = ".sqlite"

_CREATE = f"""
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {CURRENT_VERSION};
    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        digest TEXT NOT NULL
    );
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    );
"""
_INSERT = "INSERT INTO events (sequence, at_ms, kind, body, digest) VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT sequence, at_ms, kind, body, digest FROM events WHERE sequence > ? ORDER BY sequence"
_REQUESTS = "SELECT kind, body FROM requests WHERE number > ? ORDER BY number"


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


def cluster_journals(state_dir: Path, cluster_id: str) -> tuple[Path, ...]:
    """The journals of one cluster, oldest run first."""
    return tuple(sorted(_cluster_folder(state_dir, cluster_id).glob(f"*{SUFFIX}")))


def last_event(path: Path) -> Event | None:
    """The latest event of a journal, taken at its word; None if there is none. Raises JournalDamaged."""
    with _opened(path) as connection:
        row = connection.execute("SELECT kind, body FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
        version = _version(connection)
    try:
        return None if row is None else from_json(*migrated(version, *row))
    except ValueError as error:
        raise JournalDamaged(f"{path} cannot be understood at its end: {error}") from error


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
        lock = _lock(path, started.run_id)
        _begin(path, started)
        journal = cls(path, lock)
        journal._sequence, journal._digest = 1, journal._last_digest()
        return journal

    @classmethod
    def resume(cls, path: Path, cluster_id: str) -> tuple[Journal, tuple[Event, ...]]:
        """Go on with an old journal: it, and all its events.

        Raises JournalDamaged when it cannot be trusted or is of another cluster, InputError when a run is active.
        """
        lock = _lock(path, path.stem)
        try:
            events = _events_of(path, cluster_id)
            _migrate(path)
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

    def requests_after(self, number: int) -> tuple[Request, ...]:
        """What was asked for since the request of this number, oldest first."""
        rows = self._connection.execute(_REQUESTS, (number,)).fetchall()
        return tuple(_request(self.path, kind, body) for kind, body in rows)

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
        self._version = CURRENT_VERSION
        self._sequence = 0
        self._digest = ""

    def new_events(self) -> tuple[Event, ...]:
        """Events not given yet. Raises JournalDamaged when they cannot be trusted, InputError without a journal."""
        with _opened(self._path) as connection:
            version = _version(connection)
            if version != self._version:
                # The writer has migrated the journal: every digest is another one, so it is read from the beginning.
                rows = connection.execute(_SELECT, (0,)).fetchall()
                known, self._version, self._sequence, self._digest = self._sequence, version, 0, ""
                return tuple(self._checked(rows))[known:]
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
                event = from_json(*migrated(self._version, kind, body))
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


def _begin(path: Path, started: RunStarted) -> None:
    """Make the file with its first event. It gets its name when it is whole, so that nobody reads half a journal."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    kind, body = kind_of(started), to_json(started)
    with closing(sqlite3.connect(unfinished)) as connection:
        connection.executescript(_CREATE)
        connection.execute(_INSERT, (1, started.at_ms, kind, body, _digest("", kind, body)))
        connection.commit()
    unfinished.replace(path)


def _events_of(path: Path, cluster_id: str) -> tuple[Event, ...]:
    events = read_events(path)
    started = events[0]
    assert isinstance(started, RunStarted)
    if started.cluster_id != cluster_id:
        raise JournalDamaged(
            f"{path} is of cluster {started.cluster_id}, but this is cluster {cluster_id}; connect to the former"
        )
    return events


def post_request(path: Path, make: Callable[[int], Request]) -> Request:
    """Ask something of the run that writes this journal: `make` is given the number and returns the request.

    It is on disk when this returns; whether it was taken in shows among the events. Raises JournalDamaged, InputError.
    """
    with _opened(path, mode="rw") as connection:
        if _version(connection) != CURRENT_VERSION:
            with closing(_lock(path, path.stem)):
                _migrate(path)
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()
        request = make(last + 1)
        connection.execute("INSERT INTO requests VALUES (?, ?, ?)", (last + 1, kind_of(request), to_json(request)))
        connection.execute("COMMIT")
    return request


def _request(path: Path, kind: str, body: str) -> Request:
    try:
        found = from_json(kind, body)
    except ValueError as error:
        raise JournalDamaged(f"{path} holds a request that cannot be understood: {error}") from error
    if not isinstance(found, Request):
        raise JournalDamaged(f"{path} holds a {kind} among its requests")
    return found


def active_run(state_dir: Path, cluster_id: str) -> str | None:
    """The id of the run that a process is executing on this cluster now, if there is one."""
    lock = _cluster_folder(state_dir, cluster_id) / "lock"
    if not lock.exists():
        return None
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().strip() or "(unknown)"
    return None


def refuse_second_run(state_dir: Path, cluster_id: str) -> None:
    """Raise InputError if a process is executing a run on this cluster: the one that says which, and what to do."""
    holder = active_run(state_dir, cluster_id)
    if holder is not None:
        raise _taken(holder)


def _taken(holder: str) -> InputError:
    return InputError(
        f"run {holder} is active on this cluster; watch it with `kreassign watch {holder}`, end it with "
        f"`kreassign cancel {holder}`, or stop its process (Ctrl-C) and take it over with `kreassign resume {holder}`"
    )


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
        raise _taken(holder) from None
    file.truncate(0)
    file.write(f"{run_id}\n")
    file.flush()
    os.fsync(file.fileno())
    return file


@contextmanager
def _opened(path: Path, *, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise InputError(f"there is no journal {path}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != APPLICATION_ID:
                raise JournalDamaged(f"{path} is not a journal of kreassign")
            _refuse_unknown_version(path, _version(connection))
            yield connection
    except sqlite3.DatabaseError as error:
        raise JournalDamaged(f"{path} cannot be read: {error}") from error


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _refuse_unknown_version(path: Path, version: int) -> None:
    if version in READABLE_VERSIONS:
        return
    which = "a newer" if version > CURRENT_VERSION else "an unsupported earlier"
    raise JournalDamaged(
        f"{path} has journal version {version}, written by {which} version of kreassign; this one reads versions "
        f"{READABLE_VERSIONS[0]} to {CURRENT_VERSION}"
    )


def _migrate(path: Path) -> None:
    """Rewrite a journal of an earlier version in today's words; nothing happens to one of this version."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        version = _version(connection)
        if version == CURRENT_VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        digest = ""
        for sequence, _, kind, body, _ in connection.execute(_SELECT, (0,)).fetchall():
            row = migrated(version, kind, body)
            digest = _digest(digest, *row)
            connection.execute(
                "UPDATE events SET kind = ?, body = ?, digest = ? WHERE sequence = ?", (*row, digest, sequence)
            )
        for number, kind, body in connection.execute("SELECT number, kind, body FROM requests").fetchall():
            row = migrated(version, kind, body)
            connection.execute("UPDATE requests SET kind = ?, body = ? WHERE number = ?", (*row, number))
        connection.execute(f"PRAGMA user_version = {CURRENT_VERSION}")
        connection.execute("COMMIT")


def _digest(before: str, kind: str, body: str) -> str:
    return hashlib.sha256(f"{before}\n{kind}\n{body}".encode()).hexdigest()
