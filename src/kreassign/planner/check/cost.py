"""Cost of a plan: changed replicas and leaders, time of copying, bytes between racks.

Also its lower bounds: the fewest bytes that any plan copies, and the least time for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kreassign.errors import InputError
from kreassign.model.plan_facts import Prediction, RackBytes, RackPrices
from kreassign.model.text import counted
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray, pairs, sums
from kreassign.planner.goals import DISK
from kreassign.planner.problem.problem import Assignment, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes per partition (P), per replica of the assignment (A) or per present replica (S).

    `owners` (A) is the partition of each replica, `present` (A) its index among the present replicas, NOWHERE if its
    partition has none on that broker: such a replica is `added` and will be copied. `changes_dir` (A) marks replicas
    that stay on their broker but change log directory, `removed` (S) those that are deleted. `leader_changes` (P),
    `lists_differ` (P: list or order) and `differs` (P: a directory too) are per partition.
    """

    owners: IntArray
    present: IntArray
    changes_dir: BoolArray
    removed: BoolArray
    leader_changes: BoolArray
    lists_differ: BoolArray
    differs: BoolArray

    @property
    def added(self) -> BoolArray:
        """Replicas that are copied to their broker, shape (A,)."""
        result: BoolArray = self.present == NOWHERE
        return result


def changes_of(problem: Problem, assignment: Assignment) -> Changes:
    """Compare an assignment with the present replicas.

    Raises InputError if the assignment is of other partitions, leaves one without replicas, or names an unknown broker
    or log directory.
    """
    _check_shape(problem, assignment)
    now, owners = problem.partitions, assignment.owners
    present = _places(problem, owners, assignment.replicas)
    stays = present != NOWHERE
    other_dir = (assignment.log_dirs != NOWHERE) & (assignment.log_dirs != now.log_dirs[present])
    changes_dir = stays & other_dir
    removed = np.ones(len(now.replicas), bool)
    removed[present[stays]] = False
    place = np.arange(len(owners)) - assignment.offsets[owners]
    lists_differ = np.diff(assignment.offsets) != now.factors
    lists_differ[owners[~stays | (present - now.offsets[owners] != place)]] = True
    differs = lists_differ.copy()
    differs[owners[changes_dir]] = True
    leader_changes = assignment.replicas[assignment.offsets[:-1]] != now.replicas[now.offsets[:-1]]
    return Changes(owners, present, changes_dir, removed, leader_changes, lists_differ, differs)


def _places(problem: Problem, owners: IntArray, replicas: IntArray) -> IntArray:
    """Index of each (partition, broker) among the present replicas; NOWHERE if absent."""
    brokers, now = len(problem.brokers), problem.partitions
    known = pairs(now.owners, now.replicas, brokers)
    order = np.argsort(known)
    wanted = pairs(owners, replicas, brokers)
    found = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    places = order[found]
    return np.where(known[places] == wanted, places, NOWHERE).astype(np.int64)


def _check_shape(problem: Problem, assignment: Assignment) -> None:
    lengths = np.diff(assignment.offsets)
    if len(lengths) != len(problem.partitions):
        raise InputError(
            f"an assignment of {counted(len(lengths), 'partition')} is not one of these {len(problem.partitions)}"
        )
    if (lengths < 1).any():
        name = problem.partitions.name(int(np.argmax(lengths < 1)))
        raise InputError(f"the assignment leaves partition {name} without replicas")
    for what, places, known in (
        ("broker", assignment.replicas, len(problem.brokers)),
        ("log directory", assignment.log_dirs, len(problem.log_dirs or ())),
    ):
        lowest = 0 if what == "broker" else NOWHERE
        if len(places) != assignment.offsets[-1] or (places < lowest).any() or (places >= known).any():
            raise InputError(f"the assignment names a {what} that is not there, or not one per replica")


