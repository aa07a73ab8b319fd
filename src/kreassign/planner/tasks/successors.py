"""New brokers for single replicas that have lost theirs, each in its place of the list: the least change there is.

Nothing is searched: whoever is in the middle of a run wants an answer at once, for each partition by itself, and one
that has no way out shall not keep the others from theirs. The largest replica chooses first. Of the brokers that may
take it, it goes to one whose rack has the fewest of its partition, and of these to the one that is least full in the
end. The judge (`check/`) looks at what comes of it, as at every plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from kreassign.errors import IllegalPlan
from kreassign.model import TopicPartition
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Budget, Problem, Rules

Brokers = Mapping[TopicPartition, Collection[int]]
Lists = dict[TopicPartition, tuple[int, ...]]
Refusals = dict[TopicPartition, str]


def replace_lost(problem: Problem, leaving: Brokers, barred: Brokers) -> tuple[Lists, Refusals]:
    """Give the replicas of partitions on the brokers that are `leaving` another one, but none that is `barred`: ids.

    Returns the new lists, as ids, of the partitions that have one, and why the others stay as they are. Raises
    IllegalPlan where the judge finds a rule broken.
    """
    partitions = problem.partitions
    lost = _lost(problem, leaving)
    search = _Successors(problem, lost)
    refusals: Refusals = {}
    sizes = partitions.size_bytes[partitions.owners]
    for place in sorted(np.flatnonzero(lost).tolist(), key=lambda one: (-int(sizes[one]), one)):
        name = partitions.name(int(partitions.owners[place]))
        reason = search.settle(place, np.isin(problem.brokers.ids, sorted(barred.get(name, ()))))
        if reason is not None:
            refusals[name] = reason
    names = (partitions.name(int(owner)) for owner in partitions.owners[lost])
    settled = lost.copy()
    settled[lost] = [name not in refusals for name in names]
    replicas = np.where(lost & ~settled, partitions.replicas, search.replicas).astype(np.int32)
    log_dirs = np.where(settled, NOWHERE, partitions.log_dirs).astype(np.int32)
    found = Assignment(partitions.offsets, replicas, log_dirs)
    if wrong := evaluate(_judged(problem, settled), found).violations:
        raise IllegalPlan(wrong)
    changed = np.unique(partitions.owners[settled]).tolist()
    lists = found.lists()
    return {partitions.name(one): tuple(problem.brokers.ids[lists[one]].tolist()) for one in changed}, refusals


def _lost(problem: Problem, leaving: Brokers) -> BoolArray:
    """Which replicas are lost, (S,)."""
    partitions = problem.partitions
    lost = np.zeros(len(partitions.replicas), bool)
    for index in range(len(partitions)):
        if gone := leaving.get(partitions.name(index)):
            begin, end = int(partitions.offsets[index]), int(partitions.offsets[index + 1])
            lost[begin:end] = np.isin(problem.brokers.ids[partitions.replicas[begin:end]], sorted(gone))
    return lost


def _judged(problem: Problem, settled: BoolArray) -> Problem:
    """As many copies as get another broker, of their partitions, and no leader changes but where it is lost."""
    moving = np.logical_or.reduceat(settled, problem.partitions.offsets[:-1])
    return replace(
        problem,
        partitions=replace(problem.partitions, may_move=moving),
        bands=(),
        rules=Rules(racks=problem.rules.racks, leaders=False),
        budget=Budget(moves=int(settled.sum())),
    )


class _Successors:
    """Who holds what while replicas are settled one after the other."""

    def __init__(self, problem: Problem, lost: BoolArray) -> None:
        self.problem = problem
        self.replicas: IntArray = problem.partitions.replicas.copy()
        partitions, count = problem.partitions, len(problem.brokers)
        held = self.replicas[~lost]
        self._is_open = lost.copy()
        self._sizes = partitions.size_bytes[partitions.owners]
        self._bytes: FloatArray = np.bincount(held, self._sizes[~lost], count).astype(np.float64)
        self._counts: FloatArray = np.bincount(held, minlength=count).astype(np.float64)
        self._racks, self._limits = problem.rack_of_broker, problem.rack_limits
        self._room = problem.brokers.capacity_of(DISK.name)

    def settle(self, place: int, barred: BoolArray) -> str | None:
        """Find a broker for one replica; the reason if there is none."""
        brokers, partitions = self.problem.brokers, self.problem.partitions
        partition = int(partitions.owners[place])
        begin, end = int(partitions.offsets[partition]), int(partitions.offsets[partition + 1])
        its = slice(begin, end)
        others = self.replicas[its][~self._is_open[its]]
        in_rack = np.bincount(self._racks[others], minlength=int(self._racks.max()) + 1)[self._racks]
        limit = self._limits[partition]
        was_over = in_rack[self.replicas[place]] >= limit
        allowed = brokers.receiving & ~np.isin(np.arange(len(brokers)), self.replicas[its]) & ~barred
        size = int(self._sizes[place])
        for rule, reason in (
            (np.ones(len(brokers), bool), "no other broker may take it"),
            ((in_rack < limit) | was_over, "every other broker is in a rack that has a replica of it"),
            (self._bytes + size <= self._room, f"no other broker has room for {size} bytes"),
        ):
            allowed = allowed & rule
            if not allowed.any():
                return reason
        fill = (self._bytes + size) / np.where(np.isfinite(self._room), self._room, 1.0)
        choice = min(
            np.flatnonzero(allowed).tolist(),
            key=lambda one: (in_rack[one], fill[one], self._counts[one], brokers.ids[one]),
        )
        self._is_open[place], self.replicas[place] = False, choice
        self._bytes[choice] += size
        self._counts[choice] += 1
        return None
