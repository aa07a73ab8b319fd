"""The tables of snapshots, samples, metrics and loads, and the types that describe every table.

Tables of audits are in `audit_schemas.py`. Rules of both files: they are the only place that names columns and their
types, they import no engine, and they hold no code but the few lines that describe a table. `spark_io.py` derives
Spark's schema from them, `parquet.py` pyarrow's, `scripts/tables_page.py` the reference page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
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
    """A column. Nullable columns are NULL exactly when the comment says so."""

    name: str
    type: ColumnType
    comment: str
    nullable: bool = False


LAST_DATE_MS = 253_402_214_400_000
"""Start of 9999-12-31, the last date that engines agree on, ms since the epoch."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The column by which the log of a table groups its files, so that a reader skips files without matching rows.

    Only the log has it, under its `name`; it is computed from `column` of the rows. With `is_date`, `column` is a time
    in ms since the epoch, and the value its UTC date.
    """

    name: str
    column: str
    is_date: bool = False

    def value_of(self, row: Row) -> str:
        """Partition value of a row."""
        value = row[self.column]
        return date_of(value) if self.is_date else str(value).lower() if isinstance(value, bool) else str(value)


def date_of(time_ms: int) -> str:
    """UTC date of a time. Times outside 1970 to 9999 count as the first or the last date."""
    return f"{datetime.fromtimestamp(min(max(time_ms, 0), LAST_DATE_MS) // 1000, UTC):%Y-%m-%d}"


_BY_DATE = Partitioning("date", "taken_ms", is_date=True)
_BY_OPEN = Partitioning("open", "is_open")


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table, in the folder of the same name.

    `made_by` is the command that writes it, `key` the columns that identify a row, `partition_by` groups its files.
    """

    name: str
    comment: str
    made_by: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    partition_by: Partitioning | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _optional(name: str, column_type: ColumnType, comment: str) -> Column:
    return Column(name, column_type, comment, nullable=True)


_SNAPSHOT = "kreassign snapshot"
_COLLECT = "kreassign collect"
_LOAD = "kreassign load"

CLUSTER_ID = Column("cluster_id", STRING, "id of the cluster")
_SNAPSHOT_COLUMNS = (
    Column("snapshot_id", STRING, "time and cluster of the snapshot; sorts by time"),
    CLUSTER_ID,
    Column("taken_ms", BIGINT, "when the snapshot was begun, ms since the epoch, clock of the machine that took it"),
)
_TOPIC = Column("topic", STRING, "name of the topic")
_TOPIC_ID = _optional("topic_id", STRING, "id of the topic; changes when it is re-created; NULL before Kafka 2.8")
_PARTITION = Column("partition", INT, "number of the partition within its topic")
BROKER = Column("broker", INT, "id of the broker")
_POSITION = Column("position", INT, "place in the replica list; 0 is the preferred leader")
_SIZE = _optional(
    "size_bytes",
    BIGINT,
    "size of the segments of the leader's replica, else of the largest one; NULL when no broker answered",
)
_WRITE_BYTES = _optional(
    "write_bytes_per_s",
    DOUBLE,
    "bytes per second that producers write, before replication, estimated from offsets; NULL unless `coverage` is "
    "`measured`",
)
_EPOCH = Column("epoch", INT, "how often the log had been reset by then")
_NO_INTERVAL = ", bytes per second; NULL without an interval outside gaps, or without bytes per record"
_NO_TREND = "; NULL with less than 14 whole days"
_NO_HOURS = "; NULL without two samples"
_NO_BACKTEST = "; NULL without two whole weeks"
_COVERAGE = Column(
    "coverage",
    STRING,
    "what the rates are based on: `measured`; or why they are NULL: `no samples`, "
    "`one sample`, `reset` (only one sample since the log was reset), `no size` (the rate of "
    "records is known, their size is not)",
)
_VERDICT = Column(
    "verdict",
    STRING,
    "whether there is enough data to plan with: `enough`, mean and 95th percentile are known to a tenth; `short`, they "
    "are not, and less than a day was seen; `gaps`, they are not, for time, sizes or good samples are missing; "
    "`doubtful`, they are not, for sizes contradict the records written; `unknown`, there is no rate, see `coverage`",
)
_NO_METRICS = "; NULL where brokers measured nothing of it"
_READS = (
    _optional("read_bytes_per_s", DOUBLE, "bytes per second that consumers read, as brokers measured it" + _NO_METRICS),
    _optional(
        "read_basis",
        STRING,
        "what that is based on, at its coarsest: metrics of the `partition`, of its `topic`, or of the `broker` that "
        "led it, shared out by what is written; NULL as `read_bytes_per_s`",
    ),
    _optional("read_error_share", DOUBLE, "how far it may be off, as a share of it; NULL as `read_bytes_per_s`"),
)
_CPU = (
    _optional(
        "cpu_share",
        DOUBLE,
        "share of its broker's CPU that its leader takes: the broker's, shared out by bytes" + _NO_METRICS,
    ),
    _optional(
        "follower_cpu_share", DOUBLE, "the same of a follower, mean of all; NULL likewise, and without followers"
    ),
)

