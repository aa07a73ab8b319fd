"""The stream on Spark, from files instead of a topic: they come one after the other, as offsets do."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kreassign.pipeline.ingest.metric_records import RecordForm
from kreassign.pipeline.ingest.metric_stream import BatchCount, MetricTopic, metrics_of, start, store_batch, watch
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import METRIC_BATCHES, METRICS, METRICS_QUARANTINE

pytestmark = pytest.mark.spark

SOURCE = MetricTopic("nobody:9092", "metrics", RecordForm.JSON, "c")
SCHEMA = "value binary, timestamp timestamp"
MINUTE_MS = 60_000


def test_properties_of_the_client_reach_the_source_and_the_given_addresses_win() -> None:
    client = {"security.protocol": "SASL_SSL", "bootstrap.servers": "elsewhere:1"}
    options = MetricTopic("here:9093", "metrics", RecordForm.JSON, "c", client).options
    assert options == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.bootstrap.servers": "here:9093",
        "subscribe": "metrics",
        "startingOffsets": "earliest",
    }


def put(spark: SparkSession, folder: Path, minute: int, *values: bytes) -> None:
    """Let records arrive together, written in this minute."""
    written = datetime.fromtimestamp(minute * 60, UTC)
    rows = [(bytearray(value), written) for value in values]
    spark.createDataFrame(rows, SCHEMA).coalesce(1).write.mode("append").parquet(str(folder))


def metric(minute: int, value: float, broker: int = 1) -> bytes:
    row = {"taken_ms": minute * MINUTE_MS, "broker": broker, "name": "cpu_share", "value": value}
    return json.dumps(row).encode()


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return metrics_of(spark.readStream.schema(SCHEMA).parquet(str(folder)), SOURCE, "10 minutes")


def run(spark: SparkSession, folder: Path, data: Path) -> list[BatchCount]:
    told: list[BatchCount] = []
    query = start(stream(spark, folder), data, told.append, once=True)
    watch(query, spark, data, 120)
    return told


def counted(data: Path) -> dict[str, int]:
    """Records of all batches by verdict."""
    found: Counter[str] = Counter()
    for row in read_rows(data, METRIC_BATCHES):
        found[row["verdict"]] += row["records"]
    return dict(found)


def values(data: Path) -> list[Any]:
    return sorted(row["value"] for row in read_rows(data, METRICS))


def test_a_restart_goes_on_where_it_was_and_a_batch_that_comes_again_adds_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    folder, data = tmp_path / "in", tmp_path / "data"
    put(spark, folder, 100, metric(100, 1), metric(100, 1), metric(99, 2), b"rubbish", metric(900, 9))
    first = run(spark, folder, data)
    assert (sum(batch.good for batch in first), sum(batch.bad for batch in first)) == (2, 2)
    assert values(data) == [1, 2]
    assert counted(data) == {"good": 2, "bad": 2, "late": 0}
    reasons = sorted(row["reason"] for row in read_rows(data, METRICS_QUARANTINE))
    assert reasons[0].startswith("a record is not JSON")
    assert reasons[1] == "taken_ms is after the time at which the record was written"

    # Sent again by a producer that had no answer, new, and too late: the watermark stands at minute 90.
    put(spark, folder, 120, metric(100, 1), metric(120, 3), metric(50, 8))
    run(spark, folder, data)
    assert values(data) == [1, 2, 3]
    assert counted(data) == {"good": 3, "bad": 2, "late": 1}

    # Killed after the files of a batch were written and before the checkpoint says so: the commit is not there.
    commits = sorted((data / "_metrics_checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for file in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        file.unlink(missing_ok=True)
    run(spark, folder, data)
    assert values(data) == [1, 2, 3]
    assert counted(data) == {"good": 3, "bad": 2, "late": 1}


def test_a_batch_replaces_what_a_killed_one_of_its_number_left(spark: SparkSession, tmp_path: Path) -> None:
    batch = spark.createDataFrame(
        [("c", 1, 1, None, None, "cpu_share", 2.0, None, None)],
        "cluster_id string, taken_ms bigint, broker int, topic string, partition int, name string, value double, "
        "reason string, raw string",
    )
    for _ in range(2):
        assert store_batch(batch, tmp_path, 7) == BatchCount(7, good=1, bad=0)
    assert values(tmp_path) == [2.0]
    assert counted(tmp_path) == {"good": 1, "bad": 0}
