"""Columns of tables as arrays, for what has a million rows; `rows.py` gives the same tables row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kreassign.pipeline.tables.arrow_rows import read_table
from kreassign.pipeline.tables.schemas import Table


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A column of texts: `codes` are indices into the sorted `names`, -1 where the value is NULL."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]


Column = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.bool_] | Words


def read_columns(
    data_dir: Path, table: Table, names: tuple[str, ...], *, only: Mapping[str, object] | None = None
) -> dict[str, Column]:
    """Some columns of a table, of the rows that have the values in `only`.

    Integers that may be NULL become floats, with NaN for NULL. Raises DataError as `read_rows` does.
    """
    found = read_table(data_dir, table, only=only, columns=names)
    return {name: _array(found.column(name).combine_chunks()) for name in names}


def _array(column: pa.Array) -> Column:
    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        names = coded.dictionary.to_pylist()
        order = np.argsort(np.array(names, dtype=object)) if names else np.zeros(0, np.int64)
        rank = np.empty(len(names) + 1, np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        rank[-1] = -1  # the place of NULL
        return Words(tuple(names[place] for place in order), rank[coded.indices.fill_null(len(names)).to_numpy()])
    array: Column = column.to_numpy(zero_copy_only=False)
    return array
