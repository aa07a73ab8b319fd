"""Loads: figures of a cluster from the tables of a load, and how far a plan can rely on them.

Sizes are bytes, rates bytes per second before replication. An unknown figure is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from kreassign.errors import InputError
from kreassign.model.cluster import TopicPartition
from kreassign.model.text import HOUR_MS, counted, rough_span, shortened, some_of

# Key figures of a cluster.

HOT = 3.0
"""A partition is hot if its rate exceeds this multiple of its topic's mean."""


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """One partition; `doubt` says why its data is not enough to plan with, None if it is enough."""

    topic: str
    partition: int
    size_bytes: float | None
    write_bytes_per_s: float | None
    p95_write_bytes_per_s: float | None
    peak_write_bytes_per_s: float | None
    peak_hour: int | None
    coverage: str
    verdict: str
    doubt: str | None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """One topic: size and rate are sums over known partitions, `known_count` is the number with a rate."""

    topic: str
    partition_count: int
    known_count: int
    size_bytes: float | None
    write_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """A forecast with its 95% interval; for several partitions sums, as if all erred in the same direction."""

    value: float
    low: float
    high: float


WEEK_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class LoadTotals:
    """Totals of a cluster; sums are over known figures and None without any; `known_rate_count` partitions have a rate.

    `size_bytes` counts each partition once, `replica_bytes` every replica. `recent_write_bytes_per_s` is of the last
    seven days, or of the samples of `sampled_s` seconds if there are no more: the longest span of any partition.
    """

    partition_count: int
    topic_count: int
    known_size_count: int
    known_rate_count: int
    size_bytes: float | None
    replica_bytes: float | None
    write_bytes_per_s: float | None
    recent_write_bytes_per_s: float | None
    sampled_s: float = 0.0

    @property
    def recent(self) -> str:
        """The time that recent rates are of: the last week, or as much of it as was sampled."""
        return "last week" if self.sampled_s >= WEEK_S else f"last {rough_span(self.sampled_s)}"


@dataclass(frozen=True, slots=True)
class LoadBefore:
    """The load before the shown one: its number, its start in ms since the epoch, and its totals."""

    load_number: int
    load_ms: int
    totals: LoadTotals


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast of a whole cluster; None for figures that are unknown for all partitions."""

    horizon_days: float
    size_bytes: Expected | None
    write_bytes_per_s: Expected | None


@dataclass(frozen=True, slots=True)
class Doubtful:
    """Partitions without enough data, most weight first: their number, and their shares of the cluster.

    `first` has some of them. A share is None if the cluster's total is 0 or unknown.
    """

    count: int
    size_share: float | None
    write_share: float | None
    first: tuple[PartitionLoad, ...]


COMPLETE = 0.9
"""A window is complete if at least this share of it was measured."""


@dataclass(frozen=True, slots=True)
class MeasuredHour:
    """An hour, by its start in ms since the epoch, and its measured share: the mean over all partitions."""

    hour_ms: int
    measured_share: float

    @property
    def is_complete(self) -> bool:
        """True if enough was measured to represent the hour."""
        return self.measured_share >= COMPLETE


@dataclass(frozen=True, slots=True)
class MeasuredBroker:
    """A broker's own measurements, means over its hours and the busiest hour, and its capacity.

    `cpu_share` is of all its processors; `cpu_capacity_bytes_per_s` are the bytes in and out at which they are
    used up. `replication_out_ratio` is bytes sent to followers over the load's expectation: 1 if both agree.
    """

    broker: int
    hour_count: int
    measured_share: float
    bytes_in_per_s: float | None
    bytes_out_per_s: float | None
    cpu_share: float | None
    peak_bytes_in_per_s: float | None
    peak_bytes_out_per_s: float | None
    peak_cpu_share: float | None
    replication_out_ratio: float | None
    disk_bytes: int | None
    cpu_capacity_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """The figures of a load for one cluster. `coverage` and `verdicts` count partitions by the words of `load_model`.

    `taken_ms` is the start of the snapshot, `load_ms` that of the load, ms since the epoch. `before` is the previous
    load; None without one, or if its tables are gone. `load_number` counts finished loads from 1.
    `windows` are the hours of the last day, oldest first. `measured_brokers` are some of the `measured_broker_count`
    brokers with measurements of their own, the busiest first.
    """

    cluster_id: str
    snapshot_id: str
    taken_ms: int | None
    load_ms: int | None
    totals: LoadTotals
    before: LoadBefore | None
    outlook: Outlook | None
    coverage: Mapping[str, int]
    verdicts: Mapping[str, int]
    busiest: tuple[PartitionLoad, ...]
    largest: tuple[PartitionLoad, ...]
    busiest_topics: tuple[TopicLoad, ...]
    largest_topics: tuple[TopicLoad, ...]
    doubtful: Doubtful
    load_number: int | None = None
    windows: tuple[MeasuredHour, ...] = ()
    measured_broker_count: int = 0
    measured_brokers: tuple[MeasuredBroker, ...] = ()


@dataclass(frozen=True, slots=True)
class DailyCurve:
    """Mean write rate by hour of the day (UTC), 24 of them; None for hours without measurements."""

    name: str
    hours: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Mean write rate of whole days, and the forecast.

    `days` are (days before the last measured hour, rate), oldest first; `now` is the rate at which the forecast
    begins.
    """

    name: str
    days: tuple[tuple[int, float], ...]
    now: float | None
    horizon_days: float
    expected: Expected | None


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """Unevenness of a topic's use: a row of table `skew`."""

    topic: str
    partition_count: int
    write_bytes_per_s: float | None
    hottest_partition: int | None
    hottest_ratio: float | None
    evenness: float | None
    leader_broker_count: int
    most_leaders_on_a_broker: int
    verdict: str