IS_OPEN = Column("is_open", BOOLEAN, "whether the next load makes the row again, for what may still come can change it")
_INTERVAL = tuple(
    _optional(
        f"{end}_{name}",
        DOUBLE,
        f"{word} end of the interval in which {what} is, all errors that are known counted; NULL as it",
    )
    for name, what in (("write_bytes_per_s", "the mean"), ("p95_write_bytes_per_s", "the 95th percentile"))
    for end, word in (("low", "lower"), ("high", "upper"))
)

CLUSTERS = Table(
    "clusters",
    "Complete snapshots. Written last: a snapshot that is missing here was interrupted.",
    _SNAPSHOT,
    ("snapshot_id",),
    (
        *_SNAPSHOT_COLUMNS,
        Column(
            "controller_id",
            INT,
            "controller id in the metadata; in KRaft mode some live broker, not the controller",
        ),
        Column("broker_count", INT, "brokers in the cluster's metadata"),
        Column("topic_count", INT, "topics, including internal ones"),
        Column("partition_count", BIGINT, "partitions of these topics"),
    ),
    partition_by=_BY_DATE,
)

BROKERS = Table(
    "brokers",
    "Brokers of a snapshot.",
    _SNAPSHOT,
    ("snapshot_id", "broker"),
    (
        *_SNAPSHOT_COLUMNS,
        BROKER,
        Column("host", STRING, "host of the listener that clients use"),
        Column("port", INT, "port of that listener"),
        _optional("rack", STRING, "rack of the broker; NULL if it has none"),
        Column("is_fenced", BOOLEAN, "whether the controller has fenced it"),
        _optional("log_dirs_error", STRING, "why its log directories are not in the snapshot; NULL if they are"),
        _optional("in_maintenance", BOOLEAN, "whether the cluster's record of maintenance names it; NULL if unknown"),
        _optional(
            "may_be_named",
            BOOLEAN,
            "whether changed lists may name it although no directory of it is open; NULL if one is, or not asked",
        ),
    ),
    partition_by=_BY_DATE,
)

LOG_DIRS = Table(
    "log_dirs",
    "Log directories of the brokers of a snapshot.",
    _SNAPSHOT,
    ("snapshot_id", "broker", "path"),
    (
        *_SNAPSHOT_COLUMNS,
        BROKER,
        Column("path", STRING, "absolute path of the directory on its broker"),
        _optional("error", STRING, "why the directory is offline; NULL if it works"),
        _optional("total_bytes", BIGINT, "size of its file system; NULL before Kafka 3.3"),
        _optional("usable_bytes", BIGINT, "free space on its file system; NULL before Kafka 3.3"),
        Column("is_cordoned", BOOLEAN, "whether automatic placement avoids it; false before Kafka 4.3"),
        Column("replica_count", INT, "replicas in it, including future ones"),
        Column("replica_bytes", BIGINT, "size of these replicas"),
    ),
    partition_by=_BY_DATE,
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
        Column("leader", INT, "leader; -1 without one"),
        Column("leader_epoch", INT, "its leader epoch; -1 where the cluster does not report it"),
        Column("replicas", INTS, "replica list in order; during a reassignment the target, then removing replicas"),
        Column("isr", INTS, "the in-sync replicas"),
        Column("adding", INTS, "adding replicas of a reassignment; empty without one"),
        Column("removing", INTS, "removing replicas of a reassignment; empty without one"),
    ),
    partition_by=_BY_DATE,
)

