"""Loads: what the tables of a load say of a cluster, and how far a plan can rely on them.

Sizes are bytes, rates bytes per second before replication. An unknown figure is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kreassign.errors import InputError
from kreassign.model.cluster import TopicPartition
from kreassign.model.text import shortened

# A cluster in a few figures.

HOT = 3.0
"""A partition is hot when it gets more than so many times the mean of its topic."""


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """One partition; `doubt` says why there is not enough data to plan with, None if there is."""

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
    """One topic: its size and rate are sums of the partitions that are known, `known_count` those with a rate."""

    topic: str
    partition_count: int
    known_count: int
    size_bytes: float | None
    write_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Expected:
    """A forecast with its 95% interval; of several partitions the sums, as if all of them erred alike."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LoadTotals:
    """A cluster as a whole; sums are of what is known, `known_rate_count` partitions have a rate.

    `size_bytes` counts each partition once, `replica_bytes` every replica. `recent_write_bytes_per_s` is of the last
    seven days.
    """

    partition_count: int
    topic_count: int
    known_size_count: int
    known_rate_count: int
    size_bytes: float
    replica_bytes: float | None
    write_bytes_per_s: float | None
    recent_write_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class LoadBefore:
    """The load before the one that is shown: its number, when it was begun, ms since the epoch, and its totals."""

    load_number: int
    load_ms: int
    totals: LoadTotals


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast of a whole cluster; None of what is known of no partition."""

    horizon_days: float
    size_bytes: Expected | None
    write_bytes_per_s: Expected | None


@dataclass(frozen=True, slots=True)
class Doubtful:
    """The partitions whose data is not enough, those of most weight first: how many, and their shares of the cluster.

    `first` are some of them. A share is None where the cluster's total is 0 or unknown.
    """

    count: int
    size_share: float | None
    write_share: float | None
    first: tuple[PartitionLoad, ...]


COMPLETE = 0.9
"""A window is complete when so much of it was measured."""


@dataclass(frozen=True, slots=True)
class Window:
    """An hour, by its start in ms since the epoch, and which part of it was measured: the mean of all partitions."""

    hour_ms: int
    measured_share: float

    @property
    def is_complete(self) -> bool:
        """Whether so much was measured that it stands for the hour."""
        return self.measured_share >= COMPLETE


@dataclass(frozen=True, slots=True)
class MeasuredBroker:
    """What a broker measured of itself, means of its hours and the busiest one, and what it can hold.

    `cpu_share` is of all its processors; `cpu_capacity_bytes_per_s` are the bytes in and out at which they would be
    used up. `replication_out_ratio` is what it sent to followers over what the load expects: 1 where both agree.
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
    """What a load says of one cluster. `coverage` and `verdicts` count partitions by the words of `load_model`.

    `taken_ms` is when the snapshot was begun, `load_ms` when the load was, ms since the epoch. `before` is the load
    before it; None where there is none, or its tables are gone. `load_number` counts finished loads from 1.
    `windows` are the hours of the last day, oldest first. Of `measured_broker_count` brokers that measured themselves
    `measured_brokers` are some, those with most to do first.
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
    windows: tuple[Window, ...] = ()
    measured_broker_count: int = 0
    measured_brokers: tuple[MeasuredBroker, ...] = ()


@dataclass(frozen=True, slots=True)
class DailyCurve:
    """Mean write rate by hour of the day (UTC), 24 of them; None for hours in which nothing was measured."""

    name: str
    hours: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Mean write rate of whole days, and what is expected.

    `days` are (days before the last measured hour, rate), oldest first; `now` is the rate from which the forecast
    begins.
    """

    name: str
    days: tuple[tuple[int, float], ...]
    now: float | None
    horizon_days: float
    expected: Expected | None


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """How unevenly a topic is used: a row of table `skew`."""

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
    """What a page shows of one cluster besides its summary."""

    brokers: tuple[DailyCurve, ...]
    partitions: tuple[DailyCurve, ...]
    cluster: History
    histories: tuple[History, ...]
    skew: tuple[TopicSkew, ...]


# The basis of a plan's loads: which were doubtful, why, which prior took their place, and how old they are.
#
# A load is *doubtful* where `kreassign load` does not call it `enough`, or where the rate that was asked for is
# unknown. The planner gets a prior for it, never a silent 0. `PRIORS` are the words for where a prior comes from:
#
#     topic      the median rate of the partitions of its topic whose loads are enough
#     measured   its own rate although it is doubtful, unless no partition with enough load has so large a one
#     size       its size, times the bytes per second and byte of all partitions whose loads are enough
#     unknown    nothing to go by: 0

PRIORS = ("topic", "measured", "size", "unknown")
MOST_NAMED = 100
"""How many doubtful loads are kept by name; all are counted."""
_SHOWN = 3

MEASURED_S = 5.0
"""For how long a cluster is watched, unless somebody says otherwise."""

LEAST_MEASURED_S = 60.0
"""Rates that were measured for less are a glimpse: good to try a plan, not for one that nobody looks at."""


@dataclass(frozen=True, slots=True)
class DoubtfulLoad:
    """A partition whose rate is doubtful: why, and the rate that was taken in its place, from which prior."""

    topic_partition: TopicPartition
    reason: str
    prior: str
    write_bytes_per_s: float

    def __str__(self) -> str:
        return f"{shortened(str(self.topic_partition))} ({self.reason})"


@dataclass(frozen=True, slots=True)
class DoubtfulShare:
    """What of a broker's present replicas is doubtful: their count, and which part of its writes and of its bytes."""

    broker: int
    replicas: int
    write_share: float
    size_share: float


