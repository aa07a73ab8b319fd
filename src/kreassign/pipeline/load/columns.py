"""PURE. Columns of Arrow as arrays of NumPy, and arrays as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.pipeline.load.series import Floats, Ints, Mask
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import Table

Columns = Mapping[str, Floats | Ints | Mask | pa.Array | pa.ChunkedArray]
"""Columns of a table by name: arrays of NumPy, in which NaN is NULL, or of Arrow."""


def key_numbers(table: pa.Table, names: Sequence[str]) -> Ints:
    """A number for each row, the same for those with the same values in these columns."""
    number = np.zeros(len(table), np.int64)
    for name in names:
        of_column = codes(table[name])
        number = number * (of_column.max(initial=0) + 1) + of_column
    return number


def codes(values: pa.ChunkedArray) -> Ints:
    """A number for each value from 0 on, the same for the same one; -1 where there is none."""
    codes = pc.dictionary_encode(values).combine_chunks()
    indices = codes.indices if isinstance(codes, pa.DictionaryArray) else codes.chunk(0).indices
    return np.asarray(indices.fill_null(-1)).astype(np.int64)


def floats(numbers: pa.ChunkedArray) -> Floats:
    """Numbers as doubles, in which all that good rows have are exact; NaN for NULL."""
    return np.asarray(numbers.to_numpy(), np.float64)


def mask(values: pa.ChunkedArray) -> Mask:
    """Truths; NULL is none."""
    return np.asarray(pc.fill_null(values, fill_value=False).to_numpy(), np.bool_)


def rows_of_columns(table: Table, columns: Columns) -> pa.RecordBatch:
    """Rows of a table of ours."""
    schema = arrow_schema(table)
    return pa.RecordBatch.from_arrays([column(columns[field.name], field.type) for field in schema], schema=schema)


def column(values: Floats | Ints | Mask | pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """An array of this type; NaN is NULL."""
    if isinstance(values, np.ndarray):
        return pc.cast(pa.array(values, from_pandas=True), kind)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
