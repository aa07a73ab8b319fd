"""Arrow schemas of our tables, and rows of Parquet files from other tools.

Spark's executors load this module. They do not need the log of a table, so nothing here may import deltalake.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kreassign.errors import InputError
from kreassign.model.text import format_amount, shortened
from kreassign.pipeline.tables.schemas import BIGINT, BOOLEAN, DOUBLE, INT, INTS, STRING, Table

ARROW_TYPES: dict[str, pa.DataType] = {
    STRING: pa.string(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    INTS: pa.list_(pa.int32()),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Schema for pyarrow; writers refuse NULL in columns that are not nullable."""
    return pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in table.columns])


# Parquet files from other tools, batch by batch: any columns, any types that Python has.

MAGIC = b"PAR1"
"""First bytes of a Parquet file."""
_BATCH_ROWS = 65_536
MOST_BYTES = 1 << 30
"""Largest decompressed size of a row group; Parquet's own writers make them of 128 MB."""
MOST_TEXT_BYTES = 1 << 27
"""Largest size of a column in a batch; topic names have 249 characters at most."""


def foreign_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Rows of a file as Python values; a damaged part skips the rest of its row group.

    Raises InputError for an unreadable file, and at the end if row groups were damaged.
    """
    damaged = []
    with _opened(file) as opened:
        for group in range(opened.num_row_groups):
            try:
                if opened.metadata.row_group(group).total_byte_size > MOST_BYTES:
                    raise InputError(f"row group {group} has more than {format_amount(MOST_BYTES, 'B')}")
                for batch in opened.iter_batches(_BATCH_ROWS, row_groups=[group]):
                    yield from _whole(batch).to_pylist()
            except (pa.ArrowException, OSError) as error:  # which of the two depends on the compression
                damaged.append(f"row group {group} of {opened.num_row_groups} is damaged: {str(error).splitlines()[0]}")
    if damaged:
        raise InputError("; ".join(damaged))


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode dictionary columns to texts. Raises InputError if these are larger than any of our rows."""
    columns = [_as_texts(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _as_texts(name: str, column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
        return column
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    if (pc.sum(lengths).as_py() or 0) > MOST_TEXT_BYTES:
        raise InputError(f"column {shortened(name)!r} has texts of more than any name has")
    return column.dictionary_decode()


def _opened(file: Path) -> pq.ParquetFile:
    try:
        with pq.ParquetFile(file) as found:
            texts = [field.name for field in found.schema_arrow if pa.types.is_string(field.type)]
        # A compressed page of equal texts can expand to gigabytes; as codes it stays small.
        return pq.ParquetFile(file, read_dictionary=texts)
    except pa.ArrowException as error:
        raise InputError(f"it is cut off, or not a Parquet file: {str(error).splitlines()[0]}") from error


def foreign_columns(file: Path) -> list[str]:
    """Column names of a file. Raises InputError for an unreadable file."""
    with _opened(file) as opened:
        names: list[str] = opened.schema_arrow.names
    return names
