"""Hours of partitions: what a load keeps for the next one, their histograms of rates, and how they become columns.

Pure: NumPy and Arrow. Executors load this module; nothing here may import deltalake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.model.text import HOUR_MS
from kreassign.pipeline.load.rates import (
    PARTITION_KEY,
    TWICE,
    Floats,
    IntervalVerdict,
    Ints,
    Mask,
    Rates,
    Samples,
    run_starts,
)
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.schemas import Table

# Mergeable histograms of rates with a known error of their quantiles: DDSketch.
#
# A rate r > 0 falls into bin i = ceil(ln r / ln γ), which holds the rates from γ^(i-1) to γ^i, and is read as
# 2γ^i/(γ+1). With γ = (1 + α) / (1 - α) that is off by at most the share α of the rate, for any rate. So is every
# quantile read from the bins; and bins of two histograms are added. (Masson, Rim and Lee: DDSketch, a fast and
# fully-mergeable quantile sketch with relative-error guarantees, VLDB 2019.)
#
# Multiplying by a factor shifts the bins, exact to half a bin: see `shifts`.

ERROR = 0.005
"""Largest relative error of a quantile: half a percent."""
_GAMMA = (1 + ERROR) / (1 - ERROR)
_LN_GAMMA = math.log(_GAMMA)
ZERO_BIN = -1_000_000
"""Bin of rate 0, below that of every other double (the least is 5e-324, bin -74 000), also when shifted."""
_LARGEST_OF_ZERO = ZERO_BIN // 2
_BIN_BITS, _LARGEST_BIN = 32, 2**31


def bins_of(rates: Floats) -> Ints:
    """Bins of rates, which must be known and not negative."""
    with np.errstate(divide="ignore"):
        found = np.ceil(np.log(rates) / _LN_GAMMA)
    return np.where(rates > 0, found, ZERO_BIN).astype(np.int64)


def shifts(factors: Floats) -> Ints:
    """Bins by which rates move when multiplied by these factors; 0 for factors that are not positive and finite."""
    with np.errstate(all="ignore"):
        moved = np.rint(np.log(factors) / _LN_GAMMA)
    return np.where(np.isfinite(moved), moved, 0).astype(np.int64)


def counted(owners: Ints, bins: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Add up the counts of equal owner and bin; returns owners, bins and sums, in order of owner and bin.

    Owners are numbers from 0 to 2^31.
    """
    # Pack both into a number that sorts by owner, then by bin.
    both = (owners << _BIN_BITS) + bins + _LARGEST_BIN
    order = np.argsort(both)
    sorted_both = both[order]
    first = np.flatnonzero(run_starts(sorted_both))
    found = sorted_both[first]
    sums = np.add.reduceat(counts[order], first) if len(first) else counts[:0]
    return found >> _BIN_BITS, (found & (2**_BIN_BITS - 1)) - _LARGEST_BIN, sums


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """One histogram per owner, numbered from 0; the bins of the first owner in order, then those of the next.

    `begins` has the start of each owner's bins, plus the end of all; owners without a rate have no bins.
    """

    begins: Ints
    bins: Ints
    counts: Ints

    @classmethod
    def of(cls, owner_count: int, owners: Ints, bins: Ints, counts: Ints) -> Histograms:
        """Add up entries in any order."""
        owners, bins, counts = counted(owners, bins, counts)
        return cls(np.searchsorted(owners, np.arange(owner_count + 1)), bins, counts)

    def quantile(self, share: Floats | float) -> Floats:
        """Quantiles of each owner's rates at these shares; NaN without a rate.

        The value is that of the entry at place share * (n - 1), counted from 0 and rounded, of all n in order.
        """
        first, end = self.begins[:-1], self.begins[1:]
        so_far = np.concatenate([[0], np.cumsum(self.counts)])
        total = so_far[end] - so_far[first]
        with np.errstate(invalid="ignore"):
            place = np.floor(share * (total - 1) + 0.5)
        # The first bin whose cumulative count exceeds the place.
        found = np.searchsorted(so_far[1:], so_far[first] + np.nan_to_num(place), side="right")
        known = (total > 0) & ~np.isnan(place)
        return np.where(known, value_of(self.bins[np.where(known, found, 0)]) if len(self.bins) else np.nan, np.nan)


