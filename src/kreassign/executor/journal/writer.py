"""Write a journal: every event is on disk before anything follows from it.

WAL mode with synchronous=FULL: a written event survives the power cut. Facts that must not be lost (a setting to
restore, a move or a request that was accepted) are moved from the write-ahead log into the file itself at once, so that
a log that is lost or cut loses nothing that cannot be read again from the cluster.

A journal with a mirror (`mirror.py`) keeps its events there, too, before anything follows from them. What was only
observed may follow with the next other event, or `OBSERVED_MS` later: another host reads it again from the cluster.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import (
    ExecutionError,
    InputError,
    JournalDamaged,
    JournalFull,
    JournalLocked,
    MirrorUnavailable,
    machine_reason,
)
from kreassign.executor.events import (
    ConfigsRead,
    Event,
    HealthObserved,
    MovesObserved,
    RunStarted,
    ThrottleChecked,
    TrafficMeasured,
)
from kreassign.executor.journal.file import (
    BEGINNING,
    CHANGE_PATIENCE_S,
    CREATE,
    CREATE_SNAPSHOTS,
    INSERT,
    POLLS_KIND,
    RUNS,
    Form,
    JournalReader,
    Position,
    Row,
    chained,
    damaged,
    event_from_json,
    event_to_json,
    first_event,
    is_uneventful,
    journal_rows,
    kind_of,
    opened,
    polls_to_json,
    store_snapshot,
    stored,
    unstored,
)
from kreassign.executor.journal.folder import (
    ASIDE,
    FILE_MODE,
    ClusterLock,
    journal_path,
    make_file,
    make_folder,
    refuse_shared_file_system,
    rename_file,
)
from kreassign.executor.journal.locks import hindered
from kreassign.executor.journal.mirror import Mirror
from kreassign.model.plan_facts import refuse_other_cluster

_REQUESTS = "SELECT kind, body FROM requests WHERE number > ? ORDER BY number"
_LAST_REQUEST = "SELECT coalesce(max(number), 0) FROM requests"
LOOK_EVERY_S = 1.0
"""How often a run that waits for a locked journal looks at anything else."""

OBSERVED = (MovesObserved, HealthObserved, TrafficMeasured, ThrottleChecked, ConfigsRead)
OBSERVED_MS = 30_000
"""Age up to which a mirror may lack events of these classes."""

OnLock = Callable[[JournalLocked | None], None]
"""Called each second while the journal, or its mirror, cannot be written for now, and with None once it can."""

_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database."""


def bounded_wait(seconds: float, clock: Clock = SYSTEM_CLOCK) -> OnLock:
    """Wait for so long for a lock of others, and for nothing else, such as room on a disk."""
    since_s: float | None = None

    def wait(lock: JournalLocked | None) -> None:
        nonlocal since_s
        if lock is None:
            since_s = None
            return
        since_s = clock.monotonic_s() if since_s is None else since_s
        if clock.monotonic_s() - since_s >= seconds or type(lock) is not JournalLocked:
            raise lock

    return wait


