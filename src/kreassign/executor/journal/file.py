"""Read a journal as a SQLite file: events as JSON in rows, chained by digests, and snapshots of the run.

Application id 0x6B726561 ("krea"), user version `VERSION`, WAL mode, so that other processes can read while the run
writes. A file that is not a journal, has gaps or a broken chain is refused with JournalDamaged: going on from
incomplete records could repeat or skip changes. A journal of another version is refused.

`events` and `requests` are append-only; of `snapshots` the two latest are kept (`CREATE`, `CREATE_SNAPSHOTS`).

`events` is written by the process that executes the run, `requests` by other processes that steer it. A request
is accepted when the events have one with its number. Others are void when another process resumes
the run: their requesters were told that the run did not respond.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from kreassign.errors import InputError, InvariantBroken, JournalDamaged
from kreassign.executor.events import (
    CancelIntended,
    Event,
    MovesObserved,
    Request,
    RunResumed,
    RunStarted,
    SubmissionIntended,
    ThrottleIntended,
)
from kreassign.executor.journal.folder import journal_name
from kreassign.executor.journal.locks import hindered
from kreassign.model.text import format_amount, printable, shortened
from kreassign.model.typed_json import Reader

# Convert events to JSON text and back (`model/typed_json.py`). Pure.
#
# The kind of an event is the name of its class. What does not fit the types on the way back raises ValueError.

KINDS: Mapping[str, type[Event]] = MappingProxyType({kind.__name__: kind for kind in get_args(Event)})


def kind_of(event: object) -> str:
    """Class name of the event, which is its kind in the journal."""
    return type(event).__name__


def event_to_json(event: object) -> str:
    """The fields of an event, on one line."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False, default=_plain)


def event_from_json(kind: str, text: str, kinds: Mapping[str, type[Any]] = KINDS) -> Any:
    """Parse an event of this kind. Raises ValueError."""
    if kind not in kinds:
        raise ValueError(f"no event is called {kind!r}; a newer version of kreassign may have written it")
    try:
        event = Reader().value(json.loads(text), kinds[kind], kind)
    except (InputError, InvariantBroken, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"a {kind} cannot be read: {error}") from error
    return event


def _plain(value: Any) -> object:
    """Convert one level of a value that JSON does not know; the encoder recurses."""
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    assert isinstance(value, Enum), f"{value!r} has no place in an event"
    return value.value


APPLICATION_ID = 0x6B726561
VERSION = 16
"""Version of the tables and events of a journal, and of the rules that make a run of them."""


class Form(NamedTuple):
    """Whose journal a file is: its application id, the class of its first event, and all classes by their names.

    Events of `binding` classes, and requests, leave work to do which the cluster does not show. Requests that no
    process accepted are void for the next one, unless it `keeps_requests`. `number` is the field with the number of a
    request; an event of class `goes_on` tells that another process goes on with the journal, and where it is kept.
    """

    application_id: int
    first: type[Any]
    kinds: Mapping[str, type[Any]]
    binding: tuple[type[Any], ...]
    requests: tuple[type[Any], ...]
    keeps_requests: bool = False
    number: str = "request"
    goes_on: type[Any] = RunResumed


RUNS = Form(
    APPLICATION_ID, RunStarted, KINDS, (ThrottleIntended, SubmissionIntended, CancelIntended), get_args(Request)
)
"""Journals of runs."""

MOST_BYTES = 500_000_000
"""Most bytes in one row. A plan takes some hundred bytes per move, so this is more than a million moves."""
LOCK_PATIENCE_S = 5.0
"""How long a reader waits for a lock of another process."""

CHANGE_PATIENCE_S = 30.0
"""How long a command waits to change what another one has locked: less than a session of the lease.

A run keeps its journal locked while a busy disk syncs it: 7 s were seen.
"""

COMPRESSED_FROM = 1_000
"""Rows of this many characters are compressed: those with many moves, or all log directories."""

