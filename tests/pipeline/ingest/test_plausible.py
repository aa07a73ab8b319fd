"""The rules of plausibility of what comes from elsewhere: each refuses what it is for, from a file and from a topic."""

from __future__ import annotations

import math
from itertools import product

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kreassign.pipeline.ingest.imported_samples import Judge
from kreassign.pipeline.ingest.metric_records import IMPORT_RULES, METRIC_RULES
from kreassign.pipeline.load.checks import is_broken
from kreassign.pipeline.load.rules import Rule
from kreassign.pipeline.tables.schemas import METRICS, SAMPLES, Row
from kreassign.pipeline.tables.spark_io import struct_type

NOW_MS = 1_760_000_000_000
GOOD: Row = {"cluster_id": "c", "taken_ms": NOW_MS, "broker": 1, "topic": None, "partition": None,
             "name": "bytes_in_total", "value": 5.0}  # fmt: skip
BROKEN: dict[str, Row] = {
    "taken_ms is not a time after 1970": {"taken_ms": 0},
    "taken_ms is in seconds, not in milliseconds": {"taken_ms": NOW_MS // 1000},
    "taken_ms is before 2011": {"taken_ms": 3_600_000},
    "taken_ms is in microseconds or smaller, not in milliseconds": {"taken_ms": NOW_MS * 1000},
    "taken_ms is more than an hour ahead": {"taken_ms": NOW_MS + 3_600_001},
    "broker is negative": {"broker": -2},
    "partition is negative": {"topic": "t", "partition": -1},
    "partition is given without a topic": {"partition": 0},
    "topic is not a name that Kafka allows": {"topic": "a b"},
    "name is not one of table metrics": {"name": "kafka_server_brokertopicmetrics_bytesin_total"},
    "value is not a finite number": {"value": math.nan},
    "value is negative": {"value": -1e-9},
    "value is a percentage, not a share": {"name": "cpu_share", "value": 93.0},
    "value is more bytes per second than a network can bring": {"name": "bytes_in_per_s", "value": 1e300},
    "value is more per second than a broker can do": {"name": "messages_in_per_s", "value": 1e300},
    "value is more than a counter holds": {"value": 1e300},
    "value is more bytes than a disk holds": {"name": "size_bytes", "topic": "t", "partition": 0, "value": 2.0**49},
    "value is more bytes than a topic has": {"name": "size_bytes", "topic": "t", "value": 1e300},
}
CAN_BE: list[Row] = [
    {}, {"value": 0.0}, {"taken_ms": NOW_MS + 3_600_000}, {"broker": -1}, {"value": 2.0**62},
    {"name": "request_handler_idle_share", "value": 1.9}, {"name": "bytes_out_per_s", "value": 1e10},
    {"topic": "a.b_c-D9", "partition": 0}, {"topic": "a" * 249},
    {"name": "size_bytes", "topic": "t", "partition": 0, "value": 2.0**48},
    {"name": "size_bytes", "topic": "t", "value": 2.0**49},
]  # fmt: skip
NEAR: list[Row] = [
    {"value": math.inf}, {"value": -math.inf}, {"value": 2.0**63}, {"topic": "a" * 250}, {"topic": "a\n"},
    {"topic": ".."}, {"topic": ""}, {"topic": "\u00e9"}, {"name": "CPU_SHARE"}, {"name": "cpu_share", "value": 2.1},
    {"taken_ms": 2**63 - 1}, {"taken_ms": -1}, {"broker": -(2**31)},
]  # fmt: skip


def why_not(row: Row) -> str | None:
    return Judge(METRICS, NOW_MS).why_not(row)


def test_every_rule_is_tried() -> None:
    assert list(BROKEN) == [rule.reason for rule in IMPORT_RULES[METRICS]]


@pytest.mark.parametrize("reason", BROKEN)
def test_a_metric_that_cannot_be_is_refused_for_this_reason(reason: str) -> None:
    assert why_not(GOOD | BROKEN[reason]) == reason


@pytest.mark.parametrize("change", CAN_BE)
def test_what_can_be_is_good(change: Row) -> None:
    assert why_not(GOOD | change) is None


def test_values_that_no_column_holds_are_judged_too() -> None:
    assert why_not(GOOD | {"taken_ms": 10**30}) == "taken_ms is in microseconds or smaller, not in milliseconds"
    assert why_not(GOOD | {"topic": "\udcff"}) == "topic is not a name that Kafka allows"


def test_a_metric_is_judged_alike_from_a_file_and_from_a_topic() -> None:
    """But for the clock that it is compared with, and for broker -1, which is a whole cluster in Confluent's files."""

    def shared(rules: tuple[Rule, ...]) -> list[Rule]:
        return [rule for rule in rules if "ahead" not in rule.reason and rule.reason != "broker is negative"]

    assert shared(METRIC_RULES) == shared(IMPORT_RULES[METRICS])
    assert len(METRIC_RULES) == len(IMPORT_RULES[METRICS])


@pytest.mark.spark
def test_sqlite_and_spark_read_every_rule_alike(spark: SparkSession) -> None:
    changes = [*BROKEN.values(), *CAN_BE, *NEAR]
    rows = [GOOD | first | second for first, second in product(changes, changes)]
    values = [tuple(row[name] for name in METRICS.column_names) for row in rows]
    found = spark.createDataFrame(values, struct_type(METRICS)).select(
        sql.coalesce(*(sql.when(is_broken(rule, NOW_MS), rule.reason) for rule in IMPORT_RULES[METRICS]))
    )
    judge = Judge(METRICS, NOW_MS)
    by_spark = [row[0] for row in found.collect()]
    assert [pair for pair in zip(rows, by_spark, strict=True) if judge.why_not(pair[0]) != pair[1]] == []
    assert set(by_spark) == {None, *BROKEN}


def test_of_samples_only_the_time_is_judged_here() -> None:
    judge = Judge(SAMPLES, NOW_MS)
    assert judge.why_not({"taken_ms": NOW_MS // 1000}) == "taken_ms is in seconds, not in milliseconds"
    assert judge.why_not({"taken_ms": NOW_MS, "end_offset": -7}) is None