@dataclass(frozen=True, slots=True)
class LoadCharts:
    """Charts of one cluster on a page, besides its summary."""

    brokers: tuple[DailyCurve, ...]
    partitions: tuple[DailyCurve, ...]
    cluster: History
    histories: tuple[History, ...]
    skew: tuple[TopicSkew, ...]


# The basis of a plan's loads: doubtful loads, the reasons, the priors in their place, and the age of the loads.
#
# A load is *doubtful* if `kreassign load` does not call it `enough`, or if the requested rate is unknown. The planner
# gets a prior for it, never a silent 0. `PRIORS` are the words for the source of a prior:
#
#     topic      the median rate of the partitions of its topic whose loads are enough
#     measured   its own rate although it is doubtful, unless no partition with enough load has so large a one
#     size       its size, times the bytes per second and byte of all partitions whose loads are enough
#     unknown    nothing to go by: 0

PRIORS = ("topic", "measured", "size", "unknown")
MOST_NAMED = 100
"""Number of doubtful loads kept by name; all are counted."""
_SHOWN = 3

MEASURED_S = 5.0
"""Default time for measuring a cluster."""

LEAST_MEASURED_S = 60.0
"""Rates measured for less are a glimpse: good for trying a plan, not for an unattended one."""


@dataclass(frozen=True, slots=True)
class DoubtfulLoad:
    """A partition with a doubtful rate: the reason, and the rate used instead, with its prior."""

    topic_partition: TopicPartition
    reason: str
    prior: str
    write_bytes_per_s: float

    def __str__(self) -> str:
        return f"{shortened(str(self.topic_partition))} ({self.reason})"


@dataclass(frozen=True, slots=True)
class DoubtfulShare:
    """The doubtful part of a broker's present replicas: their number, and their share of its writes and bytes."""

    broker: int
    replicas: int
    write_share: float
    size_share: float


@dataclass(frozen=True, slots=True)
class ForecastBasis:
    """The accuracy of the forecast behind a plan.

    `low_ratio` and `high_ratio` are the ends of the 95% interval of the rate over the forecast, medians of the
    partitions; None where nothing is written. Of the backtest: number of partitions, their median error (a share of the
    larger rate), and the number within the interval; None without a backtest.
    """

    horizon_days: float
    low_ratio: float | None = None
    high_ratio: float | None = None
    tested_partitions: int = 0
    median_error: float | None = None
    covered_share: float | None = None


