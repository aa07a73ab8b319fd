"""Columns. How far the mean and the 95th percentile of a partition's write rate may be off: their intervals.

What is meant is the time T from the first to the last sample, but a day at least: who has seen two hours is asked about
days all the same. With m the mean and q the quantiles that were measured, the intervals are

    mean    m (1 - u (1 - quiet)) / (1 + e)    to    m (1 + u (busy - 1)) (1 + e)
    p95     q(low) / (1 + e') / exp(2 j)       to    q(high) (1 + e')

*Unmeasured time.* u is the part of T of which nothing is known: before the first sample of the day, and at truncations.
Hours of the day that were seen on other days are taken to be between the quietest and the busiest hour of the day that
were seen, r m and R m; those that nobody ever saw, the part w of u, to write nothing or four times the mean:

    quiet = (1 - w) r        busy = (1 - w) R + 4 w        w = (hours of the day never seen / 24) / u, at most 1

A percentile of T is another quantile of what was measured. What is above it takes τ = 0.05 of T. With v the part of T
that is in gaps, too, for of them only the mean is known, that is τ / (1 - v) of what was measured if it was measured
all: this gives q(low), and is certain. At least, it is (τ - v) / (1 - v), which is certain, too; and τ c / (1 - v) if
each hour of the day was measured for the part c of its time. The larger one gives q(high), the second one times D, for
it says what other days wrote: D is the rate of the busiest over that of the quietest day, the mean of all hours of the
day. If both are nothing, the largest interval is told, or six times the mean. One interval of all is added on each
side, for rates may jump just there. Intervals of different lengths, as where rounds are lost, hide peaks in longer
ones: of time in them that is (coefficient of variation of the lengths)², as of gaps, only the mean is counted as known.

*Others.* e and e' add up

    0.005               the time that a round of questions takes; for e' also 0.01, the bins of the histogram and their
                        shift by the size of the records of each hour (`histograms.py`)
    0.5 s / T           a round begins and ends at some time
    o                   o is the part of the samples that was set aside: for one that was found, one may have passed;
                        and truncations by up to three rounds look like odd samples
    2 s (1 - f)         f is the part of the records whose size was measured, s how much the mean size differs from
                        hour to hour, as a share; for e' instead of 1 - f the part of the hours without sizes, over τ
    0.2, for e' 2       where the size is only known from the whole log (`log`): it may be another at the peak

*Clock.* A round whose time is wrong makes one interval's rate too high and the next one's too low: the mean stays, the
percentile rises with the scatter j of the rates. Is n what was written in s seconds, then

    mean of n/s = (sum of n / sum of s) (1 + j²)    where times are wrong (errors in variables: Fuller 1987, Measurement
                                                    Error Models); else j is 0, however unequal the intervals are

and the 95th percentile of what scatters by j is off by exp(1.645 j); 2 j allows for tails.

The numbers 4, 6, 0.2, 2 and 0.005 are judgement. That the intervals hold what they say, `python -m bench
load-truth` shows on cohorts of partitions whose writes are known (`docs/reference/figures.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kreassign.pipeline.load.forecast import DAY_S
from kreassign.pipeline.load.hours import HOUR_MS, MICRO, whole_ms
from kreassign.pipeline.load.rates import EPOCH_KEY
from kreassign.pipeline.load.trend import HOURS_A_DAY, hour_of_day

TOLD_ERROR = 0.1
"""A partition of which more is told is not `enough` to plan by."""
UNSEEN, UNSEEN_PEAK = 4.0, 6.0
"""Hours of the day that nobody saw may write so many times the mean, and their percentile be so many times it."""
ROUND, ROUND_S = 0.005, 0.5
LOG_SIZE, LOG_SIZE_OF_PEAK = 0.2, 2.0
RESOLUTION = 0.01
_TAIL = 0.05
_MOST_UNEQUAL = 0.9


def evidence(hours: DataFrame) -> DataFrame:
    """What the hours of one epoch of each partition say of the errors of its rates; columns of `Evidence`."""
    is_sized = (sql.col("sized_records") > 0) & (sql.col("new_bytes") > 0)
    bytes_squared = sql.col("new_bytes").cast("double") * sql.col("new_bytes") / sql.col("sized_records")
    sums = ("known_ms", "good_ms", "new_records", "odd_count", "sample_count", "unsized_ms", "sized_records",
            "new_bytes", "bytes_squared", "good_records", "rate_sum", "squared_seconds", "rate_count")  # fmt: skip
    known_ms = whole_ms("seconds")
    prepared = hours.withColumns(
        {
            "known_ms": known_ms,
            "good_ms": whole_ms("good_seconds"),
            "unsized_ms": sql.when((sql.col("new_records") > 0) & ~is_sized, known_ms).otherwise(sql.lit(0)),
            "bytes_squared": sql.when(is_sized, bytes_squared).otherwise(sql.lit(0.0)),
            "rate_count": sql.aggregate("rate_counts", sql.lit(0), lambda so_far, count: so_far + count),
        }
    )
    ends = (sql.min("first_ms").alias("first_ms"), sql.max("last_ms").alias("last_ms"))
    # Of less than half an hour the rate is one of a moment.
    hour_rate = sql.when(known_ms * 2 >= HOUR_MS, sql.col("new_records") / known_ms)
    day_ratio = sql.when(sql.count(hour_rate) > 1, sql.try_divide(sql.max(hour_rate), sql.min(hour_rate)))
    daily = prepared.groupBy(*EPOCH_KEY, hour_of_day()).agg(
        *ends, *(sql.sum(name).alias(name) for name in sums), day_ratio.alias("day_ratio")
    )
    rate = sql.when(sql.col("known_ms") > 0, sql.col("new_records") / sql.col("known_ms"))
    together = daily.groupBy(*EPOCH_KEY).agg(
        *ends,
        *(sql.sum(name).alias(name) for name in sums),
        sql.count(rate).alias("hours_seen"),
        sql.min(rate).alias("least_rate"),
        sql.max(rate).alias("most_rate"),
        sql.avg("day_ratio").alias("day_ratio"),
        sql.when(sql.count("*") == HOURS_A_DAY, sql.min("good_ms")).otherwise(sql.lit(0)).alias("least_good_ms"),
    )
    return together.select(*EPOCH_KEY, sql.struct(*_figures()).alias("evidence"))


def _figures() -> tuple[Column, ...]:
    """The fields of `Evidence`; rounded, so that the order in which numbers were added shows nowhere."""
    span_s = (sql.col("last_ms") - sql.col("first_ms")) / 1000.0
    meant_s = sql.greatest(span_s, sql.lit(DAY_S))
    mean = sql.try_divide(sql.col("new_records"), sql.col("known_ms"))
    size = sql.try_divide(sql.col("new_bytes"), sql.col("sized_records"))
    mean_square = sql.try_divide(sql.col("bytes_squared"), sql.col("sized_records"))
    size_variance = sql.try_divide(mean_square, size * size) - 1
    true_mean = sql.try_divide(sql.col("good_records") * 1000.0, sql.col("good_ms"))
    scatter = sql.try_divide(sql.try_divide(sql.col("rate_sum") / MICRO, sql.col("rate_count")), true_mean) - 1
    good_s = sql.col("good_ms") / 1000.0
    lengths = sql.try_divide(sql.col("squared_seconds") * sql.col("rate_count"), good_s * good_s) - 1
    figures = {
        "meant_s": meant_s,
        "unknown": _bounded(1 - sql.col("known_ms") / 1000.0 / meant_s),
        "not_good": _bounded(1 - sql.col("good_ms") / 1000.0 / meant_s),
        "unseen": 1 - sql.col("hours_seen") / HOURS_A_DAY,
        "least_good": _bounded(HOURS_A_DAY * sql.col("least_good_ms") / 1000.0 / meant_s),
        "quietest": sql.coalesce(sql.try_divide(sql.col("least_rate"), mean), sql.lit(1.0)),
        "busiest": sql.coalesce(sql.try_divide(sql.col("most_rate"), mean), sql.lit(1.0)),
        "day_ratio": sql.coalesce("day_ratio", sql.lit(1.0)),
        "odd": sql.try_divide(sql.col("odd_count"), sql.col("odd_count") + sql.col("sample_count")),
        "sized": sql.coalesce(sql.try_divide(sql.col("sized_records"), sql.col("new_records")), sql.lit(1.0)),
        "unsized_time": sql.coalesce(sql.try_divide(sql.col("unsized_ms"), sql.col("known_ms")), sql.lit(0.0)),
        "size_spread": sql.sqrt(sql.greatest(sql.coalesce(size_variance, sql.lit(0.0)), sql.lit(0.0))),
        "scatter": sql.sqrt(sql.greatest(sql.coalesce(scatter, sql.lit(0.0)), sql.lit(0.0))),
        "unequal": sql.least(sql.greatest(sql.coalesce(lengths, sql.lit(0.0)), sql.lit(0.0)), sql.lit(_MOST_UNEQUAL)),
        "rate_count": sql.greatest(sql.col("rate_count"), sql.lit(1)).cast("double"),
    }
    return tuple(sql.round(figure.cast("double"), 6).alias(name) for name, figure in figures.items())


def _bounded(share: Column) -> Column:
    return sql.least(sql.greatest(share, sql.lit(0.0)), sql.lit(1.0))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The struct that `evidence` made, by the name of its column, and whether the record size is only of the log."""

    is_by_log: Column
    name: str = "evidence"

    def of(self, field: str) -> Column:
        """One of its fields."""
        return sql.col(f"{self.name}.{field}")

    def mean_factors(self) -> tuple[Column, Column]:
        """By what the mean is to be multiplied, for the ends of its interval."""
        unknown = self.of("unknown")
        never = sql.coalesce(sql.least(sql.try_divide(self.of("unseen"), unknown), sql.lit(1.0)), sql.lit(0.0))
        quiet = (1 - never) * sql.least(self.of("quietest"), sql.lit(1.0))
        busy = (1 - never) * sql.greatest(self.of("busiest"), sql.lit(1.0)) + UNSEEN * never
        error = (
            1
            + ROUND
            + self._common()
            + self._if_by_log(LOG_SIZE)
            + 2 * self.of("size_spread") * (1 - _bounded(self.of("sized")))
        )
        return (1 - unknown * (1 - quiet)) / error, (1 + unknown * (busy - 1)) * error

    def p95_places(self) -> tuple[Column, Column]:
        """The places of the quantiles that are the ends of the interval, times `p95_factors`."""
        known = sql.greatest(1 - self._not_seen(), sql.lit(1e-6))
        one = 1 / self.of("rate_count")
        return _bounded(1 - _TAIL / known - one), _bounded(1 - self._least_tail() / known + one)

    def is_peak_seen(self) -> Column:
        """Whether something of what is above the percentile must have been measured."""
        return self._least_tail() > 0

    def p95_factors(self) -> tuple[Column, Column]:
        """By what these quantiles are to be multiplied."""
        unsized = sql.least(self.of("unsized_time") / _TAIL, sql.lit(1.0))
        sizes = 2 * self.of("size_spread") * unsized + self._if_by_log(LOG_SIZE_OF_PEAK)
        error = 1 + ROUND + RESOLUTION + self._common() + sizes
        is_of_other_days = self.of("not_good") > _TAIL * (1 - self.of("least_good"))
        busiest_day = sql.when(is_of_other_days, self.of("day_ratio")).otherwise(1.0)
        return 1 / error / sql.exp(2 * self.of("scatter")), error * busiest_day

    def _least_tail(self) -> Column:
        least_good = self.of("least_good") * (1 - self.of("unequal"))
        return sql.greatest(_TAIL * least_good, _TAIL - self._not_seen())

    def _not_seen(self) -> Column:
        return 1 - (1 - self.of("not_good")) * (1 - self.of("unequal"))

    def _common(self) -> Column:
        return ROUND_S / self.of("meant_s") + sql.coalesce(self.of("odd"), sql.lit(0.0))

    def _if_by_log(self, error: float) -> Column:
        return sql.when(self.is_by_log, error).otherwise(0.0)