REPLICAS = Table(
    "replicas",
    "Replicas of a snapshot: one row per position in a replica list.",
    _SNAPSHOT,
    ("snapshot_id", "topic", "partition", "broker"),
    (
        *_SNAPSHOT_COLUMNS,
        _TOPIC,
        _PARTITION,
        BROKER,
        _POSITION,
        Column("is_leader", BOOLEAN, "whether this broker leads the partition"),
        Column("is_in_sync", BOOLEAN, "whether it is in the ISR"),
        Column("is_adding", BOOLEAN, "whether a reassignment is adding it"),
        Column("is_removing", BOOLEAN, "whether a reassignment is removing it"),
        _optional("log_dir", STRING, "log directory that holds it; NULL when its broker did not answer"),
        _optional("size_bytes", BIGINT, "size of its segments; NULL when its broker did not answer"),
        _optional("future_log_dir", STRING, "log directory to which the broker is moving it; NULL when it is not"),
        _optional("future_size_bytes", BIGINT, "size of the future replica there; NULL when it is not being moved"),
    ),
    partition_by=_BY_DATE,
)

SAMPLES = Table(
    "samples",
    "Offsets and size of each partition, one row per partition and round. Partitions whose leader did not answer "
    "have no row in that round. What `import-metrics` and `import-samples` add has the times of its source.",
    f"{_COLLECT}`, `kreassign import-metrics` or `kreassign import-samples",
    ("cluster_id", "taken_ms", "topic", "partition"),
    (
        CLUSTER_ID,
        Column("taken_ms", BIGINT, "when the end offsets of the round were requested, ms since the epoch"),
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("leader", INT, "leader; -1 without one, or where it is not known"),
        Column(
            "start_offset",
            BIGINT,
            "first offset that the leader has on its own disks: its log start offset, of a tiered topic its local log "
            "start offset; from exporters always the former",
        ),
        Column(
            "end_offset",
            BIGINT,
            "high watermark: the offset after the last record that all in-sync replicas have; from the JMX exporter "
            "the end of the leader's log",
        ),
        _optional(
            "size_bytes",
            BIGINT,
            "size of the segments of the leader's replica; NULL when its broker did not answer: of no other replica",
        ),
    ),
    partition_by=_BY_DATE,
)

THROTTLES = Table(
    "throttles",
    "Throttles of replication that were set when a round of samples was taken.",
    _COLLECT,
    ("cluster_id", "taken_ms", "resource_type", "resource", "name"),
    (
        CLUSTER_ID,
        Column("taken_ms", BIGINT, "when the end offsets of the round were requested, ms since the epoch"),
        Column("resource_type", STRING, "`broker` for rates, `topic` for lists of replicas"),
        Column("resource", STRING, "id of the broker, or name of the topic"),
        Column("name", STRING, "key of the configuration"),
        Column("value", STRING, "value as Kafka has it: bytes per second, or `partition:broker` pairs, or `*`"),
    ),
    partition_by=_BY_DATE,
)

OPEN_SAMPLES = Table(
    "open_samples",
    "Samples that the next load reads again: those of hours that are not closed, because samples that may still come "
    "could change what is made of them, and the last ones before, as their neighbours.",
    _LOAD,
    SAMPLES.key,
    (
        *SAMPLES.columns,
        Column("open_from_ms", BIGINT, "start of the first hour of the partition that is not closed"),
        Column("is_closed", BOOLEAN, "whether its hour is closed, so that it is here as a neighbour only"),
        _optional("is_clean", BOOLEAN, "whether the rules for all neighbours found nothing; NULL in open hours"),
        _optional("reason", STRING, "why it does not count; NULL if it does, and in open hours"),
        _optional("epoch", INT, "how often the log had been reset by then; NULL in open hours"),
    ),
)

