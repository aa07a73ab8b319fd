"""Read a journal as a SQLite file: events as JSON in rows, chained by digests, and snapshots of the run.

Application id 0x6B726561 ("krea"), user version 6, WAL mode, so that other processes can read while the run writes.
A file that is not a journal, has gaps or a broken chain is refused with JournalDamaged: going on from incomplete
records could repeat or skip changes. A journal of another version is refused.

`events` and `requests` are append-only; of `snapshots` the two latest are kept:

    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,   -- 1, 2, 3 … without gaps
        at_ms    INTEGER NOT NULL,      -- when it happened, ms since the epoch
        kind     TEXT NOT NULL,         -- class of events.py; the first is RunStarted, and only the first
        body     NOT NULL,              -- its fields as JSON: TEXT, or a BLOB compressed by zlib where it is long
        digest   TEXT NOT NULL          -- SHA-256 of the digest before, kind and JSON: a changed row breaks the chain
    )
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,     -- 1, 2, 3 …
        kind   TEXT NOT NULL,           -- class of events.py, one of `Request`
        body   TEXT NOT NULL            -- its fields as JSON
    )
    CREATE TABLE snapshots (
        sequence    INTEGER PRIMARY KEY,  -- the event after which the run was as in the body
        digest      TEXT NOT NULL,        -- digest of that event
        body_digest TEXT NOT NULL,        -- SHA-256 of the body
        body        BLOB NOT NULL         -- the run (`state/machine.py`), compressed by zlib
    )

`events` is written by the process that executes the run, `requests` by anyone who wants something of it. A request
is taken in when an event with its number is among the events. One that was not is void when another process resumes
the run: whoever asked was told that it was not heard.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from kreassign.errors import InputError, InvariantBroken, JournalDamaged
from kreassign.executor.events import Event, MovesObserved, RunStarted
from kreassign.model.text import format_amount, printable, shortened

# Events as JSON text and back, by the types of their fields. Pure.
#
# The kind of an event is the name of its class. Dataclasses and named tuples become objects, tuples arrays, closed
# choices their values. What does not fit the types on the way back raises ValueError.

KINDS: Mapping[str, type[Event]] = MappingProxyType({kind.__name__: kind for kind in get_args(Event)})


def kind_of(event: Event) -> str:
    """The name under which an event is kept."""
    return type(event).__name__


def event_to_json(event: Event) -> str:
    """The fields of an event, on one line."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False, default=_plain)


def event_from_json(kind: str, text: str) -> Event:
    """The event of this kind with these fields. Raises ValueError."""
    if kind not in KINDS:
        raise ValueError(f"no event is called {kind!r}; a newer version of kreassign may have written it")
    try:
        event: Event = _read_value(json.loads(text), KINDS[kind])
    except (InputError, InvariantBroken, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"a {kind} cannot be read: {error}") from error
    return event


def _plain(value: Any) -> object:
    """One level of what JSON does not know; the encoder itself goes on from there."""
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    assert isinstance(value, Enum), f"{value!r} has no place in an event"
    return value.value


def _read_value(value: Any, wanted: Any) -> Any:
    """A value of the wanted type, from what the JSON parser made."""
    origin = get_origin(wanted)
    if origin is UnionType:
        inner = next(option for option in get_args(wanted) if option is not NoneType)
        return None if value is None else _read_value(value, inner)
    if origin is tuple:
        return tuple(_read_value(item, get_args(wanted)[0]) for item in _checked_value(value, list))
    if is_dataclass(wanted):
        return _read_fields(_checked_value(value, dict), wanted)
    if issubclass(wanted, tuple):
        return _read_tuple(_checked_value(value, list), wanted)
    if issubclass(wanted, Enum):
        return wanted(value)
    return _checked_value(value, wanted)


def _read_fields(values: dict[str, Any], wanted: Any) -> Any:
    hints = _hints(wanted)
    unknown = values.keys() - {field.name for field in fields(wanted)}
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    return wanted(**{name: _read_value(value, hints[name]) for name, value in values.items()})


