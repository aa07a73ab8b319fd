"""Max-min fair sharing: what each flow gets when many flows share many capacities, by progressive filling.

All rates rise together until a capacity is used up; the flows through it stop there, the others go on rising. The
result is the only division in which no flow can get more without taking from one that has no more than it.

Rather than one capacity at a time, each round settles every capacity that none of its flows could find scarcer
elsewhere. Filling one by one would settle them later at the same rate, for settling others first never lowers what a
capacity can offer. Hundreds of steps become a handful of rounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Shares that differ by no more than rounding are settled together: each would otherwise cost a round of its own.
_TIED = 1.0 + 1e-12


def max_min_rates(
    capacities: NDArray[np.float64], uses: NDArray[np.int64], limits: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The rate of each flow, in the unit of the capacities.

    `capacities` has shape (capacities,); none is negative, infinity is one that never binds. `uses` has shape
    (flows, most capacities of a flow): indices into `capacities`, each row filled up with -1. `limits`, shape
    (flows,), is what a flow wants at most. A flow without any finite capacity or limit has an infinite rate.
    """
    if uses.shape[0] == 0:
        return np.zeros(0)
    wanted = np.full(uses.shape[0], np.inf) if limits is None else limits
    capacities = np.append(capacities, np.inf)
    uses = np.where(uses < 0, capacities.size - 1, uses)
    most = np.minimum(capacities[uses].min(axis=1), wanted)
    return _fill(*_scarce(capacities, uses, most), most)


def _scarce(
    capacities: NDArray[np.float64], uses: NDArray[np.int64], most: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Only the capacities that cannot bear the most that all their flows could ever have, and who uses those."""
    scarce = _totals(uses, most, capacities.size) > capacities
    # The last of the capacities that remain stands for all that bind nobody.
    renumbered = np.where(scarce, np.cumsum(scarce) - 1, np.count_nonzero(scarce))[uses]
    binding_columns = scarce[uses].any(axis=0)
    return np.append(capacities[scarce], np.inf), renumbered[:, binding_columns]


def _fill(remaining: NDArray[np.float64], uses: NDArray[np.int64], most: NDArray[np.float64]) -> NDArray[np.float64]:
    rates = np.zeros(uses.shape[0])
    rising = np.arange(uses.shape[0])
    while rising.size:
        counts = np.bincount(uses.ravel(), minlength=remaining.size)
        offered = (remaining / np.maximum(counts, 1))[uses]
        rate = np.minimum(offered.min(axis=1, initial=np.inf), most)
        binding = offered <= rate[:, np.newaxis] * _TIED
        settled = np.bincount(uses.ravel(), weights=binding.ravel(), minlength=remaining.size) == counts
        stops = settled[uses].any(axis=1) | (rate >= most)
        rates[rising[stops]] = rate[stops]
        taken = _totals(uses[stops], np.where(np.isinf(rate[stops]), 0.0, rate[stops]), remaining.size)
        remaining = np.maximum(remaining - taken, 0.0)
        rising, uses, most = rising[~stops], uses[~stops], most[~stops]
    return rates


def _totals(uses: NDArray[np.int64], rates: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    totals = np.bincount(uses.ravel(), weights=np.repeat(rates, uses.shape[1]), minlength=size)
    return totals.astype(np.float64, copy=False)
