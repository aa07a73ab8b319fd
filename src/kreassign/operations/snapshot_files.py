"""Read and write snapshot files: JSON, or columns; and load modules that are slow, or extras, when they are needed.

A name that ends in `.gz` is compressed, one that ends in `.parquet` has columns. Loads neither client nor planner, so
that the twin starts quickly from such a file.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kreassign.errors import InputError, KreassignError
from kreassign.model.snapshot import ClusterSnapshot, format_snapshot, parse_snapshot
from kreassign.model.text import format_amount
from kreassign.pipeline.tables.snapshot_columns import SnapshotColumns, columns_of, snapshot_of

# Modules that are slow to load, and large: loaded when something comes to them that needs them.
#
# With the tables come pyarrow's data sets, pandas where that is installed, and the library of logs: 0.3 s and 100 MB.


def table_files() -> ModuleType:
    """What writes rows of tables."""
    from kreassign.pipeline.tables import parquet as found  # noqa: PLC0415 - slow to load, and a file needs no tables

    return found


def snapshot_columns_files() -> ModuleType:
    """What reads and writes snapshot files in columns."""
    from kreassign.pipeline.tables import snapshot_parquet as found  # noqa: PLC0415 - slow to load, and most are JSON

    return found


# The modules that need PySpark, loaded when a command comes to them: it is an extra, and `--help` must not need it.

SPARK_LOG = "spark.log"
"""The name of the file beside the tables to which Spark logs."""


def spark_log(data: Path | str | None) -> Path:
    """Where Spark logs to: into the directory, or the working directory if the data has an address, or none is used."""
    return (data if isinstance(data, Path) else Path()) / SPARK_LOG


class SparkJobs(NamedTuple):
    """The modules of that name in `kreassign.pipeline`."""

    spark_session: ModuleType
    job: ModuleType
    data_audit: ModuleType
    metric_stream: ModuleType
    run_audit: ModuleType


def spark_jobs(what: str) -> SparkJobs:
    """Load them. Raises KreassignError, which says that `what` needs PySpark and what to install."""
    try:
        from kreassign.pipeline import spark_modules as found  # noqa: PLC0415 - PySpark is an extra, and slow to load
    except ImportError as error:
        raise KreassignError(f"{what} needs PySpark ({error}): pip install 'kreassign[spark]'") from error
    return SparkJobs(*(getattr(found, name) for name in SparkJobs._fields))


# Snapshot files: JSON, compressed with a name that ends in `.gz`; columns with one that ends in `.parquet`.

MOST_BYTES = 1000**3
"""A partition with three replicas takes about 370 bytes, so this is more than two million of them."""

_COMPRESSED = ".gz"
_COLUMNS = ".parquet"
_PARQUET = b"PAR1"


def read_snapshot(path: Path, *, most_bytes: int = MOST_BYTES) -> ClusterSnapshot:
    """The snapshot in a file: JSON of at most `most_bytes`, or columns. Raises InputError, which names the file.

    Not more than that is ever decompressed: a kilobyte of gzip can stand for a megabyte.
    """
    if _is_columns(path):
        return snapshot_of(snapshot_columns_files().read_columns_file(path))
    try:
        with gzip.open(path) if path.suffix == _COMPRESSED else path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise InputError(
                f"{path} holds more than {format_amount(most_bytes, 'B')}, which no snapshot does; take another one "
                "with `kreassign snapshot --out FILE`"
            )
        text = content.decode("utf-8")
        del content
        return parse_snapshot(text, str(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a snapshot file: {error}") from error
    except MemoryError:
        raise InputError(
            f"{path} needs more memory than there is; take a snapshot in columns with `kreassign snapshot --out "
            "FILE.parquet`"
        ) from None


def read_snapshot_columns(path: Path) -> SnapshotColumns:
    """The same as columns, which a file of columns is read into at once. Raises InputError, which names the file."""
    if not _is_columns(path):
        return columns_of(read_snapshot(path))
    found: SnapshotColumns = snapshot_columns_files().read_columns_file(path)
    return found


def write_snapshot(path: Path, snapshot: ClusterSnapshot | SnapshotColumns) -> None:
    """Write a snapshot file; a file that is there is replaced as a whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    if path.suffix == _COLUMNS:
        columns = snapshot if isinstance(snapshot, SnapshotColumns) else columns_of(snapshot)
        snapshot_columns_files().write_columns_file(unfinished, columns)
    else:
        whole = snapshot_of(snapshot) if isinstance(snapshot, SnapshotColumns) else snapshot
        content = format_snapshot(whole).encode()
        unfinished.write_bytes(gzip.compress(content, mtime=0) if path.suffix == _COMPRESSED else content)
    unfinished.replace(path)


def _is_columns(path: Path) -> bool:
    """By its name, or by how it begins: a file may have been renamed."""
    if path.suffix == _COLUMNS:
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_PARQUET)) == _PARQUET
    except OSError as error:
        raise InputError(f"{path}: cannot be read as a snapshot file: {error}") from error
