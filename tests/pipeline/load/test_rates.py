from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kreassign.pipeline.load.hours import HOUR_MS
from kreassign.pipeline.load.load_model import load_model
from kreassign.pipeline.load.rates import rates
from kreassign.pipeline.load.skew import skew
from kreassign.pipeline.load.trend import peak_hours
from kreassign.pipeline.tables.schemas import (
    LOAD_HOURS,
    LOAD_MODEL,
    PARTITIONS,
    REPLICAS,
    SAMPLES,
    SKEW,
)
from tests.pipeline.load.test_load_model import DEFAULTS, frame, hours, undecided

pytestmark = pytest.mark.spark


def told(rows: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in names) for row in rows.collect()), key=_null_last)


def _null_last(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is None, 0 if value is None else value) for value in row)


def test_a_gap_a_reset_a_duplicate_and_a_clock_that_is_behind_are_distinguished(spark: SparkSession) -> None:
    def sample(second: int, end: int, partition: int = 0, topic_id: str | None = "id-1") -> dict[str, Any]:
        return {"taken_ms": 1000 * second, "end_offset": end, "partition": partition, "topic_id": topic_id}

    samples = frame(
        spark,
        SAMPLES,
        *(sample(10 * n, 10 * n) for n in (0, 1, 1, 2, 6, 7)),  # three rounds are missing, one is there twice
        *(sample(10 * n, end, 1) for n, end in enumerate((0, 10, 5, 20, 30, 40))),  # 5 came from another clock
        *(sample(10 * n, end, 2, None) for n, end in enumerate((50, 60, 5, 15))),  # another log, and nobody told ids
        *(sample(10 * n, end, 3, f"id-{topic}") for n, (end, topic) in enumerate([(9, 1), (5, 2), (10, 2)])),
        *(sample(10 * n, end, 4) for n, end in enumerate((50, 60, 5, 15))),  # the same log, truncated
    )
    found = rates(undecided(samples))
    assert told(found, "partition", "taken_ms", "seconds", "new_records", "epoch", "verdict") == [
        (0, 0, None, None, 0, "first"),
        (0, 10_000, 10.0, 10, 0, "good"),
        (0, 10_000, None, None, 0, "twice"),
        (0, 20_000, 10.0, 10, 0, "good"),
        (0, 60_000, 40.0, 40, 0, "gap"),
        (0, 70_000, 10.0, 10, 0, "good"),
        (1, 0, None, None, 0, "first"),
        (1, 10_000, 10.0, 10, 0, "good"),
        (1, 20_000, None, None, 0, "odd"),
        (1, 30_000, 20.0, 10, 0, "good"),
        (1, 40_000, 10.0, 10, 0, "good"),
        (1, 50_000, 10.0, 10, 0, "good"),
        (2, 0, None, None, 0, "first"),
        (2, 10_000, 10.0, 10, 0, "good"),
        (2, 20_000, 10.0, None, 1, "reset"),
        (2, 30_000, 10.0, 10, 1, "good"),
        (3, 0, None, None, 0, "first"),
        (3, 10_000, 10.0, None, 1, "reset"),
        (3, 20_000, 10.0, 5, 1, "good"),
        (4, 0, None, None, 0, "first"),
        (4, 10_000, 10.0, 10, 0, "good"),
        (4, 20_000, 10.0, None, 0, "truncated"),
        (4, 30_000, 10.0, 10, 0, "good"),
    ]


def test_collectors_with_other_cadences_make_no_gaps_and_an_outage_does(spark: SparkSession) -> None:
    minute, hour = 60, 3600
    cadences = {
        "one after the other": [range(0, hour, 20), range(hour, 3 * hour, minute), range(3 * hour, 4 * hour, 30)],
        "a third of a minute apart": [range(phase, 4 * hour, minute) for phase in (0, 20, 40)],
        "nearly together": [range(phase, 4 * hour, minute) for phase in (0, 1, 2)],
        "of different cadences": [range(0, 4 * hour, 20), range(3, 4 * hour, 30), range(7, 4 * hour, minute)],
        "slower than the others of the cluster": [range(0, 4 * hour, 300)],
    }
    an_outage = {"an outage": [range(0, hour, minute), range(2 * hour, 4 * hour, minute)]}
    rows = [
        {"topic": name, "taken_ms": 1000 * second, "end_offset": 10 * second}
        for name, collectors in (cadences | an_outage).items()
        for second in sorted(set().union(*collectors))
    ]
    found = rates(undecided(frame(spark, SAMPLES, *rows))).where("verdict = 'gap'")
    assert told(found, "topic", "seconds") == [("an outage", 3660.0)]


def test_the_peak_is_the_busiest_hour_of_the_day_if_every_hour_was_seen(spark: SparkSession) -> None:
    two_days = [
        {"hour_ms": hour * HOUR_MS, "new_records": 3600 * (40 if hour in {7, 31} else 90 if hour == 20 else 10)}
        for hour in range(48)
    ]
    half_a_day = [row | {"partition": 1} for row in two_days[:12]]
    found = peak_hours(frame(spark, LOAD_HOURS, *two_days, *half_a_day))
    # Hour 20 was busy on one day only: (90 + 10) / 2.
    assert told(found, "partition", "peak_hour", "peak_records_per_s") == [(0, 20, 50.0)]


MODEL = {name: DEFAULTS.get(name) for name in LOAD_MODEL.column_names} | {
    "sample_count": 9, "span_s": 1.0, "covered_share": 1.0, "day_count": 9, "reset_count": 0, "coverage": "measured",
    "verdict": "enough", "has_trend": False,
}  # fmt: skip


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


def test_the_verdict_says_whether_there_is_enough_to_plan_by(spark: SparkSession) -> None:
    def seen(partition: int, at_hours: list[int]) -> list[dict[str, Any]]:
        rows = ({"taken_ms": HOUR_MS * hour, "end_offset": hour, "size_bytes": 10 * hour} for hour in at_hours)
        return [row | {"partition": partition} for row in rows]

    times = {0: list(range(25)), 1: [0, 1, 2], 2: [*range(6), *range(12, 25)], 3: [4]}
    samples = frame(spark, SAMPLES, *(row for key, at_hours in times.items() for row in seen(key, at_hours)))
    snapshot = frame(spark, PARTITIONS, *({"partition": key} for key in times))
    model = load_model(snapshot, frame(spark, REPLICAS), hours(samples))
    verdicts = told(model, "partition", "verdict", "covered_share")
    assert verdicts == [(0, "enough", 1.0), (1, "short", 1.0), (2, "gaps", 17 / 24), (3, "unknown", 0.0)]