LOAD_HOURS = Table(
    "load_hours",
    "What was written in each hour. An interval counts in the hour in which it ends.",
    _LOAD,
    ("cluster_id", "topic", "partition", "epoch", "hour_ms"),
    (
        CLUSTER_ID,
        _TOPIC,
        _PARTITION,
        _EPOCH,
        Column("hour_ms", BIGINT, "start of the hour"),
        IS_OPEN,
        Column("seconds", DOUBLE, "seconds of this hour that were measured"),
        Column("good_seconds", DOUBLE, "of these, the seconds outside gaps"),
        Column("squared_seconds", DOUBLE, "sum of the squares of the intervals outside gaps, in seconds"),
        Column("good_records", BIGINT, "records written outside gaps"),
        Column(
            "rate_sum", BIGINT, "sum of the rates of the intervals outside gaps, in millionths of a record per second"
        ),
        Column("new_records", BIGINT, "records written in it"),
        Column("most_new_records", BIGINT, "the most that were written in one interval"),
        Column("sized_records", BIGINT, "records written while the log only grew: same leader and start offset"),
        Column("new_bytes", BIGINT, "bytes by which the log grew meanwhile"),
        Column(
            "contradicted_count",
            INT,
            "intervals whose bytes cannot be those of their records, which weigh far more or less around them; these "
            "bytes do not count",
        ),
        _optional("mean_size_bytes", DOUBLE, "mean size of the partition; NULL without sizes"),
        Column("sample_count", INT, "samples that count"),
        Column("odd_count", INT, "samples that do not: they are in `quarantine`"),
        _optional("first_ms", BIGINT, "when the first sample that counts was taken; NULL without one"),
        _optional("last_ms", BIGINT, "when the last one was taken; NULL without one"),
        _optional("last_leader", INT, "leader at that time; NULL without one"),
        _optional("last_start_offset", BIGINT, "start offset at that time; NULL without one"),
        _optional("last_end_offset", BIGINT, "high watermark at that time; NULL without one"),
        _optional("last_size_bytes", BIGINT, "size at that time; NULL without sizes too"),
        Column(
            "rate_bins",
            INTS,
            "histogram of the rates of the intervals outside gaps, in records per second: bin i holds rates from "
            "g^(i-1) to g^i, g being 1.005/0.995 (DDSketch); -1000000 is the bin of 0",
        ),
        Column("rate_counts", INTS, "how many intervals are in each of these bins"),
    ),
    partition_by=_BY_OPEN,
)

