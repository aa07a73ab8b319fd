from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from kreassign.pipeline.load import load_model as model_of
from kreassign.pipeline.load.hours import HOUR_MS
from kreassign.pipeline.load.load_model import skew
from kreassign.pipeline.tables.schemas import LOAD_HOURS, LOAD_MODEL, PARTITIONS, REPLICAS, SKEW, Row, Table
from kreassign.pipeline.tables.spark_io import struct_type
from tests.pipeline.load.hours_known import HOUR, loads, loads_of
from tests.pipeline.load.samples import hours

DEFAULTS: Mapping[str, Any] = {
    **HOUR,
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
    "cleanup_policy": None,
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
}


def frame(spark: SparkSession, table: Table, *rows: Row) -> DataFrame:
    """A table of rows that state only what the test is about."""
    full = [tuple((DEFAULTS | row)[name] for name in table.column_names) for row in rows]
    return spark.createDataFrame(full, struct_type(table))


def partitions(spark: SparkSession, count: int) -> DataFrame:
    return frame(spark, PARTITIONS, *({"partition": number} for number in range(count)))


def load_model(partitions: DataFrame, replicas: DataFrame, samples: list[Row]) -> DataFrame:
    """The road of the load job, from samples on."""
    return model_of.load_model(partitions, replicas, hours_frame(partitions.sparkSession, samples), len(samples))


def hours_frame(spark: SparkSession, samples: list[Row]) -> DataFrame:
    """Table `load_hours` of samples of which nothing is known yet."""
    return spark.createDataFrame(hours(samples), struct_type(LOAD_HOURS))


def result(model: DataFrame, *names: str) -> DataFrame:
    return model.select("partition", *names)


@pytest.mark.spark
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
    model = load_model(partitions(spark, 3), replicas, [])
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


def test_rates_come_from_the_samples_since_the_log_last_restarted() -> None:
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
    found = {row["partition"]: tuple(row[name] for name in STORY_COLUMNS) for row in loads_of(hours(samples))}
    for number, (name, (_, expected)) in enumerate(STORIES.items()):
        assert found[number] == pytest.approx(expected), name


@pytest.mark.spark
def test_partitions_of_two_clusters_are_kept_apart(spark: SparkSession) -> None:
    both = frame(spark, PARTITIONS, {"cluster_id": "c"}, {"cluster_id": "d"})
    replicas = frame(
        spark, REPLICAS, {"cluster_id": "c", "size_bytes": 1}, {"cluster_id": "d", "size_bytes": 2, "is_leader": True}
    )
    samples = [{"cluster_id": "d", "taken_ms": 1000 * n, "end_offset": n, "size_bytes": n} for n in (1, 3)]
    model = load_model(both, replicas, samples).select("cluster_id", "size_bytes", "write_bytes_per_s")
    expected = [("c", 1, None), ("d", 2, 1.0)]
    schema = "cluster_id string, size_bytes bigint, write_bytes_per_s double"
    assertDataFrameEqual(model, spark.createDataFrame(expected, schema))


def test_the_peak_is_the_busiest_hour_of_the_day_if_every_hour_was_seen() -> None:
    two_days = [
        {"hour_ms": hour * HOUR_MS, "new_records": 3600 * (40 if hour in {7, 31} else 90 if hour == 20 else 10)}
        for hour in range(48)
    ]
    sized = [row | {"sized_records": row["new_records"], "new_bytes": 2 * row["new_records"]} for row in two_days]
    half_a_day = [row | {"partition": 1} for row in sized[:12]]
    found = [
        (row["partition"], row["peak_hour"], row["peak_write_bytes_per_s"]) for row in loads([*sized, *half_a_day])
    ]
    # Hour 20 was busy on one day only: (90 + 10) / 2, of records of two bytes.
    assert found == [(0, 20, 100.0), (1, None, None)]


def test_of_two_hours_of_the_day_that_are_as_busy_the_later_is_the_peak() -> None:
    day = [{"hour_ms": hour * HOUR_MS, "new_records": 3600 if hour in {3, 17} else 0} for hour in range(24)]
    (row,) = loads(day)
    assert row["peak_hour"] == 17


def test_partitions_of_which_nothing_was_measured_stand_between_others() -> None:
    """A partition whose only sample is the first has no interval: neither day nor trend, and no other's figures."""
    measured = [{"hour_ms": hour * HOUR_MS, "new_records": 3600} for hour in range(48)]
    alone = {"hour_ms": 0, "seconds": 0.0, "good_seconds": 0.0, "new_records": 0}
    rows = [*measured, alone | {"partition": 1}, *(row | {"partition": 2, "new_records": 7200} for row in measured)]
    names = ("partition", "day_count", "has_trend", "write_records_per_s", "peak_hour", "week_spread")
    assert [tuple(row[name] for name in names) for row in loads(rows)] == [
        (0, 2, False, 1.0, 23, 0.35),
        (1, 0, False, None, None, None),
        (2, 2, False, 2.0, 23, 0.35),
    ]


