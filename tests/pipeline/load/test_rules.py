"""Rules of one row at both sides of their bounds. SQLite reads their conditions as Spark does: they are plain SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing

import pytest

from kreassign.pipeline.load.rules import (
    ROW_RULES,
    RULES,
    Rule,
    Treatment,
    broker_rule,
    bytes_rule,
    partition_rule,
    size_rules,
    taken_rules,
    time_rules,
)
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES, Table

NOW_MS = 1_762_250_400_000
HOUR_MS = 3_600_000
YEAR_2011_MS = 1_293_840_000_000

NO_TIME = "taken_ms is not a time after 1970"
SECONDS = "taken_ms is in seconds, not in milliseconds"
BEFORE = "taken_ms is before 2011"
FINER = "taken_ms is in microseconds or smaller, not in milliseconds"
AHEAD = "taken_ms is more than an hour ahead of the load"


def broken(rules: Iterable[Rule], **columns: int | str | None) -> list[str]:
    """The reasons of those rules that are true for a row with these columns, in their order."""
    row = ", ".join(f":{name} AS {name}" for name in columns)
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.create_function("size", 1, len)
        values = {"now_ms": NOW_MS, **columns}
        return [
            rule.reason
            for rule in rules
            if sql.execute(f"SELECT {rule.is_broken} FROM (SELECT {row})", values).fetchone()[0]
        ]


@pytest.mark.parametrize(("taken_ms", "reasons"), [
    (-1, [NO_TIME, BEFORE]), (0, [NO_TIME, BEFORE]), (1, [BEFORE]),
    (1_293_839_999, [BEFORE]), (1_293_840_000, [SECONDS, BEFORE]),
    (129_384_000_000, [SECONDS, BEFORE]), (129_384_000_001, [BEFORE]),
    (YEAR_2011_MS - 1, [BEFORE]), (YEAR_2011_MS, []),
    (YEAR_2011_MS * 1000 - 1, []), (YEAR_2011_MS * 1000, [FINER]),
    (None, []),
])  # fmt: skip
def test_a_time_is_one_in_milliseconds_since_there_was_kafka(taken_ms: int | None, reasons: list[str]) -> None:
    assert broken(time_rules(SAMPLES), taken_ms=taken_ms) == reasons


@pytest.mark.parametrize(("taken_ms", "reasons"), [
    (NOW_MS, []), (NOW_MS + HOUR_MS, []), (NOW_MS + HOUR_MS + 1, [AHEAD]), (YEAR_2011_MS * 1000, [FINER, AHEAD]),
    (0, [NO_TIME, BEFORE]),
])  # fmt: skip
def test_clocks_of_collectors_may_be_an_hour_ahead_of_the_load(taken_ms: int, reasons: list[str]) -> None:
    assert broken(taken_rules(SAMPLES), taken_ms=taken_ms) == reasons


def test_counts_and_sizes_are_not_negative_and_a_log_fits_on_a_disk() -> None:
    huge = "size_bytes is more than a disk holds"
    assert broken(size_rules(SAMPLES), size_bytes=-1) == ["size_bytes is negative"]
    for size, reasons in ((0, []), (2**48, []), (2**48 + 1, [huge]), (None, [])):
        assert broken(size_rules(SAMPLES), size_bytes=size) == reasons
    assert broken([bytes_rule(LOG_DIRS, "usable_bytes")], usable_bytes=-1) == ["usable_bytes is negative"]
    assert broken([bytes_rule(LOG_DIRS, "usable_bytes")], usable_bytes=0) == []
    assert broken([partition_rule(SAMPLES)], partition=-1) == ["partition is negative"]
    assert broken([broker_rule(BROKERS)], broker=-1) == ["broker is negative"]
    assert broken([partition_rule(SAMPLES), broker_rule(SAMPLES)], partition=0, broker=0) == []


def test_every_rule_names_its_table_reason_and_grounds() -> None:
    families = [
        *taken_rules(CLUSTERS), *size_rules(CLUSTERS), bytes_rule(CLUSTERS, "usable_bytes"), partition_rule(CLUSTERS),
        broker_rule(CLUSTERS),
    ]  # fmt: skip
    assert {rule.table.name for rule in families} == {"clusters"}
    assert {rule.treatment for rule in families} == {Treatment.QUARANTINED}
    for rule in (*families, *RULES):
        assert len(rule.why.split()) > 1, rule.reason
        assert len(rule.reason.split()) > 1
    assert len({(rule.table.name, rule.reason) for rule in RULES}) == len(RULES)


GOOD: dict[Table, dict[str, int | str | None]] = {
    CLUSTERS: {"taken_ms": NOW_MS},
    BROKERS: {"broker": 0, "port": 9092},
    LOG_DIRS: {"broker": 0, "total_bytes": 100, "usable_bytes": 100, "replica_count": 0, "replica_bytes": 0},
    PARTITIONS: {"partition": 0, "replicas": "1"},
    REPLICAS: {"partition": 0, "broker": 0, "size_bytes": 0},
    SAMPLES: {"taken_ms": NOW_MS, "partition": 0, "start_offset": 0, "end_offset": 0, "size_bytes": None},
}
ODD = (
    (CLUSTERS, {"taken_ms": NOW_MS + 2 * HOUR_MS}, AHEAD),
    (BROKERS, {"broker": -1}, "broker is negative"),
    (BROKERS, {"port": -1}, "port is no port"),
    (BROKERS, {"port": 65_536}, "port is no port"),
    (LOG_DIRS, {"broker": -1}, "broker is negative"),
    (LOG_DIRS, {"total_bytes": -1, "usable_bytes": None}, "total_bytes is negative"),
    (LOG_DIRS, {"usable_bytes": -1}, "usable_bytes is negative"),
    (LOG_DIRS, {"usable_bytes": 101}, "usable_bytes is more than total_bytes"),
    (LOG_DIRS, {"total_bytes": 2**60 + 1}, "total_bytes is more than a file system has"),
    (LOG_DIRS, {"replica_count": -1}, "replica_count is negative"),
    (LOG_DIRS, {"replica_bytes": -1}, "replica_bytes is negative"),
    (PARTITIONS, {"partition": -1}, "partition is negative"),
    (PARTITIONS, {"replicas": ""}, "replicas is empty"),
    (REPLICAS, {"partition": -1}, "partition is negative"),
    (REPLICAS, {"broker": -1}, "broker is negative"),
    (REPLICAS, {"size_bytes": -1}, "size_bytes is negative"),
    (SAMPLES, {"taken_ms": 1}, BEFORE),
    (SAMPLES, {"partition": -1}, "partition is negative"),
    (SAMPLES, {"start_offset": -1}, "start_offset is negative"),
    (SAMPLES, {"start_offset": 1}, "end_offset is below start_offset"),
    (SAMPLES, {"end_offset": 2**53 + 1}, "end_offset is more than a log can reach"),
    (SAMPLES, {"size_bytes": 2**48 + 1}, "size_bytes is more than a disk holds"),
)


@pytest.mark.parametrize("table", GOOD, ids=lambda table: str(table.name))
def test_rows_at_their_bounds_are_believed(table: Table) -> None:
    rules = [rule for rule in ROW_RULES if rule.table is table]
    assert broken(rules, **GOOD[table]) == []
    at_most = {"port": 65_535, "total_bytes": 2**60, "end_offset": 2**53, "size_bytes": 2**48}
    assert broken(rules, **GOOD[table] | {name: most for name, most in at_most.items() if name in GOOD[table]}) == []


@pytest.mark.parametrize(("table", "change", "reason"), ODD)
def test_each_rule_of_one_row_is_true_just_beyond_its_bound(
    table: Table, change: dict[str, int | str | None], reason: str
) -> None:
    assert broken([rule for rule in ROW_RULES if rule.table is table], **GOOD[table] | change) == [reason]


def test_every_table_that_a_load_reads_has_rules() -> None:
    assert {rule.table for rule in ROW_RULES} == {CLUSTERS, BROKERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES}
