"""The example that opens tables in pandas, DuckDB and Spark, on tables as kreassign writes them."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import LOAD_MODEL
from tests.checks.source import ROOT
from tests.pipeline.load_tables import MB, a_cluster, fill, load_row, wave

pytestmark = pytest.mark.thorough

EXAMPLE = ROOT / "examples" / "open_tables.py"
BUSIEST = [("clicks", 0), ("orders", 0), ("clicks", 1), ("clicks", 3), ("orders", 1)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of two finished loads and of one that goes on; all their files are there."""
    path = tmp_path_factory.mktemp("tables")
    fill(path, [load_row("gone", 0, 9e9)])
    fill(path, **a_cluster())
    write_rows(path, LOAD_MODEL, [load_row("unfinished", 0, 9e9)], file_stem="load")
    return path


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_pandas_and_duckdb_find_the_busiest_partitions_and_hours(data: Path, example: dict[str, Any]) -> None:
    found = example["by_pandas"](str(data))
    assert list(zip(found["topic"], found["partition"], strict=True)) == BUSIEST
    assert found["write_bytes_per_s"].tolist()[:2] == [27 * MB, 12 * MB]
    hours = example["by_duckdb"](str(data)).fetchall()
    assert [(topic, hour) for topic, hour, _ in hours] == [("clicks", 20), ("orders", 14), ("audit", 2)]
    assert hours[1][2] == pytest.approx(wave(14, 24 * MB, 14), rel=1e-3)


@pytest.mark.spark
def test_spark_finds_the_same(spark: SparkSession, data: Path, example: dict[str, Any]) -> None:
    rows = example["by_spark"](spark, str(data)).collect()
    assert [(row["topic"], row["partition"]) for row in rows] == BUSIEST


def test_it_runs_as_a_program(data: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLE, data], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gone" not in done.stdout
    assert "unfinished" not in done.stdout
    assert "busiest_hour" in done.stdout
