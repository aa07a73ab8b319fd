"""Failover: who takes over when one more broker or rack is lost, so that nobody then exceeds a limit.

The loads after a loss, and their limits, are defined in `check/failover.py`; this computes them again, for the search.
What is lessened is their excess over all losses. It comes after all other goals. First the order of followers, which
costs nothing: who comes second takes over when the broker of the leader is lost, and the first in another rack when its
rack is. Then leaders, and then copies of followers, both only where no broker gets farther from a band by it.
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray
from kreassign.planner.problem.problem import Problem, RackRule
from kreassign.planner.search.compiled import failover_loops as loops
from kreassign.planner.search.compiled import kernels
from kreassign.planner.search.compiled.failover_loops import NO_SLOT, Failover
from kreassign.planner.search.compiled.state import Encoding, State, slots_by_broker

ROUNDS = 4
ATTEMPTS = 16


def spread_failover(problem: Problem, encoding: Encoding, state: State) -> tuple[IndexArray, float]:
    """Change a state so that failover is spread.

    Returns the place of each slot in its list, the leader apart, (S,), and the excess that is left.
    """
    failover = _failover(problem, encoding, state)
    if problem.rules.leaders or problem.rules.between_brokers:
        for _ in range(ROUNDS):
            made = loops.order_pass(encoding, state, failover)
            if problem.rules.topic_leaders is None:  # else leaders are where that goal has them
                made += loops.lead_over_pass(encoding, state, failover)
            if problem.rules.between_brokers:
                by_broker = slots_by_broker(state.places, len(encoding.racks))
                made += loops.move_over_pass(encoding, state, failover, by_broker, ATTEMPTS)
            if not made:
                break
    left = loops.total_excess(failover)
    order = np.arange(len(encoding.owners)) - encoding.offsets[encoding.owners]
    loops.order_lists(encoding, state, failover, order)
    return order, left


def excess(problem: Problem, encoding: Encoding, state: State) -> float:
    """By how much brokers would exceed their limits, over all losses."""
    return loops.total_excess(_failover(problem, encoding, state))


def _failover(problem: Problem, encoding: Encoding, state: State) -> Failover:
    partitions, brokers, bands = problem.partitions, problem.brokers, problem.failover_bands
    there = brokers.staying if problem.gone is None else brokers.staying & ~problem.gone.brokers
    racks = _racks(problem, there)
    lost = np.concatenate([np.eye(len(brokers), dtype=bool), _members(racks)])
    totals = _totals(problem)
    scale = np.divide(max(1, int(there.sum())), totals, out=np.ones(len(bands)), where=totals > 0)
    following = np.array([band.goal.follower(partitions) for band in bands]).reshape(len(bands), -1).T * scale
    leading = np.array([band.goal.leader(partitions) for band in bands]).reshape(len(bands), -1).T * scale
    gone = np.zeros(len(encoding.owners), bool)
    if problem.gone is not None:
        gone[encoding.initial_brokers >= 0] = problem.gone.replicas
    nobody = np.full(len(partitions), NO_SLOT, np.int64)
    failover = Failover(
        gone=gone,
        live=brokers.is_live,
        racks=np.where(racks == NOWHERE, kernels.NO_BROKER, len(brokers) + racks),
        rack_names=brokers.racks.astype(np.int64),
        extra=np.ascontiguousarray(leading - following),
        following=np.ascontiguousarray(following),
        base=np.zeros((len(brokers), len(bands))),
        added=np.zeros((*lost.shape, len(bands))),
        limit=_limits(problem, lost, there) * scale,
        leaders=nobody,
        seconds=nobody.copy(),
        outside=nobody.copy(),
        touched=np.zeros(2 * int(np.diff(encoding.offsets).max(initial=0)) + 1, np.int64),
    )
    loops.begin_pass(encoding, state, failover)
    return failover


def _racks(problem: Problem, there: BoolArray) -> IndexArray:
    """The number of each broker's rack among those that can be lost, or NOWHERE."""
    racks = problem.brokers.racks
    known = np.unique(racks[there & (racks != NOWHERE)])
    if problem.rules.racks is RackRule.NONE or (len(known) == 1 and not (racks[there] == NOWHERE).any()):
        known = known[:0]
    numbers = np.full(len(problem.brokers.rack_names) + 1, NOWHERE, np.int64)
    numbers[known] = np.arange(len(known))
    return numbers[racks]


def _members(racks: IndexArray) -> BoolArray:
    """Which brokers the loss of each rack takes."""
    members: BoolArray = racks[None, :] == np.arange(racks.max(initial=-1) + 1)[:, None]
    return members


def _totals(problem: Problem) -> FloatArray:
    partitions = problem.partitions
    followers = partitions.wanted_factors - 1.0
    return np.array(
        [
            band.goal.leader(partitions).sum() + (band.goal.follower(partitions) * followers).sum()
            for band in problem.failover_bands
        ]
    )


def _limits(problem: Problem, lost: BoolArray, there: BoolArray) -> FloatArray:
    """What each broker may carry after each loss, (M, N, G); infinite for those that are lost, or do not stay."""
    tolerance, totals = problem.rules.failover, _totals(problem)
    limits = np.full((*lost.shape, len(totals)), np.inf)
    for column, (band, total) in enumerate(zip(problem.failover_bands, totals.tolist(), strict=True)):
        if tolerance is not None and np.isfinite(tolerance):
            left = np.where(lost | ~there, 0.0, problem.shares_of(band.goal))
            sums = left.sum(axis=1, keepdims=True)
            mean = total * np.divide(left, sums, out=np.zeros_like(left), where=sums > 0)
            high = mean * (1 + tolerance)
            if band.goal.counts:
                high = np.maximum(np.floor(high + kernels.TINY), np.ceil(mean - kernels.TINY))
            limits[:, :, column] = high
        capacity = problem.brokers.capacity_of(band.goal.name)
        limits[:, :, column] = np.where(np.isfinite(capacity), capacity, limits[:, :, column])
    limits[lost | ~there] = np.inf
    limits[: len(there)][~there] = np.inf  # who is not there, or leaves, is not lost once more
    return limits
