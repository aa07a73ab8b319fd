"""Snapshots in a journal: what its run was after some event, so that readers need not begin at the first.

The two latest are kept, in the table `snapshots`. They are an aid to memory and no part of the record: one that is
damaged, or does not fit to its event, is passed over.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kreassign.executor.journal.file import decompressed, opened, version_of
from kreassign.executor.journal.migration import CURRENT_VERSION

_SELECT = """
    SELECT snapshots.sequence, snapshots.digest, body_digest, snapshots.body FROM snapshots
    JOIN events ON events.sequence = snapshots.sequence AND events.digest = snapshots.digest
    ORDER BY snapshots.sequence DESC
"""
_FORGET = """
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
        if version_of(connection) != CURRENT_VERSION:
            return ()
        try:
            rows = connection.execute(_SELECT).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):  # damaged, but perhaps only here
            return ()
    return tuple(_whole(rows))


def store_snapshot(connection: sqlite3.Connection, position: Position, text: str) -> None:
    """Keep a run as it is after this event, and forget all but the latest ones. Raises sqlite3.Error."""
    body = zlib.compress(text.encode(), 1)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (*position, _digest(body), body))
        connection.execute(_FORGET)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _whole(rows: list[tuple[int, str, str, bytes]]) -> Iterator[StoredSnapshot]:
    for sequence, digest, body_digest, body in rows:
        if isinstance(body, bytes) and _digest(body) == body_digest:
            try:
                text = decompressed(body)
            except ValueError:
                continue
            yield StoredSnapshot(Position(sequence, digest), text)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
