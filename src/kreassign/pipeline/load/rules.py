"""The rules of plausibility: which rows of the sources a load does not believe, how it treats them, and why.

Each rule is a condition in Spark's SQL that is true for an implausible row. The first rule that is true names the
reason. A condition that is NULL is not true: what has to be there is checked before anything else, see `checks.py`.

Rules of one row (`ROW_RULES`) see the columns of its table, and `:now_ms`, the time of the load. Samples that pass
them are judged among their neighbours, by the rules of `rates.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby
from operator import itemgetter

from kreassign.model.load import LoadAccount, ReasonCount
from kreassign.pipeline.tables import schemas

NO_KAFKA_BEFORE_MS = 1_293_840_000_000
"""Start of 2011, in which Kafka was published."""
AHEAD_MS = 3_600_000
"""Largest lead of a collector's clock over the load's."""
LARGEST_OFFSET = 2**53
"""Reached after 28 years of ten million records per second; doubles are exact up to here."""
LARGEST_LOG_BYTES = 2**48
"""256 TiB: a log is in one directory of one broker."""
LARGEST_DISK_BYTES = 2**60
"""An exbibyte. Unlimited file systems, e.g. of clouds, report eight."""
LARGEST_PORT = 65_535
MOST_RECORDS_PER_S = 100_000_000
MOST_BYTES_PER_S = 50_000_000_000
"""A network of 400 Gb/s."""
UNCONFIRMED = 50
"""A last reading that grew by this factor over earlier growth waits for the next sample to confirm it."""
TENFOLD = 10


class Treatment(StrEnum):
    """Treatment of a row for which a rule is true."""

    QUARANTINED = "quarantined"
    LATE = "late"
    COUNTED = "counted"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for rows: `reason` is shown in tables, `why` its grounds, `is_broken` the condition (SQL or words)."""

    table: schemas.Table
    reason: str
    is_broken: str
    why: str
    treatment: Treatment = Treatment.QUARANTINED


def time_rules(table: schemas.Table) -> tuple[Rule, ...]:
    """Bounds of column `taken_ms` at any time of reading."""
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


def taken_rules(table: schemas.Table) -> tuple[Rule, ...]:
    """Bounds of column `taken_ms` for rows that a collector took."""
    return (
        *time_rules(table),
        Rule(
            table,
            "taken_ms is more than an hour ahead of the load",
            f"taken_ms > :now_ms + {AHEAD_MS}",
            "nothing is collected after it is loaded, but clocks differ; it would count as the latest",
        ),
    )


def partition_rule(table: schemas.Table) -> Rule:
    """Rule for column `partition`, which may be NULL."""
    return Rule(table, "partition is negative", "partition < 0", "Kafka counts partitions from 0")


def broker_rule(table: schemas.Table) -> Rule:
    """Rule for column `broker`, if it must name a broker."""
    return Rule(table, "broker is negative", "broker < 0", "-1 is how Kafka says that there is none")


def bytes_rule(table: schemas.Table, name: str) -> Rule:
    """Rule for a column of bytes, which may be NULL."""
    return Rule(
        table, f"{name} is negative", f"{name} < 0", "-1 is how Kafka and some tools say unknown, which is NULL here"
    )


def size_rules(table: schemas.Table) -> tuple[Rule, ...]:
    """Bounds of column `size_bytes`, the size of a log, which may be NULL."""
    return (
        bytes_rule(table, "size_bytes"),
        Rule(
            table,
            "size_bytes is more than a disk holds",
            f"size_bytes > {LARGEST_LOG_BYTES}",
            "256 TiB: a log is in one directory of one broker",
        ),
    )


