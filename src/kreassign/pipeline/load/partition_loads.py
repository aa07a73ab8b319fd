"""Compute write rates of partitions from all their hours, and the quality of these rates.

Rates rest on the hours of the window since the log of the partition last restarted, and the samples in them that
count (see `rates.py` and `hours.py`):

    write_records_per_s = sum of end offset differences / sum of their seconds
    write_bytes_per_s   = write_records_per_s * bytes_per_record   (0 when there were no records)

and bytes_per_record is the first of these that is known (`record_size_basis`),

    growth  sum of size differences / sum of end offset differences, over the pairs of neighbouring samples between
            which the log only grew: same leader, same start offset, size not smaller
    log     size / (end offset - start offset), at the last sample

Percentiles are of the intervals between neighbouring samples, without those across gaps, from the histograms of the
hours: off by half a percent at most (`hours.py`). The peak hour and the input of the forecast are made from hours and
days (`partition_loads.py`, `fits.py`). All are rates of records times the same bytes_per_record.

Sources of error. The rate of records is exact for the span, up to the duration of a round of questions: a tenth of a
second over a span of ten seconds is one per cent. Offsets count what a log holds, so transaction markers count as
records. `growth` is the size of the records that just came, up to those that came between the question for the offset
and that for the size; it is too small where the log is compacted and the cleaner ran meanwhile. `log` lags behind
when records have lately become larger or smaller (by any factor), is too large when records were deleted up to an
offset inside a segment or markers are gone, and too small when the log is compacted. Segments are on disk as they were
sent, so the bytes are compressed bytes, which is what replication and a move copy too. `accuracy.py` estimates the
errors from unmeasured time.

Pure: Arrow batches in, Arrow batches out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kreassign.model.text import HOUR_MS
from kreassign.pipeline.load.accuracy import TOLD_ERROR, UNSEEN_PEAK, ErrorFigures, evidence, held_share
from kreassign.pipeline.load.fits import CHANGES, DAYS_A_WEEK, Fit, fit, size_fit, week_changes
from kreassign.pipeline.load.forecast import backtest
from kreassign.pipeline.load.hours import DAY_S, FIGURES, HOURS_A_DAY, LISTS, Columns, LatestHours, column, mask
from kreassign.pipeline.load.measured import MEASURED_COLUMNS
from kreassign.pipeline.load.rates import EPOCH_KEY, PARTITION_KEY, Floats, Ints, Mask
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import LOAD_MODEL

# From hours to the peak hour and to the input of a forecast: some weeks of days.
#
# Days are counted back from the last measured hour of a partition: day 0 is the last 24 hours. Any seven days are a
# week, whatever day it begins with.
#
# The peak is the busiest hour of the last week over the mean of its hours. A trend's share is taken out: hours of the
# last day are not large only because they are the last.

HOURS_A_WEEK = HOURS_A_DAY * DAYS_A_WEEK
WHOLE = 0.9
"""Least measured part of a whole day."""
WINDOW_DAYS = 28
"""Days of history that the forecast rests on: four weeks show a rhythm of the week, and are still recent."""
_P95 = 0.95


def peaks(hours: LatestHours) -> dict[str, Floats]:
    """`peak_hour`, the busiest hour of the day (UTC) of each partition, and its mean, `peak_records_per_s`.

    Uses measured hours. NaN unless each hour of the day was measured: an unseen hour may have been busier.
    """
    slot, count = hours.owner * HOURS_A_DAY + hours.hour_of_day(), len(hours) * HOURS_A_DAY
    seconds, records = (
        np.bincount(slot, hours[name], count).reshape(-1, HOURS_A_DAY) for name in ("seconds", "new_records")
    )
    is_seen = (seconds > 0).all(axis=1)
    rate = np.divide(records, seconds, out=np.zeros(seconds.shape), where=seconds > 0)
    # Of equally busy hours, the last.
    hour = HOURS_A_DAY - 1 - np.argmax(rate[:, ::-1], axis=1)
    return {
        "peak_hour": np.where(is_seen, hour, np.nan),
        "peak_records_per_s": np.where(is_seen, rate.max(axis=1), np.nan),
    }


def trends(hours: LatestHours, window_days: int = WINDOW_DAYS) -> dict[str, Floats | Ints | Mask]:
    """Fit the last days of each partition, from hours in which something was measured; see `fits.py`.

    Columns of table `load_model`, except that both levels, `…_records_per_s`, are in records per second.
    """
    age_hours = ((hours.largest(hours["hour_ms"])[hours.owner] - hours["hour_ms"]) // HOUR_MS).astype(np.int64)
    rates, sizes = _days(hours, age_hours, window_days)
    found, of_sizes, tested = fit(rates), size_fit(sizes), backtest(rates)
    is_recent = age_hours < min(HOURS_A_WEEK, window_days * HOURS_A_DAY)
    records, seconds = (hours.sums(np.where(is_recent, hours[name], 0.0)) for name in ("new_records", "seconds"))
    week_peak, week_p95 = _ratios(hours, age_hours, is_recent, found)
    return {
        "day_count": found.days,
        # Without a whole measured day, the mean of all measured time.
        "recent_records_per_s": np.where(np.isnan(found.level), records / seconds, found.level),
        "plain_records_per_s": np.where(np.isnan(found.plain_level), records / seconds, found.plain_level),
        "growth_per_day": found.growth,
        "growth_error_per_day": found.error,
        "has_trend": found.has_trend,
        "has_slowed": found.has_slowed,
        "has_jumped": found.has_jumped,
        "week_spread": found.spread,
        "week_changes": week_changes(rates, found),
        "week_peak_ratio": week_peak,
        "week_p95_ratio": week_p95,
        "size_growth_bytes_per_day": of_sizes.growth,
        "size_growth_error_bytes_per_day": of_sizes.error,
        "size_spread_bytes": of_sizes.spread,
        "backtest_error": tested.error,
        "backtest_sigmas": tested.sigmas,
    }


def _days(hours: LatestHours, age_hours: Ints, window_days: int) -> tuple[Floats, Floats]:
    """Rates and sizes by partition and age in days; NaN where a day is not whole, or no size was known."""
    age = age_hours // HOURS_A_DAY
    is_in = age < window_days
    slot, shape = (hours.owner * window_days + age)[is_in], (len(hours), window_days)

    def by_day(values: Floats | Mask) -> Floats:
        return np.bincount(slot, np.nan_to_num(values[is_in]), shape[0] * shape[1]).astype(np.float64).reshape(shape)

    seconds, size = by_day(hours["seconds"]), hours["mean_size_bytes"]
    sized = by_day(~np.isnan(size))
    is_whole = seconds >= WHOLE * DAY_S
    rates = by_day(hours["new_records"]) / np.where(is_whole, seconds, np.nan)
    return rates, by_day(size) / np.where(is_whole & (sized > 0), sized, np.nan)


def _ratios(hours: LatestHours, age_hours: Ints, is_recent: Mask, found: Fit) -> tuple[Floats, Floats]:
    """Busiest hour of the last week and the 95th percentile of its hours, both over their mean, without the trend.

    NaN with less than a day of hours, or if nothing was written.
    """
    growth = np.where(found.has_trend, found.growth, 0.0)[hours.owner]
    rate = hours["new_records"] / hours["seconds"] * np.exp(growth * age_hours / HOURS_A_DAY)
    owner, of_week = hours.owner[is_recent], rate[is_recent]
    ordered = of_week[np.lexsort((of_week, owner))]
    count = np.bincount(owner, minlength=len(hours))
    begin, total = np.cumsum(count) - count, np.bincount(owner, of_week, len(hours))
    is_known = (count >= HOURS_A_DAY) & (total > 0)

    def ratio(share: float) -> Floats:
        place = begin + np.ceil(share * count).astype(np.int64) - 1
        found: Floats = np.divide(ordered[place] * count, total, out=np.full(len(hours), np.nan), where=is_known)
        return found

    return ratio(1.0), ratio(_P95)


IS_COMPACTED = "is_compacted"
HOUR_COLUMNS = (*EPOCH_KEY, *FIGURES, *LISTS, IS_COMPACTED)
"""Columns of table `load_hours` that are used, and whether the topic is compacted: NULL if that is unknown."""
LOADS = pa.schema(
    [each for each in arrow_schema(LOAD_MODEL) if each.name not in {"snapshot_id", "size_bytes", *MEASURED_COLUMNS}]
)
"""Columns of table `load_model` that come from hours."""
GROWTH, LOG, MEASURED = "growth", "log", "measured"
MOST_CONTRADICTED = 0.02
"""Share of the intervals above which the growth of a log tells nothing of its records."""
_PERCENTILES = (0.5, 0.95, 0.99)

Words = npt.NDArray[np.str_]


def partition_loads(batches: Iterable[pa.RecordBatch], window_days: int = WINDOW_DAYS) -> Iterator[pa.RecordBatch]:
    """Compute rows of `LOADS` from rows of `HOUR_COLUMNS`: one per partition with samples."""
    found = list(batches)
    if not found:
        return
    columns = _columns(LatestHours.of(pa.Table.from_batches(found)), window_days)
    yield pa.RecordBatch.from_arrays([column(columns[each.name], each.type) for each in LOADS], schema=LOADS)


def _columns(hours: LatestHours, window_days: int) -> Columns:
    keys = hours.rows.select([*PARTITION_KEY, "epoch"]).take(hours.starts)
    epoch = keys["epoch"].to_numpy()
    held, is_compacted = held_share(hours), mask(hours.rows[IS_COMPACTED].take(hours.starts))
    is_less = held < 1 - TOLD_ERROR
    weeks = _of_measured(hours, window_days)
    # A cleaner takes records out, so that the log holds less than was written to it. It may; that leaves the doubt.
    found = _rates(hours, is_less & ~is_compacted)
    told = evidence(hours, (found.basis == LOG) & (found.records_per_s > 0), is_less, is_compacted)
    in_records = {
        **_percentiles(hours, told, found.records_per_s),
        "recent_write_bytes_per_s": weeks.pop("recent_records_per_s"),
        "plain_write_bytes_per_s": weeks.pop("plain_records_per_s"),
        "peak_write_bytes_per_s": weeks.pop("peak_records_per_s"),
    }
    in_bytes = {name: found.in_bytes(records) for name, records in in_records.items()}
    mean = found.in_bytes(found.records_per_s)
    low, high = told.mean_factors()
    coverage = _coverage(found.sample_count, epoch, mean)
    is_known = (1 - low <= TOLD_ERROR) & (high - 1 <= TOLD_ERROR) & _is_p95_known(in_bytes, told) & ~is_less
    return {
        **{name: keys[name] for name in PARTITION_KEY},
        "bytes_per_record": found.bytes_per_record,
        "record_size_basis": _words(found.basis),
        "write_records_per_s": found.records_per_s,
        "write_bytes_per_s": mean,
        "low_write_bytes_per_s": mean * low,
        "high_write_bytes_per_s": mean * high,
        **in_bytes,
        **weeks,
        "week_changes": hundredths(weeks["week_changes"]),
        "day_count": np.nan_to_num(weeks["day_count"]),
        "has_trend": weeks["has_trend"] == 1,
        "has_slowed": weeks["has_slowed"] == 1,
        "has_jumped": weeks["has_jumped"] == 1,
        "sample_count": found.sample_count,
        "span_s": found.span_s,
        "covered_share": found.covered_share,
        "reset_count": epoch,
        "coverage": _words(coverage),
        "verdict": _words(_verdict(coverage, is_known, found.span_s, told.is_doubted)),
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """Rates from all hours of each partition; `basis` is empty if the size of a record is unknown."""

    bytes_per_record: Floats
    basis: Words
    records_per_s: Floats
    sample_count: Floats
    span_s: Floats
    covered_share: Floats

    def in_bytes(self, records: Floats) -> Floats:
        """Records per second times their size; 0 without records, also if the size is unknown."""
        return np.where(records == 0, 0.0, records * self.bytes_per_record)


def _rates(hours: LatestHours, is_less: Mask) -> _Rates:
    span_s = (hours.largest(hours["last_ms"]) - hours.least(hours["first_ms"])) / 1000.0
    kept = hours.last(hours["last_end_offset"]) - hours.last(hours["last_start_offset"])
    sized, new_bytes = hours.sums(hours["sized_records"]), hours.sums(hours["new_bytes"])
    known_s, good_s = (hours.sums(hours.milliseconds(name)) / 1000.0 for name in ("seconds", "good_seconds"))
    # Where many contradict, the others agree by chance.
    is_contradicted = hours.sums(hours["contradicted_count"]) > MOST_CONTRADICTED * hours.sums(hours["sample_count"])
    has_growth = (sized > 0) & (new_bytes > 0) & ~is_contradicted & ~is_less
    by_growth = np.divide(new_bytes, sized, out=np.full(len(hours), np.nan), where=has_growth)
    by_log = hours.last(hours["last_size_bytes"]) / np.where(kept > 0, kept, np.nan)
    return _Rates(
        bytes_per_record=np.where(has_growth, by_growth, by_log),
        basis=np.where(has_growth, GROWTH, np.where(np.isnan(by_log), "", LOG)),
        records_per_s=hours.sums(hours["new_records"]) / np.where(known_s > 0, known_s, np.nan),
        sample_count=hours.sums(hours["sample_count"]),
        span_s=np.nan_to_num(span_s),
        # The first interval of the window began before it.
        covered_share=np.nan_to_num(np.minimum(good_s / np.where(span_s > 0, span_s, np.nan), 1.0)),
    )


def _percentiles(hours: LatestHours, told: ErrorFigures, mean: Floats) -> dict[str, Floats]:
    """Percentiles of the intervals in records per second, and the interval of the 95th."""
    rates = hours.histograms()
    plain = {f"p{round(100 * share)}_write_bytes_per_s": rates.quantile(share) for share in _PERCENTILES}
    (low, high), (low_factor, high_factor) = told.p95_places(), told.p95_factors()
    most = rates.quantile(high) * high_factor
    unseen = np.fmax(most, UNSEEN_PEAK * mean)
    return plain | {
        "low_p95_write_bytes_per_s": rates.quantile(low) * low_factor,
        "high_p95_write_bytes_per_s": np.where(told.is_peak_seen(), most, unseen),
    }


def _of_measured(hours: LatestHours, window_days: int) -> dict[str, Floats]:
    """Peaks and trends from measured hours; NaN for partitions without any."""
    is_measured = hours["seconds"] > 0
    measured, places = hours.only(is_measured), np.unique(hours.owner[is_measured])

    def of_all(values: Floats | Ints | Mask) -> Floats:
        whole = np.full((len(hours), *values.shape[1:]), np.nan)
        whole[places] = values
        return whole

    found = {**peaks(measured), **trends(measured, window_days)}
    return {name: of_all(values) for name, values in found.items()}


def _coverage(sample_count: Floats, epoch: Floats, write_bytes_per_s: Floats) -> Words:
    """Basis of the rates, in the schema's words; the cases exclude each other and are complete."""
    several, has_bytes = sample_count > 1, ~np.isnan(write_bytes_per_s)
    return np.where(several, np.where(has_bytes, MEASURED, "no size"), np.where(epoch > 0, "reset", "one sample"))