def _read_tuple(values: list[Any], wanted: Any) -> Any:
    """A named tuple: JSON knows only arrays."""
    hints = list(_hints(wanted).values())
    return wanted(*(_read_value(value, hint) for value, hint in zip(values, hints, strict=True)))


def _checked_value(value: Any, wanted: type) -> Any:
    if type(value) is not wanted:
        raise TypeError(f"{value!r} is no {wanted.__name__}")
    return value


@cache
def _hints(wanted: type) -> dict[str, Any]:
    return get_type_hints(wanted)


APPLICATION_ID = 0x6B726561
VERSION = 6
"""Of the tables and events of a journal."""

MOST_BYTES = 500_000_000
"""In one row. That of a plan takes some hundred bytes for a move, so this is more than a million of them."""
COMPRESSED_FROM = 1_000
"""Rows of so many characters are compressed: those that tell of many moves, or of all log directories."""

CREATE = f"""
    PRAGMA page_size = 16384; -- rows of some kilobytes would waste half of smaller pages
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {VERSION};
    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body NOT NULL,
        digest TEXT NOT NULL
    );
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    );
"""
CREATE_SNAPSHOTS = """
    CREATE TABLE snapshots (
        sequence INTEGER PRIMARY KEY,
        digest TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        body BLOB NOT NULL
    );
"""
INSERT = "INSERT INTO events (sequence, at_ms, kind, body, digest) VALUES (?, ?, ?, ?, ?)"
SELECT = "SELECT sequence, at_ms, kind, body, digest FROM events WHERE sequence > ? ORDER BY sequence"


def stored(body: str) -> str | bytes:
    """The JSON of an event as a row keeps it."""
    return body if len(body) < COMPRESSED_FROM else zlib.compress(body.encode())


def unstored(body: str | bytes) -> str:
    """The JSON of a row. Raises ValueError when it is damaged."""
    return body if isinstance(body, str) else decompressed(body)


def decompressed(body: bytes, most_bytes: int = MOST_BYTES) -> str:
    """The text of a body that was compressed, of which not more is ever decompressed. Raises ValueError.

    A kilobyte of zlib can stand for a megabyte.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(body, most_bytes)
    except (zlib.error, TypeError) as error:
        raise ValueError(str(error)) from error
    if unpacking.unconsumed_tail:
        raise ValueError(f"it has more than {format_amount(most_bytes, 'B')}, which no row does")
    if not unpacking.eof:
        raise ValueError("it is cut off")
    return content.decode()


def chained(before: str, kind: str, body: str) -> str:
    """The digest of a row, given that of the row before."""
    return hashlib.sha256(f"{before}\n{kind}\n{body}".encode(errors="surrogatepass")).hexdigest()


@contextmanager
def opened(path: Path, *, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    """A connection to a journal. Raises InputError without one, JournalDamaged when it is not one, or unreadable."""
    if not path.is_file():
        raise InputError(f"there is no journal {path}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != APPLICATION_ID:
                raise JournalDamaged(f"{path} is not a journal of kreassign, or its beginning is damaged")
            _refuse_other_version(path, connection)
            _refuse_cut(path, connection)
            yield connection
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, "read" if mode == "ro" else "written") from error


def unreadable(path: Path, why: object, doing: str = "read") -> JournalDamaged:
    """That a journal cannot be read, or written."""
    # SQLite quotes what it cannot decode, of whatever length.
    return JournalDamaged(f"{path} cannot be {doing}: {shortened(printable(str(why)))}")


def _refuse_cut(path: Path, connection: sqlite3.Connection) -> None:
    """SQLite itself minds only when it reads the page that is cut, which may be never.

    A log beside the file still has pages that a full disk kept from being written whole.
    """
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    if path.stat().st_size % page_bytes and not has_log:
        raise JournalDamaged(f"{path} is cut off: its last page is incomplete")


def _refuse_other_version(path: Path, connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise JournalDamaged(
            f"{path} has journal version {version}, written by another version of kreassign; this one reads version "
            f"{VERSION}. End the run with the one that wrote it"
        )


# Polls of the cluster that showed nothing new, many in one row.
#
# A run of a week polls half a million times, and mostly nothing has changed but time. Nothing is sent after such a
# poll before another event is written, so the row may wait for that one: a run that dies before has only not polled
# yet.

POLLS_KIND = "UneventfulPolls"


def is_uneventful(event: MovesObserved) -> bool:
    """Whether a poll showed nothing, or nothing that is written down."""
    return event.absent is None and not (event.observations or event.unread)


def polls_to_json(polls: Iterable[MovesObserved]) -> str:
    """The row of these polls: when each was, and whether it had progress to show."""
    rows = [(poll.at_ms, int(poll.has_progress)) for poll in polls]
    columns = {"at_ms": [at_ms for at_ms, _ in rows], "has_progress": [flag for _, flag in rows]}
    return json.dumps(columns, separators=(",", ":"))


def polls_from_json(body: str) -> Iterator[MovesObserved]:
    """The polls of a row. Raises ValueError."""
    try:
        fields = json.loads(body)
        for at_ms, has_progress in zip(fields["at_ms"], fields["has_progress"], strict=True):
            yield MovesObserved(int(at_ms), (), has_progress=bool(has_progress))
    except (LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{POLLS_KIND} cannot be read: {error}") from error


# Snapshots in a journal: what its run was after some event, so that readers need not begin at the first.
#
# The two latest are kept, in the table `snapshots`. They are an aid to memory and no part of the record: one that is
# damaged, or does not fit to its event, is passed over.

_SELECT_SNAPSHOTS = """
    SELECT snapshots.sequence, snapshots.digest, body_digest, snapshots.body FROM snapshots
    JOIN events ON events.sequence = snapshots.sequence AND events.digest = snapshots.digest
    ORDER BY snapshots.sequence DESC