def value_of(bins: Ints) -> Floats:
    """Representative rates of bins."""
    with np.errstate(over="ignore"):
        return np.where(bins < _LARGEST_OF_ZERO, 0.0, np.exp(bins * _LN_GAMMA) * (2 / (_GAMMA + 1)))


# What a load keeps for the next one: closed hours, and the samples after them, as arrays.
#
# An hour of a partition is closed once no sample that may still come can change it: samples less than
# `ALLOWED_LATENESS_MS` older than the latest of their partition. These samples, and those judged by them, are open:
# `_RIGHT` samples that count cover them, because a sample is judged by
#
#     the four intervals after it         is it a gap?
#     two clean samples after each end    does one that goes back or ahead come back? (second rules of `rates.py`)
#     three samples after each of them    the same, among all samples (first rules)
#
# So a load adds newly closed hours to the earlier ones, replaces the open ones, and leaves for the next load the
# samples of open hours, with the last ones before them as neighbours: three samples, one clean sample, and five that
# count (four intervals). In whatever portions samples come, and in any order within the allowed lateness, the hours are
# the same as if all had come at once: every figure is a sum of whole numbers, and histograms are counts.

HOURS_A_DAY = 24
DAY_S = 86_400.0
MICRO = 1_000_000
ALLOWED_LATENESS_MS = 2 * HOUR_MS
_RIGHT = 4 + 2 + 3
_LEFT_SAMPLES, _LEFT_COUNTING = 3, 5
_UNITS = 50
"""Steps of a size, told in MiB or so, of which an interval must have as many to weigh its records to a fiftieth."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Per sample: start of its partition's open hours (NaN without any), and whether its hour is open.

    `is_neighbour` marks samples of closed hours that open hours need.
    """

    open_from_ms: Floats
    is_open: Mask
    is_neighbour: Mask


def opened(samples: Samples, rates: Rates) -> Opened:
    """Decide which hours stay open."""
    series, taken_ms = samples.series, samples.taken_ms
    latest_ms = series.largest(np.where(rates.counts, taken_ms, np.nan))
    right_ms = series.after_among(rates.counts, taken_ms, _RIGHT)
    can_change = ~samples.is_closed & ~(right_ms < latest_ms - ALLOWED_LATENESS_MS)
    first_ms = series.least(np.where(can_change, taken_ms, np.nan))
    # Hours without a sample are open, too, as one may still come.
    begin_ms = np.floor(np.fmin(first_ms, latest_ms - ALLOWED_LATENESS_MS) / HOUR_MS) * HOUR_MS
    # Never earlier than before: if the latest sample turns out to be odd, closed samples would count twice.
    open_from_ms: Floats = np.fmax(begin_ms, series.largest(samples.open_from_before))

    def reaches(right_ms: Floats) -> Mask:
        return ~(right_ms < open_from_ms)

    is_open = taken_ms >= open_from_ms
    is_near = (
        reaches(series.after(taken_ms, _LEFT_SAMPLES))
        | (rates.is_clean & reaches(series.after_among(rates.is_clean, taken_ms)))
        | (rates.counts & reaches(series.after_among(rates.counts, taken_ms, _LEFT_COUNTING)))
    )
    return Opened(open_from_ms, is_open, ~is_open & is_near)


@dataclass(frozen=True, slots=True)
class Hours:
    """Sums over the samples of each hour of a partition's epoch.

    `figures` are by column name of table `load_hours`, in its units, with NaN for NULL; plus the number of new samples
    that count (`new_count`) or are duplicates (`new_twice_count`). `first` is the index of the hour's first sample,
    `last` of its last sample that counts, or -1. `rates` has a histogram per hour.
    """

    first: Ints
    last: Ints
    figures: Mapping[str, Floats | Ints]
    rates: Histograms