ROW_RULES = (
    *taken_rules(schemas.CLUSTERS),
    broker_rule(schemas.BROKERS),
    Rule(
        schemas.BROKERS,
        "port is no port",
        f"port NOT BETWEEN 0 AND {LARGEST_PORT}",
        "it has 16 bits",
    ),
    broker_rule(schemas.LOG_DIRS),
    bytes_rule(schemas.LOG_DIRS, "total_bytes"),
    bytes_rule(schemas.LOG_DIRS, "usable_bytes"),
    Rule(
        schemas.LOG_DIRS,
        "total_bytes is more than a file system has",
        f"total_bytes > {LARGEST_DISK_BYTES}",
        "an exbibyte; file systems without an end say eight, and are no capacity to plan with",
    ),
    Rule(
        schemas.LOG_DIRS,
        "usable_bytes is more than total_bytes",
        "usable_bytes > total_bytes",
        "what is free is a part of the whole",
    ),
    Rule(schemas.LOG_DIRS, "replica_count is negative", "replica_count < 0", "it is a count"),
    Rule(schemas.LOG_DIRS, "replica_bytes is negative", "replica_bytes < 0", "it is a sum of sizes"),
    partition_rule(schemas.PARTITIONS),
    Rule(schemas.PARTITIONS, "replicas is empty", "size(replicas) = 0", "a partition has a replica at least"),
    partition_rule(schemas.REPLICAS),
    broker_rule(schemas.REPLICAS),
    *size_rules(schemas.REPLICAS),
    *taken_rules(schemas.SAMPLES),
    partition_rule(schemas.SAMPLES),
    Rule(schemas.SAMPLES, "start_offset is negative", "start_offset < 0", "offsets begin at 0"),
    Rule(
        schemas.SAMPLES,
        "end_offset is below start_offset",
        "end_offset < start_offset",
        "a log ends where it begins, or later",
    ),
    Rule(
        schemas.SAMPLES,
        "end_offset is more than a log can reach",
        f"end_offset > {LARGEST_OFFSET}",
        "2^53: 28 years of ten million records per second",
    ),
    *size_rules(schemas.SAMPLES),
)
"""Rules for one row, in the order in which they are tried."""

SAME_KEY = "another row has the same key"
NO_PARTITION = "its partition is not in the snapshot"
NO_TOPIC = "its topic is not in the snapshot"
UNKNOWN_BROKER = "its broker is not in the snapshot"
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
        for table in (schemas.CLUSTERS, schemas.BROKERS, schemas.LOG_DIRS, schemas.PARTITIONS, schemas.REPLICAS)
    ),
    Rule(
        schemas.REPLICAS,
        NO_PARTITION,
        "no row of partitions has its snapshot_id, topic and partition",
        "the topic came or went while the snapshot was taken",
    ),
    Rule(
        schemas.SAMPLES,
        NO_PARTITION,
        "no row of partitions of the latest snapshot has its cluster_id, topic and partition",
        "the topic was deleted; its hours are made, but no load model",
        Treatment.COUNTED,
    ),
    Rule(
        schemas.SAMPLES,
        HOUR_CLOSED,
        "taken_ms is before the first hour of its partition that the last load left open",
        "hours are closed two hours after; it stays in the table, and `kreassign load --full` counts it",
        Treatment.LATE,
    ),
    Rule(
        schemas.METRIC_HOURS,
        NO_TOPIC,
        "no row of partitions of the latest snapshot has its cluster_id and topic, also with underscores for dots",
        "the topic was deleted, or has another name; what was measured of it is not shared out to other topics",
        Treatment.COUNTED,
    ),
    Rule(
        schemas.METRIC_HOURS,
        UNKNOWN_BROKER,
        "no row of brokers of the latest snapshot has its cluster_id and broker",
        "the broker is gone, or --broker was mistyped at the import; what it measured is shared out to no partition",
        Treatment.COUNTED,
    ),
)
"""Rules for declared keys, in words, not SQL: `checks.py` computes them."""

