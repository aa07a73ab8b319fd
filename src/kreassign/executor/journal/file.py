"""A journal as a SQLite file: its tables, how it is opened, and what is said of one that cannot be read.

Application id 0x6B726561 ("krea"), user version 6, WAL mode, so that other processes can read while the run writes.
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
        body        BLOB NOT NULL         -- the run (`state/snapshot.py`), compressed by zlib
    )

`events` is written by the process that executes the run, `requests` by anyone who wants something of it. A request
is taken in when an event with its number is among the events. One that was not is void when another process resumes
the run: whoever asked was told that it was not heard.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kreassign.errors import InputError, JournalDamaged
from kreassign.executor.journal.migration import CURRENT_VERSION, READABLE_VERSIONS
from kreassign.model.amount import format_amount

APPLICATION_ID = 0x6B726561
MOST_BYTES = 500_000_000
"""In one row. That of a plan takes some hundred bytes for a move, so this is more than a million of them."""
COMPRESSED_FROM = 1_000
"""Rows of so many characters are compressed: those that tell of many moves, or of all log directories."""

CREATE = f"""
    PRAGMA page_size = 16384; -- rows of some kilobytes would waste half of smaller pages
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {CURRENT_VERSION};
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
            _refuse_unknown_version(path, version_of(connection))
            _refuse_cut(path, connection)
            yield connection
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, "read" if mode == "ro" else "written") from error


def unreadable(path: Path, why: object, doing: str = "read") -> JournalDamaged:
    """That a journal cannot be read, or written."""
    return JournalDamaged(f"{path} cannot be {doing}: {why}")


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the tables and events of a journal."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _refuse_cut(path: Path, connection: sqlite3.Connection) -> None:
    """SQLite itself minds only when it reads the page that is cut, which may be never.

    A log beside the file still has pages that a full disk kept from being written whole.
    """
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    if path.stat().st_size % page_bytes and not has_log:
        raise JournalDamaged(f"{path} is cut off: its last page is incomplete")


def _refuse_unknown_version(path: Path, version: int) -> None:
    if version in READABLE_VERSIONS:
        return
    which = "a newer" if version > CURRENT_VERSION else "an unsupported earlier"
    raise JournalDamaged(
        f"{path} has journal version {version}, written by {which} version of kreassign; this one reads versions "
        f"{READABLE_VERSIONS[0]} to {CURRENT_VERSION}"
    )
