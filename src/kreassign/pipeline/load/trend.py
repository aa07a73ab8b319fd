"""PURE. Arrays. From hours to the peak hour and to what a forecast needs of some weeks.

Days are counted back from the last hour in which a partition was measured: day 0 is the last 24 hours. Seven of them
are a week, whatever day it begins with.

The peak is the busiest hour of the last week over the mean of its hours. Where there is a trend, its share is taken
out: hours of the last day are not large only because they are the last.
"""

from __future__ import annotations

import numpy as np

from kreassign.pipeline.load.fits import DAYS_A_WEEK, Fit, fit, size_fit
from kreassign.pipeline.load.forecast import backtest
from kreassign.pipeline.load.hours import DAY_S, HOUR_MS, HOURS_A_DAY
from kreassign.pipeline.load.latest_hours import LatestHours
from kreassign.pipeline.load.series import Floats, Ints, Mask

HOURS_A_WEEK = HOURS_A_DAY * DAYS_A_WEEK
WHOLE = 0.9
"""A day counts as whole when at least this part of it was measured."""
WINDOW_DAYS = 28
"""Days of history that the forecast rests on: four weeks show a rhythm of the week, and are still recent."""
_P95 = 0.95


def peaks(hours: LatestHours) -> dict[str, Floats]:
    """`peak_hour`, the busiest hour of the day (UTC) of each partition, and its mean, `peak_records_per_s`.

    Of hours in which something was measured. NaN unless each hour of the day was: who was not seen then may have been
    busier when nobody looked.
    """
    slot, count = hours.owner * HOURS_A_DAY + hours.hour_of_day(), len(hours) * HOURS_A_DAY
    seconds, records = (
        np.bincount(slot, hours[name], count).reshape(-1, HOURS_A_DAY) for name in ("seconds", "new_records")
    )
    is_seen = (seconds > 0).all(axis=1)
    rate = np.divide(records, seconds, out=np.zeros(seconds.shape), where=seconds > 0)
    # Of equally busy ones the last.
    hour = HOURS_A_DAY - 1 - np.argmax(rate[:, ::-1], axis=1)
    return {
        "peak_hour": np.where(is_seen, hour, np.nan),
        "peak_records_per_s": np.where(is_seen, rate.max(axis=1), np.nan),
    }


def trends(hours: LatestHours, window_days: int = WINDOW_DAYS) -> dict[str, Floats | Ints | Mask]:
    """What the last days say of each partition, of hours in which something was measured; see `fits.py`.

    Columns of table `load_model`, but that the level, `recent_records_per_s`, is in records per second.
    """
    age_hours = ((hours.largest(hours["hour_ms"])[hours.owner] - hours["hour_ms"]) // HOUR_MS).astype(np.int64)
    rates, sizes = _days(hours, age_hours, window_days)
    found, of_sizes, tested = fit(rates), size_fit(sizes), backtest(rates)
    is_recent = age_hours < min(HOURS_A_WEEK, window_days * HOURS_A_DAY)
    records, seconds = (hours.sums(np.where(is_recent, hours[name], 0.0)) for name in ("new_records", "seconds"))
    week_peak, week_p95 = _ratios(hours, age_hours, is_recent, found)
    return {
        "day_count": found.days,
        # What was never measured for a whole day has the mean of all that there is.
        "recent_records_per_s": np.where(np.isnan(found.level), records / seconds, found.level),
        "growth_per_day": found.growth,
        "growth_error_per_day": found.error,
        "has_trend": found.has_trend,
        "week_spread": found.spread,
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
    """The busiest hour of the last week, and the 95th percentile of its hours, over their mean, without the trend.

    NaN with less than a day of hours, or when nothing was written.
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
