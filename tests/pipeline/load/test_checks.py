from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from kreassign.pipeline.load.checks import SCREENED, SET_ASIDE, screen
from kreassign.pipeline.tables.schemas import BROKERS, LOG_DIRS, SAMPLES, Row, Table
from kreassign.pipeline.tables.spark_io import struct_type

pytestmark = pytest.mark.spark

TAKEN_MS = 1_762_250_400_123
HOUR_MS = 3_600_000
GOOD: Row = {
    "cluster_id": "c",
    "taken_ms": TAKEN_MS,
    "topic": "t",
    "topic_id": None,
    "partition": 0,
    "leader": -1,
    "start_offset": 3,
    "end_offset": 3,
    "size_bytes": None,
}
BAD: list[tuple[Row, str]] = [
    ({"topic": None}, "topic is missing"),
    ({"topic": ""}, "topic is missing"),
    ({"end_offset": None}, "end_offset is missing"),
    ({"taken_ms": 0}, "taken_ms is not a time after 1970"),
    ({"taken_ms": 5000}, "taken_ms is before 2011"),
    ({"taken_ms": TAKEN_MS // 1000}, "taken_ms is in seconds, not in milliseconds"),
    ({"taken_ms": TAKEN_MS * 1000}, "taken_ms is in microseconds or smaller, not in milliseconds"),
    ({"taken_ms": 2**63 - 1}, "taken_ms is in microseconds or smaller, not in milliseconds"),
    ({"taken_ms": TAKEN_MS + HOUR_MS + 1}, "taken_ms is more than an hour ahead of the load"),
    ({"partition": -1}, "partition is negative"),
    ({"start_offset": -1}, "start_offset is negative"),
    ({"end_offset": 2}, "end_offset is below start_offset"),
    ({"size_bytes": -1}, "size_bytes is negative"),
    ({"end_offset": 2**63 - 1}, "end_offset is more than a log can reach"),
    ({"size_bytes": 10**15}, "size_bytes is more than a disk holds"),
    ({"size_bytes": -1, "partition": -1}, "partition is negative"),
]


def test_bad_rows_go_to_quarantine_with_the_first_reason(spark: SparkSession) -> None:
    rows = [GOOD] + [GOOD | change | {"leader": number} for number, (change, _) in enumerate(BAD)]
    nullable = struct_type(SAMPLES)
    for field in nullable.fields:  # as Parquet is read
        field.nullable = True
    screened = screen(SAMPLES, spark.createDataFrame([tuple(row.values()) for row in rows], nullable), TAKEN_MS)
    assert [row.asDict() for row in screened.good.collect()] == [GOOD]
    assert screened.bad.columns == list(SET_ASIDE)
    reasons = {json.loads(row["row_json"])["leader"]: row["reason"] for row in screened.bad.collect()}
    assert reasons == {number: reason for number, (_, reason) in enumerate(BAD)}


_SNAPSHOT: Row = {"snapshot_id": "s", "cluster_id": "c", "taken_ms": TAKEN_MS}
OF_BROKERS: dict[Table, tuple[Row, list[tuple[Row, str | None]]]] = {
    BROKERS: (
        _SNAPSHOT
        | {"broker": 1, "host": "h", "port": 9092, "rack": None, "is_fenced": False, "log_dirs_error": None}
        | {"in_maintenance": None, "may_be_named": None},
        [
            ({"broker": -1}, "broker is negative"),
            ({"host": ""}, "host is missing"),
            ({"port": -1}, "port is no port"),
            ({"port": 65_536}, "port is no port"),
            ({"port": 65_535, "is_fenced": True, "log_dirs_error": "was not asked"}, None),
        ],
    ),
    LOG_DIRS: (
        _SNAPSHOT
        | {"broker": 1, "path": "/a", "error": None, "total_bytes": 1000, "usable_bytes": 400, "is_cordoned": False}
        | {"replica_count": 2, "replica_bytes": 600},
        [
            ({"broker": -1}, "broker is negative"),
            ({"path": ""}, "path is missing"),
            ({"total_bytes": -1}, "total_bytes is negative"),
            ({"usable_bytes": -1}, "usable_bytes is negative"),
            ({"total_bytes": 2**63 - 4096}, "total_bytes is more than a file system has"),
            ({"usable_bytes": 1001}, "usable_bytes is more than total_bytes"),
            ({"replica_count": -1}, "replica_count is negative"),
            ({"replica_bytes": -1}, "replica_bytes is negative"),
            # Before Kafka 3.3; a full disk; a file system that compresses.
            ({"total_bytes": None, "usable_bytes": None}, None),
            ({"usable_bytes": 0}, None),
            ({"replica_bytes": 1500}, None),
        ],
    ),
}


@pytest.mark.parametrize("table", OF_BROKERS, ids=lambda table: table.name)
def test_what_a_snapshot_says_of_brokers_and_their_disks_is_judged(spark: SparkSession, table: Table) -> None:
    good, changes = OF_BROKERS[table]
    rows = [good | change | {"cluster_id": str(number)} for number, (change, _) in enumerate([({}, None), *changes])]
    values = [tuple(row[name] for name in table.column_names) for row in rows]
    judged = screen(table, spark.createDataFrame(values, struct_type(table)), TAKEN_MS).judged
    found = {int(row["cluster_id"]): row[SCREENED] for row in judged.collect()}
    assert found == dict(enumerate([None, *(reason for _, reason in changes)]))