def hours(samples: Samples, rates: Rates, is_open: Mask, is_new: Mask) -> Hours | None:
    """Sum up the samples judged now by hour; None without any. An interval belongs to the hour in which it ends."""
    places = np.flatnonzero(~samples.is_closed)
    if not len(places):
        return None
    taken_ms, counts, verdict = samples.taken_ms[places], rates.counts[places], rates.verdict[places]
    hour = taken_ms // HOUR_MS
    begins = run_starts(samples.series.begin[places], rates.epoch[places], hour, is_open[places])
    first = np.flatnonzero(begins)
    seconds, new_records = rates.seconds[places], rates.new_records[places]
    is_good, has_grown = verdict == IntervalVerdict.GOOD, ~np.isnan(new_records)
    good_records = np.where(is_good, new_records, np.nan)
    # Sums of whole numbers do not depend on the order of rows.
    milliseconds = np.rint(seconds * 1000)
    good_ms = np.where(is_good, milliseconds, np.nan)
    with np.errstate(all="ignore"):
        rate = np.where(is_good & (seconds > 0), new_records / seconds, np.nan)
        size = np.where(counts, samples.size_bytes[places], np.nan)
        weighed = rate * _weights(rates.sized_records[places], rates.new_bytes[places], size, first)
        mean_size = _sums(size, first) / _sums(~np.isnan(size), first)
    last = np.maximum.reduceat(np.where(counts, np.arange(len(places)), -1), first)
    seen_ms = np.where(counts, taken_ms, np.nan)
    new = is_new[places]
    figures: dict[str, Floats | Ints] = {
        "hour_ms": hour[first] * HOUR_MS,
        "seconds": _sums(np.where(has_grown, milliseconds, np.nan), first) / 1000.0,
        "good_seconds": _sums(good_ms, first) / 1000.0,
        "squared_seconds": np.add.reduceat(np.nan_to_num(good_ms * good_ms), first) / 1_000_000.0,
        "good_records": _sums(good_records, first),
        "rate_sum": _sums(np.rint(rate * MICRO), first),
        "reversal_sum": _reversals(weighed, first),
        "new_records": _sums(new_records, first),
        "most_new_records": np.maximum.reduceat(np.nan_to_num(new_records), first),
        "sized_records": _sums(rates.sized_records[places], first),
        "new_bytes": _sums(rates.new_bytes[places], first),
        "contradicted_count": _sums(rates.contradicts[places], first),
        "mean_size_bytes": mean_size,
        "sample_count": _sums(counts, first),
        "odd_count": _sums(verdict == IntervalVerdict.ODD, first),
        "first_ms": np.fmin.reduceat(seen_ms, first),
        "last_ms": np.fmax.reduceat(seen_ms, first),
        "new_count": _sums(new & counts, first),
        "new_twice_count": _sums(new & (rates.reason[places] == TWICE), first),
    }
    known = ~np.isnan(weighed)
    bins = bins_of(weighed[known])
    histograms = Histograms.of(len(first), (np.cumsum(begins) - 1)[known], bins, np.ones_like(bins))
    return Hours(places[first], np.where(last >= 0, places[last], -1), figures, histograms)


def _weights(records: Floats, bytes_: Floats, sizes: Floats, first: Ints) -> Floats:
    """Weight of each interval's records over that of its hour; 1 where it is unknown, or sizes are rounded too much."""
    lengths = np.diff(first, append=len(records))
    unit = np.repeat(np.gcd.reduceat(np.nan_to_num(sizes).astype(np.int64), first), lengths)
    hour = np.repeat(_sums(bytes_, first) / _sums(records, first), lengths)
    # Rounded, so that records of one weight have 1.
    found = np.round(bytes_ / records / hour, 9)
    return np.where(np.isfinite(found) & (hour * records >= _UNITS * unit), found, 1.0)


def _reversals(rate: Floats, first: Ints) -> Ints:
    """How far the rates of each hour take each other back, in millionths: see `accuracy.py`."""
    lengths = np.diff(first, append=len(rate))

    def sums(values: Floats | Mask) -> Floats:
        return np.add.reduceat(np.nan_to_num(values), first).astype(np.float64)

    with np.errstate(all="ignore"):
        count = sums(~np.isnan(rate))
        deviation = rate / np.repeat(sums(rate) / count, lengths) - 1
        product = deviation * np.append(np.nan, deviation[:-1])
        product[first] = np.nan  # its neighbour is in another hour
        in_random_order = sums(~np.isnan(product)) * sums(deviation**2) / (count * (count - 1))
        reversals = np.rint(MICRO * (-sums(product) - in_random_order))
    return np.nan_to_num(reversals, posinf=0.0, neginf=0.0).astype(np.int64)


