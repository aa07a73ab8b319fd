"""Log directories: the search runs again inside every broker, with its directories as brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from kreassign.errors import Infeasible
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray, IntArray, pairs
from kreassign.planner.goals import DISK, Goal, PartitionLoads
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.problem import (
    DEFAULT_TOLERANCE,
    Assignment,
    Band,
    Brokers,
    LogDirs,
    Partitions,
    Problem,
    RackRule,
    Rules,
)

Solve = Callable[[Problem], tuple[Assignment, IndexArray]]
"""Function that returns an assignment, and the partitions whose forced changes have no place."""


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """An assignment with log directories, and what found none on its broker.

    `homeless` are partitions that may stay where they were; `crowded` marks present replicas in a directory to be
    drained that have to leave their broker, (S,). `barred` are pairs of a partition that has to get a copy, and a
    broker that cannot take it (`pairs`).
    """

    assignment: Assignment
    homeless: IndexArray
    crowded: BoolArray
    barred: IndexArray

    @property
    def is_whole(self) -> bool:
        """True if every replica found a log directory."""
        return not (len(self.homeless) or self.crowded.any() or len(self.barred))


def keeping_out(problem: Problem, barred: IndexArray) -> Problem:
    """Add a limit to each broker whose log directories have no room for some partitions: it takes none of these."""
    owners, hosts = np.divmod(barred, len(problem.brokers))
    bands, capacity = list(problem.bands), dict(problem.brokers.capacity)
    for host in np.unique(hosts).tolist():
        name = f"log directories of broker {problem.brokers.ids[host]}"
        counted = np.bincount(owners[hosts == host], minlength=len(problem.partitions)).astype(np.float64)
        load = partial(_given, counted)
        bands.append(Band(Goal(name, "", load, load), None, is_named=False, of_log_dirs=True))
        capacity[name] = np.where(np.arange(len(problem.brokers)) == host, 0.0, np.inf)
    return replace(problem, bands=tuple(bands), brokers=replace(problem.brokers, capacity=capacity))


def _given(loads: FloatArray, partitions: PartitionLoads) -> FloatArray:
    del partitions
    return loads


def in_log_dirs(problem: Problem, assignment: Assignment, left: BoolArray, solve: Solve) -> Settled:
    """Assign a log directory to every replica on brokers that have several.

    Directories are filled within the tolerance of the disk goal around their share of the broker's load; arriving
    replicas go where there is room, and as few bytes as possible move between directories. A replica that stays in an
    unknown directory is left out, and so are those `left` (S,) in a directory to be drained, for a budget. Raises
    Infeasible if a broker's directories cannot hold the replicas that may not leave it.
    """
    dirs, nothing = problem.log_dirs, np.zeros(0, np.int64)
    homeless, barred = [nothing], [nothing]
    crowded = np.zeros(len(problem.partitions.replicas), bool)
    if dirs is None or not problem.rules.between_log_dirs:
        return Settled(assignment, nothing, crowded, nothing)
    chosen, may_stay = assignment.log_dirs.copy(), _not_demanded(problem, dirs)
    owners = np.repeat(np.arange(len(problem.partitions)), np.diff(assignment.offsets))
    now, count = problem.partitions, len(problem.brokers)
    before, after = pairs(now.owners, now.replicas, count), pairs(owners, assignment.replicas, count)
    stays = np.isin(after, before)
    waits = np.isin(after, before[left])
    drained = stays & dirs.must_empty[assignment.log_dirs] & (assignment.log_dirs != NOWHERE)
    drained &= problem.rules.between_brokers & (now.may_move & now.within_reach(problem.brokers.is_live))[owners]
    is_moving = np.zeros(len(after), bool)
    if now.future_log_dirs is not None:
        is_moving = np.isin(after, before[now.future_log_dirs != NOWHERE])
    for broker in np.unique(assignment.replicas):
        own = np.flatnonzero(dirs.brokers == broker)
        places = np.flatnonzero((assignment.replicas == broker) & (~stays | (assignment.log_dirs != NOWHERE)) & ~waits)
        if len(own) < 2 or not len(places):
            continue
        inner = _inside_broker(problem, own, owners[places], assignment.log_dirs[places])
        # A run gives no copy another directory while its broker moves it to one.
        inner = replace(inner, partitions=inner.partitions.held(is_moving[places], Hold.MOVING))
        arrives = assignment.log_dirs[places] == NOWHERE
        free = arrives | drained[places]
        leaving = replace(inner, rules=replace(inner.rules, leaves_rest=bool(free.any())))
        found, undone = _solved_inside(problem, int(broker), leaving, solve)
        if not free[undone].all():
            found, undone = _solved_inside(problem, int(broker), inner, solve)
        if not len(undone):
            chosen[places] = own[found.replicas]
        came, is_free = places[undone[arrives[undone]]], may_stay[owners[places[undone[arrives[undone]]]]]
        homeless.append(owners[came[is_free]])
        barred.append(after[came[~is_free]])
        crowded |= np.isin(before, after[places[undone[~arrives[undone]]]])
    return Settled(replace(assignment, log_dirs=chosen), np.concatenate(homeless), crowded, np.concatenate(barred))


def _not_demanded(problem: Problem, dirs: LogDirs) -> BoolArray:
    """Mask of the partitions of which the task demands nothing, (P,)."""
    now, rules = problem.partitions, problem.rules
    must = problem.leaving | ((now.log_dirs != NOWHERE) & dirs.must_empty[now.log_dirs])
    demanded = np.bincount(now.owners[must], minlength=len(now)) > 0
    demanded |= (now.wanted_factors != now.factors) | rules.repair_racks | rules.repair_sets
    result: BoolArray = ~demanded
    return result


def _solved_inside(problem: Problem, broker: int, inner: Problem, solve: Solve) -> tuple[Assignment, IndexArray]:
    try:
        return solve(inner)
    except Infeasible as refusal:
        name = problem.brokers.ids[broker]
        text = f"log directories of broker {name} (numbered from 0 in the order of their paths): {refusal}"
        raise Infeasible(text, goals=("log directories",)) from refusal


def _inside_broker(
    problem: Problem, own: npt.NDArray[np.int64], owners: npt.NDArray[np.int64], present: IntArray
) -> Problem:
    """One broker as a problem: its directories are the brokers, its replicas are partitions of one replica."""
    if problem.log_dirs is None:
        raise AssertionError("only brokers with log directories are looked into")
    only_forced = problem.rules.only_forced
    tolerance = next((band.tolerance for band in problem.bands if band.goal is DISK), DEFAULT_TOLERANCE)
    if only_forced and tolerance is None:  # such a band moves nothing, but decides where forced moves go
        tolerance = DEFAULT_TOLERANCE
    return Problem(
        _dirs_as_brokers(problem.log_dirs, own),
        _replicas_as_partitions(problem.partitions, owners, np.searchsorted(own, present), present != NOWHERE),
        bands=(Band(DISK, tolerance),),
        rules=Rules(racks=RackRule.NONE, only_forced=only_forced),
    )


def _dirs_as_brokers(dirs: LogDirs, own: npt.NDArray[np.int64]) -> Brokers:
    count = len(own)
    nowhere, everyone = np.full(count, NOWHERE, np.int32), np.ones(count, bool)
    limits: FloatArray = dirs.capacity_bytes[own]
    return Brokers(
        ids=np.arange(count, dtype=np.int32),
        racks=nowhere,
        rack_names=(),
        is_live=everyone,
        may_receive=dirs.may_receive[own],
        may_lead=everyone,
        must_empty=dirs.must_empty[own],
        closures=np.zeros(count, np.int32),
        broker_sets=nowhere,
        capacity={DISK.name: limits},
        shares={},
    )


def _replicas_as_partitions(
    outer: Partitions, owners: npt.NDArray[np.int64], present: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]
) -> Partitions:
    """Turn replicas into partitions; an arriving replica is a partition that has none yet and wants one."""
    count = len(owners)
    ones = np.ones(count, np.int32)
    placed = present[known].astype(np.int32)
    return Partitions(
        topic_names=outer.topic_names,
        topics=outer.topics[owners],
        numbers=outer.numbers[owners],
        offsets=np.concatenate(([0], np.cumsum(known))).astype(np.int32),
        replicas=placed,
        log_dirs=np.full(len(placed), NOWHERE, np.int32),
        size_bytes=outer.size_bytes[owners],
        write_bytes_per_s=outer.write_bytes_per_s[owners],
        read_bytes_per_s=outer.read_bytes_per_s[owners],
        leader_cpu=outer.leader_cpu[owners],
        follower_cpu=outer.follower_cpu[owners],
        wanted_factors=ones,
        holds=outer.holds[owners],
        broker_sets=np.full(count, NOWHERE, np.int32),
        is_lost=np.zeros(len(placed), bool),
    )
