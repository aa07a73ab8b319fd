"""What the loads of a plan rest on: which were doubtful, why, what was taken in their place, and how old they are.

A load is *doubtful* where `kreassign load` does not call it `enough`, or where the rate that was asked for is unknown.
The planner gets a prior for it, never a silent 0. `PRIORS` are the words for where a prior comes from:

    topic      the median rate of the partitions of its topic whose loads are enough
    measured   its own rate although it is doubtful, unless no partition with enough load has so large a one
    size       its size, times the bytes per second and byte of all partitions whose loads are enough
    unknown    nothing to go by: 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.errors import InputError
from kreassign.model.partition import TopicPartition
from kreassign.model.printable import shortened

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
