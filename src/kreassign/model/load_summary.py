"""What the tables of a load say of a cluster, in a few figures.

Sizes are bytes, rates bytes per second before replication. A figure that is not known is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
