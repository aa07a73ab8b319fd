"""Hours that DuckDB makes of the same samples, by the script that the load is measured beside."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench.known_load import Shape, known_load, write_round_file, write_samples, write_snapshot
from bench.pipeline_scale import all_tables, hours_apart
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import commit, log_to_write
from kreassign.pipeline.tables.parquet import read_rows, write_files
from kreassign.pipeline.tables.schemas import LOAD_HOURS, SAMPLES, Row
from tests.pipeline.load.samples import hours

SHAPE = Shape(partitions=6, days=0.3, interval_s=60)


def uneven(rows: list[Row]) -> list[Row]:
    """The samples with records of uneven weights, and one odd offset among them."""
    chance, more = np.random.default_rng(3), np.zeros(SHAPE.partitions, np.int64)
    for place, row in enumerate(sorted(rows, key=lambda row: (row["taken_ms"], row["partition"]))):
        more[row["partition"]] += chance.integers(0, 200_000)
        row["size_bytes"] += int(more[row["partition"]])
        row["end_offset"] += 10**9 if place == len(rows) // 2 else 0
    return rows


def write_hours(data: Path, rows: pa.Table) -> None:
    commit(log_to_write(data, LOAD_HOURS), write_files(data, LOAD_HOURS, rows, "load"), replace=True)


def test_duckdb_makes_the_same_hours_as_the_load(tmp_path: Path) -> None:
    count = write_samples(tmp_path / "even", known_load(SHAPE))
    rows, data = uneven(read_rows(tmp_path / "even", SAMPLES)), tmp_path / "uneven"
    write_snapshot(data, SHAPE)
    write_round_file(data, 0, [pa.Table.from_pylist(rows, schema=arrow_schema(SAMPLES))])
    made = hours(rows)
    write_hours(data, made)
    with duckdb.connect() as connection:
        for statement in all_tables(data, count):
            connection.sql(statement)
    assert hours_apart(data) == {}
    reversals = made["reversal_sum"].to_pylist()
    assert min(reversals) < 0 < max(reversals)
    changed = pa.array([reversals[0] + 2, *reversals[1:]])
    write_hours(data, made.set_column(made.column_names.index("reversal_sum"), "reversal_sum", changed))
    assert hours_apart(data) == {"reversal_sum": 1}