LOAD_MODEL = Table(
    "load_model",
    "Size and load of each partition of the latest snapshot of each cluster.",
    _LOAD,
    ("cluster_id", "topic", "partition"),
    (
        CLUSTER_ID,
        Column("snapshot_id", STRING, "snapshot that the partition and its size come from"),
        _TOPIC,
        _PARTITION,
        _SIZE,
        _optional("bytes_per_record", DOUBLE, "size of a record as stored in the log; NULL when unknown"),
        _optional(
            "record_size_basis",
            STRING,
            "what `bytes_per_record` is based on: `growth`, how the log grew between samples; `log`, the mean over "
            "the whole log; NULL when unknown",
        ),
        _WRITE_BYTES,
        _optional("p50_write_bytes_per_s", DOUBLE, "median of the intervals" + _NO_INTERVAL),
        _optional("p95_write_bytes_per_s", DOUBLE, "95th percentile of the intervals" + _NO_INTERVAL),
        _optional("p99_write_bytes_per_s", DOUBLE, "99th percentile of the intervals" + _NO_INTERVAL),
        _optional(
            "peak_hour", INT, "hour of the day (UTC) with most writes; NULL unless all hours of the day were measured"
        ),
        _optional("peak_write_bytes_per_s", DOUBLE, "mean rate in that hour of the day; NULL as `peak_hour`"),
        _optional(
            "recent_write_bytes_per_s",
            DOUBLE,
            "mean rate of the last seven days that were measured, without odd days and at a new level if there is one: "
            "where the forecast begins; NULL as the rate",
        ),
        _optional(
            "plain_write_bytes_per_s", DOUBLE, "the same without a new level and if odd last days go on; NULL as it"
        ),
        _optional(
            "growth_per_day",
            DOUBLE,
            "growth of the rate per day, 0.05 being 5 % (continuous): the median change of the days of the window "
            "against the same weekday a week earlier, over 7" + _NO_TREND,
        ),
        _optional("growth_error_per_day", DOUBLE, "half of its 95% interval" + _NO_TREND),
        Column("has_trend", BOOLEAN, "whether the forecast follows this growth"),
        Column("has_slowed", BOOLEAN, "whether it would, had the last two days not less than half of it"),
        _optional(
            "week_spread",
            DOUBLE,
            "how much the rate varies from week to week besides growing, as a share (deviation of its logarithm); "
            "what is usual where less than 14 whole days do not show it" + _NO_HOURS,
        ),
        _optional(
            "week_peak_ratio",
            DOUBLE,
            "busiest hour of the week over its mean; NULL when less than 24 hours were measured or nothing was written",
        ),
        _optional("week_p95_ratio", DOUBLE, "95th percentile of the hours of the week over its mean; NULL likewise"),
        _optional(
            "size_growth_bytes_per_day",
            DOUBLE,
            "growth of the size per day: the median difference to the same weekday a week earlier, over 7" + _NO_TREND,
        ),
        _optional("size_growth_error_bytes_per_day", DOUBLE, "half of its 95% interval" + _NO_TREND),
        _optional("size_spread_bytes", DOUBLE, "how much the size varies from week to week besides" + _NO_TREND),
        _optional(
            "backtest_error",
            DOUBLE,
            "distance of the rate of the last seven days from its forecast from the days before, as a share of the "
            "larger" + _NO_BACKTEST,
        ),
        _optional(
            "backtest_sigmas",
            DOUBLE,
            "how far that rate was beyond the forecast, in spreads; 0 between growth that ended and growth that went "
            "on" + _NO_BACKTEST,
        ),
        _optional(
            "write_records_per_s",
            DOUBLE,
            "offsets per second that producers write; NULL with less than two usable samples",
        ),
        Column("sample_count", INT, "samples that the rates are based on: those since the last reset"),
        Column("span_s", DOUBLE, "seconds between the first and the last of them; 0 with less than two"),
        Column("covered_share", DOUBLE, "share of the span outside gaps; 0 with less than two samples"),
        Column("day_count", INT, "whole days in the window (`--window`), on which the forecast is based"),
        Column(
            "reset_count",
            INT,
            "how often the log was reset: the topic was re-created, or, without topic ids, lost most of its records",
        ),
        *_INTERVAL,
        *_READS,
        _optional(
            "read_measured_share",
            DOUBLE,
            "part of the hours of the last week of metrics that was measured; NULL as `read_bytes_per_s`",
        ),
        _optional("requests_per_s", DOUBLE, "requests of clients, shared out in the same way" + _NO_METRICS),
        _optional("requests_error_share", DOUBLE, "how far these may be off, as a share of them; NULL likewise"),
        *_CPU,
        _optional("cpu_error_share", DOUBLE, "how far `cpu_share` may be off, as a share of it; NULL likewise"),
        _COVERAGE,
        _VERDICT,
    ),
)

BACKTESTS = Table(
    "backtests",
    "How the forecast of the last seven days, made from the days before them, compares with what came. Of all "
    "partitions with two whole weeks.",
    _LOAD,
    ("cluster_id",),
    (
        CLUSTER_ID,
        Column("partition_count", INT, "partitions that could be tested"),
        _optional("median_error", DOUBLE, "median of their `backtest_error`; NULL without any"),
        _optional("p95_error", DOUBLE, "95th percentile of it; NULL without any"),
        _optional(
            "covered_share",
            DOUBLE,
            "share of them whose rate was in the interval that was made for 95 %; NULL without any",
        ),
        Column(
            "widening",
            DOUBLE,
            "factor by which the intervals of the forecast are wider than the spread alone says, so that they would "
            "have held the rates of 95 % of these partitions; 1 to 4",
        ),
    ),
)

