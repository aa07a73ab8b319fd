"""delta-spark, which others read our tables with, on tables as kreassign leaves them: all versions, all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kreassign.model.load import SparkOptions
from kreassign.operations.tables import define_tables
from kreassign.pipeline.spark_session import spark_session
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.commits import compact, expire, merge_rows, vacuum
from kreassign.pipeline.tables.delta import open_log
from kreassign.pipeline.tables.parquet import TablesAt, read_rows, write_rows
from kreassign.pipeline.tables.schemas import LOAD_HOURS, METRICS, Table
from tests.pipeline.load_tables import row
from tests.s3.conftest import jars

# PySpark leaves the socket of each `collect` to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning")

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with Delta Lake's own jars, extension and catalog, and a catalog that it does not keep."""
    folder = tmp_path_factory.mktemp("delta")
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    words = [f"--conf {name}={value}" for name, value in settings.items()]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_SUBMIT_ARGS", f"{' '.join(words)} pyspark-shell")
        with spark_session(folder / "spark.log", SparkOptions("local[2]"), jars=jars(of_s3=False)) as session:
            yield session


def ordered(table: Table, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(each[name] for name in table.column_names) for each in rows), key=repr)


def metrics(*times_ms: int) -> pa.Table:
    rows = [row(METRICS, cluster_id="c", taken_ms=each, name="bytes", value=1.5) for each in times_ms]
    return pa.Table.from_pylist(rows, arrow_schema(METRICS))


def test_every_version_reads_the_same_after_maintenance(delta: SparkSession, tmp_path: Path) -> None:
    # More commits than a checkpoint has, some of them merges of rows that are there already.
    for number in range(14):
        merge_rows(tmp_path, METRICS, metrics(DAY_MS + number, DAY_MS + number + 1, (2 + number % 2) * DAY_MS))
    compact(tmp_path, METRICS)
    merge_rows(tmp_path, METRICS, metrics(DAY_MS, 4 * DAY_MS))
    assert expire(tmp_path, METRICS, "1970-01-03") == 1
    vacuum(tmp_path, METRICS, 4 * DAY_MS)
    place, last = str(tmp_path / METRICS.name), open_log(tmp_path, METRICS).version
    for version in (1, 5, 11, last - 2, last - 1, last):
        read = delta.read.format("delta").option("versionAsOf", version).load(place).drop("date")
        ours = read_rows(TablesAt(tmp_path, {METRICS.name: version}), METRICS)
        assert ordered(METRICS, [each.asDict() for each in read.collect()]) == ordered(METRICS, ours), version
    assert [each["taken_ms"] // DAY_MS for each in sorted(ours, key=lambda each: each["taken_ms"])] == [2, 3, 4]
    dates = delta.read.format("delta").load(place).where("date = '1970-01-04'").collect()
    assert [each["taken_ms"] for each in dates] == [3 * DAY_MS]
    kinds = {each["operation"] for each in delta.sql(f"DESCRIBE HISTORY delta.`{place}`").collect()}
    assert {"MERGE", "OPTIMIZE", "DELETE"} <= kinds


def test_a_catalog_opens_our_tables_and_we_read_its_additions(delta: SparkSession, tmp_path: Path) -> None:
    merge_rows(tmp_path, METRICS, metrics(DAY_MS))
    write_rows(tmp_path, LOAD_HOURS, [row(LOAD_HOURS, cluster_id="c")], file_stem="load")
    statements = define_tables(str(tmp_path), schema="default").split(";\n")
    for table in (METRICS, LOAD_HOURS):
        (own,) = [each for each in statements if f".`{table.name}` (" in each]
        delta.sql(own)
        assert delta.table(table.name).count() == 1
        delta.sql(f"INSERT INTO {table.name} SELECT * FROM {table.name}")
    found = read_rows(TablesAt(tmp_path, {LOAD_HOURS.name: open_log(tmp_path, LOAD_HOURS).version}), LOAD_HOURS)
    assert (len(read_rows(tmp_path, METRICS)), len(found)) == (2, 2)
    assert merge_rows(tmp_path, METRICS, metrics(DAY_MS, 2 * DAY_MS)) == 1
    assert delta.table(METRICS.name).count() == 3