def predict(problem: Problem, assignment: Assignment, rate_bytes_per_s: float) -> Prediction:
    """Predict the time of a plan: that of the busiest broker, or of the longest single copy.

    A copy of s bytes of a partition written at w bytes/s takes s/(r-w) seconds at a rate of r, because it has to
    catch up; it never completes if r <= w. A new replica copies from the present leader, so it occupies its own
    broker's incoming rate and the leader's outgoing rate for that time. The rate is that of the throttle, or of the
    hardware.
    """
    if not rate_bytes_per_s > 0:
        raise InputError(f"a rate of {rate_bytes_per_s} bytes/s copies nothing; specify one above 0")
    seconds = copy_seconds(problem, assignment, rate_bytes_per_s)
    changes, count = changes_of(problem, assignment), len(problem.brokers)
    added = changes.added
    into = np.bincount(assignment.replicas[added], seconds, count)
    out = np.bincount(problem.present_leaders[changes.owners[added]], seconds, count)
    longest = float(seconds.max(initial=0.0))
    return Prediction(rate_bytes_per_s, max(float(into.max()), float(out.max())), longest)


def copy_seconds(problem: Problem, assignment: Assignment, rate_bytes_per_s: float) -> FloatArray:
    """Seconds that each added replica takes alone, in the order of the assignment; infinite if it never catches up."""
    changes, now = changes_of(problem, assignment), problem.partitions
    owners = changes.owners[changes.added]
    left = rate_bytes_per_s - now.write_bytes_per_s[owners]
    seconds = np.divide(now.size_bytes[owners], left, out=np.full(len(owners), np.inf), where=left > 0)
    return np.where(now.size_bytes[owners] == 0, 0.0, seconds)


# Bytes from rack to rack: a new replica fetches from the present leader of its partition.
#
# Kafka's followers always fetch from the leader; only consumers may fetch from followers (KIP-392).


def rack_bytes(problem: Problem, assignment: Assignment, prices: RackPrices) -> tuple[RackBytes, ...]:
    """Bytes copied between each pair of racks, also within one, with their price; by name, unknown racks last.

    Empty if nothing is copied, or no rack is known.
    """
    if not problem.brokers.rack_names:
        return ()
    changes, now = changes_of(problem, assignment), problem.partitions
    owners = changes.owners[changes.added]
    sources = problem.brokers.racks[problem.present_leaders[owners]]
    targets = problem.brokers.racks[assignment.replicas[changes.added]]
    found = []
    for source, target in sorted(set(zip(sources.tolist(), targets.tolist(), strict=True))):
        chosen = (sources == source) & (targets == target)
        amount = int(now.size_bytes[owners[chosen]].sum())
        names = tuple(None if rack == NOWHERE else problem.brokers.rack_names[rack] for rack in (source, target))
        found.append(RackBytes(names[0], names[1], amount, prices.cost(names[0], names[1], amount)))
    return tuple(
        sorted(found, key=lambda one: (one.source is None, one.source or "", one.target is None, one.target or ""))
    )


# Bounds: the least bytes that any plan copies, and the least time.


@dataclass(frozen=True, slots=True)
class BytesBound:
    """Lower bound of the bytes that a legal plan copies to bring all brokers into their bands.

    `forced` counts replicas that must be created regardless of bands: for drains, dead brokers, higher factors and
    racks to be repaired. `excess` is what the brokers cannot keep, `lack` what brokers below their disk band need.
    Each is a bound alone; `total` is the largest.
    """

    forced: int
    excess: int
    lack: int

    @property
    def total(self) -> int:
        """The largest of the three bounds, in bytes."""
        return max(self.forced, self.excess, self.lack)

    @property
    def binding(self) -> str:
        """Name of the largest of the three bounds; empty if nothing must be copied."""
        parts = {"forced": self.forced, "excess": self.excess, "lack": self.lack}
        return next((name for name, part in parts.items() if part and part == self.total), "")


def bytes_bound(problem: Problem, *, leaders_stay: bool = False) -> BytesBound:
    """Compute the bound for a problem; about a second for a million replicas.

    A plan copies the bytes of all wanted replicas less what the brokers keep. A broker keeps at most what it has less
    what it must shed; per goal that is a fractional knapsack: the fewest bytes whose load is the excess over the band
    (Dantzig's bound). A replica counts with the load of its lighter role, because leader changes copy no bytes. With
    `leaders_stay` it is the bound for plans in which replicas that stay keep their role.
    """
    problem = _demanded(problem)
    partitions, staying = problem.partitions, problem.brokers.staying
    sizes = _sizes(problem)
    held = sums(partitions.replicas, sizes, len(problem.brokers))
    kept = np.where(staying, held - _shed(problem, sizes, leaders_stay=leaders_stay), 0.0)
    # A partition that may not move, or cannot be copied, keeps its factor, whatever is wanted.
    usable = np.bincount(partitions.owners, staying[partitions.replicas] & ~partitions.is_lost, len(partitions))
    changeable = partitions.within_reach(problem.brokers.is_live) & partitions.may_move
    wanted = float((partitions.size_bytes * np.where(changeable, partitions.wanted_factors, usable)).sum())
    return BytesBound(
        forced=int((forced_copies(problem) * partitions.size_bytes).sum()),
        excess=max(0, int(wanted - kept.sum())),
        lack=int(_lacks(problem, held).sum()),
    )


