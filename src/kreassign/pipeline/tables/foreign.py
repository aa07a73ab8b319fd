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
    """The rows of a file, as Python has their values. Raises InputError for one that cannot be read."""
    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(_BATCH_ROWS):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"it is cut off, or not a Parquet file: {str(error).splitlines()[0]}") from error


def foreign_columns(file: Path) -> list[str]:
    """The names of its columns. Raises InputError as `foreign_rows` does."""
    try:
        names: list[str] = pq.read_schema(file).names
    except pa.ArrowException as error:
        raise InputError(f"it is cut off, or not a Parquet file: {str(error).splitlines()[0]}") from error
    return names
