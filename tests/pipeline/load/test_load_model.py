from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.testing import assertDataFrameEqual

from kreassign.pipeline.load import load_model as model_of
from kreassign.pipeline.load.hours import hours_of, parts
from kreassign.pipeline.load.rates import BAD, DECIDED, rates, with_epoch, with_reason
from kreassign.pipeline.tables.schemas import LOAD_MODEL, PARTITIONS, REPLICAS, SAMPLES, Row, Table
from kreassign.pipeline.tables.spark_io import struct_type

pytestmark = pytest.mark.spark

DEFAULTS: Mapping[str, Any] = {
    "snapshot_id": "s1",
    "cluster_id": "c",
    "taken_ms": 1000,
    "controller_id": 1,
    "broker_count": 1,
    "topic_count": 1,
    "partition_count": 1,
    "topic": "t",
    "topic_id": "id-1",
    "partition": 0,
    "is_internal": False,
    "leader": 1,
    "leader_epoch": 0,
    "replicas": [1, 2],
    "isr": [1, 2],
    "adding": [],
    "removing": [],
    "broker": 1,
    "position": 0,
    "is_leader": False,
    "is_in_sync": True,
    "is_adding": False,
    "is_removing": False,
    "log_dir": "/a",
    "size_bytes": None,
    "future_log_dir": None,
    "future_size_bytes": None,
    "start_offset": 0,
    "end_offset": 0,
    # Of an hour that was measured whole, nobody knows how.
    "epoch": 0,
    "is_open": False,
    "seconds": 3600.0,
    "good_seconds": 3600.0,
    "squared_seconds": 0.0,
    "good_records": 0,
    "rate_sum": 0,
    "most_new_records": 0,
    "sized_records": 0,
    "new_bytes": 0,
    "mean_size_bytes": None,
    "sample_count": 1,
    "odd_count": 0,
    **dict.fromkeys(("first_ms", "last_ms", "last_leader", "last_start_offset", "last_end_offset", "last_size_bytes")),
    "rate_bins": [],
    "rate_counts": [],
}


def frame(spark: SparkSession, table: Table, *rows: Row) -> DataFrame:
    """A table of rows that state only what the test is about."""
    full = [tuple((DEFAULTS | row)[name] for name in table.column_names) for row in rows]
    return spark.createDataFrame(full, struct_type(table))


def partitions(spark: SparkSession, count: int) -> DataFrame:
    return frame(spark, PARTITIONS, *({"partition": number} for number in range(count)))


def load_model(partitions: DataFrame, replicas: DataFrame, samples: DataFrame) -> DataFrame:
    """The road of the load job, from samples on."""
    return model_of.load_model(partitions, replicas, hours(samples))


def hours(samples: DataFrame) -> DataFrame:
    """Table `load_hours` of samples of which nothing is known yet."""
    return hours_of(parts(rates(undecided(samples))))


def undecided(samples: DataFrame) -> DataFrame:
    """Samples of which nothing has been decided yet."""
    unknown = {"is_clean": "boolean", "reason": "string", "epoch": "int", BAD: "string"}
    return samples.withColumns(
        {"is_closed": sql.lit(col=False), "is_new": sql.lit(col=True)}
        | {name: sql.lit(None).cast(kind) for name, kind in unknown.items()}
    ).select(*SAMPLES.column_names, *DECIDED)


def result(model: DataFrame, *names: str) -> DataFrame:
    return model.select("partition", *names)


def test_the_size_is_the_leaders_else_the_largest_else_unknown(spark: SparkSession) -> None:
    replicas = frame(
        spark,
        REPLICAS,
        {"partition": 0, "broker": 1, "size_bytes": 90},
        {"partition": 0, "broker": 2, "size_bytes": 80, "is_leader": True},
        {"partition": 1, "broker": 1, "size_bytes": 70},
        {"partition": 1, "broker": 2, "size_bytes": 75},
        {"partition": 1, "broker": 3, "is_leader": True},
        {"partition": 2, "broker": 1, "is_leader": True},
    )
    model = load_model(partitions(spark, 3), replicas, frame(spark, SAMPLES))
    expected = [(0, 80, "no samples"), (1, 75, "no samples"), (2, None, "no samples")]
    assertDataFrameEqual(
        result(model, "size_bytes", "coverage"),
        spark.createDataFrame(expected, "partition int, size_bytes bigint, coverage string"),
    )


