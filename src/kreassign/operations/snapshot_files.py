"""Snapshot files on disk; with a name that ends in `.gz` they are compressed."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from kreassign.errors import InputError
from kreassign.model.amount import format_amount
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.snapshot_json import format_snapshot, parse_snapshot

MOST_BYTES = 1000**3
"""A partition with three replicas takes about 370 bytes, so this is more than two million of them."""

_COMPRESSED = ".gz"


def read_snapshot(path: Path, *, most_bytes: int = MOST_BYTES) -> ClusterSnapshot:
    """The snapshot in a file of at most `most_bytes` when decompressed. Raises InputError, which names the file.

    Not more than that is ever decompressed: a kilobyte of gzip can stand for a megabyte.
    """
    try:
        with gzip.open(path) if path.suffix == _COMPRESSED else path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise InputError(
                f"{path} holds more than {format_amount(most_bytes, 'B')}, which no snapshot does; take another one "
                "with `kreassign snapshot --out FILE`"
            )
        text = content.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a snapshot file: {error}") from error
    return parse_snapshot(text, str(path))


def write_snapshot(path: Path, snapshot: ClusterSnapshot) -> None:
    """Write a snapshot file; a file that is there is replaced as a whole or not at all."""
    content = format_snapshot(snapshot).encode()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(gzip.compress(content, mtime=0) if path.suffix == _COMPRESSED else content)
    unfinished.replace(path)