def _sums(values: Floats | Mask, first: Ints) -> Ints:
    """Sums of whole numbers over runs that start at `first`; NaN counts as 0."""
    whole = np.nan_to_num(values).astype(np.int64)
    return np.add.reduceat(whole, first)


# Convert Arrow columns to NumPy arrays and back.

Columns = Mapping[str, Floats | Ints | Mask | pa.Array | pa.ChunkedArray]
"""Columns of a table by name: NumPy arrays, in which NaN is NULL, or Arrow arrays."""


def key_numbers(table: pa.Table, names: Sequence[str]) -> Ints:
    """A number per row, equal for rows with equal values in these columns."""
    number = np.zeros(len(table), np.int64)
    for name in names:
        of_column = codes(table[name])
        number = number * (of_column.max(initial=0) + 1) + of_column
    return number


def codes(values: pa.ChunkedArray) -> Ints:
    """A code from 0 per value, equal for equal values; -1 for NULL."""
    codes = pc.dictionary_encode(values).combine_chunks()
    indices = codes.indices if isinstance(codes, pa.DictionaryArray) else codes.chunk(0).indices
    return np.asarray(indices.fill_null(-1)).astype(np.int64)


def floats(numbers: pa.ChunkedArray) -> Floats:
    """Numbers as doubles, exact for all values in good rows; NaN for NULL."""
    return np.asarray(numbers.to_numpy(), np.float64)


def mask(values: pa.ChunkedArray) -> Mask:
    """Boolean array; NULL is False."""
    return np.asarray(pc.fill_null(values, fill_value=False).to_numpy(), np.bool_)


def rows_of_columns(table: Table, columns: Columns) -> pa.RecordBatch:
    """Record batch with the schema of the table."""
    schema = arrow_schema(table)
    return pa.RecordBatch.from_arrays([column(columns[field.name], field.type) for field in schema], schema=schema)