@dataclass(frozen=True, slots=True)
class LoadBasis:
    """The basis of a plan's loads.

    `source` is the statistic of the tables that was used (`mean`, `p95` …), `snapshot` for rates of a snapshot file,
    or `cluster` for rates measured for this plan; both were measured for `measured_for_s` seconds. `taken_ms` is the
    start of the snapshot; `last_hour_ms` the start of the last hour measured by samples, None without any.
    `reasons` and `priors` count the doubtful partitions; `doubtful` names the largest of them, at most `MOST_NAMED`.
    `unsized` partitions have no known size, and stay. `brokers` are those with doubtful replicas. For `assumed_reads`
    partitions the consumers' reads were not measured: they are assumed to be `reads_per_write` times the writes.
    `placed_ms` is when the placement was read, None if that was with the snapshot of the loads; then the loads of
    `gone` partitions were left out, which are not there any more.
    """

    source: str
    taken_ms: int
    partitions: int
    last_hour_ms: int | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    priors: Mapping[str, int] = field(default_factory=dict)
    unsized: int = 0
    forecast: ForecastBasis | None = None
    measured_for_s: float | None = None
    assumed_reads: int = 0
    reads_per_write: float = 1.0
    placed_ms: int | None = None
    gone: int = 0
    brokers: tuple[DoubtfulShare, ...] = ()
    doubtful: tuple[DoubtfulLoad, ...] = ()

    @property
    def doubtful_count(self) -> int:
        """Number of partitions with a doubtful load."""
        return sum(self.reasons.values())

    @property
    def measured_ms(self) -> int:
        """Time of the last measurement, ms since the epoch."""
        return self.taken_ms if self.last_hour_ms is None else self.last_hour_ms

    @property
    def is_glimpse(self) -> bool:
        """True if the rates were measured for seconds only."""
        return self.measured_for_s is not None and self.measured_for_s < LEAST_MEASURED_S

    def is_stale(self, now_ms: int, oldest_s: float | None) -> bool:
        """True if the last measurement is older than `oldest_s`; None allows any age."""
        return oldest_s is not None and now_ms - self.measured_ms > oldest_s * 1000

    def require(self, now_ms: int, oldest_s: float | None = None) -> None:
        """Raise InputError, with what to do, if the loads cannot be relied on.

        That is if they are doubtful, unknown, older than `oldest_s` seconds, or were measured for seconds only.
        """
        remedy = _REMEDY.get(self.source, _REMEDY["tables"])
        if self.is_stale(now_ms, oldest_s):
            hours = counted(round((now_ms - self.measured_ms) / HOUR_MS), "hour")
            raise InputError(f"the loads are {hours} old; {remedy}, or allow it with --max-load-age")
        if self.unsized:
            raise InputError(f"the sizes of {self.unsized} of {self.partitions} partitions are unknown; {remedy}")
        if self.is_glimpse:
            raise InputError(
                f"the loads were measured for {self.measured_for_s:g} s only; {remedy}, or leave out --require-load "
                "(`require_load`)"
            )
        if not self.doubtful_count:
            return
        named = some_of(self.doubtful, _SHOWN, count=self.doubtful_count)
        raise InputError(
            f"the loads of {self.doubtful_count} of {self.partitions} partitions are doubtful: {named}; "
            f"{remedy}, or leave out --require-load (`require_load`) to plan with priors"
        )


_REMEDY = {
    "cluster": "measure for longer, with `--measure-for 60`",
    "snapshot": "take the snapshot again with `--measure-for 60`",
    "tables": "collect samples for a whole day without gaps, run `kreassign load` and plan again",
}


# Treatment of the rows that a load read: good, quarantined and late rows add up to all rows.


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Number of rows of a table with one treatment for one reason; a skipped file counts 1."""

    table_name: str
    treatment: str
    reason: str
    row_count: int


@dataclass(frozen=True, slots=True)
class LoadAccount:
    """One load: its start, rows by table and treatment, and the reasons."""

    load_ms: int
    tables: Mapping[str, Mapping[str, int]]
    reasons: tuple[ReasonCount, ...]

    def count(self, treatment: str) -> int:
        """Rows of all tables with this treatment."""
        return sum(counts.get(treatment, 0) for counts in self.tables.values())


# Select a load by its time or number.


@dataclass(frozen=True, slots=True)
class LoadNumber:
    """A finished load by its number, counted from 1, as column `load_number` of table `loads` has it."""

    number: int

    def __str__(self) -> str:
        return f"load {self.number}"


AsOf = int | LoadNumber | Literal["last"]
"""A time in ms since the epoch, for the last load that had begun by then; the number of a load; or the last of all."""

LAST_LOAD: Final = "last"


# CPU cost of bytes, relative to each other. Kafka does not measure CPU per partition. The shares are the defaults
# of Cruise Control's linear model: shares of the CPU of a broker that receives as many bytes as a leader as it
# sends and as it copies as a follower.

CPU_PER_WRITE = 0.7
CPU_PER_READ = 0.15
CPU_PER_COPY = 0.15


# Where Spark runs, and its settings, for every command that uses it.


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """`master` is `local[*]` by default, or what spark-submit decides. Settings in `conf` come before ours."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


LOCAL_SPARK = SparkOptions()

SPARK_LOG = "spark.log"
"""Name of Spark's log file beside the tables."""


def spark_log(data: Path | str | None) -> Path:
    """Spark's log file: in `data`, or in the working directory if `data` is an address or None."""
    return (data if isinstance(data, Path) else Path()) / SPARK_LOG
