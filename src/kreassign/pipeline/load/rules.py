"""The rules of plausibility: which rows of the sources a load does not believe, how it treats them, and why.

Each rule is a condition in Spark's SQL that is true for an implausible row. The first rule that is true names the
reason. A condition that is NULL is not true: what has to be there is checked before anything else, see `checks.py`.

Rules of one row (`ROW_RULES`) see the columns of its table, and `:now_ms`, the time of the load. Samples that pass them
are judged among their neighbours, by the rules of `series_rules.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kreassign.pipeline.tables.schemas import CLUSTERS, PARTITIONS, REPLICAS, SAMPLES, Table

NO_KAFKA_BEFORE_MS = 1_293_840_000_000
"""The year 2011, in which Kafka was published."""
AHEAD_MS = 3_600_000
"""How far the clock of a collector may be ahead of that of the load."""
LARGEST_OFFSET = 2**53
"""Reached after 28 years of ten million records per second; doubles are exact up to here."""
LARGEST_LOG_BYTES = 2**48
"""256 TiB: a log is in one directory of one broker."""
MOST_RECORDS_PER_S = 100_000_000
MOST_BYTES_PER_S = 50_000_000_000
"""A network of 400 Gb/s."""
UNCONFIRMED = 1000
"""A last reading that grew by so many times what it did before waits for the next one to confirm it."""
TENFOLD = 10


class Treatment(StrEnum):
    """How a load treats a row for which a rule is true."""

    QUARANTINED = "quarantined"
    LATE = "late"
    COUNTED = "counted"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Rule:
    """`reason` is what a reader of the tables is told; `is_broken` the condition, `why` what speaks for it."""

    table: Table
    reason: str
    is_broken: str
    why: str
    treatment: Treatment = Treatment.QUARANTINED


def time_rules(table: Table) -> tuple[Rule, ...]:
    """Bounds of column `taken_ms` that hold whenever it is read."""
    return (
        Rule(table, "taken_ms is not a time after 1970", "taken_ms <= 0", "it is a count from 1970 on"),
        Rule(
            table,
            "taken_ms is in seconds, not in milliseconds",
            f"taken_ms BETWEEN {NO_KAFKA_BEFORE_MS // 1000} AND {NO_KAFKA_BEFORE_MS // 10}",
            "read as seconds it is a time since 2011",
        ),
        Rule(
            table,
            "taken_ms is before 2011",
            f"taken_ms < {NO_KAFKA_BEFORE_MS}",
            "there was no Kafka: the clock had lost its time",
        ),
        Rule(
            table,
            "taken_ms is in microseconds or smaller, not in milliseconds",
            f"taken_ms >= {NO_KAFKA_BEFORE_MS * 1000}",
            "read as milliseconds it is after the year 40000",
        ),
    )


def _times(table: Table) -> tuple[Rule, ...]:
    return (
        *time_rules(table),
        Rule(
            table,
            "taken_ms is more than an hour ahead of the load",
            f"taken_ms > :now_ms + {AHEAD_MS}",
            "nothing is collected after it is loaded, but clocks differ; it would count as the latest",
        ),
    )


def _partition(table: Table) -> Rule:
    return Rule(table, "partition is negative", "partition < 0", "Kafka counts partitions from 0")


def _sizes(table: Table) -> tuple[Rule, ...]:
    return (
        Rule(table, "size_bytes is negative", "size_bytes < 0", "-1 is how some tools say unknown, which is NULL here"),
        Rule(
            table,
            "size_bytes is more than a disk holds",
            f"size_bytes > {LARGEST_LOG_BYTES}",
            "256 TiB: a log is in one directory of one broker",
        ),
    )


ROW_RULES = (
    *_times(CLUSTERS),
    _partition(PARTITIONS),
    Rule(PARTITIONS, "replicas is empty", "size(replicas) = 0", "a partition has a replica at least"),
    _partition(REPLICAS),
    Rule(REPLICAS, "broker is negative", "broker < 0", "-1 is how Kafka says that there is none"),
    *_sizes(REPLICAS),
    *_times(SAMPLES),
    _partition(SAMPLES),
    Rule(SAMPLES, "start_offset is negative", "start_offset < 0", "offsets begin at 0"),
    Rule(
        SAMPLES, "end_offset is below start_offset", "end_offset < start_offset", "a log ends where it begins, or later"
    ),
    Rule(
        SAMPLES,
        "end_offset is more than a log can reach",
        f"end_offset > {LARGEST_OFFSET}",
        "2^53: 28 years of ten million records per second",
    ),
    *_sizes(SAMPLES),
)
"""Rules of one row, in the order in which they are tried."""

SAME_KEY = "another row has the same key"
NO_PARTITION = "its partition is not in the snapshot"
HOUR_CLOSED = "its hour is closed"
KEY_RULES = (
    *(
        Rule(
            table,
            SAME_KEY,
            f"copy > 1 (rows of the same {', '.join(table.key)}, good ones first)",
            "files that were copied back after they had been compacted, or a snapshot that was stored twice",
            Treatment.LATE,
        )
        for table in (CLUSTERS, PARTITIONS, REPLICAS)
    ),
    Rule(
        REPLICAS,
        NO_PARTITION,
        "no row of partitions has its snapshot_id, topic and partition",
        "the topic came or went while the snapshot was taken",
    ),
    Rule(
        SAMPLES,
        NO_PARTITION,
        "no row of partitions of the latest snapshot has its cluster_id, topic and partition",
        "the topic was deleted; its hours are made, but no load model",
        Treatment.COUNTED,
    ),
    Rule(
        SAMPLES,
        HOUR_CLOSED,
        "taken_ms is before the first hour of its partition that the last load left open",
        "hours are closed two hours after; it stays in the table, and `kreassign load --full` counts it",
        Treatment.LATE,
    ),
)
"""Rules of declared keys, told in words: `checks.py` computes them."""

SAME_TIME = "another row has the same time"
"""Why a sample does not count that is there twice."""
RULES = ROW_RULES + KEY_RULES
