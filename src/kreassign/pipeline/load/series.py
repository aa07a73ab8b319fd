"""PURE. Arrays of the samples of many partitions: one partition after the other, each in the order of time.

What a sample is compared with are its neighbours in the array, as long as they are of the same partition. A figure that
is not known is NaN, which is in no comparison true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Series:
    """Where partitions begin and end: for each sample the place of the first one of its partition, and after the last.

    `starts` is where each partition begins, in order.
    """

    begin: Ints
    end: Ints
    starts: Ints

    @classmethod
    def of(cls, numbers: Ints) -> Series:
        """Of the number of its partition for each sample; those of one partition are together."""
        starts = np.flatnonzero(run_starts(numbers))
        lengths = np.diff(starts, append=len(numbers))
        return cls(np.repeat(starts, lengths), np.repeat(starts + lengths, lengths), starts)

    def only(self, chosen: Mask) -> Series:
        """The series of the samples that are chosen."""
        return Series.of(self.begin[chosen])

    def before(self, values: Floats, place: int = 1) -> Floats:
        """For each sample the value of the one that is so many places before it; NaN where there is none."""
        found = np.arange(len(values)) - place
        return np.where(found >= self.begin, values[np.maximum(found, 0)], np.nan)

    def after(self, values: Floats, place: int = 1) -> Floats:
        """For each sample the value of the one that is so many places after it; NaN where there is none."""
        return self._at(np.arange(len(values)) + place, values)

    def after_among(self, chosen: Mask, values: Floats, place: int = 1) -> Floats:
        """For each sample, of the chosen ones after it, the value of the first, second, … one."""
        places = np.append(np.flatnonzero(chosen), len(values))
        return self._at(places[np.minimum(np.cumsum(chosen) + (place - 1), len(places) - 1)], values)

    def _at(self, places: Ints, values: Floats) -> Floats:
        """For each sample the value at a place that is not before it; NaN where that is of another partition."""
        return np.where(places < self.end, values[np.minimum(places, len(values) - 1)], np.nan)

    def sum_so_far(self, values: Ints) -> Ints:
        """The sum of a partition's values up to each sample, with its own."""
        total = np.cumsum(values)
        return total - (total - values)[self.begin]

    def largest_so_far(self, values: Ints) -> Ints:
        """The largest of a partition's values up to each sample, with its own. Values are from 0 to 2^31."""
        # Each partition is above all before it, so that one maximum over all begins with each.
        level = np.cumsum(np.arange(len(values)) == self.begin) << 32
        so_far: Ints = np.maximum.accumulate(values + level)
        return so_far - level

    def largest(self, values: Floats) -> Floats:
        """For each sample the largest known value of its partition; NaN where none is known."""
        return self._spread(np.fmax.reduceat(values, self.starts))

    def least(self, values: Floats) -> Floats:
        """For each sample the least known value of its partition; NaN where none is known."""
        return self._spread(np.fmin.reduceat(values, self.starts))

    def _spread(self, of_partitions: Floats) -> Floats:
        return np.repeat(of_partitions, np.diff(self.starts, append=len(self.begin)))


def run_starts(*keys: Ints | Floats | Mask) -> Mask:
    """Whether a run of equal keys begins at each place."""
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[:1] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    return starts


def known_at(chosen: Mask, values: Floats) -> Floats:
    """Values of the chosen ones, put at their places; NaN at the others."""
    placed = np.full(len(chosen), np.nan)
    placed[chosen] = values
    return placed