# Per partition: its samples as (second, start offset, end offset, size), and what the model must say of it as
# (bytes per record, basis, bytes per second, records per second, samples, seconds, resets, coverage).
STORY_COLUMNS = (
    "bytes_per_record", "record_size_basis", "write_bytes_per_s", "write_records_per_s", "sample_count", "span_s",
    "reset_count", "coverage",
)  # fmt: skip
STORIES: Mapping[str, tuple[list[tuple[int, int, int, int | None]], tuple[Any, ...]]] = {
    "steady": (
        [(0, 0, 100, 1000), (10, 0, 150, 1500), (20, 0, 300, 3000)],
        (10.0, "growth", 100.0, 10.0, 3, 20.0, 0, "measured"),
    ),
    "stored out of order": (
        [(20, 0, 300, 3000), (0, 0, 100, 1000)],
        (10.0, "growth", 100.0, 10.0, 2, 20.0, 0, "measured"),
    ),
    "records have become smaller": (
        [(0, 0, 100, 100_000), (10, 0, 200, 101_000)],
        (10.0, "growth", 100.0, 10.0, 2, 10.0, 0, "measured"),
    ),
    "idle": ([(0, 0, 100, 500), (10, 0, 100, 500)], (5.0, "log", 0.0, 0.0, 2, 10.0, 0, "measured")),
    "records expire while others come": (
        [(0, 0, 100, 1000), (10, 150, 200, 500)],
        (10.0, "log", 100.0, 10.0, 2, 10.0, 0, "measured"),
    ),
    "records expire once while others come": (
        [(0, 0, 100, 900), (10, 150, 200, 500), (20, 150, 300, 1700), (30, 150, 300, 1700)],
        (12.0, "growth", 80.0, 200 / 30, 4, 30.0, 0, "measured"),
    ),
    "the cleaner ran": ([(0, 0, 100, 1000), (10, 0, 200, 800)], (4.0, "log", 40.0, 10.0, 2, 10.0, 0, "measured")),
    "the size stands still": ([(0, 0, 100, 800), (10, 0, 200, 800)], (4.0, "log", 40.0, 10.0, 2, 10.0, 0, "measured")),
    "one sample": ([(0, 0, 100, 1000)], (10.0, "log", None, None, 1, 0.0, 0, "one sample")),
    "the same round stored twice": (
        [(5, 0, 100, 1000), (5, 0, 100, 1000)],
        (10.0, "log", None, None, 1, 0.0, 0, "one sample"),
    ),
    "went back, then nothing more": (
        [(0, 0, 900, 9000), (10, 0, 5, 50)],
        (10.0, "log", None, None, 1, 0.0, 0, "one sample"),
    ),
    "went back twice, then measured": (
        [(0, 0, 900, 90), (10, 0, 500, 90), (20, 0, 2, 90), (30, 0, 22, 490), (40, 0, 42, 890)],
        (20.0, "growth", 40.0, 2.0, 5, 40.0, 0, "measured"),
    ),
    "no ids: went back twice, then measured": (
        [(0, 0, 900, 90), (10, 0, 400, 90), (20, 0, 2, 90), (30, 0, 22, 490), (40, 0, 42, 890)],
        (20.0, "growth", 40.0, 2.0, 3, 20.0, 2, "measured"),
    ),
    "no ids: a little went back, then measured": (
        [(0, 0, 80, 800), (10, 0, 100, 1000), (20, 0, 60, 600), (30, 0, 70, 700), (40, 0, 80, 800)],
        (10.0, "growth", 40 / 30 * 10, 40 / 30, 5, 40.0, 0, "measured"),
    ),
    "size unknown": ([(0, 0, 100, None), (10, 0, 150, None)], (None, None, None, 5.0, 2, 10.0, 0, "no size")),
    "size unknown at first": (
        [(0, 0, 100, None), (10, 0, 150, 300)],
        (2.0, "log", 10.0, 5.0, 2, 10.0, 0, "measured"),
    ),
    "was never written to": ([(0, 0, 0, 0), (10, 0, 0, 0)], (None, None, 0.0, 0.0, 2, 10.0, 0, "measured")),
    "keeps nothing": ([(0, 100, 100, 0), (10, 150, 150, 0)], (None, None, None, 5.0, 2, 10.0, 0, "no size")),
}


