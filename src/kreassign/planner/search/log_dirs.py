"""Log directories: the same search once more inside every broker, with its directories in the place of brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kreassign.errors import Infeasible
from kreassign.planner.arrays import NOWHERE, FloatArray, IntArray
from kreassign.planner.goals import DISK
from kreassign.planner.problem.cluster import Assignment, Brokers, LogDirs, Partitions
from kreassign.planner.problem.problem import DEFAULT_TOLERANCE, Band, Problem, RackRule, Rules

Solve = Callable[[Problem], Assignment]


def in_log_dirs(problem: Problem, assignment: Assignment, solve: Solve) -> Assignment:
    """The assignment with a log directory for every replica of brokers that have several.

    Directories are filled within the tolerance of the disk goal around their share of what their broker holds;
    replicas that arrive go where there is room, and as few bytes as possible move between directories. A replica
    that stays in an unknown directory is left out. Raises Infeasible when a broker's directories cannot hold it.
    """
    dirs = problem.log_dirs
    if dirs is None or not problem.rules.between_log_dirs:
        return assignment
    chosen = assignment.log_dirs.copy()
    owners = np.repeat(np.arange(len(problem.partitions)), np.diff(assignment.offsets))
    stays = np.isin(*_keys(problem, assignment, owners))
    for broker in np.unique(assignment.replicas):
        own = np.flatnonzero(dirs.brokers == broker)
        places = np.flatnonzero((assignment.replicas == broker) & (~stays | (assignment.log_dirs != NOWHERE)))
        if len(own) < 2 or not len(places):
            continue
        inner = _inside(problem, own, owners[places], assignment.log_dirs[places])
        chosen[places] = own[_solved(problem, int(broker), inner, solve).replicas]
    return replace(assignment, log_dirs=chosen)


def _keys(
    problem: Problem, assignment: Assignment, owners: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(partition, broker) as one number, of the assignment and of the present replicas."""
    width, now = len(problem.brokers), problem.partitions
    return owners * width + assignment.replicas, now.owners.astype(np.int64) * width + now.replicas


def _solved(problem: Problem, broker: int, inner: Problem, solve: Solve) -> Assignment:
    try:
        return solve(inner)
    except Infeasible as refusal:
        name = problem.brokers.ids[broker]
        text = f"log directories of broker {name} (numbered from 0 in the order of their paths): {refusal}"
        raise Infeasible(text, goals=("log directories",)) from refusal


def _inside(problem: Problem, own: npt.NDArray[np.int64], owners: npt.NDArray[np.int64], present: IntArray) -> Problem:
    """One broker as a problem: its directories are the brokers, its replicas partitions of one replica."""
    if problem.log_dirs is None:
        raise AssertionError("only brokers with log directories are looked into")
    only_forced = problem.rules.only_forced
    tolerance = next((band.tolerance for band in problem.bands if band.goal is DISK), DEFAULT_TOLERANCE)
    if only_forced and tolerance is None:  # a band then moves nothing, and says where what must move goes
        tolerance = DEFAULT_TOLERANCE
    return Problem(
        _as_brokers(problem.log_dirs, own),
        _as_partitions(problem.partitions, owners, np.searchsorted(own, present), present != NOWHERE),
        bands=(Band(DISK, tolerance),),
        rules=Rules(racks=RackRule.NONE, only_forced=only_forced),
    )


def _as_brokers(dirs: LogDirs, own: npt.NDArray[np.int64]) -> Brokers:
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
        broker_sets=nowhere,
        capacity={DISK.name: limits},
        shares={},
    )


def _as_partitions(
    outer: Partitions, owners: npt.NDArray[np.int64], present: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]
) -> Partitions:
    """A replica that arrives is a partition that has none yet and wants one."""
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
        may_move=outer.may_move[owners],
        broker_sets=np.full(count, NOWHERE, np.int32),
        is_lost=np.zeros(len(placed), bool),
    )