def _verdict(coverage: Words, is_known: Mask, span_s: Floats, is_doubted: Mask) -> Words:
    """Verdict on the data for planning, in the schema's words; the cases exclude each other."""
    not_enough = np.where(span_s < DAY_S, "short", np.where(is_doubted, "doubtful", "gaps"))
    return np.where(coverage == MEASURED, np.where(is_known, "enough", not_enough), "unknown")


def _is_p95_known(rates: dict[str, Floats], told: ErrorFigures) -> Mask:
    p95, low, high = (rates[f"{end}p95_write_bytes_per_s"] for end in ("", "low_", "high_"))
    is_idle = (high == 0) & told.is_peak_seen()
    known: Mask = is_idle | ((p95 - low <= TOLD_ERROR * p95) & (high - p95 <= TOLD_ERROR * p95) & (p95 > 0))
    return known


def hundredths(changes: Floats) -> pa.Array:
    """Lists of changes in hundredths; NULL where they are NaN."""
    values = np.rint(100 * np.nan_to_num(changes)).astype(np.int32)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * CHANGES
    return pa.ListArray.from_arrays(offsets, values.reshape(-1), mask=pa.array(np.isnan(changes[:, 0])))


def _words(values: Words) -> pa.Array:
    """Texts; empty ones are NULL."""
    return pa.array([word or None for word in values.tolist()])
