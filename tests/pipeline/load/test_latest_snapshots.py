"""Rows of the latest snapshot in a load."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.load.checks import NEVER_MS
from kreassign.pipeline.load.latest_snapshots import files_to_read, latest_snapshots, may_be_newer
from kreassign.pipeline.load.rules import AHEAD_MS, NO_KAFKA_BEFORE_MS
from kreassign.pipeline.tables.delta import DataFile
from kreassign.pipeline.tables.parquet import read_rows, write_rows
from kreassign.pipeline.tables.schemas import LOG_DIRS, REPLICAS
from tests.pipeline.clusters import fill, observation

pytestmark = pytest.mark.spark
DAY_MS = 86_400_000
NOW_MS = NO_KAFKA_BEFORE_MS + DAY_MS


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


def a_file(number: int, low: str, high: str, *, taken_ms: int | None = None) -> DataFile:
    """A file of one snapshot, or one into which those of several were merged; times are ms since 2011."""
    begin_ms, end_ms = (NO_KAFKA_BEFORE_MS + at for at in (number, number if taken_ms is None else taken_ms))
    lows, highs = {"cluster_id": low, "taken_ms": begin_ms}, {"cluster_id": high, "taken_ms": end_ms}
    return DataFile(f"{number}.parquet", 1, 1, None, lows, highs)


def paths(files: Iterable[DataFile]) -> list[str]:
    return [file.path for file in files]


def test_of_a_thousand_snapshots_only_the_newest_of_each_cluster_is_read() -> None:
    files = [a_file(number, cluster, cluster) for number, cluster in enumerate(["c.1", "c.2"] * 500)]
    assert paths(files_to_read(files, (), 1, NOW_MS)) == ["999.parquet", "998.parquet"]
    assert paths(files_to_read(files[:-2], {"c.2"}, 2, NOW_MS)) == ["996.parquet", "994.parquet"]
    assert files_to_read(files, {"c.1", "c.2"}, 1, NOW_MS) == []


def test_a_file_of_several_clusters_or_of_unknown_ones_is_always_read() -> None:
    several, one = a_file(1, "c.1", "c.3"), a_file(2, "c.1", "c.1")
    unknown = DataFile("unknown.parquet", 1, 1, None, {}, {})
    assert paths(files_to_read([one, several, unknown], {"c.1"}, 1, NOW_MS)) == ["unknown.parquet", "1.parquet"]


def test_a_file_with_a_row_of_an_absurd_time_is_always_read() -> None:
    lost, merged = a_file(-1, "c.1", "c.1"), a_file(-2, "c.1", "c.1", taken_ms=5)
    latest, ahead = (a_file(number, "c.1", "c.1") for number in (DAY_MS + AHEAD_MS, DAY_MS + AHEAD_MS + 1))
    files = [lost, merged, a_file(0, "c.1", "c.1"), latest, ahead]
    assert paths(files_to_read(files, {"c.1"}, 1, NOW_MS)) == paths([ahead, merged, lost])
    assert paths(files_to_read(files, (), 1, NOW_MS)) == paths([ahead, latest, merged, lost])


def test_a_snapshot_is_the_newest_only_if_no_file_may_have_another() -> None:
    merged = a_file(10, "c.1", "c.1", taken_ms=20)
    assert may_be_newer([merged], "c.1", NO_KAFKA_BEFORE_MS + 19)
    assert not may_be_newer([merged], "c.1", NO_KAFKA_BEFORE_MS + 20)
    assert not may_be_newer([merged], "c.2", NO_KAFKA_BEFORE_MS + 5)
    assert may_be_newer([DataFile("unknown.parquet", 1, 1, None, {}, {})], "c.1", 20)


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
