"""Parquet files that others wrote, batch by batch: any columns, any types that Python has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kreassign.errors import InputError

MAGIC = b"PAR1"
"""How a Parquet file begins."""
_BATCH_ROWS = 65_536


def foreign_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, as Python has their values; damage costs the rest of its row group.

    Raises InputError for a file that cannot be read, and at the end where row groups were damaged.
    """
    damaged = []
    with _opened(file) as opened:
        for group in range(opened.num_row_groups):
            try:
                for batch in opened.iter_batches(_BATCH_ROWS, row_groups=[group]):
                    yield from batch.to_pylist()
            except (pa.ArrowException, OSError) as error:  # one or the other, by the compression
                damaged.append(f"row group {group} of {opened.num_row_groups} is damaged: {str(error).splitlines()[0]}")
    if damaged:
        raise InputError("; ".join(damaged))


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except pa.ArrowException as error:
        raise InputError(f"it is cut off, or not a Parquet file: {str(error).splitlines()[0]}") from error


def foreign_columns(file: Path) -> list[str]:
    """The names of its columns. Raises InputError for a file that cannot be read."""
    with _opened(file) as opened:
        names: list[str] = opened.schema_arrow.names
    return names
