"""Snapshot files on disk; with a name that ends in `.gz` they are compressed."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from kreassign.errors import InputError
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.model.snapshot_json import format_snapshot, parse_snapshot

_COMPRESSED = ".gz"


def read_snapshot(path: Path) -> ClusterSnapshot:
    """The snapshot in a file. Raises InputError, which names the file."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if path.suffix == _COMPRESSED else content).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a snapshot file: {error}") from error
    return parse_snapshot(text, str(path))


def write_snapshot(path: Path, snapshot: ClusterSnapshot) -> None:
    """Write a snapshot file; a file that is there is replaced as a whole or not at all."""
    content = format_snapshot(snapshot).encode()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(gzip.compress(content, mtime=0) if path.suffix == _COMPRESSED else content)
    unfinished.replace(path)
