"""PURE. Arrow → arrays. The hours of partitions since their logs last restarted: one partition after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kreassign.pipeline.load.columns import floats, key_numbers
from kreassign.pipeline.load.histograms import Histograms, shifts
from kreassign.pipeline.load.hours import HOUR_MS, HOURS_A_DAY
from kreassign.pipeline.load.rates import PARTITION_KEY
from kreassign.pipeline.load.series import Floats, Ints, Mask, run_starts

LISTS = ("rate_bins", "rate_counts")
FIGURES = (
    "hour_ms", "seconds", "good_seconds", "squared_seconds", "good_records", "rate_sum", "new_records",
    "sized_records", "new_bytes", "mean_size_bytes", "sample_count", "odd_count", "first_ms", "last_ms",
    "last_start_offset", "last_end_offset", "last_size_bytes",
)  # fmt: skip
"""Columns of table `load_hours` that become arrays of doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class LatestHours:
    """Hours in the order of their partitions, and of time.

    `owner` is the number of each hour's partition, from 0 on; `starts` is where each begins.
    """

    rows: pa.Table
    owner: Ints
    starts: Ints
    figures: Mapping[str, Floats]

    @classmethod
    def of(cls, rows: pa.Table) -> LatestHours:
        """Of rows of table `load_hours`: those of the last epoch of each partition that have samples."""
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
        """A column of seconds in whole milliseconds, whose sum is exact."""
        return np.floor(self.figures[seconds] * 1000 + 0.5)

    def hour_of_day(self) -> Ints:
        """The hour of the day (UTC) of each hour."""
        return (self.figures["hour_ms"] // HOUR_MS % HOURS_A_DAY).astype(np.int64)

    def sums(self, values: Floats) -> Floats:
        """By partition; what is not known counts as 0."""
        return self._reduced(np.add, np.nan_to_num(values))

    def least(self, values: Floats) -> Floats:
        """By partition; NaN where none is known."""
        return self._reduced(np.fmin, values)

    def largest(self, values: Floats) -> Floats:
        """By partition; NaN where none is known."""
        return self._reduced(np.fmax, values)

    def last(self, values: Floats) -> Floats:
        """The value of the hour in which the last sample of each partition was taken; NaN where none was."""
        place = self._reduced(np.fmax, np.where(np.isnan(self.figures["last_ms"]), np.nan, np.arange(len(values))))
        return np.where(np.isnan(place), np.nan, values[np.nan_to_num(place).astype(np.int64)])

    def _reduced(self, by: np.ufunc, values: Floats) -> Floats:
        return by.reduceat(values, self.starts) if len(self.starts) else values[:0]

    def only(self, chosen: Mask) -> LatestHours:
        """Some of the hours; partitions that have none of them are not among those."""
        return self._ordered(self.rows.filter(pa.array(chosen)), self.owner[chosen])

    def interval_counts(self) -> Ints:
        """How many intervals there are rates of, by partition."""
        counts = self.rows["rate_counts"].combine_chunks()
        return np.bincount(self._entry_owners(), counts.flatten().to_numpy(), len(self)).astype(np.int64)

    def histograms(self) -> Histograms:
        """The rates of the intervals outside gaps, of all hours together.

        Rates are those of records of the mean size of the partition: records of an hour in which they are twice as
        large as usual count twice.
        """
        lists = self.rows["rate_bins"].combine_chunks()
        lengths = pc.list_value_length(lists).to_numpy()
        bins = lists.flatten().to_numpy() + np.repeat(shifts(self._larger()), lengths)
        counts = self.rows["rate_counts"].combine_chunks().flatten().to_numpy().astype(np.int64)
        return Histograms.of(len(self), self._entry_owners(), bins, counts)

    def _entry_owners(self) -> Ints:
        lengths = pc.list_value_length(self.rows["rate_counts"].combine_chunks()).to_numpy()
        return np.repeat(self.owner, lengths)

    def _larger(self) -> Floats:
        """By what factor the records of each hour are larger than those of its partition; NaN where it is not known."""
        new_bytes, sized = self.figures["new_bytes"], self.figures["sized_records"]
        with np.errstate(all="ignore"):
            usual = self.sums(new_bytes) / self.sums(sized)
            return new_bytes / sized / usual[self.owner]