CREATE = f"""
    PRAGMA page_size = 16384; -- rows of some kilobytes would waste half of smaller pages
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA user_version = {VERSION};
    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY, -- 1, 2, 3 … without gaps
        at_ms INTEGER NOT NULL,       -- when it happened, ms since the epoch
        kind TEXT NOT NULL,           -- class of events.py; the first is RunStarted, and only the first
        body NOT NULL,                -- its fields as JSON: TEXT, or a BLOB compressed by zlib where it is long
        digest TEXT NOT NULL          -- SHA-256 of the digest before, kind and body: a changed row breaks the chain
    );
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,   -- 1, 2, 3 …
        kind TEXT NOT NULL,           -- class of events.py, one of `Request`
        body TEXT NOT NULL            -- its fields as JSON
    );
"""
CREATE_SNAPSHOTS = """
    CREATE TABLE snapshots (
        sequence INTEGER PRIMARY KEY, -- the event after which the run was as in the body
        digest TEXT NOT NULL,         -- digest of that event
        body_digest TEXT NOT NULL,    -- SHA-256 of the body
        body BLOB NOT NULL            -- the run (`state/machine.py`), compressed by zlib
    );
"""
_RECORD = frozenset({"events", "requests"})
"""Tables that are the record of a run; `snapshots` only saves time."""

INSERT = "INSERT INTO events (sequence, at_ms, kind, body, digest) VALUES (?, ?, ?, ?, ?)"
SELECT = "SELECT sequence, at_ms, kind, body, digest FROM events WHERE sequence > ? ORDER BY sequence"


def stored(body: str) -> str | bytes:
    """JSON of an event as its row stores it."""
    return body if len(body) < COMPRESSED_FROM else zlib.compress(body.encode())


def unstored(body: str | bytes) -> str:
    """JSON of a row. Raises ValueError when it is damaged."""
    return body if isinstance(body, str) else decompressed(body)


def decompressed(body: bytes, most_bytes: int = MOST_BYTES, too_much: str = "") -> str:
    """Decompress a body, up to `most_bytes`. Raises ValueError, with the words `too_much` where it has more.

    A kilobyte of zlib can expand to a megabyte.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(body, most_bytes)
    except (zlib.error, TypeError) as error:
        raise ValueError(str(error)) from error
    if unpacking.unconsumed_tail:
        raise ValueError(too_much or f"it has more than {format_amount(most_bytes, 'B')}, which no row does")
    if not unpacking.eof:
        raise ValueError("it is cut off")
    return content.decode()


def chained(before: str, kind: str, body: str | bytes) -> str:
    """Digest of a row, chained to that of the row before. Of the body as it is stored, which is quick to check."""
    data = body if isinstance(body, bytes) else str(body).encode(errors="surrogatepass")  # of a damaged file: any type
    return hashlib.sha256(f"{before}\n{kind}\n".encode(errors="surrogatepass") + data).hexdigest()


@contextmanager
def opened(path: Path, *, mode: str = "ro", form: Form = RUNS) -> Iterator[sqlite3.Connection]:
    """Connect to a journal. Raises InputError without one, JournalDamaged when it is no journal, or unreadable.

    Raises JournalLocked if another process keeps it locked for `LOCK_PATIENCE_S`, or `CHANGE_PATIENCE_S` where it is to
    be changed; or on a full disk.
    """
    if not path.is_file():
        if path.exists() or path.is_symlink():
            raise JournalDamaged(
                f"{path} is no file, and no link to one", "Bring the journal back, or remove this name"
            )
        raise InputError(f"there is no journal {path}")
    doing, patience_s = ("read", LOCK_PATIENCE_S) if mode == "ro" else ("written", CHANGE_PATIENCE_S)
    try:
        address = f"{path.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=patience_s)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != form.application_id:
                raise damaged(path, "is not a journal of kreassign, or its beginning is damaged")
            _refuse_other_version(path, connection)
            _refuse_cut(path, connection)
            _refuse_lost_table(path, connection)
            yield connection
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        if (hindrance := hindered(path, doing, error)) is not None:
            raise hindrance from error
        # SQLite quotes undecodable values of any length.
        raise damaged(path, f"cannot be {doing}: {shortened(printable(str(error)))}") from error


def damaged(path: Path, problem: str) -> JournalDamaged:
    """Error for a journal that cannot be trusted, with what to do about it."""
    return JournalDamaged(
        f"{path} {problem}",
        "What its run left behind is not known: look with `kreassign doctor`, and with `kreassign verify` and the "
        f"plan; then set it aside with `kreassign forget {quote(str(path))}`",
    )


def _refuse_cut(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a truncated file: SQLite itself notices only when it reads the missing page, which may be never.

    A log beside the file may still have the pages that a full disk kept from being written.
    """
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    if path.stat().st_size % page_bytes and not has_log:
        raise damaged(path, "is cut off: its last page is incomplete")


