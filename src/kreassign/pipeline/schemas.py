"""Every table of the data directory, described once and for all engines.

Rules of this file: it is the only place that names columns and their types, it imports no engine, and it holds no
code but the few lines that describe a table. `tables.py` derives Spark's schema from it, `rows.py` pyarrow's,
`schema_docs.py` the reference page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Row = dict[str, Any]
"""A row of any table outside an engine: column name → value."""


class ColumnType(StrEnum):
    """Type of a column, written as SQL writes it."""

    STRING = "string"
    INT = "int"
    BIGINT = "bigint"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    INTS = "array<int>"


STRING, INT, BIGINT, DOUBLE, BOOLEAN, INTS = ColumnType


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `nullable` ones are NULL exactly when the comment says so."""

    name: str
    type: ColumnType
    comment: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: a folder of Parquet files named like it.

    `made_by` is the command that writes it, `key` the columns that tell its rows apart.
    """

    name: str
    comment: str
    made_by: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _optional(name: str, column_type: ColumnType, comment: str) -> Column:
    return Column(name, column_type, comment, nullable=True)


_SNAPSHOT = "kreassign snapshot"
_COLLECT = "kreassign collect"
_LOAD = "kreassign load"

_SNAPSHOT_COLUMNS = (
    Column("snapshot_id", STRING, "time and cluster of the snapshot; sorts by time"),
    Column("cluster_id", STRING, "id that the cluster gives itself"),
    Column("taken_ms", BIGINT, "when the snapshot was begun, ms since the epoch, clock of the machine that took it"),
)
_TOPIC = Column("topic", STRING, "name of the topic")
_TOPIC_ID = _optional("topic_id", STRING, "id of the topic; changes when it is re-created; NULL before Kafka 2.8")
_PARTITION = Column("partition", INT, "number of the partition within its topic")
_BROKER = Column("broker", INT, "id of the broker")
_POSITION = Column("position", INT, "place in the replica list; 0 is the preferred leader")
_SIZE = _optional(
    "size_bytes",
    BIGINT,
    "size of the segments of the leader's copy, else of the largest copy; NULL when no broker told",
)
_WRITE_BYTES = _optional(
    "write_bytes_per_s",
    DOUBLE,
    "bytes that producers add per second, before replication, estimated from offsets; NULL unless `coverage` is "
    "`measured`",
)
_COVERAGE = Column(
    "coverage",
    STRING,
    "what the rates rest on: `measured`; or why they are NULL: `no samples`, "
    "`one sample`, `reset` (only one sample since the log began anew), `no size` (the rate of "
    "records is known, their size is not)",
)

CLUSTERS = Table(
    "clusters",
    "Snapshots that were taken in full. Written last: a snapshot that is not in here was broken off.",
    _SNAPSHOT,
    ("snapshot_id",),
    (
        *_SNAPSHOT_COLUMNS,
        Column(
            "controller_id",
            INT,
            "controller as the cluster told it; in KRaft mode some live broker, not the controller",
        ),
        Column("broker_count", INT, "brokers in the cluster's metadata"),
        Column("topic_count", INT, "topics, internal ones too"),
        Column("partition_count", BIGINT, "partitions of these topics"),
    ),
)

BROKERS = Table(
    "brokers",
    "Brokers of a snapshot.",
    _SNAPSHOT,
    ("snapshot_id", "broker"),
    (
        *_SNAPSHOT_COLUMNS,
        _BROKER,
        Column("host", STRING, "host of the listener that clients use"),
        Column("port", INT, "port of that listener"),
        _optional("rack", STRING, "rack of the broker; NULL where it names none"),
        Column("is_fenced", BOOLEAN, "whether the controller keeps clients away from it"),
        _optional("log_dirs_error", STRING, "why its log directories are not in the snapshot; NULL if they are"),
    ),
)

LOG_DIRS = Table(
    "log_dirs",
    "Log directories of the brokers of a snapshot.",
    _SNAPSHOT,
    ("snapshot_id", "broker", "path"),
    (
        *_SNAPSHOT_COLUMNS,
        _BROKER,
        Column("path", STRING, "absolute path of the directory on its broker"),
        _optional("error", STRING, "why the directory is offline; NULL if it works"),
        _optional("total_bytes", BIGINT, "size of its file system; NULL before Kafka 3.3"),
        _optional("usable_bytes", BIGINT, "room left on its file system; NULL before Kafka 3.3"),
        Column("is_cordoned", BOOLEAN, "whether automatic placement avoids it; false before Kafka 4.3"),
        Column("replica_count", INT, "copies of partitions in it, those being built too"),
        Column("replica_bytes", BIGINT, "size of these copies"),
    ),
)

PARTITIONS = Table(
    "partitions",
    "Partitions of a snapshot.",
    _SNAPSHOT,
    ("snapshot_id", "topic", "partition"),
    (
        *_SNAPSHOT_COLUMNS,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("is_internal", BOOLEAN, "whether the topic is one of Kafka's own"),
        Column("leader", INT, "broker that leads it; -1 when none does"),
        Column("leader_epoch", INT, "number of its leaderships so far; -1 where the cluster does not tell"),
        Column("replicas", INTS, "full replica list in order; during a move the target, then what is being removed"),
        Column("isr", INTS, "brokers whose copies are in sync"),
        Column("adding", INTS, "brokers that a running move adds; empty without one"),
        Column("removing", INTS, "brokers that a running move takes away; empty without one"),
    ),
)

REPLICAS = Table(
    "replicas",
    "Copies of partitions of a snapshot: one row per place in a replica list.",
    _SNAPSHOT,
    ("snapshot_id", "topic", "partition", "broker"),
    (
        *_SNAPSHOT_COLUMNS,
        _TOPIC,
        _PARTITION,
        _BROKER,
        _POSITION,
        Column("is_leader", BOOLEAN, "whether this broker leads the partition"),
        Column("is_in_sync", BOOLEAN, "whether the copy is in the ISR"),
        Column("is_adding", BOOLEAN, "whether a running move adds it"),
        Column("is_removing", BOOLEAN, "whether a running move takes it away"),
        _optional("log_dir", STRING, "path of the directory that holds it; NULL when its broker did not tell"),
        _optional("size_bytes", BIGINT, "size of its segments; NULL when its broker did not tell"),
        _optional("future_log_dir", STRING, "directory to which the broker is moving it; NULL when it is not"),
        _optional("future_size_bytes", BIGINT, "how much of it is there already; NULL when it is not being moved"),
    ),
)

SAMPLES = Table(
    "samples",
    "Offsets and size of each partition, one row per partition and round. Partitions whose leader gave no offsets "
    "have no row in that round.",
    _COLLECT,
    ("cluster_id", "taken_ms", "topic", "partition"),
    (
        Column("cluster_id", STRING, "id that the cluster gives itself"),
        Column("taken_ms", BIGINT, "when the end offsets of the round were asked, ms since the epoch"),
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("leader", INT, "broker that led it; -1 when none did"),
        Column("start_offset", BIGINT, "first offset that the leader keeps"),
        Column("end_offset", BIGINT, "high watermark: the offset after the last record that all in-sync copies have"),
        _SIZE,
    ),
)

THROTTLES = Table(
    "throttles",
    "Throttles of replication that were set when a round of samples was taken.",
    _COLLECT,
    ("cluster_id", "taken_ms", "resource_type", "resource", "name"),
    (
        Column("cluster_id", STRING, "id that the cluster gives itself"),
        Column("taken_ms", BIGINT, "when the end offsets of the round were asked, ms since the epoch"),
        Column("resource_type", STRING, "`broker` for rates, `topic` for lists of replicas"),
        Column("resource", STRING, "id of the broker, or name of the topic"),
        Column("name", STRING, "key of the configuration"),
        Column("value", STRING, "value as Kafka has it: bytes per second, or `partition:broker` pairs, or `*`"),
    ),
)

LOAD_MODEL = Table(
    "load_model",
    "Size and write rate of each partition of the latest snapshot of each cluster.",
    _LOAD,
    ("cluster_id", "topic", "partition"),
    (
        Column("cluster_id", STRING, "id that the cluster gives itself"),
        Column("snapshot_id", STRING, "snapshot that the partition and its size come from"),
        _TOPIC,
        _PARTITION,
        _SIZE,
        _optional("bytes_per_record", DOUBLE, "size of a record as its log stores it; NULL when it cannot be told"),
        _optional(
            "record_size_basis",
            STRING,
            "what `bytes_per_record` rests on: `growth`, how the log grew from sample to sample; `log`, the mean over "
            "all that it keeps; NULL when it cannot be told",
        ),
        _WRITE_BYTES,
        _optional(
            "write_records_per_s",
            DOUBLE,
            "offsets that producers use up per second; NULL with less than two usable samples",
        ),
        Column("sample_count", INT, "samples that the rates rest on: those since the last reset"),
        Column("span_s", DOUBLE, "seconds between the first and the last of them; 0 with less than two"),
        Column("reset_count", INT, "times that the log began anew: the topic was re-created or offsets went back"),
        _COVERAGE,
    ),
)

PLAN_INPUTS = Table(
    "plan_inputs",
    "What the planner reads: one row per replica of the latest snapshot of each cluster.",
    _LOAD,
    ("cluster_id", "topic", "partition", "broker"),
    (
        Column("cluster_id", STRING, "id that the cluster gives itself"),
        Column("snapshot_id", STRING, "snapshot that the replica comes from"),
        _TOPIC,
        _PARTITION,
        _BROKER,
        _POSITION,
        Column("is_leader", BOOLEAN, "whether this broker leads the partition"),
        Column("is_reassigning", BOOLEAN, "whether the partition is being moved already: leave it alone"),
        _SIZE,
        _WRITE_BYTES,
        _COVERAGE,
    ),
)

QUARANTINE = Table(
    "quarantine",
    "Rows that failed a check and were left out, each with the reason. Empty when all rows are good.",
    _LOAD,
    ("table_name", "reason", "row_json"),
    (
        Column("table_name", STRING, "table that the row is in"),
        Column("reason", STRING, "first check that the row failed, as a sentence"),
        Column("row_json", STRING, "the whole row as JSON"),
    ),
)

TABLES = (CLUSTERS, BROKERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES, THROTTLES, LOAD_MODEL, PLAN_INPUTS, QUARANTINE)