class Journal:
    """A journal open for writing. Only one process can have one per cluster; use it in a `with` statement.

    What another process has locked, a full disk does not take, or a mirror does not confirm, is waited for: `on_lock`
    is called meanwhile. By default it raises JournalLocked: after `CHANGE_PATIENCE_S` of a lock, else at once. Nothing
    follows from an event before it is written: a run holds while it waits.
    """

    def __init__(self, path: Path, lock: ClusterLock, position: Position, form: Form = RUNS) -> None:
        self.path, self._form = path, form
        self._last_void = 0
        self._lock = lock
        self.position = position
        """Position of the last event written."""
        self._polls: list[MovesObserved] = []
        self._is_awaited = False
        """True from a request to the next poll: who asked waits for the run to look at its moves."""
        self._mirror: Mirror | None = None
        self._unmirrored: list[Row] = []
        self._former: Mirror | None = None
        self.on_lock: OnLock = bounded_wait(CHANGE_PATIENCE_S)
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=LOOK_EVERY_S)
        self._connection.execute("PRAGMA synchronous = FULL")

    @classmethod
    def create(cls, state_dir: Path, started: RunStarted, mirror: Mirror | None = None) -> Journal:
        """Begin the journal of a new run with its first event, in its mirror first.

        Raises InputError when another run is active on the cluster, or this one has a journal already; ExecutionError
        when the file cannot be written.
        """
        path = journal_path(state_dir, started.cluster_id, started.run_id)
        return cls.begin(path, started, f"run {started.run_id}", mirror=mirror)

    @classmethod
    def begin(cls, path: Path, first: Any, what: str, form: Form = RUNS, mirror: Mirror | None = None) -> Journal:
        """Begin a journal of any form with its first event; `what` it is of is named in errors. Raises as `create`."""
        with _told(
            f"the journal {path} cannot be created", "Nothing was sent; make room or choose another --state-dir"
        ):
            refuse_shared_file_system(path.parent)
            make_folder(path.parent)
            if path.exists():
                raise InputError(f"{what} has a journal already: {path}")
            with _held(path) as lock:
                lock.execute()
                row = _row(BEGINNING, first.at_ms, kind_of(first), event_to_json(first))
                try:
                    if mirror is not None:
                        mirror.append([row])
                    _write_file(path, [row], form)
                except BaseException:
                    if mirror is not None:
                        mirror.take_back([row])  # Else another host would resume what never began.
                    raise
                journal = cls(path, lock, Position(1, row[4]), form)
                journal._mirror = mirror
                return journal

    @classmethod
    def resume(
        cls,
        path: Path,
        cluster_id: str,
        start: Position = BEGINNING,
        form: Form = RUNS,
        on_lock: OnLock | None = None,
    ) -> tuple[Journal, tuple[Any, ...]]:
        """Open an existing journal; return it with all its events, or those after the one at `start`.

        While others write it, `on_lock` is called, as by `append`. Raises JournalDamaged when it cannot be trusted,
        InputError for another cluster, or when a run is active.
        """
        told = _told(f"the journal {path} cannot be opened", "Nothing was sent; see to the file and resume the run")
        with told, _held(path) as lock:
            refuse_other_cluster(f"run {path.stem} is of", first_event(path, form).cluster_id, cluster_id)
            path.chmod(FILE_MODE)
            reader = JournalReader(path, start, form)
            events = reader.new_events()
            journal = cls(path, lock, reader.position, form)
            try:
                journal._patiently(journal._execute, on_lock)
            except BaseException:
                journal._connection.close()
                raise
            return journal, events

    def _execute(self) -> None:
        """Become the process that executes the run, at once for who posts: earlier requests are void."""
        if self._form.keeps_requests:
            self._lock.execute()
            return
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._last_void = _last_request(self._connection)
            self._lock.execute()

    def keep_in(self, mirror: Mirror) -> None:
        """Bring a mirror that was read up to this journal, and keep it so. Raises as `append`."""
        rows = journal_rows(self.path, self._form)
        self._unmirrored = [row for row in rows if row[0] > mirror.position.sequence]
        self._mirror = mirror
        self._patiently(self._write_mirror)

    def leave(self, mirror: Mirror) -> None:
        """Tell in a mirror that was read, and is not kept any more, where the journal goes on, once that is written.

        So whoever reads it looks there. A mirror that does not confirm it now is left as it is; `append` raises
        ExecutionError if another process went on with it.
        """
        self._former = mirror

    def confirm(self) -> None:
        """Wait until the mirror has all that was written. Raises as `append`."""
        self._patiently(self._write_mirror)

    def append(self, event: Event | Any) -> None:
        """Write an event; it is on disk when this returns, unless it is a poll that showed nothing (`file.py`).

        The first poll after a request is on disk, too. Raises JournalDamaged when it cannot be written, ExecutionError
        if another process went on with its mirror.
        """
        if isinstance(event, MovesObserved) and is_uneventful(event):
            self._polls.append(event)
            if self._is_awaited:
                self._patiently(self._write_polls)
            self._is_awaited = False
            return
        self._patiently(self._write_polls)
        self._patiently(lambda: self._write(event.at_ms, kind_of(event), event_to_json(event)))
        self._is_awaited = isinstance(event, self._form.requests) or (
            self._is_awaited and not isinstance(event, MovesObserved)
        )
        if self._former is not None and isinstance(event, self._form.goes_on):
            with suppress(MirrorUnavailable):
                self._former.append(journal_rows(self.path, self._form))
            self._former = None
        if self._unmirrored and (
            not isinstance(event, OBSERVED) or event.at_ms - self._unmirrored[0][1] >= OBSERVED_MS
        ):
            self._patiently(self._write_mirror)
        if isinstance(event, (*self._form.binding, *self._form.requests)):
            # Readers and locks of others keep rows in the log for now, where they are as durable.
            with self._refusing(), _if_possible(self.path):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def keep_snapshot(self, text: str) -> None:
        """Store a snapshot of the run after all appended events, unless others have locked the journal.

        Raises JournalDamaged when it cannot be written.
        """
        self._patiently(self._write_polls)
        with self._refusing(), _if_possible(self.path):
            store_snapshot(self._connection, self.position, text)

    def requests_after(self, number: int) -> tuple[Any, ...]:
        """Requests with higher numbers, oldest first; none while others have locked the journal. Raises JournalDamaged.

        Only those made to this process: earlier requesters were told that the run did not respond, and may have changed
        their mind since.
        """
        rows: list[tuple[str, str]] = []
        try:
            with _if_possible(self.path):
                rows = self._connection.execute(_REQUESTS, (max(number, self._last_void),)).fetchall()
        except sqlite3.Error as error:
            raise damaged(self.path, f"cannot be read: {error}") from error
        return tuple(_request(self.path, kind, body, self._form) for kind, body in rows)

    def close(self) -> None:
        """Stop writing and release the lock of the cluster."""
        try:
            # Polls that cannot be written now showed nothing new.
            with suppress(sqlite3.Error):
                self._write_polls()
            # As above: what a mirror lacks now was observed only.
            with suppress(ExecutionError):
                self._write_mirror()
            self._connection.close()
        finally:
            self._lock.close()

    def _write_polls(self) -> None:
        if self._polls:
            self._write(self._polls[-1].at_ms, POLLS_KIND, polls_to_json(self._polls))
            self._polls.clear()

    def _write(self, at_ms: int, kind: str, body: str) -> None:
        row = _row(self.position, at_ms, kind, body)
        self._connection.execute(INSERT, row)
        self.position = Position(row[0], row[4])
        if self._mirror is not None:
            self._unmirrored.append(row)

    def _write_mirror(self) -> None:
        if self._mirror is not None and self._unmirrored:
            self._mirror.append(self._unmirrored)
            self._unmirrored.clear()

    def _patiently(self, write: Callable[[], None], on_lock: OnLock | None = None) -> None:
        """Write once nobody has locked the journal, its disk has room and its mirror confirms, however long that is."""
        is_waiting, on_lock = False, on_lock or self.on_lock
        while True:
            with self._refusing():
                try:
                    write()
                except MirrorUnavailable as error:
                    hindrance: JournalLocked | None = error
                except sqlite3.Error as error:
                    hindrance = hindered(self.path, "written", error)
                    if hindrance is None:
                        raise
                else:
                    break
            is_waiting = True
            on_lock(hindrance)
            if isinstance(hindrance, JournalFull):  # SQLite waits for locks, and not for room
                SYSTEM_CLOCK.sleep(LOOK_EVERY_S)
        if is_waiting:
            on_lock(None)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise JournalDamaged(
                f"{self.path} cannot be written: {error}. Nothing more is sent; resume the run once it can be"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def post_request(path: Path, make: Callable[[int], Any], form: Form = RUNS) -> Any:
    """Post a request to the run that writes this journal: `make` gets its number and returns the request.

    It is on disk when this returns; an event shows that the run accepted it. No process begins to execute the run
    between `make` and then; if `make` raises, nothing is stored. Raises JournalDamaged, JournalLocked, InputError.
    """
    refuse_shared_file_system(path.parent)
    with opened(path, mode="rw", form=form) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        number = _last_request(connection) + 1
        request = make(number)
        connection.execute("INSERT INTO requests VALUES (?, ?, ?)", (number, kind_of(request), event_to_json(request)))
        connection.execute("COMMIT")
    return request


def set_aside(path: Path) -> Path:
    """Set a journal aside so that it does not block other runs; return its path, with `.unreadable` added to the name.

    Raises InputError when a process executes a run of its cluster, or there is no such file.
    """
    with closing(ClusterLock(path)):
        if not path.is_file():
            raise InputError(f"there is no journal {path}")
        return _renamed(path, ASIDE)


def _renamed(path: Path, suffix: str) -> Path:
    """Rename a journal, and the files in which it has its latest rows, to a name that is free; its new path."""
    names = (path.with_name(f"{path.name}{suffix}{number}") for number in ("", *(f"-{one}" for one in range(2, 1_000))))
    new = next(one for one in names if not one.exists())
    for name in ("", *_BESIDE):
        beside = path.with_name(path.name + name)
        if beside.exists():
            rename_file(beside, new.with_name(new.name + name))
    return new


def _last_request(connection: sqlite3.Connection) -> int:
    """Number of the latest request; 0 if there is none."""
    (last,) = connection.execute(_LAST_REQUEST).fetchone()
    return int(last)


SUPERSEDED = ".superseded"
"""Suffix of a journal without which another host went on."""


def bring_home(
    path: Path, mirror: Mirror, check: Callable[[Sequence[Row]], None] = lambda _: None, form: Form = RUNS
) -> None:
    """Make a journal what its mirror says, unless it only goes on from there.

    `check` gets the rows of the mirror before anything is changed.

    Events that are only here came too late: another host went on without. The former file is kept beside the new one.
    Raises InputError when a process writes the journal, JournalDamaged, MirrorUnavailable, and what `check` raises.
    """
    told = _told(f"the journal {path} cannot be written", "Nothing was sent; make room or choose another --state-dir")
    with told:
        refuse_shared_file_system(path.parent)
        make_folder(path.parent)
        with closing(ClusterLock(path)):
            rows = mirror.read()
            here = journal_rows(path, form) if path.is_file() else ()
            if here[: len(rows)] == rows:
                return
            check(rows)
            if rows[: len(here)] != here:
                _renamed(path, SUPERSEDED)
            for name in _BESIDE:
                path.with_name(path.name + name).unlink(missing_ok=True)
            _write_file(path, rows, form)


def _row(before: Position, at_ms: int, kind: str, body: str) -> Row:
    row = stored(body)
    return before.sequence + 1, at_ms, kind, row, chained(before.digest, kind, row)


def _write_file(path: Path, rows: Sequence[Row], form: Form) -> None:
    """Write a whole journal. The file is renamed when complete, so that half a journal is never read."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        make_file(unfinished)
        with closing(sqlite3.connect(unfinished)) as connection:
            connection.executescript(f"{CREATE}{CREATE_SNAPSHOTS}PRAGMA application_id = {form.application_id};")
            connection.executemany(INSERT, rows)
            connection.executemany("INSERT INTO requests VALUES (?, ?, ?)", _accepted(rows, form))
            connection.commit()
        rename_file(unfinished, path)
    except BaseException:
        for name in ("", *_BESIDE):
            unfinished.with_name(unfinished.name + name).unlink(missing_ok=True)
        raise


def _accepted(rows: Sequence[Row], form: Form) -> Iterator[tuple[int, str, str]]:
    """Requests among events: numbers of later ones go on from there. Those without a number nobody made."""
    kinds = {kind.__name__ for kind in form.requests}
    for _, _, kind, body, _ in rows:
        if kind in kinds and (number := json.loads(text := unstored(body))[form.number]):
            yield number, kind, text


@contextmanager
def _if_possible(path: Path) -> Iterator[None]:
    """Leave undone what can wait while another process has locked the journal, or its disk is full."""
    try:
        yield
    except sqlite3.Error as error:
        if hindered(path, "written", error) is None:
            raise


@contextmanager
def _held(path: Path) -> Iterator[ClusterLock]:
    """Lock of a journal's cluster; released if the journal cannot be opened."""
    lock = ClusterLock(path)
    try:
        yield lock
    except BaseException:
        lock.close()
        raise


@contextmanager
def _told(what: str, what_to_do: str) -> Iterator[None]:
    """Convert errors of the machine: what failed, why, and what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise ExecutionError(f"{what}: {machine_reason(error)}. {what_to_do}") from error


def _request(path: Path, kind: str, body: str, form: Form) -> Any:
    try:
        found = event_from_json(kind, body, form.kinds)
    except ValueError as error:
        raise damaged(path, f"holds a request that cannot be understood: {error}") from error
    if not isinstance(found, form.requests):
        raise damaged(path, f"holds a {kind} among its requests")
    return found
