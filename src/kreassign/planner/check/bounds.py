"""The least that any plan would have to copy, and the least time that it would take."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.arrays import FloatArray, IntArray, pairs, sums
from kreassign.planner.goals import DISK
from kreassign.planner.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class BytesBound:
    """Bytes that every plan must copy which meets the rules and brings all brokers into all bands it is to.

    `forced` counts replicas that have to be made whatever the bands say: for drains, dead brokers, higher factors and
    racks to be repaired. `excess` is what the brokers cannot keep, `lack` what those below their band of disk miss.
    Each is a bound alone; `total` is the largest.
    """

    forced: int
    excess: int
    lack: int

    @property
    def total(self) -> int:
        """The bound."""
        return max(self.forced, self.excess, self.lack)

    @property
    def binding(self) -> str:
        """Which of the three it is; empty where nothing must be copied."""
        parts = {"forced": self.forced, "excess": self.excess, "lack": self.lack}
        return next((name for name, part in parts.items() if part and part == self.total), "")

    def gap(self, moved_bytes: int) -> float | None:
        """By which part a plan copies more than the bound; None where nothing must be copied.

        Negative only for plans that leave a band missed or something undone.
        """
        return moved_bytes / self.total - 1 if self.total else None


def bytes_bound(problem: Problem, *, leaders_stay: bool = False) -> BytesBound:
    """The bound for a problem; a second for a million replicas.

    What a plan copies is the bytes of all wanted replicas less what the brokers keep. A broker keeps at most what it
    has less what it must shed; per goal that is a fractional knapsack: the fewest bytes whose load is the excess over
    the band (Dantzig's bound). A replica counts with the load that it has in its lighter role, because changing
    leaders costs no bytes. With `leaders_stay` it is the bound for plans in which who stays keeps its role.
    """
    problem = _demanded(problem)
    partitions, staying = problem.partitions, problem.brokers.staying
    sizes = _sizes(problem)
    held = sums(partitions.replicas, sizes, len(problem.brokers))
    kept = np.where(staying, held - _shed(problem, sizes, leaders_stay=leaders_stay), 0.0)
    # What may not move, or cannot be copied, has what it has, whatever is wanted of it.
    usable = np.bincount(partitions.owners, staying[partitions.replicas] & ~partitions.is_lost, len(partitions))
    changeable = partitions.within_reach(problem.brokers.is_live) & partitions.may_move
    wanted = float((partitions.size_bytes * np.where(changeable, partitions.wanted_factors, usable)).sum())
    return BytesBound(
        forced=int((forced_copies(problem) * partitions.size_bytes).sum()),
        excess=max(0, int(wanted - kept.sum())),
        lack=int(_lacks(problem, held).sum()),
    )


def least_seconds(problem: Problem, rate_bytes_per_s: float) -> float:
    """Seconds that every such plan needs when no broker receives faster than the rate.

    The broker that lacks most has to receive that much; and all that must be copied has to arrive somewhere.
    """
    if not rate_bytes_per_s > 0:
        raise InputError(f"a rate of {rate_bytes_per_s} bytes/s copies nothing; specify one above 0")
    problem = _demanded(problem)
    held = sums(problem.partitions.replicas, _sizes(problem), len(problem.brokers))
    spread = bytes_bound(problem).total / max(1, int(problem.brokers.receiving.sum()))
    return max(float(_lacks(problem, held).max()), spread) / rate_bytes_per_s


def _demanded(problem: Problem) -> Problem:
    """Without the bands where no byte is to be copied for them."""
    return replace(problem, bands=()) if problem.rules.only_forced else problem


def _sizes(problem: Problem) -> FloatArray:
    """Bytes of each present replica, (S,): of one that is lost there are none."""
    partitions = problem.partitions
    sizes: FloatArray = np.where(partitions.is_lost, 0.0, partitions.size_bytes[partitions.owners])
    return sizes


def _lacks(problem: Problem, held: FloatArray) -> FloatArray:
    names = [band.goal.name for band in problem.bands]
    if DISK.name not in names:
        return np.zeros(len(held))
    low = problem.limits.low[:, names.index(DISK.name)]
    result: FloatArray = np.where(problem.brokers.receiving, np.maximum(low - held, 0.0), 0.0)
    return result


def forced_copies(problem: Problem) -> FloatArray:
    """How many replicas of each partition no present one can serve as, (P,): what the task forces at least."""
    partitions, rules = problem.partitions, problem.rules
    usable = problem.brokers.staying[partitions.replicas] & ~partitions.is_lost
    if rules.repair_racks:
        count, limits = len(problem.brokers), problem.rack_limits
        racks = np.unique(problem.rack_of_broker, return_inverse=True)[1]
        held = pairs(partitions.owners[usable], racks[partitions.replicas[usable]], count)
        crowded, counts = np.unique(held, return_counts=True)
        owners = crowded // count
        kept = np.bincount(owners, np.minimum(counts, limits[owners]), len(partitions))
    else:
        kept = np.bincount(partitions.owners, usable, len(partitions))
    changeable = partitions.within_reach(problem.brokers.is_live) & partitions.may_move
    missing: FloatArray = np.where(changeable, np.maximum(partitions.wanted_factors - kept, 0.0), 0.0)
    return missing


def _shed(problem: Problem, sizes: FloatArray, *, leaders_stay: bool) -> FloatArray:
    """Bytes that each broker must at least give away, by the most demanding goal."""
    partitions, limits = problem.partitions, problem.limits
    most = np.zeros(len(problem.brokers))
    for column, band in enumerate(problem.bands):
        leading, following = band.goal.leader(partitions), band.goal.follower(partitions)
        lighter = (following if leaders_stay else np.minimum(leading, following))[partitions.owners]
        if leaders_stay:
            lighter[partitions.offsets[:-1]] = leading
        # A copy that is lost has no bytes, so that it goes before any other and takes its load along.
        load = np.bincount(partitions.replicas, lighter, len(problem.brokers))
        excess = np.maximum(load - limits.high[:, column], 0.0)
        over = excess > 0
        chosen = np.flatnonzero(over[partitions.replicas] & (lighter > 0))
        places = partitions.replicas[chosen]
        np.maximum(most, _knapsacks(places, sizes[chosen], lighter[chosen], excess), out=most)
    return most


def _knapsacks(places: IntArray, sizes: FloatArray, loads: FloatArray, excess: FloatArray) -> FloatArray:
    """Per broker, the fewest bytes of its replicas, the last one in part, that bring as much load as its excess."""
    order = np.lexsort((sizes / loads, places))
    places, sizes, loads = places[order], sizes[order], loads[order]
    running = np.concatenate(([0.0], np.cumsum(loads)))[:-1]
    before = running - running[np.searchsorted(places, places)]
    part = np.clip((excess[places] - before) / loads, 0.0, 1.0)
    return sums(places, part * sizes, len(excess))