def column(values: Floats | Ints | Mask | pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Arrow array of this type; NaN becomes NULL."""
    if isinstance(values, np.ndarray):
        return pc.cast(pa.array(values, from_pandas=True), kind)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


# Hours of partitions since their logs last restarted: partition after partition.

LISTS = ("rate_bins", "rate_counts")
FIGURES = (
    "hour_ms", "seconds", "good_seconds", "squared_seconds", "good_records", "rate_sum", "reversal_sum", "new_records",
    "sized_records", "new_bytes", "contradicted_count", "mean_size_bytes", "sample_count", "odd_count",
    "first_ms", "last_ms", "last_start_offset", "last_end_offset", "last_size_bytes",
)  # fmt: skip
"""Columns of table `load_hours` that become arrays of doubles."""
LEAST_OF_A_MIDDLE = 3


@dataclass(frozen=True, slots=True, eq=False)
class LatestHours:
    """Hours in order of partition and time.

    `owner` is the number of each hour's partition, from 0; `starts` has the index of each partition's first hour.
    """

    rows: pa.Table
    owner: Ints
    starts: Ints
    figures: Mapping[str, Floats]

    @classmethod
    def of(cls, rows: pa.Table) -> LatestHours:
        """Select rows of table `load_hours`: the last epoch of each partition, only hours with samples."""
        seen = rows.filter(pc.greater(rows["sample_count"], 0)).combine_chunks()
        epoch, number = floats(seen["epoch"]), key_numbers(seen, PARTITION_KEY)
        order = np.lexsort((floats(seen["hour_ms"]), epoch, number))
        epoch, number = epoch[order], number[order]
        starts = np.flatnonzero(run_starts(number))
        ends = np.append(starts[1:], len(number))
        is_latest = epoch == np.repeat(epoch[ends - 1], ends - starts) if len(starts) else np.zeros(0, np.bool_)
        return cls._ordered(seen.take(order[is_latest]), number[is_latest])

    @classmethod
    def _ordered(cls, rows: pa.Table, number: Ints) -> LatestHours:
        begins = run_starts(number)
        figures = {name: floats(rows[name]) for name in FIGURES}
        return cls(rows.combine_chunks(), np.cumsum(begins) - 1, np.flatnonzero(begins), figures)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, name: str) -> Floats:
        return self.figures[name]

    def milliseconds(self, seconds: str) -> Floats:
        """Seconds converted to whole milliseconds, whose sum is exact."""
        return np.floor(self.figures[seconds] * 1000 + 0.5)

    def hour_of_day(self) -> Ints:
        """Hour of the day (UTC), 0 to 23."""
        return (self.figures["hour_ms"] // HOUR_MS % HOURS_A_DAY).astype(np.int64)

    def sums(self, values: Floats) -> Floats:
        """Sums by partition; NaN counts as 0."""
        return self._reduced(np.add, np.nan_to_num(values))

    def least(self, values: Floats) -> Floats:
        """Minimum by partition; NaN if all are."""
        return self._reduced(np.fmin, values)

    def largest(self, values: Floats) -> Floats:
        """Maximum by partition; NaN if all are."""
        return self._reduced(np.fmax, values)

    def last(self, values: Floats) -> Floats:
        """Value at the hour of each partition's last sample; NaN without samples."""
        place = self._reduced(np.fmax, np.where(np.isnan(self.figures["last_ms"]), np.nan, np.arange(len(values))))
        return np.where(np.isnan(place), np.nan, values[np.nan_to_num(place).astype(np.int64)])

    def middle(self, values: Floats) -> Floats:
        """Median of the known values by partition, the lower of two; NaN with less than `LEAST_OF_A_MIDDLE`."""
        order = np.lexsort((values, self.owner))  # NaN last
        counts = self.sums(np.where(np.isnan(values), 0.0, 1.0)).astype(np.int64)
        places = self.starts + np.maximum(counts - 1, 0) // 2
        return np.where(counts >= LEAST_OF_A_MIDDLE, values[order][places], np.nan)

    def _reduced(self, by: np.ufunc, values: Floats) -> Floats:
        return by.reduceat(values, self.starts) if len(self.starts) else values[:0]

    def only(self, chosen: Mask) -> LatestHours:
        """Select hours; partitions without a selected hour are dropped."""
        return self._ordered(self.rows.filter(pa.array(chosen)), self.owner[chosen])

    def interval_counts(self) -> Ints:
        """Number of intervals with a rate, by hour."""
        counts, hour = self._rate_counts()
        return np.bincount(hour, counts, len(self.owner)).astype(np.int64)

    def histograms(self) -> Histograms:
        """Rates of the intervals outside gaps, over all hours; each hour counts with its measured milliseconds.

        So it does not matter that some hours have more rounds than others. Rates refer to records of the partition's
        mean size: in an interval with records twice that size, they count twice.
        """
        new_bytes, sized = self.figures["new_bytes"], self.figures["sized_records"]
        with np.errstate(all="ignore"):
            usual = self.sums(new_bytes) / self.sums(sized)
            larger = new_bytes / sized / usual[self.owner]
        lists = self.rows["rate_bins"].combine_chunks()
        lengths = pc.list_value_length(lists).to_numpy()
        bins = lists.flatten().to_numpy() + np.repeat(shifts(larger), lengths)
        counts, hour = self._rate_counts()
        mean_ms = self.milliseconds("good_seconds") / np.maximum(self.interval_counts(), 1)
        counts = counts * np.maximum(np.rint(mean_ms).astype(np.int64), 1)[hour]
        return Histograms.of(len(self), self.owner[hour], bins, counts)

    def _rate_counts(self) -> tuple[Ints, Ints]:
        """Counts of the bins of all hours, and the index of each count's hour."""
        lists = self.rows["rate_counts"].combine_chunks()
        lengths = pc.list_value_length(lists).to_numpy()
        return lists.flatten().to_numpy().astype(np.int64), np.repeat(np.arange(len(lengths)), lengths)
