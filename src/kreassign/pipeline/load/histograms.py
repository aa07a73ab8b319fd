"""PURE. Arrays. Histograms of rates whose quantiles have a known error, and that can be added up: DDSketch.

A rate r > 0 falls into bin i = ceil(ln r / ln γ), which holds the rates from γ^(i-1) to γ^i, and is read as
2 γ^i / (γ + 1). With γ = (1 + α) / (1 - α) that is never off by more than the share α of the rate, whatever rates
there are. So is every quantile that is read from the bins; and bins of two histograms are added. (Masson, Rim and Lee:
DDSketch, a fast and fully-mergeable quantile sketch with relative-error guarantees, VLDB 2019.)

A factor is a shift of the bins, exact to half a bin: see `shifts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kreassign.pipeline.load.series import Floats, Ints, run_starts

ERROR = 0.005
"""Half of a percent: the largest share by which a quantile can be off."""
_GAMMA = (1 + ERROR) / (1 - ERROR)
_LN_GAMMA = math.log(_GAMMA)
ZERO_BIN = -1_000_000
"""The bin of the rate 0, below that of every other double (the least is 5e-324, bin -74 000), also when shifted."""
_LARGEST_OF_ZERO = ZERO_BIN // 2
_BIN_BITS, _LARGEST_BIN = 32, 2**31


def bins_of(rates: Floats) -> Ints:
    """The bins of rates that are known and not negative."""
    with np.errstate(divide="ignore"):
        found = np.ceil(np.log(rates) / _LN_GAMMA)
    return np.where(rates > 0, found, ZERO_BIN).astype(np.int64)


def shifts(factors: Floats) -> Ints:
    """By how many bins rates move when they are multiplied by these; 0 where one is not positive or not a number."""
    with np.errstate(all="ignore"):
        moved = np.rint(np.log(factors) / _LN_GAMMA)
    return np.where(np.isfinite(moved), moved, 0).astype(np.int64)


def counted(owners: Ints, bins: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Each bin of each owner once, by owner and bin: owners, bins, and the sums of their counts.

    Owners are numbers from 0 to 2^31.
    """
    # One number of both, which is in the order of the owners and in each of the bins.
    both = (owners << _BIN_BITS) + bins + _LARGEST_BIN
    order = np.argsort(both)
    sorted_both = both[order]
    first = np.flatnonzero(run_starts(sorted_both))
    found = sorted_both[first]
    sums = np.add.reduceat(counts[order], first) if len(first) else counts[:0]
    return found >> _BIN_BITS, (found & (2**_BIN_BITS - 1)) - _LARGEST_BIN, sums


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """One of each owner, who are numbered from 0 on: the bins of the first in their order, then those of the next.

    `begins` are where the bins of each begin, and after the last the end of all; an owner without a rate has none.
    """

    begins: Ints
    bins: Ints
    counts: Ints

    @classmethod
    def of(cls, owner_count: int, owners: Ints, bins: Ints, counts: Ints) -> Histograms:
        """Of entries in any order, which are added up."""
        owners, bins, counts = counted(owners, bins, counts)
        return cls(np.searchsorted(owners, np.arange(owner_count + 1)), bins, counts)

    def quantile(self, share: Floats | float) -> Floats:
        """The values below which these shares of the rates of each owner are; NaN without a rate.

        It is the value of the entry at place share * (n - 1), counted from 0 and rounded, of all n in order.
        """
        first, end = self.begins[:-1], self.begins[1:]
        so_far = np.concatenate([[0], np.cumsum(self.counts)])
        total = so_far[end] - so_far[first]
        with np.errstate(invalid="ignore"):
            place = np.floor(share * (total - 1) + 0.5)
        # The first bin up to which more entries were seen than are before the place.
        found = np.searchsorted(so_far[1:], so_far[first] + np.nan_to_num(place), side="right")
        known = (total > 0) & ~np.isnan(place)
        return np.where(known, value_of(self.bins[np.where(known, found, 0)]) if len(self.bins) else np.nan, np.nan)


def value_of(bins: Ints) -> Floats:
    """The rates as which bins are read."""
    with np.errstate(over="ignore"):
        return np.where(bins < _LARGEST_OF_ZERO, 0.0, np.exp(bins * _LN_GAMMA) * (2 / (_GAMMA + 1)))