def least_seconds(problem: Problem, rate_bytes_per_s: float) -> float:
    """Seconds that any such plan needs if no broker receives faster than the rate.

    The broker that lacks most has to receive that much, and all forced copies have to arrive somewhere.
    """
    if not rate_bytes_per_s > 0:
        raise InputError(f"a rate of {rate_bytes_per_s} bytes/s copies nothing; specify one above 0")
    problem = _demanded(problem)
    held = sums(problem.partitions.replicas, _sizes(problem), len(problem.brokers))
    spread = bytes_bound(problem).total / max(1, int(problem.brokers.receiving.sum()))
    return max(float(_lacks(problem, held).max()), spread) / rate_bytes_per_s


def _demanded(problem: Problem) -> Problem:
    """Drop the bands if they may not cause copies."""
    return replace(problem, bands=()) if problem.rules.only_forced else problem


def _sizes(problem: Problem) -> FloatArray:
    """Bytes of each present replica, (S,); 0 for lost ones."""
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
    """Number of replicas of each partition that must be copied whatever the plan, (P,)."""
    partitions, rules = problem.partitions, problem.rules
    usable = ~problem.leaving
    if rules.repair_sets:
        usable &= ~problem.strays
    if rules.repair_racks:
        count, limits = len(problem.brokers), problem.rack_limits
        racks = np.unique(problem.rack_of_broker, return_inverse=True)[1]
        held = pairs(partitions.owners[usable], racks[partitions.replicas[usable]], count)
        crowded, counts = np.unique(held, return_counts=True)
        owners = crowded // count
        kept = np.bincount(owners, np.minimum(counts, limits.most[owners] - 1), len(partitions))
        kept += np.minimum(np.bincount(owners[counts >= limits.most[owners]], minlength=len(kept)), limits.full)
    else:
        kept = np.bincount(partitions.owners, usable, len(partitions))
    changeable = partitions.within_reach(problem.brokers.is_live) & partitions.may_move
    missing: FloatArray = np.where(changeable, np.maximum(partitions.wanted_factors - kept, 0.0), 0.0)
    return missing


def _shed(problem: Problem, sizes: FloatArray, *, leaders_stay: bool) -> FloatArray:
    """Least bytes that each broker must give away, (N,), by its most demanding goal."""
    partitions, limits = problem.partitions, problem.limits
    most = np.zeros(len(problem.brokers))
    for column, band in enumerate(problem.bands):
        leading, following = band.goal.leader(partitions), band.goal.follower(partitions)
        lighter = (following if leaders_stay else np.minimum(leading, following))[partitions.owners]
        if leaders_stay:
            lighter[partitions.offsets[:-1]] = leading
        # A lost copy has no bytes, so it is shed first and its load goes with it.
        load = np.bincount(partitions.replicas, lighter, len(problem.brokers))
        excess = np.maximum(load - limits.high[:, column], 0.0)
        over = excess > 0
        chosen = np.flatnonzero(over[partitions.replicas] & (lighter > 0))
        places = partitions.replicas[chosen]
        np.maximum(most, _knapsacks(places, sizes[chosen], lighter[chosen], excess), out=most)
    return most


def _knapsacks(places: IntArray, sizes: FloatArray, loads: FloatArray, excess: FloatArray) -> FloatArray:
    """Fewest bytes per broker, counting the last replica in part, whose load is the broker's excess."""
    order = np.lexsort((sizes / loads, places))
    places, sizes, loads = places[order], sizes[order], loads[order]
    running = np.concatenate(([0.0], np.cumsum(loads)))[:-1]
    before = running - running[np.searchsorted(places, places)]
    part = np.clip((excess[places] - before) / loads, 0.0, 1.0)
    return sums(places, part * sizes, len(excess))