def test_only_hours_of_the_last_epoch_count_in_any_order() -> None:
    old = [{"hour_ms": hour * HOUR_MS, "new_records": 36_000, "epoch": 0} for hour in range(30)]
    new = [{"hour_ms": hour * HOUR_MS, "new_records": 3600, "epoch": 1} for hour in range(29, 40)]
    rows = [*new, *old, *(row | {"partition": 1} for row in old)]
    found = loads(rows)
    assert [(row["partition"], row["reset_count"], row["write_records_per_s"]) for row in found] == [
        (0, 1, 1.0),
        (1, 0, 10.0),
    ]
    assert sorted(loads(rows[::-1]), key=itemgetter("partition")) == found


def test_the_size_of_a_record_of_the_whole_log_is_that_at_the_last_sample() -> None:
    def at_end(hour: int, size_bytes: int) -> dict[str, Any]:
        last = {"last_start_offset": 0, "last_end_offset": 1000, "last_size_bytes": size_bytes}
        return {"hour_ms": hour * HOUR_MS, "first_ms": hour * HOUR_MS, "last_ms": (hour + 1) * HOUR_MS, **last}

    unseen = {"hour_ms": 3 * HOUR_MS, "last_size_bytes": 9000}
    (row,) = loads([at_end(2, 7000), at_end(0, 5000), at_end(1, 6000), unseen])
    assert (row["bytes_per_record"], row["record_size_basis"]) == (7.0, "log")


def test_an_hour_in_which_a_log_grew_by_bytes_alone_counts_in_percentiles() -> None:
    """The size of its records is unknown, so they count as average ones."""
    sized = {"hour_ms": 0, "new_records": 3600, "sized_records": 3600, "new_bytes": 36_000}
    alone = {"hour_ms": HOUR_MS, "new_records": 36_000, "sized_records": 0, "new_bytes": 1}
    (row,) = loads([sized | {"rate_bins": [0], "rate_counts": [60]}, alone | {"rate_bins": [231], "rate_counts": [60]}])
    assert row["p95_write_bytes_per_s"] == pytest.approx(100.0, rel=0.01)


def test_without_hours_there_is_nothing() -> None:
    assert loads([]) == []


MODEL = {name: DEFAULTS.get(name) for name in LOAD_MODEL.column_names} | {
    "sample_count": 9, "span_s": 1.0, "covered_share": 1.0, "day_count": 9, "reset_count": 0, "coverage": "measured",
    "verdict": "enough", "has_trend": False, "has_slowed": False, "has_jumped": False,
}  # fmt: skip


@pytest.mark.spark
def test_skew_names_the_hot_partition_and_how_even_a_topic_is(spark: SparkSession) -> None:
    topics: dict[str, list[float | None]] = {
        "even": [5.0, 5.0],
        "hot": [1.0, 1.0, 97.0, 1.0],
        "idle": [0.0, 0.0],
        "one": [3.0, None],
        "all in one": [0.0, 8.0],
    }
    keys = [(topic, number, rate) for topic, found in topics.items() for number, rate in enumerate(found)]
    loads = frame(
        spark,
        LOAD_MODEL,
        *(MODEL | {"topic": topic, "partition": number, "write_bytes_per_s": rate} for topic, number, rate in keys),
    )
    placed = frame(
        spark,
        PARTITIONS,
        *({"topic": topic, "partition": number, "leader": -1 if topic == "idle" else 1} for topic, number, _ in keys),
    )
    found = skew(loads, placed)
    assert found.columns == list(SKEW.column_names)
    rows = {row["topic"]: row for row in found.collect()}
    assert {topic: row["verdict"] for topic, row in rows.items()} == {
        "even": "even", "hot": "hot partition", "idle": "idle", "one": "too few", "all in one": "even",
    }  # fmt: skip
    assert (rows["even"]["evenness"], rows["all in one"]["evenness"]) == (pytest.approx(1.0), pytest.approx(0.0))
    assert 0 < rows["hot"]["evenness"] < 0.2
    assert (rows["hot"]["hottest_partition"], rows["hot"]["hottest_ratio"]) == (2, pytest.approx(3.88))
    assert (rows["hot"]["most_leaders_on_a_broker"], rows["idle"]["most_leaders_on_a_broker"]) == (4, 0)


def test_the_verdict_says_whether_there_is_enough_to_plan_by() -> None:
    def seen(partition: int, at_hours: list[int]) -> list[dict[str, Any]]:
        rows = ({"taken_ms": HOUR_MS * hour, "end_offset": hour, "size_bytes": 10 * hour} for hour in at_hours)
        return [row | {"partition": partition} for row in rows]

    times = {0: list(range(25)), 1: [0, 1, 2], 2: [*range(6), *range(12, 25)], 3: [4]}
    found = loads_of(hours([row for key, at_hours in times.items() for row in seen(key, at_hours)]))
    verdicts = [(row["partition"], row["verdict"], row["covered_share"]) for row in found]
    assert verdicts == [(0, "enough", 1.0), (1, "short", 1.0), (2, "gaps", 17 / 24), (3, "unknown", 0.0)]