METRIC_HOUR_RULES = (
    Rule(
        schemas.METRIC_HOURS,
        SAME_KEY,
        "a metric before it has the same key",
        "the reading stands for no time: what it says is said already",
        Treatment.LATE,
    ),
    Rule(
        schemas.METRIC_HOURS,
        "it is the first of its series",
        "no metric of the last days is before it in its series",
        "it stands for no time of its own; the next one is measured from it",
        Treatment.COUNTED,
    ),
    Rule(
        schemas.METRIC_HOURS,
        "it is more than an hour after the one before",
        "taken_ms is more than an hour after that of the metric before it in its series",
        "nobody measured meanwhile: that time counts as not measured",
        Treatment.COUNTED,
    ),
    Rule(
        schemas.METRIC_HOURS,
        "its counter went back",
        "a `_total` that is lower than the one before it in its series",
        "the broker was restarted: how far the counter had come is not known, and that time counts as not measured",
        Treatment.COUNTED,
    ),
    Rule(
        schemas.METRIC_HOURS,
        "its counter is another broker's",
        "a `_total` above one of the next four in its series, the first of which is once to twice the one before it",
        "a counter that restarts begins at 0, and this goes on from before: pages of two brokers came under one id; "
        "that time counts as not measured",
        Treatment.COUNTED,
    ),
    Rule(
        schemas.METRIC_HOURS,
        "its counter grew faster than a broker can count",
        f"a `_total` of bytes that grew by more than {MOST_BYTES_PER_S} per second, or another by {MOST_RECORDS_PER_S}",
        "a network of 400 Gb/s, a hundred million records or requests: no broker sent that, and that time counts as "
        "not measured",
        Treatment.COUNTED,
    ),
)
"""Rules for metrics among those of their series (cluster, broker, topic, partition, name), in words: `measured.py`
computes them. Counted metrics are good."""
TWICE, FIRST, AFTER_GAP, WENT_BACK, ANOTHERS, TOO_FAST = (rule.reason for rule in METRIC_HOUR_RULES)

SAME_TIME = "another row has the same time"
"""Reason why a duplicate sample does not count."""
RULES = ROW_RULES + KEY_RULES + METRIC_HOUR_RULES


# Table `load_quality`: its rows, and their display in a terminal over time.

GOOD = "good"
TREATMENTS = (GOOD, *map(str, Treatment))
_LOADS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """Number of rows of a table with one treatment and reason; `reason` is None for good rows."""

    table_name: str
    treatment: str
    reason: str | None
    row_count: int


def quality_rows(load_ms: int, judged: Iterable[Judged]) -> list[schemas.Row]:
    """Rows of table `load_quality` for one load: counts above zero, and always one for good rows."""
    return [
        {
            "load_ms": load_ms,
            "table_name": each.table_name,
            "treatment": str(each.treatment),
            "reason": each.reason,
            "row_count": each.row_count,
        }
        for each in judged
        if each.row_count or each.treatment == GOOD
    ]


def load_accounts(rows: Iterable[schemas.Row]) -> tuple[LoadAccount, ...]:
    """Group rows of table `load_quality` by load, oldest first."""
    order = sorted(rows, key=lambda row: (row["load_ms"], row["table_name"], row["treatment"], row["reason"] or ""))
    by_load = groupby(order, itemgetter("load_ms"))
    return tuple(_account(load_ms, list(of_load)) for load_ms, of_load in by_load)


def quality_lines(rows: Iterable[schemas.Row]) -> Iterator[str]:
    """Lines of a text table of the latest loads, oldest first; then the reasons of the last load."""
    shown = load_accounts(rows)[-_LOADS_SHOWN:]
    yield f"{'load (UTC)':<20} {'table':<12}" + "".join(f" {kind:>12}" for kind in TREATMENTS)
    for load in shown:
        begun = f"{datetime.fromtimestamp(load.load_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
        for name, counts in load.tables.items():
            yield f"{begun:<20} {name:<12}" + "".join(f" {count:>12,}" for count in map(counts.__getitem__, TREATMENTS))
    for each in shown[-1].reasons if shown else ():
        yield f"{each.table_name}: {each.row_count:,} {each.treatment}: {each.reason}"


def _account(load_ms: int, rows: list[schemas.Row]) -> LoadAccount:
    tables: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = tables.setdefault(row["table_name"], dict.fromkeys(TREATMENTS, 0))
        counts[row["treatment"]] = counts.get(row["treatment"], 0) + row["row_count"]
    reasons = (row for row in rows if row["reason"] is not None)
    told = (ReasonCount(row["table_name"], row["treatment"], row["reason"], row["row_count"]) for row in reasons)
    return LoadAccount(load_ms, tables, tuple(told))