FORECAST = Table(
    "forecast",
    "Size and write rate of each partition some days from the last sample. Rates are means of the week around then.",
    _LOAD,
    ("cluster_id", "topic", "partition"),
    (
        CLUSTER_ID,
        Column("snapshot_id", STRING, "snapshot that it is based on"),
        _TOPIC,
        _PARTITION,
        Column("horizon_days", DOUBLE, "how many days ahead"),
        _optional("size_bytes", DOUBLE, "size then; NULL when the present size is unknown"),
        _optional("write_bytes_per_s", DOUBLE, "rate then; NULL when the present rate is unknown"),
        _optional(
            "p95_write_bytes_per_s",
            DOUBLE,
            "95th percentile of the hours of the week then; NULL when less than 24 hours were measured",
        ),
        _optional("peak_write_bytes_per_s", DOUBLE, "busiest hour of the week then; NULL likewise"),
        _optional("low_size_bytes", DOUBLE, "lower end of the 95% interval of the size; NULL as `size_bytes`"),
        _optional(
            "high_size_bytes",
            DOUBLE,
            "upper end; with less than 14 whole days all that is written is taken as kept; NULL as `size_bytes`",
        ),
        _optional(
            "low_write_bytes_per_s", DOUBLE, "lower end of the 95% interval of the rate; NULL as `write_bytes_per_s`"
        ),
        _optional("high_write_bytes_per_s", DOUBLE, "upper end; NULL as `write_bytes_per_s`"),
        Column(
            "basis",
            STRING,
            "`trend`, growth is significant and followed, damped; `flat`, it is not, or there are less than 14 whole "
            "days; `unknown`, there is no rate",
        ),
    ),
)

SKEW = Table(
    "skew",
    "How unevenly writes and leaders of each topic are distributed.",
    _LOAD,
    ("cluster_id", "topic"),
    (
        CLUSTER_ID,
        Column("snapshot_id", STRING, "snapshot that the topic is in"),
        _TOPIC,
        Column("partition_count", INT, "its partitions"),
        Column("known_count", INT, "partitions with a known write rate"),
        _optional("write_bytes_per_s", DOUBLE, "rate of the topic, of its known partitions; NULL without any"),
        _optional("hottest_partition", INT, "partition with the highest rate; NULL without any known one"),
        _optional("hottest_ratio", DOUBLE, "its rate over the mean of the topic; NULL when nothing is written"),
        _optional(
            "evenness",
            DOUBLE,
            "Pielou's evenness: 1 when all known partitions get the same, towards 0 when one gets all; NULL with less "
            "than two known partitions, or when nothing is written",
        ),
        Column("leader_broker_count", INT, "brokers that lead partitions of it"),
        Column("most_leaders_on_a_broker", INT, "the most partitions of it that one broker leads; 0 without leaders"),
        Column(
            "verdict",
            STRING,
            "`even`; `hot partition`, one gets more than three times the mean; `idle`, nothing is written; `too few`, "
            "less than two partitions are known",
        ),
    ),
)

LOADS = Table(
    "loads",
    "The tables of each load that was finished: those that it read, and those that it made. A load is there once it "
    "has rows here, which come in one commit.",
    _LOAD,
    ("load_number", "table_name"),
    (
        Column("load_number", BIGINT, "number of the load, counted from 1"),
        Column("load_ms", BIGINT, "when the load was begun"),
        Column("table_name", STRING, "table that it read or made"),
        Column("version", BIGINT, "version of that table: what to read for this load"),
        _optional(
            "table_id",
            STRING,
            "id that the log gives the table, by which one that was made again is known; NULL where no later load "
            "stands on it",
        ),
        Column("good", BIGINT, "rows that were used, or made"),
        Column("bad", BIGINT, "rows that failed a check and are in `quarantine`"),
        Column("late", BIGINT, "rows that do not count without being wrong, kept in the table: duplicates, late ones"),
    ),
)

LOAD_QUALITY = Table(
    "load_quality",
    "How the rows that each load read were treated, load after load. Rows that are good, quarantined and late add up "
    "to those that were read; counted ones are good ones.",
    _LOAD,
    ("load_ms", "table_name", "treatment", "reason"),
    (
        Column("load_ms", BIGINT, "when the load was begun"),
        Column("table_name", STRING, "table whose rows were judged"),
        Column("treatment", STRING, "`good`, `quarantined`, `late`, `counted` or `skipped`: [rules](load-rules.md)"),
        _optional("reason", STRING, "the rule that was true of the rows, or the skipped file; NULL for good ones"),
        Column("row_count", BIGINT, "how many rows; of a skipped file 1"),
    ),
    partition_by=Partitioning("load", "load_ms"),
)

