"""Rows that are added by their key, also by many writers at once."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kreassign.errors import DataError
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.commits import compact, merge_rows, rows_at
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import METRICS

pytestmark = pytest.mark.thorough

DAY_MS = 86_400_000
WRITERS, ROUNDS = 4, 6


def row(taken_ms: int, value: float, **other: Any) -> dict[str, Any]:
    plain = {"cluster_id": "c", "broker": 1, "topic": None, "partition": None, "name": "cpu_share"}
    return {**plain, "taken_ms": taken_ms, "value": value, **other}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), arrow_schema(METRICS))


def values(data: Path) -> list[float]:
    return sorted(found["value"] for found in read_rows(data, METRICS))


def test_only_rows_with_a_new_key_are_added_and_null_is_a_value_of_a_key(tmp_path: Path) -> None:
    assert merge_rows(tmp_path, METRICS, table()) == 0
    assert merge_rows(tmp_path, METRICS, table(row(5, 1), row(DAY_MS * 3, 2), row(2**62, 3))) == 3
    again = table(
        row(5, 1), row(DAY_MS * 3, 9), row(5, 4, topic="t"), row(5, 5, topic="t", partition=0), row(5, 6, broker=2)
    )
    assert merge_rows(tmp_path, METRICS, again) == 3
    assert values(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert merge_rows(tmp_path, METRICS, again) == 0
    write_rows(tmp_path, METRICS, [row(7, 7)], file_stem="import")
    assert merge_rows(tmp_path, METRICS, table(row(7, 8), row(8, 9))) == 1
    assert values(tmp_path) == [1, 2, 3, 4, 5, 6, 7, 9]


def test_a_table_is_read_by_times(tmp_path: Path) -> None:
    times = pa.chunked_array([[5, DAY_MS * 3]])
    assert rows_at(tmp_path, METRICS, times).num_rows == 0, "there is no table yet"
    merge_rows(tmp_path, METRICS, table(*(row(time, time) for time in (5, 6, DAY_MS * 3, DAY_MS * 9))))
    assert sorted(rows_at(tmp_path, METRICS, times)["taken_ms"].to_pylist()) == [5, DAY_MS * 3]
    assert rows_at(tmp_path, METRICS, pa.chunked_array([], pa.int64())).num_rows == 0
    assert rows_at(tmp_path, METRICS, pa.chunked_array([[DAY_MS * 100]])).num_rows == 0


def _merge_all(data: Path) -> None:
    for number in range(ROUNDS):
        merge_rows(data, METRICS, table(*(row(1_000 + number * 10 + each, number * 10 + each) for each in range(10))))


def test_concurrent_writers_add_each_row_once_beside_compaction(tmp_path: Path) -> None:
    merge_rows(tmp_path, METRICS, table(row(1, -1)))
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_merge_all, args=(tmp_path,)) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        with suppress(DataError):  # the writers were first: next time
            compact(tmp_path, METRICS)
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    compact(tmp_path, METRICS)
    assert len(open_log(tmp_path, METRICS).files()) == 1, "all rows are of one date"
    assert values(tmp_path) == [-1, *range(ROUNDS * 10)]
    assert merge_rows(tmp_path, METRICS, table(row(1, -1), row(1_003, 3), row(2, -2))) == 1
