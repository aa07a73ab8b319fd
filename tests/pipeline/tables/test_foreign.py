"""Parquet files of others: their rows, and files of kilobytes that stand for gigabytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kreassign.errors import InputError
from kreassign.pipeline.tables.arrow import foreign_rows


def test_texts_are_read_as_they_are_however_they_were_written(tmp_path: Path) -> None:
    texts = ["a", None, "é", "a"]
    table = pa.table({"topic": texts, "coded": pa.array(texts).dictionary_encode(), "lists": [["a"], None, [], [None]]})
    pq.write_table(table, tmp_path / "some.parquet")
    assert list(foreign_rows(tmp_path / "some.parquet")) == table.to_pylist()


@pytest.mark.parametrize("is_coded", [True, False])
def test_texts_that_would_fill_the_memory_are_refused_by_their_column(tmp_path: Path, is_coded: bool) -> None:
    """A page of kilobytes, which each row names."""
    codes = pa.array(np.zeros(50_000, np.int32))
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"topic": texts}), tmp_path / "bomb.parquet", store_schema=is_coded)
    assert (tmp_path / "bomb.parquet").stat().st_size < 200_000
    with pytest.raises(InputError, match="column 'topic' has texts of more than any name has"):
        next(foreign_rows(tmp_path / "bomb.parquet"))