METRIC_HOURS = Table(
    "metric_hours",
    "What each series of table `metrics` says of each hour: the window, and how complete it is.",
    _LOAD,
    ("cluster_id", "broker", "topic", "partition", "name", "hour_ms"),
    (
        CLUSTER_ID,
        Column("broker", INT, "id of the broker; -1 for what is told of a cluster as a whole"),
        _optional("topic", STRING, "topic that it is about; NULL for what is of a whole broker"),
        _optional("partition", INT, "partition that it is about; NULL for what is of a topic or a whole broker"),
        Column("name", STRING, "as in `metrics`, without its ending: counters are rates here; `requests` of all kinds"),
        Column("hour_ms", BIGINT, "start of the hour"),
        Column("value", DOUBLE, "mean of what was measured in it, per second"),
        Column("measured_share", DOUBLE, "part of the hour in which it was measured"),
    ),
)

BROKER_LOADS = Table(
    "broker_loads",
    "What each broker measured of itself over all hours of `metric_hours`, and what it can hold.",
    _LOAD,
    ("cluster_id", "broker"),
    (
        CLUSTER_ID,
        BROKER,
        Column("hour_count", INT, "hours in which it was measured"),
        Column("measured_share", DOUBLE, "part of these hours that was measured"),
        *(
            _optional(f"{peak}{name}", DOUBLE, f"{kind}; NULL where that was not measured")
            for peak, kind in (("", "mean of the hours"), ("peak_", "the busiest hour"))
            for name in (
                "bytes_in_per_s",
                "bytes_out_per_s",
                "replication_bytes_out_per_s",
                "requests_per_s",
                "cpu_share",
            )
        ),
        _optional(
            "replication_out_ratio",
            DOUBLE,
            "bytes to followers over what those of the partitions that it leads copy by table `load_model`: 1 where "
            "metrics and samples agree; NULL without either",
        ),
        _optional("disk_bytes", BIGINT, "size of its file systems; NULL where one is unknown"),
        _optional(
            "cpu_capacity_bytes_per_s",
            DOUBLE,
            "bytes in and out at which its CPU would be used up, if it takes as much per byte as now; NULL without CPU",
        ),
    ),
)

PLAN_INPUTS = Table(
    "plan_inputs",
    "What the planner reads: one row per replica of the latest snapshot of each cluster.",
    _LOAD,
    ("cluster_id", "topic", "partition", "broker"),
    (
        CLUSTER_ID,
        Column("snapshot_id", STRING, "snapshot that the replica comes from"),
        _TOPIC,
        _PARTITION,
        BROKER,
        _POSITION,
        Column("is_leader", BOOLEAN, "whether this broker leads the partition"),
        Column("is_reassigning", BOOLEAN, "whether the partition is being reassigned already: not to be planned"),
        _SIZE,
        _WRITE_BYTES,
        _optional("p95_write_bytes_per_s", DOUBLE, "95th percentile of the intervals" + _NO_INTERVAL),
        _optional("p99_write_bytes_per_s", DOUBLE, "99th percentile of the intervals" + _NO_INTERVAL),
        _optional("peak_write_bytes_per_s", DOUBLE, "rate in the busiest hour of the day; NULL as in `load_model`"),
        _optional("forecast_size_bytes", DOUBLE, "size at the horizon of table `forecast`; NULL as there"),
        _optional("forecast_write_bytes_per_s", DOUBLE, "rate at that horizon; NULL as there"),
        *_INTERVAL,
        *_READS,
        *_CPU,
        _COVERAGE,
        _VERDICT,
    ),
)

QUARANTINE_COLUMNS = (
    Column("table_name", STRING, "table that the row is in"),
    Column("reason", STRING, "first [rule](load-rules.md) that the row failed, as a sentence"),
    Column("row_json", STRING, "the whole row as JSON; of a record of a topic its value in hexadecimal digits"),
)

QUARANTINE = Table(
    "quarantine",
    "Rows that failed a check and were left out, each with the reason. Empty when all rows are good.",
    _LOAD,
    ("table_name", "reason", "row_json"),
    (*QUARANTINE_COLUMNS, IS_OPEN),
    partition_by=_BY_OPEN,
)


_STREAM = "kreassign stream-metrics"

