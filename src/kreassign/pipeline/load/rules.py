"""The rules of plausibility: which rows of the sources a load does not believe, how it treats them, and why.

Each rule is a condition in Spark's SQL that is true for an implausible row. The first rule that is true names the
reason. A condition that is NULL is not true: what has to be there is checked before anything else, see `checks.py`.

Rules of one row (`ROW_RULES`) see the columns of its table, and `:now_ms`, the time of the load. Rules of a sample
among its neighbours (`SERIES_RULES`) also see, of the samples of the same partition and topic id in order of time,

    end_before, end_after           end offset of the sample before and the one after
    median_before, median_after     median end offset of the three before and the three after
    rise_before, rise_after         largest step up among the last, and among the next, three steps
    step_before, step_after         median of these steps, what is usual; 0 where it is a step down
    size_before, size_after         sizes, and of the sample before `start_before`
    clean_…                         the same of the nearest samples that no rule above has set aside

An end offset only grows while a log lives, so order alone convicts most readings. Where two readings disagree, the
median of three on each side says which one: it is right as long as no two of three are wrong. What goes back and then
grows as before was truncated (`truncated`, see `rates.py`), which is no error of the reading; only what comes back in
one step, as far as it went and more than usual, is one.
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
FIRST_SERIES_RULES = (
    Rule(
        SAMPLES,
        SAME_TIME,
        "is_twice",
        "a round that was stored twice counts once; of rows that differ, the one that is ahead was seen",
        Treatment.LATE,
    ),
    Rule(
        SAMPLES,
        "topic_id is that of another topic than before and after",
        "is_other_topic",
        "the answer of a broker that was behind: a topic that was re-created keeps its new id",
    ),
    Rule(
        SAMPLES,
        "end_offset is behind the samples before it, and comes back",
        "end_offset < median_before AND rise_after >= median_before - end_offset + step_before",
        "read from a leader that was behind, or with another clock",
    ),
    Rule(
        SAMPLES,
        "end_offset is ahead of the samples after it, and comes back",
        "end_offset > median_after AND median_after >= median_before "
        "AND rise_before >= end_offset - median_after + step_after "
        "AND end_offset - median_after > IF(has_two_after, 0, 3 * (median_after - median_before) + 1)",
        "a single reading that is too high, or was taken with a clock that was behind",
    ),
    Rule(
        SAMPLES,
        "end_offset jumps, and no later sample confirms it",
        f"end_after IS NULL AND end_before > median_before AND end_offset / 2 > end_before "
        f"AND end_offset - end_before > {UNCONFIRMED}D * (end_before - median_before)",
        f"it more than doubles, by {UNCONFIRMED} times what came before; with the next sample it counts if it is right",
    ),
    Rule(
        SAMPLES,
        "size_bytes jumps without records",
        f"size_bytes > {TENFOLD}D * GREATEST(size_before, size_after) "
        f"AND size_bytes - size_before > {TENFOLD}D * (ABS(end_offset - end_before) + 1) "
        "* try_divide(size_before, end_before - start_before)",
        "ten times what was there before and after, and ten times what the new records weigh",
    ),
    Rule(
        SAMPLES,
        "size_bytes collapses and comes back without records",
        f"size_bytes < LEAST(size_before, size_after) / {TENFOLD} AND size_after IS NOT NULL "
        f"AND size_after - size_bytes > {TENFOLD}D * (ABS(end_after - end_offset) + 1) "
        "* try_divide(size_before, end_before - start_before)",
        "less than a tenth of what was there before and after: what a broker says while it reads its logs",
    ),
)
"""Rules of a sample among all samples of its partition."""

SECOND_SERIES_RULES = (
    Rule(
        SAMPLES,
        "end_offset is behind the sample before and not behind the one after",
        "end_offset < clean_end_before AND clean_end_before <= clean_end_after",
        "read from a leader that was behind, or with another clock",
    ),
    Rule(
        SAMPLES,
        "end_offset is ahead of the two samples after it",
        "end_offset > clean_end_after AND clean_end_after >= clean_end_before AND end_offset > clean_end_after_next",
        "one of several readings that were too high",
    ),
    Rule(
        SAMPLES,
        "end_offset is behind the sample before it, and is the last",
        "end_offset < clean_end_before AND clean_end_after IS NULL",
        "one reading is no proof that a log went back; with the next samples it counts if it did",
    ),
    Rule(
        SAMPLES,
        "end_offset grows faster than a broker can write",
        f"(end_offset - clean_end_before) * 1000D > {MOST_RECORDS_PER_S}D * (taken_ms - clean_ms_before)",
        "a hundred million records per second",
    ),
    Rule(
        SAMPLES,
        "size_bytes grows faster than a network can bring",
        f"(size_bytes - clean_size_before) * 1000D > {MOST_BYTES_PER_S}D * (taken_ms - clean_ms_before)",
        "50 GB/s, a network of 400 Gb/s",
    ),
)
"""Rules of a sample among those that are left."""

SERIES_RULES = FIRST_SERIES_RULES + SECOND_SERIES_RULES
RULES = ROW_RULES + KEY_RULES + SERIES_RULES
