"""Find the range of a cluster's total from what its partitions may do together and each by itself.

Partitions that vary independently cancel out in their total; those of one source do not. So the total is drawn:

    error of partition p = deviation of p * (sqrt(r) * Z + sqrt(1 - r) * E of p)

Z, the same for all, and each E are Student's t with six degrees of freedom, as in the ranges of partitions. r is the
share of the variance that partitions have in common: it is seen in how they changed from week to week on the same
days. With v(x) the mean square of x over these days, and c the change of a partition in bytes per second,

    r = (v(sum of c) - sum of v(c)) / ((sum of sqrt(v(c)))^2 - sum of v(c)), from 0 to 1

Where no changes are known, r is 1: they may all err to the same side. Whether growth ends or goes on is not drawn: the
low end has all partitions at the least of what is likely, the high end at the largest, before errors.

Errors are of mean 1, because a forecast is a mean. Pure.
"""

from __future__ import annotations

import math

import numpy as np

from kreassign.pipeline.load.rates import Floats

_DRAWS, _SEED = 2000, 32
_GROUPS = 1000
"""Partitions that are drawn by themselves; of more, those with like deviations go together."""
_DEGREES = 6
_LOW, _HIGH = 0.025, 0.975


def common_share(amounts: Floats, changes: Floats) -> float:
    """Share of the variance that partitions have in common; 1 where it cannot be seen.

    `changes` have a row per partition and a column per day; times `amounts` they are in one unit.
    """
    moved = amounts[:, None] * changes
    own = (moved**2).mean(axis=1)
    most, apart = np.sqrt(own).sum() ** 2, own.sum()
    if most <= apart * (1 + 1e-9):
        return 1.0
    together = (moved.sum(axis=0) ** 2).mean()
    return float(np.clip((together - apart) / (most - apart), 0.0, 1.0))


def joint_margin(margins: Floats, share: Floats) -> float:
    """Margin of a sum from margins of its parts, of which each has a `share` of its variance in common."""
    return math.hypot((np.sqrt(share) * margins).sum(), math.sqrt(((1 - share) * margins**2).sum()))


def joint_range(least: Floats, largest: Floats, deviation: Floats, share: Floats, most: float) -> tuple[float, float]:
    """95 % range of the sum of rates that are known from `least` to `largest` up to a factor.

    `deviation` is that of the factor's logarithm, which is at most `most`.
    """
    least, largest, deviation, share = _grouped(least, largest, deviation, share)
    chance = np.random.default_rng(_SEED)
    common = chance.standard_t(_DEGREES, (_DRAWS, 1))
    errors = np.sqrt(share) * common + np.sqrt(1 - share) * chance.standard_t(_DEGREES, (_DRAWS, len(share)))
    factors = np.exp(np.clip(deviation * errors, -most, most))
    factors /= factors.mean(axis=0)
    return float(np.quantile(factors @ least, _LOW)), float(np.quantile(factors @ largest, _HIGH))


def _grouped(least: Floats, largest: Floats, deviation: Floats, share: Floats) -> tuple[Floats, ...]:
    """Sums of amounts, and means of the others, by groups of like share and deviation."""
    order = np.lexsort((deviation, share))
    begins = np.unique(np.arange(_GROUPS) * len(order) // _GROUPS) if len(order) else order
    counts = np.diff(np.append(begins, len(order)))
    sums = (np.add.reduceat(each[order], begins) if len(order) else each for each in (least, largest, deviation, share))
    low, high, deviations, shares = sums
    return low, high, deviations / counts, shares / counts
