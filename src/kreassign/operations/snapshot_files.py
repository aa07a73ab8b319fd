"""Read and write snapshot files: JSON, or columns.

A name that ends in `.gz` is compressed, one that ends in `.parquet` has columns. Loads neither client nor planner, so
that the twin starts quickly from such a file.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from kreassign.errors import InputError, machine_reason, requires
from kreassign.model.snapshot import ClusterSnapshot, format_snapshot, parse_snapshot
from kreassign.model.text import format_amount
from kreassign.operations.text_files import decoded_file, unreadable
from kreassign.operations.whole_file import replace_file, replacing
from kreassign.pipeline.tables.snapshot_columns import SnapshotColumns, columns_of, snapshot_of

# Snapshot files: JSON, compressed with a name that ends in `.gz`; columns with one that ends in `.parquet`.

MOST_BYTES = 1000**3
"""Largest JSON. A partition with three replicas takes about 370 bytes, so this is more than two million partitions."""

_COMPRESSED = ".gz"
_COLUMNS = ".parquet"
_PARQUET = b"PAR1"


def read_snapshot(path: Path, *, most_bytes: int = MOST_BYTES) -> ClusterSnapshot:
    """Read the snapshot in a file: JSON of at most `most_bytes`, or columns. Raises InputError, which names the file.

    At most that much is ever decompressed: a kilobyte of gzip can expand to a megabyte.
    """
    if _is_columns(path):
        return snapshot_of(read_snapshot_columns(path))
    try:
        with gzip.open(path) if path.suffix == _COMPRESSED else path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise InputError(
                f"{path} holds more than {format_amount(most_bytes, 'B')}, which no snapshot does; take another one "
                "with `kreassign snapshot --out FILE`"
            )
        text = decoded_file(path, content)
        del content
        return parse_snapshot(text, str(path))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as a snapshot file: {machine_reason(error)}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    except MemoryError:
        raise InputError(
            f"{path} needs more memory than there is; take a snapshot in columns with `kreassign snapshot --out "
            "FILE.parquet`"
        ) from None


def read_snapshot_columns(path: Path) -> SnapshotColumns:
    """Read as columns, directly for a file of columns. Raises InputError, which names the file."""
    if not _is_columns(path):
        return columns_of(read_snapshot(path))
    with requires("a snapshot in columns", "pyarrow", "tables"):
        from kreassign.pipeline.tables.snapshot_parquet import read_columns_file

    return read_columns_file(path)


def write_snapshot(path: Path, snapshot: ClusterSnapshot | SnapshotColumns) -> None:
    """Write a snapshot file; an existing file is replaced as a whole or not at all."""
    if path.suffix == _COLUMNS:
        with requires("a snapshot in columns", "pyarrow", "tables"):
            from kreassign.pipeline.tables.snapshot_parquet import write_columns_file

        columns = snapshot if isinstance(snapshot, SnapshotColumns) else columns_of(snapshot)
        with replacing(path) as unfinished:
            write_columns_file(unfinished, columns)
    else:
        whole = snapshot_of(snapshot) if isinstance(snapshot, SnapshotColumns) else snapshot
        content = format_snapshot(whole).encode()
        replace_file(path, gzip.compress(content, mtime=0) if path.suffix == _COMPRESSED else content)


def _is_columns(path: Path) -> bool:
    """True by its name, or by its first bytes: a file may have been renamed."""
    if path.suffix == _COLUMNS:
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET)) == _PARQUET
    except OSError as error:
        raise unreadable(path, error) from error