def test_rates_come_from_the_samples_since_the_log_last_restarted(spark: SparkSession) -> None:
    samples = [
        {
            "partition": number,
            "taken_ms": 1000 * second,
            "start_offset": start,
            "end_offset": end,
            "size_bytes": size,
            "topic_id": None if name.startswith("no ids") else "id-1",
        }
        for number, (name, (rows, _)) in enumerate(STORIES.items())
        for second, start, end, size in rows
    ]
    model = load_model(partitions(spark, len(STORIES)), frame(spark, REPLICAS), frame(spark, SAMPLES, *samples))
    assert model.columns == list(LOAD_MODEL.column_names)
    told = {row["partition"]: tuple(row[name] for name in STORY_COLUMNS) for row in model.collect()}
    for number, (name, (_, expected)) in enumerate(STORIES.items()):
        assert told[number] == pytest.approx(expected), name


def test_a_topic_that_was_recreated_and_grew_past_its_old_end_is_a_reset(spark: SparkSession) -> None:
    samples = frame(
        spark,
        SAMPLES,
        {"taken_ms": 1000, "end_offset": 10, "topic_id": "id-1"},
        {"taken_ms": 2000, "end_offset": 50, "topic_id": "id-2"},
        {"taken_ms": 3000, "end_offset": 60, "topic_id": "id-2"},
        {"taken_ms": 4000, "end_offset": 70, "topic_id": None},
        {"taken_ms": 1000, "end_offset": 10, "topic_id": None, "topic": "old broker"},
        {"taken_ms": 2000, "end_offset": 20, "topic_id": None, "topic": "old broker"},
    )
    epochs = with_epoch(with_reason(undecided(samples))).select("topic", "taken_ms", "epoch")
    expected = [("t", 1000, 0), ("t", 2000, 1), ("t", 3000, 1), ("t", 4000, 1)]
    expected += [("old broker", 1000, 0), ("old broker", 2000, 0)]
    assertDataFrameEqual(epochs, spark.createDataFrame(expected, "topic string, taken_ms bigint, epoch int"))


def test_a_change_of_leader_or_a_reset_is_no_growth(spark: SparkSession) -> None:
    samples = frame(
        spark,
        SAMPLES,
        {"taken_ms": 1000, "end_offset": 10, "size_bytes": 100, "leader": 1},
        {"taken_ms": 2000, "end_offset": 20, "size_bytes": 900, "leader": 2},
        {"taken_ms": 3000, "end_offset": 25, "size_bytes": 950, "leader": 2},
        {"taken_ms": 4000, "end_offset": 30, "size_bytes": 990, "leader": 2, "topic_id": "id-2"},
    )
    growth = with_epoch(with_reason(undecided(samples))).select("taken_ms", "sized_records", "new_bytes")
    expected = [(1000, None, None), (2000, None, None), (3000, 5, 50), (4000, None, None)]
    schema = "taken_ms bigint, sized_records bigint, new_bytes bigint"
    assertDataFrameEqual(growth, spark.createDataFrame(expected, schema))


def test_of_two_rows_for_one_round_the_one_that_is_ahead_counts(spark: SparkSession) -> None:
    samples = frame(
        spark,
        SAMPLES,
        {"end_offset": 10, "size_bytes": 700, "leader": 2},
        {"end_offset": 12, "size_bytes": 600, "leader": 1},
        {"end_offset": 11, "size_bytes": 500, "leader": 3},
    )
    told = rates(undecided(samples)).select("end_offset", "verdict", "reason")
    twice = "another row has the same time"
    expected = [(10, "twice", twice), (11, "twice", twice), (12, "first", None)]
    assertDataFrameEqual(told, spark.createDataFrame(expected, "end_offset bigint, verdict string, reason string"))


def test_partitions_of_two_clusters_are_kept_apart(spark: SparkSession) -> None:
    both = frame(spark, PARTITIONS, {"cluster_id": "c"}, {"cluster_id": "d"})
    replicas = frame(
        spark, REPLICAS, {"cluster_id": "c", "size_bytes": 1}, {"cluster_id": "d", "size_bytes": 2, "is_leader": True}
    )
    samples = frame(
        spark, SAMPLES, *({"cluster_id": "d", "taken_ms": 1000 * n, "end_offset": n, "size_bytes": n} for n in (1, 3))
    )
    model = load_model(both, replicas, samples).select("cluster_id", "size_bytes", "write_bytes_per_s")
    expected = [("c", 1, None), ("d", 2, 1.0)]
    schema = "cluster_id string, size_bytes bigint, write_bytes_per_s double"
    assertDataFrameEqual(model, spark.createDataFrame(expected, schema))
