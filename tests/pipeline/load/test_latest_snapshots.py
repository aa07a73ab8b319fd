"""Rows of the latest snapshot in a load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.load.checks import NEVER_MS
from kreassign.pipeline.load.latest_snapshots import latest_snapshots
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import LOG_DIRS, REPLICAS
from tests.pipeline.clusters import fill, observation

pytestmark = pytest.mark.spark


def directories(spark: SparkSession, data: Path) -> list[tuple[int, str]]:
    found = latest_snapshots(spark, data, NEVER_MS).log_dirs(spark)
    assert found.columns == list(LOG_DIRS.column_names)
    return sorted((row["broker"], row["path"]) for row in found.collect())


def test_a_broker_with_a_directory_of_doubtful_size_has_no_capacity(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    all_of_them = [(1, "/a"), (1, "/b"), (2, "/a"), (2, "/b")]
    assert directories(spark, tmp_path) == all_of_them
    rows = read_rows(tmp_path, LOG_DIRS, only={"snapshot_id": observation().snapshot_id})
    write_rows(tmp_path, LOG_DIRS, rows, file_stem="twice")
    assert directories(spark, tmp_path) == all_of_them
    odd = next(row for row in rows if row["broker"] == 1) | {"path": "/c", "usable_bytes": -1}
    write_rows(tmp_path, LOG_DIRS, [odd], file_stem="odd")
    assert directories(spark, tmp_path) == [(2, "/a"), (2, "/b")]


def test_a_strange_file_beside_the_replicas_costs_no_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / REPLICAS.name / "README.md").write_text("Do not touch.")
    found = latest_snapshots(spark, tmp_path, NEVER_MS)
    assert found.judged[REPLICAS].good.count() == 5
    assert [each.reason for each in found.skipped[REPLICAS]] == [
        "is no file of a table: its name does not end in .parquet"
    ]


def test_directories_that_nobody_stored_or_can_read_are_not_there(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path)
    for file in (tmp_path / LOG_DIRS.name).glob("*/*.parquet"):
        file.write_bytes(b"PAR1")
    assert directories(spark, tmp_path) == []
    (skipped,) = latest_snapshots(spark, tmp_path, NEVER_MS).skipped[LOG_DIRS]
    assert LOG_DIRS.name in str(skipped)
    shutil.rmtree(tmp_path / LOG_DIRS.name)
    assert directories(spark, tmp_path) == []
    assert LOG_DIRS not in latest_snapshots(spark, tmp_path, NEVER_MS).unique