METRICS = Table(
    "metrics",
    "Metrics of brokers, from Prometheus or from Cruise Control's metrics reporter, and of topics of Confluent Cloud. "
    "[What is read from where](../guides/where-the-measures-come-from.md).",
    "kreassign import-metrics` or `kreassign stream-metrics",
    ("cluster_id", "taken_ms", "broker", "topic", "partition", "name"),
    (
        CLUSTER_ID,
        Column("taken_ms", BIGINT, "when the metric was taken; of a rate the end of its interval"),
        Column("broker", INT, "id of the broker; -1 for metrics of the whole cluster"),
        Column("topic", STRING, "topic that it is about; NULL for metrics of the whole broker", nullable=True),
        Column(
            "partition",
            INT,
            "partition that it is about; NULL for metrics of a topic or the whole broker",
            nullable=True,
        ),
        Column(
            "name",
            STRING,
            "counters end in `_total`, rates in `_per_s`, fractions in `_share`, others in their unit",
        ),
        Column("value", DOUBLE, "its value"),
    ),
    partition_by=_BY_DATE,
)

_SOURCE_TOPIC = Column("source_topic", STRING, "topic of metrics that was read")

METRICS_QUARANTINE = Table(
    "metrics_quarantine",
    "Records of a topic of metrics that are not in `metrics`, each with the reason.",
    _STREAM,
    ("cluster_id", "source_topic", "source_partition", "source_offset", "written_ms"),
    (
        Column("cluster_id", STRING, "id of the cluster that the topic's metrics are of (`--cluster`)"),
        _SOURCE_TOPIC,
        Column("source_partition", INT, "partition of that topic"),
        Column("source_offset", BIGINT, "offset of the record"),
        Column("written_ms", BIGINT, "time of the record"),
        *QUARANTINE_COLUMNS,
    ),
    partition_by=Partitioning("date", "written_ms", is_date=True),
)

METRIC_BATCHES = Table(
    "metric_batches",
    "How many records of each batch of the stream became what. Good, late, quarantined and skipped ones add up to "
    "those that were read; counted ones are good ones. With a new checkpoint all are read again, and counted again.",
    _STREAM,
    ("cluster_id", "source_topic", "checkpoint", "batch", "treatment", "reason"),
    (
        Column("cluster_id", STRING, "id of the cluster that the topic's metrics are of (`--cluster`)"),
        _SOURCE_TOPIC,
        Column("checkpoint", STRING, "id that Spark gave the checkpoint; a new one numbers batches from 0 again"),
        Column("batch", BIGINT, "number of the batch"),
        Column("latest_ms", BIGINT, "time of its latest record"),
        Column(
            "treatment",
            STRING,
            "`good`: in `metrics`; `late`: they were in it already; `quarantined`: in `metrics_quarantine`; `skipped`: "
            "metrics of no use here; `counted`: [rules](load-rules.md#metrics)",
        ),
        _optional("reason", STRING, "the rule that was true of the records; NULL for good ones"),
        Column("records", BIGINT, "how many"),
    ),
    partition_by=Partitioning("date", "latest_ms", is_date=True),
)

IMPORT_QUARANTINE = Table(
    "import_quarantine",
    "What imported files have and no other table took: lines that are no reading and rows that are implausible, each "
    "with its reason. [What is read from where](../guides/where-the-measures-come-from.md).",
    "kreassign import-metrics` or `kreassign import-samples",
    ("file", "place", "reason", "text"),
    (
        Column("file", STRING, "file that was imported, as it was named"),
        Column("place", STRING, "where in it, such as `line 7`"),
        Column("reason", STRING, "why it was not stored"),
        Column("text", STRING, "the line, or the row as JSON; bytes that are not UTF-8 as `\\udc..`"),
    ),
)

METRIC_TABLES = (METRICS, METRICS_QUARANTINE, METRIC_BATCHES, IMPORT_QUARANTINE)

TABLES = (
    CLUSTERS,
    BROKERS,
    LOG_DIRS,
    PARTITIONS,
    REPLICAS,
    SAMPLES,
    THROTTLES,
    OPEN_SAMPLES,
    LOAD_HOURS,
    LOAD_MODEL,
    BACKTESTS,
    FORECAST,
    SKEW,
    LOADS,
    LOAD_QUALITY,
    METRIC_HOURS,
    BROKER_LOADS,
    PLAN_INPUTS,
    QUARANTINE,
)
