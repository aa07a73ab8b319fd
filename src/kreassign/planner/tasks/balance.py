"""Tasks that even out: brokers, new brokers, leaders, log directories; and how much of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kreassign.errors import InputError
from kreassign.planner.arrays import NOWHERE, BoolArray
from kreassign.planner.check.legality import rack_excess
from kreassign.planner.goals import DISK
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Band, Problem
from kreassign.planner.problem.selection import TopicChoice, chosen_brokers


def rebalance(problem: Problem, topics: TopicChoice | None = None) -> Problem:
    """All brokers within their bands by moving only these topics; the others count, but stay."""
    return problem if topics is None else movable_only(problem, topics.of(problem.partitions))


def movable_only(problem: Problem, partitions: BoolArray) -> Problem:
    """The same problem with all partitions but these (shape (P,)) fixed to where they are."""
    may_move = problem.partitions.may_move & partitions
    return replace(problem, partitions=replace(problem.partitions, may_move=may_move))


def add_brokers(problem: Problem, ids: Iterable[int], *, only_onto: bool = True) -> Problem:
    """Fill the brokers with these ids to their share.

    `only_onto` lets replicas go nowhere else; without it the rest of the cluster is evened out in the same plan.
    Raises InputError for a broker that is not there.
    """
    brokers = problem.brokers
    chosen = chosen_brokers(brokers, ids)
    if not only_onto:
        return problem
    return replace(problem, brokers=replace(brokers, may_receive=brokers.may_receive & chosen))


def leaders_only(problem: Problem) -> Problem:
    """Only the order of replica lists changes."""
    return replace(problem, rules=replace(problem.rules, between_brokers=False, between_log_dirs=False))


def demote(problem: Problem, ids: Iterable[int]) -> Problem:
    """The brokers with these ids lead nothing that another replica can lead; no byte is copied.

    Raises InputError for a broker that is not there.
    """
    brokers = problem.brokers
    may_lead = brokers.may_lead & ~chosen_brokers(brokers, ids)
    return leaders_only(replace(problem, brokers=replace(brokers, may_lead=may_lead)))


def balance_disks(problem: Problem, *, between_brokers: bool = False) -> Problem:
    """Replicas change their log directory, and with `between_brokers` their broker, in one plan.

    Directories are brought within the band of disk, ±10 % if it has none.
    Raises InputError when nothing is known of log directories.
    """
    if problem.log_dirs is None:
        raise InputError("nothing is known of log directories; take a new snapshot, and run `kreassign load` again")
    rules = replace(problem.rules, between_log_dirs=True)
    if not between_brokers:
        rules = replace(rules, between_brokers=False, leaders=False)
    has_band = any(band.goal is DISK and band.tolerance is not None for band in problem.bands)
    others = tuple(band for band in problem.bands if band.goal is not DISK)
    return replace(problem, rules=rules, bands=problem.bands if has_band else (Band(DISK), *others))


def only_forced(problem: Problem) -> Problem:
    """The same task with every replica and leader kept that it does not demand to change.

    The others go where they serve the goals best, but no further bytes are spent on the goals.
    """
    return replace(problem, rules=replace(problem.rules, only_forced=True))


def forced(problem: Problem) -> BoolArray:
    """Partitions that must change, (P,): hosts drained or dead, copies lost, leaders, directories, factors, racks."""
    partitions, brokers = problem.partitions, problem.brokers
    must: BoolArray = partitions.wanted_factors != partitions.factors
    must |= ~brokers.may_lead[partitions.replicas[partitions.offsets[:-1]]]
    leaving = ~brokers.staying[partitions.replicas] | partitions.is_lost
    if problem.log_dirs is not None:
        leaving |= (partitions.log_dirs != NOWHERE) & problem.log_dirs.must_empty[partitions.log_dirs]
    must |= np.logical_or.reduceat(leaving, partitions.offsets[:-1])
    if problem.rules.repair_racks:
        must |= rack_excess(problem, Assignment.current(partitions)) > 0
    return must


def fit_in(problem: Problem, seconds: float, rate_bytes_per_s: float) -> Problem:
    """What fits into a time at a rate that each broker may send and receive.

    Partitions of which a single copy takes longer stay where they are, unless the task forces them. Raises InputError
    for a time or rate that is not above 0.
    """
    if not (seconds > 0 and rate_bytes_per_s > 0):
        raise InputError(f"nothing fits into {seconds:g} s at {rate_bytes_per_s:g} bytes/s; specify more than 0")
    partitions = problem.partitions
    rest = np.maximum(rate_bytes_per_s - partitions.write_bytes_per_s, 0.0)
    problem = movable_only(problem, (partitions.size_bytes <= rest * seconds) | forced(problem))
    most = int(rate_bytes_per_s * seconds)
    budget = replace(
        problem.budget, bytes_in_per_broker=most, bytes_out_per_broker=most, rate_bytes_per_s=rate_bytes_per_s
    )
    return replace(problem, budget=budget)
