"""A load after a week without one, when the log of the samples no longer tells what is new."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kreassign.errors import DataError
from kreassign.pipeline.ingest.snapshots import sample_rows
from kreassign.pipeline.load.job import rows_to_read, run_load
from kreassign.pipeline.load.unique_keys import require_unique_keys
from kreassign.pipeline.tables import spark_io
from kreassign.pipeline.tables.commits import LoadedTable, last_load
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import LOAD_HOURS, LOAD_MODEL, SAMPLES, Row
from tests.pipeline.clusters import TAKEN_MS, fill, sample_round
from tests.pipeline.load_tables import row

pytestmark = pytest.mark.spark

HOUR_MS = 3_600_000


def add_rounds(data: Path, hours: range) -> None:
    for hour in hours:
        seen = sample_round(TAKEN_MS + hour * HOUR_MS, 200 + 10 * hour)
        write_rows(data, SAMPLES, sample_rows(seen), file_stem=seen.file_stem)


def rates(data: Path) -> list[float]:
    return [each["write_bytes_per_s"] for each in read_rows(data, LOAD_MODEL) if each["partition"] == 0]


def test_a_load_after_its_log_was_cleaned_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    week_old, all_at_once = tmp_path / "week_old", tmp_path / "all_at_once"
    for data in (week_old, all_at_once):
        fill(data)
        add_rounds(data, range(1, 16))
    run_load(spark, week_old, lambda _: None)
    hours = read_rows(week_old, LOAD_HOURS)
    log = week_old / SAMPLES.name / "_delta_log"
    for file in log.iterdir():
        os.utime(file, (1, 1))
    add_rounds(week_old, range(16, 28))
    for file in log.iterdir():
        os.utime(file, (1, 1))
    add_rounds(week_old, range(28, 29))
    add_rounds(all_at_once, range(16, 29))
    for attempt in (lambda: run_load(spark, week_old, lambda _: None), lambda: rows_to_read(week_old)):
        with pytest.raises(DataError, match=r"no longer tells what was added .* run `kreassign load --full`"):
            attempt()
    assert read_rows(week_old, LOAD_HOURS) == hours
    run_load(spark, week_old, lambda _: None, is_full=True)
    run_load(spark, all_at_once, lambda _: None)
    assert rates(week_old) == rates(all_at_once)


@pytest.mark.parametrize("rows_per_task", [spark_io.ROWS_PER_TASK, 1])
def test_a_load_with_a_key_twice_is_not_published(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_task: int
) -> None:
    monkeypatch.setattr(spark_io, "ROWS_PER_TASK", rows_per_task)
    fill(tmp_path)
    run_load(spark, tmp_path, lambda _: None)
    before = last_load(tmp_path)
    assert before is not None
    hour = row(LOAD_HOURS, cluster_id="c.1", topic="orders", hour_ms=HOUR_MS, sample_count=1)

    def written(*rows: Row) -> list[LoadedTable]:
        return [LoadedTable(LOAD_HOURS, write_rows(tmp_path, LOAD_HOURS, rows, file_stem="hours"), len(rows))]

    require_unique_keys(spark, tmp_path, written(hour), before)
    for stands_on in (before, None):
        with pytest.raises(DataError, match=r"load_hours in .* would have 2 rows of .*orders.*: nothing of this load"):
            require_unique_keys(spark, tmp_path, written(hour, hour), stands_on)
