"""Replicas that share a rack against the rule, counted from lists alone: the search counts for itself."""

from __future__ import annotations

import numpy as np

from kreassign.model.closures import Closure
from kreassign.planner.arrays import NOWHERE, BoolArray, IndexArray, IntArray, pairs
from kreassign.planner.problem.problem import Assignment, Problem, RackRule


def rack_excess(problem: Problem, assignment: Assignment) -> IntArray:
    """Number of replicas of each partition beyond the limits of its racks; shape (P,).

    A replica is also beyond them that makes a rack as full as fewer racks may be: another one lacks it.
    """
    excess = np.zeros_like(problem.partitions.wanted_factors)
    if problem.rules.racks is RackRule.NONE:
        return excess
    racks, count = _racks_of_brokers(problem), len(problem.brokers)
    key, held = np.unique(pairs(assignment.owners, racks[assignment.replicas], count), return_counts=True)
    partitions = key // count
    allowed, in_racks = _allowed_per_rack(problem, racks, problem.leaving | _left_drained_dir(problem, assignment))
    np.add.at(excess, partitions, np.maximum(0, held - allowed[partitions]))
    full = np.bincount(partitions[held >= allowed[partitions]], minlength=len(excess))
    excess += np.maximum(0, full - in_racks).astype(excess.dtype)
    return excess


def _racks_of_brokers(problem: Problem) -> IndexArray:
    """Consecutive rack number of each broker, from 0; a broker without a rack counts as a rack of its own."""
    racks = problem.brokers.racks
    own = len(problem.brokers.rack_names) + np.arange(len(racks))
    return np.unique(np.where(racks == NOWHERE, own, racks), return_inverse=True)[1]


def _left_drained_dir(problem: Problem, assignment: Assignment) -> BoolArray:
    """Mask of present replicas in a log directory to be drained that leave their broker too, (S,).

    The broker counts as no place for them: the check does not pack its directories again to see whether it is one.
    """
    now, dirs, count = problem.partitions, problem.log_dirs, len(problem.brokers)
    if dirs is None or not problem.rules.between_log_dirs:
        return np.zeros(len(now.replicas), bool)
    drained: BoolArray = (now.log_dirs != NOWHERE) & dirs.must_empty[now.log_dirs]
    kept = np.isin(pairs(now.owners, now.replicas, count), pairs(assignment.owners, assignment.replicas, count))
    return drained & ~kept


def _allowed_per_rack(problem: Problem, racks: IndexArray, leaves: BoolArray) -> tuple[IntArray, IntArray]:
    """Most replicas of each partition in a rack, and the most racks with so many if that is more than one, (P,) each.

    Replicas are dealt to the racks in turn, until each rack has one on every broker that may have one: those that
    receive and have not lost theirs, and those that keep theirs: all but those that `leaves` marks, (S,).
    """
    partitions, brokers = problem.partitions, problem.brokers
    wanted = partitions.wanted_factors
    allowed, in_racks = np.ones_like(wanted), np.full_like(wanted, len(brokers))
    if problem.rules.racks is RackRule.STRICT:
        return allowed, in_racks
    allowed, left = np.maximum(1, wanted), wanted.astype(np.int64)
    for level in range(int(wanted.max(initial=0))):
        dealt = np.minimum(left, _racks_above(problem, racks, level, leaves))
        is_last = (left > 0) & (dealt == left)
        allowed[is_last] = level + 1
        if level:
            in_racks[is_last] = dealt[is_last]
        left -= dealt
    return allowed, in_racks


def _racks_above(problem: Problem, racks: IndexArray, level: int, leaves: BoolArray) -> IndexArray:
    """Number of racks in which more brokers than `level` may have a replica of each partition, (P,)."""
    partitions, brokers, count = problem.partitions, problem.brokers, len(problem.brokers)
    receives = brokers.is_live & ~brokers.must_empty & brokers.may_receive & (brokers.closures == Closure.NONE)
    wanted, at = partitions.broker_sets[partitions.owners], partitions.replicas
    is_of_set = (wanted == NOWHERE) | (brokers.broker_sets[at] == wanted)
    keeps, loses = ~receives[at] & ~leaves & is_of_set, receives[at] & leaves & is_of_set
    key = pairs(partitions.owners, racks[at], count)
    places, rows = np.unique(key[keeps | loses], return_inverse=True)
    more = np.bincount(rows, (keeps.astype(int) - loses)[keeps | loses], len(places))
    found = np.zeros(len(partitions), np.int64)
    for number in np.unique(partitions.broker_sets).tolist():
        sizes = np.bincount(racks[receives & ((number == NOWHERE) | (brokers.broker_sets == number))], minlength=count)
        found[partitions.broker_sets == number] = int((sizes > level).sum())
        own = partitions.broker_sets[places // count] == number
        usual = sizes[places[own] % count]
        differs = (usual + more[own] > level).astype(np.int64) - (usual > level)
        np.add.at(found, places[own] // count, differs)
    return found
