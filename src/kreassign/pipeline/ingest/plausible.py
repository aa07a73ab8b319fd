"""PURE. The rules of plausibility of what is imported: which rows are not stored, and why.

A rule is true of an implausible row; the first that is true names the reason. Times are judged in metrics and samples
alike, because rows are stored by their hour. All else about samples `kreassign load` judges, among their neighbours
(`pipeline/load/rules.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kreassign.pipeline.ingest.exporters import METRIC_NAMES, NO_BROKER
from kreassign.pipeline.load.rules import AHEAD_MS, MOST_BYTES_PER_S, MOST_RECORDS_PER_S, NO_KAFKA_BEFORE_MS
from kreassign.pipeline.tables.schemas import METRICS, Row, Table

LARGEST_COUNTER = 2.0**63
LARGEST_TOPIC_BYTES = 2.0**60
LARGEST_SHARE = 2.0
"""Idle shares are a little above 1 at times, and up to 2 where broker and controller share one pool."""


@dataclass(frozen=True, slots=True)
class ImportRule:
    """`is_broken` gets a row and the time of the import; `why` is what speaks for the rule."""

    reason: str
    is_broken: Callable[[Row, int], bool]
    why: str


TIME_RULES = (
    ImportRule("taken_ms is not a time after 1970", lambda row, _: row["taken_ms"] <= 0, "it is a count from 1970 on"),
    ImportRule(
        "taken_ms is in seconds, not in milliseconds",
        lambda row, _: NO_KAFKA_BEFORE_MS // 1000 <= row["taken_ms"] <= NO_KAFKA_BEFORE_MS // 10,
        "read as seconds it is a time since 2011",
    ),
    ImportRule(
        "taken_ms is before 2011",
        lambda row, _: row["taken_ms"] < NO_KAFKA_BEFORE_MS,
        "there was no Kafka: the clock had lost its time",
    ),
    ImportRule(
        "taken_ms is in microseconds or smaller, not in milliseconds",
        lambda row, _: row["taken_ms"] >= NO_KAFKA_BEFORE_MS * 1000,
        "read as milliseconds it is after the year 40000",
    ),
    ImportRule(
        "taken_ms is more than an hour ahead",
        lambda row, now_ms: row["taken_ms"] > now_ms + AHEAD_MS,
        "nothing is measured after it is imported, but clocks differ",
    ),
)
METRIC_RULES = (
    *TIME_RULES,
    ImportRule("name is not one of table metrics", lambda row, _: row["name"] not in METRIC_NAMES, "nobody reads it"),
    ImportRule("broker is negative", lambda row, _: row["broker"] < NO_BROKER, "-1 is for metrics of a whole cluster"),
    ImportRule("value is not a number", lambda row, _: math.isnan(row["value"]), "NaN is how Prometheus ends a series"),
    ImportRule("value is negative", lambda row, _: row["value"] < 0, "nothing that is read here can be"),
    ImportRule("value is infinite", lambda row, _: math.isinf(row["value"]), "a division by zero"),
    ImportRule(
        "value is a percentage, not a share",
        lambda row, _: row["name"].endswith("_share") and row["value"] > LARGEST_SHARE,
        "a share is from 0 to 1; idle shares are up to 2 where broker and controller share one pool",
    ),
    ImportRule(
        "value is more bytes per second than a network can bring",
        lambda row, _: "bytes" in row["name"] and row["name"].endswith("_per_s") and row["value"] > MOST_BYTES_PER_S,
        "50 GB/s, a network of 400 Gb/s",
    ),
    ImportRule(
        "value is more per second than a broker can do",
        lambda row, _: (
            "bytes" not in row["name"] and row["name"].endswith("_per_s") and row["value"] > MOST_RECORDS_PER_S
        ),
        "a hundred million records or requests per second",
    ),
    ImportRule(
        "value is more than a counter holds",
        lambda row, _: row["name"].endswith("_total") and row["value"] >= LARGEST_COUNTER,
        "counters of Kafka have 64 bits",
    ),
    ImportRule(
        "value is more bytes than a topic has",
        lambda row, _: row["name"] == "size_bytes" and row["value"] > LARGEST_TOPIC_BYTES,
        "an exbibyte",
    ),
)
"""In the order in which they are tried."""


def why_not(table: Table, row: Row, now_ms: int) -> str | None:
    """The reason why a row of `metrics` or `samples` is implausible; None if it is not."""
    rules = METRIC_RULES if table is METRICS else TIME_RULES
    return next((rule.reason for rule in rules if rule.is_broken(row, now_ms)), None)