@dataclass(frozen=True, slots=True)
class ForecastBasis:
    """How sure the forecast is that a plan was made by.

    `low_ratio` and `high_ratio` are the ends of the 95% interval of the rate over the forecast, medians of the
    partitions; None where nothing is written. Of the backtest: how many partitions, their median error (a share of the
    larger rate), how many of them were in the interval; None without any.
    """

    horizon_days: float
    low_ratio: float | None = None
    high_ratio: float | None = None
    tested_partitions: int = 0
    median_error: float | None = None
    covered_share: float | None = None


@dataclass(frozen=True, slots=True)
class LoadBasis:
    """What the loads of a plan rest on.

    `source` is the load of the tables that was planned by (`mean`, `p95` …), `snapshot` for rates of a snapshot file,
    or `cluster` for rates that were measured for this plan, for `measured_for_s` seconds. `taken_ms` is when the
    snapshot was begun; `last_hour_ms` the start of the last hour that samples measured, None where there are none.
    `reasons` and `priors` count the doubtful partitions; `doubtful` names the largest of them, at most `MOST_NAMED`.
    `unsized` partitions have no known size, and stay. `brokers` are those with doubtful replicas. Of `assumed_reads`
    partitions nobody measured what consumers read: it is taken to be `reads_per_write` times what is written.
    """

    source: str
    taken_ms: int
    partitions: int
    last_hour_ms: int | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    priors: Mapping[str, int] = field(default_factory=dict)
    unsized: int = 0
    doubtful: tuple[DoubtfulLoad, ...] = ()
    brokers: tuple[DoubtfulShare, ...] = ()
    forecast: ForecastBasis | None = None
    measured_for_s: float | None = None
    assumed_reads: int = 0
    reads_per_write: float = 1.0

    @property
    def doubtful_count(self) -> int:
        """How many partitions have a doubtful load."""
        return sum(self.reasons.values())

    @property
    def measured_ms(self) -> int:
        """Since when nothing was measured any more."""
        return self.taken_ms if self.last_hour_ms is None else self.last_hour_ms

    @property
    def is_glimpse(self) -> bool:
        """Whether the rates were measured for this plan, for seconds only."""
        return self.measured_for_s is not None and self.measured_for_s < LEAST_MEASURED_S

    def is_stale(self, now_ms: int, oldest_s: float | None) -> bool:
        """Whether nothing was measured for longer than that; None for any time."""
        return oldest_s is not None and now_ms - self.measured_ms > oldest_s * 1000

    def require(self, now_ms: int, oldest_s: float | None = None) -> None:
        """Raise InputError, with what to do.

        If loads are doubtful, unknown, older than `oldest_s` seconds, or were measured for seconds only.
        """
        remedy = _REMEDY.get(self.source, _REMEDY["tables"])
        if self.is_stale(now_ms, oldest_s):
            hours = (now_ms - self.measured_ms) / 3_600_000
            raise InputError(f"the loads are {hours:.0f} hours old; {remedy}, or allow it with --max-load-age")
        if self.unsized:
            raise InputError(f"the sizes of {self.unsized} of {self.partitions} partitions are unknown; {remedy}")
        if self.is_glimpse:
            raise InputError(
                f"the loads were measured for {self.measured_for_s:g} s only; {remedy}, or leave out --require-load "
                "(`require_load`)"
            )
        if not self.doubtful_count:
            return
        named = ", ".join(map(str, self.doubtful[:_SHOWN]))
        more = f" and {left} more" if (left := self.doubtful_count - _SHOWN) > 0 else ""
        raise InputError(
            f"the loads of {self.doubtful_count} of {self.partitions} partitions are doubtful: {named}{more}; "
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
    """How many rows of a table were treated in one way for one reason; of a skipped file 1."""

    table_name: str
    treatment: str
    reason: str
    row_count: int


@dataclass(frozen=True, slots=True)
class LoadAccount:
    """One load: when it was begun, rows by table and treatment (every treatment has a count), and the reasons."""

    load_ms: int
    tables: Mapping[str, Mapping[str, int]]
    reasons: tuple[ReasonCount, ...]

    def count(self, treatment: str) -> int:
        """Rows of all tables that were treated so."""
        return sum(counts[treatment] for counts in self.tables.values())


# A load by its time or its number.


@dataclass(frozen=True, slots=True)
class LoadNumber:
    """A finished load by its number, counted from 1, as column `load_number` of table `loads` has it."""

    number: int

    def __str__(self) -> str:
        return f"load {self.number}"


AsOf = int | LoadNumber
"""A time, ms since the epoch: the last load that had begun by then. Or a number: that load."""


# The CPU cost of bytes, in proportion to each other. Kafka does not measure CPU per partition. The shares are those
# that Cruise Control ships for its linear model: of the CPU of a broker that takes as many bytes in as a leader as it
# sends and as it copies as a follower.

CPU_PER_WRITE = 0.7
CPU_PER_READ = 0.15
CPU_PER_COPY = 0.15


# Where Spark runs, and with which settings, for every command that uses it.


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """`master` is `local[*]` by default, or what spark-submit decides. Settings in `conf` come before ours."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


LOCAL_SPARK = SparkOptions()

SPARK_LOG = "spark.log"
"""The name of the file beside the tables to which Spark logs."""


def spark_log(data: Path | str | None) -> Path:
    """The file to which Spark logs: in `data`, or in the working directory if data has an address or there is none."""
    return (data if isinstance(data, Path) else Path()) / SPARK_LOG