"""
_FORGET_SNAPSHOTS = """
    DELETE FROM snapshots WHERE sequence NOT IN (SELECT sequence FROM snapshots ORDER BY sequence DESC LIMIT 2)
"""


class Position(NamedTuple):
    """An event of a journal: its number and its digest, on which the next one is chained."""

    sequence: int = 0
    digest: str = ""


class StoredSnapshot(NamedTuple):
    """A run as text, as it was after the event at this position."""

    position: Position
    text: str


def stored_snapshots(path: Path) -> tuple[StoredSnapshot, ...]:
    """Those of a journal that are whole, the latest first. Raises JournalDamaged, InputError."""
    with opened(path) as connection:
        try:
            rows = connection.execute(_SELECT_SNAPSHOTS).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):  # damaged, but perhaps only here
            return ()
    return tuple(_whole_snapshots(rows))


def store_snapshot(connection: sqlite3.Connection, position: Position, text: str) -> None:
    """Keep a run as it is after this event, and forget all but the latest ones. Raises sqlite3.Error."""
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


# Reading, also while a run writes: every row is checked before it counts.

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
        self._sequence, self._digest = start

    @property
    def position(self) -> Position:
        """The last event that was read."""
        return Position(self._sequence, self._digest)

    def new_events(self) -> tuple[Event, ...]:
        """Events not given yet. Raises JournalDamaged when they cannot be trusted, InputError without a journal."""
        with opened(self._path) as connection:
            rows = connection.execute(SELECT, (self._sequence,)).fetchall()
        return tuple(self._checked(rows))

    def _checked(self, rows: Iterable[Row]) -> Iterator[Event]:
        for sequence, _, kind, body, digest in rows:
            if sequence != self._sequence + 1 or digest != self._expected(kind, body):
                raise JournalDamaged(
                    f"{self._path} is damaged at event {self._sequence + 1}: rows are missing or were changed"
                )
            try:
                events = _events(kind, body)
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
    try:
        return None if row is None else _events(*row)[-1]
    except (ValueError, TypeError, LookupError) as error:
        raise JournalDamaged(f"{path} cannot be understood at its {where}: {error}") from error


def _events(kind: str, body: str | bytes) -> tuple[Event, ...]:
    """The events of a row: one, or polls that showed nothing. Raises ValueError."""
    text = unstored(body)
    return tuple(polls_from_json(text)) if kind == POLLS_KIND else (event_from_json(kind, text),)