def _refuse_lost_table(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that lacks a table, whoever reads it: some commands read no requests."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    if lost := _RECORD.difference(name for (name,) in found):
        raise damaged(path, f"cannot be read: it has no table {' and '.join(sorted(lost))}")


def _refuse_other_version(path: Path, connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise damaged(
            path,
            f"has journal version {version}, written by another version of kreassign; this one reads version "
            f"{VERSION}. End the run with the one that wrote it",
        )


# Polls that showed nothing new, many in one row.
#
# A run of a week polls half a million times, mostly without a change. Nothing is sent after such a poll before another
# event is written, so its row may wait for that event: a run that dies before then has merely not polled
# yet.

POLLS_KIND = "UneventfulPolls"


def is_uneventful(event: MovesObserved) -> bool:
    """True if a poll showed nothing, or nothing to journal."""
    return event.absent is None and not (event.observations or event.unread)


def polls_to_json(polls: Iterable[MovesObserved]) -> str:
    """Row of these polls: the time of each, and whether it had progress to show."""
    rows = [(poll.at_ms, int(poll.has_progress)) for poll in polls]
    columns = {"at_ms": [at_ms for at_ms, _ in rows], "has_progress": [flag for _, flag in rows]}
    return json.dumps(columns, separators=(",", ":"))


def polls_from_json(body: str) -> Iterator[MovesObserved]:
    """Parse the polls of a row. Raises ValueError."""
    try:
        fields = json.loads(body)
        for at_ms, has_progress in zip(fields["at_ms"], fields["has_progress"], strict=True):
            yield MovesObserved(int(at_ms), (), has_progress=bool(has_progress))
    except (LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{POLLS_KIND} cannot be read: {error}") from error


# Snapshots in a journal: the run after some event, so that readers need not begin at the first.
#
# The two latest are kept, in the table `snapshots`. They only save time and are no part of the record: a snapshot that
# is damaged, or does not match its event, is skipped.

_SELECT_SNAPSHOTS = """
    SELECT snapshots.sequence, snapshots.digest, body_digest, snapshots.body FROM snapshots
    JOIN events ON events.sequence = snapshots.sequence AND events.digest = snapshots.digest
    ORDER BY snapshots.sequence DESC
"""
_FORGET_SNAPSHOTS = """
    DELETE FROM snapshots WHERE sequence NOT IN (SELECT sequence FROM snapshots ORDER BY sequence DESC LIMIT 2)
"""


class Position(NamedTuple):
    """Number and digest of an event in a journal; the next event is chained to the digest."""

    sequence: int = 0
    digest: str = ""


class StoredSnapshot(NamedTuple):
    """A run as text, after the event at this position."""

    position: Position
    text: str


def stored_snapshots(path: Path) -> tuple[StoredSnapshot, ...]:
    """Intact snapshots of a journal, the latest first. Raises JournalDamaged, InputError."""
    with opened(path) as connection:
        try:
            rows = connection.execute(_SELECT_SNAPSHOTS).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):  # damaged, but perhaps only in this table
            return ()
    return tuple(_whole_snapshots(rows))


def store_snapshot(connection: sqlite3.Connection, position: Position, text: str) -> None:
    """Store the run as it is after this event, and delete all but the latest snapshots. Raises sqlite3.Error."""
    body = zlib.compress(text.encode(), 1)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (*position, _snapshot_digest(body), body)
        )
        connection.execute(_FORGET_SNAPSHOTS)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _whole_snapshots(rows: list[tuple[int, str, str, bytes]]) -> Iterator[StoredSnapshot]:
    for sequence, digest, body_digest, body in rows:
        if isinstance(body, bytes) and _snapshot_digest(body) == body_digest:
            try:
                text = decompressed(body)
            except ValueError:
                continue
            yield StoredSnapshot(Position(sequence, digest), text)


def _snapshot_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


# Read a journal, also while a run writes it: every row is checked before it is used.

BEGINNING = Position()
_FIRST = "SELECT kind, body FROM events ORDER BY sequence LIMIT 1"
_LAST = "SELECT kind, body FROM events ORDER BY sequence DESC LIMIT 1"
Row = tuple[int, int, str, str | bytes, str]


class JournalReader:
    """Reads a journal, also while it is being written: `new_events` returns events since the last call.

    It begins at the first event, or after the one at `start`.
    """

    def __init__(self, path: Path, start: Position = BEGINNING, form: Form = RUNS) -> None:
        self._path, self._form = path, form
        self.position = start
        """Position of the last event read."""

    def new_events(self) -> tuple[Any, ...]:
        """Events not returned yet. Raises JournalDamaged when they cannot be trusted, InputError without a journal."""
        with opened(self._path, form=self._form) as connection:
            rows = connection.execute(SELECT, (self.position.sequence,)).fetchall()
        return tuple(self._checked(rows))

    def _checked(self, rows: Iterable[Row]) -> Iterator[Any]:
        for sequence, _, kind, body, digest in rows:
            before = self.position
            if sequence != before.sequence + 1 or digest != chained(before.digest, kind, body):
                raise _broken_chain(self._path, before.sequence + 1)
            try:
                events = _events(kind, body, self._form)
            except ValueError as error:
                raise damaged(self._path, f"cannot be understood at event {sequence}: {error}") from error
            self.position = Position(sequence, digest)
            yield from events


def _broken_chain(path: Path, sequence: int) -> JournalDamaged:
    return damaged(path, f"is damaged at event {sequence}: rows are missing or were changed")


def check_journal(path: Path) -> None:
    """Raise JournalDamaged unless the whole file is intact: its pages, the chain of its events, and its name.

    A snapshot of the run lets readers pass over most events, but not over damage among them: what one command refuses,
    no other takes for whole.
    """
    with opened(path) as connection:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise damaged(path, f"is damaged: {shortened(printable(str(found)))}")
        for _ in _chained_rows(path, connection):
            pass
    run_id = first_event(path).run_id
    if path.name != journal_name(run_id):
        # Whatever a copy beside the journal tells of the run is out of date as soon as that goes on.
        raise damaged(path, f"has another name than the journal of its run {run_id}: rename it if it is no copy")


def journal_rows(path: Path, form: Form = RUNS) -> tuple[Row, ...]:
    """All rows of a journal, without a look at what they say. Raises JournalDamaged where the chain is broken."""
    with opened(path, form=form) as connection:
        return tuple(_chained_rows(path, connection))


def _chained_rows(path: Path, connection: sqlite3.Connection) -> Iterator[Row]:
    last, expected = 0, ""
    for row in connection.execute(SELECT, (0,)):
        sequence, _, kind, body, digest = row
        if sequence != last + 1 or digest != chained(expected, kind, body):
            raise _broken_chain(path, last + 1)
        last, expected = sequence, digest
        yield row


def read_events(path: Path, form: Form = RUNS) -> tuple[Any, ...]:
    """All events of a journal. Raises JournalDamaged when it cannot be trusted, InputError when there is none."""
    events = JournalReader(path, form=form).new_events()
    _start(path, events[0] if events else None, form)
    return events


def _start(path: Path, event: object, form: Form) -> Any:
    if not isinstance(event, form.first):
        raise damaged(path, "has no beginning: its first events are lost")
    return event


def first_event(path: Path, form: Form = RUNS) -> Any:
    """First event of a run, without checking the chain. Raises JournalDamaged, or InputError without a journal."""
    return _start(path, _at_its_word(path, _FIRST, "beginning", form), form)


def last_event(path: Path) -> Event | None:
    """Latest event of a journal, without checking the chain; None if there is none. Raises JournalDamaged."""
    event: Event | None = _at_its_word(path, _LAST, "end", RUNS)
    return event


def _at_its_word(path: Path, query: str, where: str, form: Form) -> Any:
    with opened(path, form=form) as connection:
        row = connection.execute(query).fetchone()
    try:
        return None if row is None else _events(row[0], row[1], form)[-1]
    except (ValueError, TypeError, LookupError) as error:
        raise damaged(path, f"cannot be understood at its {where}: {error}") from error


def _events(kind: str, body: str | bytes, form: Form) -> tuple[Any, ...]:
    """Events of a row: one, or polls that showed nothing. Raises ValueError."""
    text = unstored(body)
    return tuple(polls_from_json(text)) if kind == POLLS_KIND else (event_from_json(kind, text, form.kinds),)
