"""Goals after the bands: spread replicas of topics, leaders of topics, and failover.

No change for them takes a broker farther from a band. The check defines the same goals independently:
`check/topics.py` and `check/failover.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray
from kreassign.planner.goals import LEADERS, REPLICAS, Goal
from kreassign.planner.problem.problem import Problem, RackRule
from kreassign.planner.search.compiled import failover_loops as loops
from kreassign.planner.search.compiled import kernels
from kreassign.planner.search.compiled.failover_loops import NO_SLOT, Failover
from kreassign.planner.search.compiled.kernels import Encoding, State, slots_by_broker
from kreassign.planner.search.compiled.spread_loops import Spread, spread_leaders_pass, spread_pass

# Spread of topics: their replicas, and their leaders, evenly over the brokers, in whole numbers.
#
# With n(t, b) the replicas of topic t on broker b (or its partitions that b leads), s(b) the share of the broker and
# N(t) all that the topic has, n should be from floor(N s (1 - tolerance)) to ceil(N s (1 + tolerance)). Brokers that
# are given none (down, cordoned, or leading nothing more) keep what they have of it, and the others share the rest.

ROUNDS = 4
ATTEMPTS = 64
ROUNDING = 1e-9


def spread_topics(problem: Problem, encoding: Encoding, state: State) -> None:
    """Change the state to spread topics, as far as bands, rules and budget allow."""
    partitions, tolerance = problem.partitions, problem.rules.topic_spread
    if tolerance is None or not problem.rules.between_brokers:
        return
    placed = state.places >= 0
    totals = np.bincount(partitions.topics, partitions.wanted_factors, len(partitions.topic_names))
    spread = _spread(problem, REPLICAS, (encoding.owners[placed], state.places[placed]), totals, tolerance)
    for _ in range(ROUNDS):
        if not spread_pass(encoding, state, spread, slots_by_broker(state.places, len(encoding.racks)), ATTEMPTS):
            break


def spread_leaders(problem: Problem, encoding: Encoding, state: State, allowed: int) -> int:
    """Change leaders to spread those of topics, without copies; return the remaining miss.

    No change takes a broker farther from a band, unless the bands have made the miss larger than `allowed`.
    """
    spread = leader_spread(problem, state)
    for keeps_bands in (True, False):
        for _ in range(ROUNDS):
            by_broker = slots_by_broker(state.places, len(encoding.racks))
            if not spread_leaders_pass(encoding, state, spread, by_broker, ATTEMPTS, keeps_bands):
                break
        if missed_leaders(spread) <= allowed:
            break
    return missed_leaders(spread)


def missed_leaders(spread: Spread) -> int:
    """Total number of leaders by which brokers miss their target range of each topic."""
    off = np.maximum(spread.counts - spread.most, 0) + np.maximum(spread.least - spread.counts, 0)
    return int(off.sum())


def leader_spread(problem: Problem, state: State) -> Spread:
    """Leaders of each topic on each broker, with their targets."""
    partitions, hosts = problem.partitions, state.places[state.leaders]
    led = np.flatnonzero(hosts >= 0)
    totals = np.bincount(partitions.topics, minlength=len(partitions.topic_names))
    return _spread(problem, LEADERS, (led, hosts[led]), totals, problem.rules.topic_leaders or 0.0)


def _spread(
    problem: Problem,
    goal: Goal,
    placed: tuple[IndexArray, IndexArray],
    totals: npt.NDArray[np.integer | np.floating],
    tolerance: float,
) -> Spread:
    """Count by topic and broker, with targets; `placed` has the partition and broker of each replica or leader."""
    partitions, brokers = problem.partitions, problem.brokers
    topics = partitions.topics.astype(np.int64)
    sets = np.full(len(partitions.topic_names), NOWHERE, np.int32)
    sets[topics] = partitions.broker_sets
    members = (sets[:, None] == NOWHERE) | (sets[:, None] == brokers.broker_sets[None, :])
    fixed, owners, hosts = _kept(problem, goal)
    kept, counts = np.zeros(members.shape, np.int64), np.zeros(members.shape, np.int64)
    np.add.at(kept, (topics[owners], hosts), 1)
    np.add.at(counts, (topics[placed[0]], placed[1]), 1)
    shares = np.where(members & ~fixed, problem.shares_of(goal)[None, :], 0.0)
    whole = shares.sum(axis=1, keepdims=True)
    rest = np.maximum(totals[:, None] - kept.sum(axis=1, keepdims=True), 0)
    middle = kept + rest * np.divide(shares, whole, out=np.zeros_like(shares), where=whole > 0)
    least = np.floor(middle * (1 - tolerance) + ROUNDING).astype(np.int64)
    most = np.ceil(middle * (1 + tolerance) - ROUNDING).astype(np.int64)
    return Spread(topics, counts, np.maximum(least, 0), most)


def _kept(problem: Problem, goal: Goal) -> tuple[BoolArray, IndexArray, IndexArray]:
    """Brokers that are given none of a topic's leaders or replicas, (N,); partition and broker of each they keep."""
    now, brokers = problem.partitions, problem.brokers
    if goal is LEADERS:
        led = np.flatnonzero(problem.kept_leaders)
        return problem.gets_no_leaders, led, now.replicas[now.offsets[:-1][led]].astype(np.int64)
    fixed: BoolArray = brokers.staying & ~brokers.may_be_named
    if problem.gone is not None:
        fixed |= problem.gone.brokers
    held = np.flatnonzero(fixed[now.replicas] & ~now.may_move[now.owners])
    return fixed, now.owners[held].astype(np.int64), now.replicas[held].astype(np.int64)


# Failover: the successors must not exceed a limit if one more broker or rack is lost.
#
# Loads after a loss, and their limits, are defined in `check/failover.py`; this computes them again for the search,
# which lessens their excess over all losses. First the order of followers, which costs nothing: the second replica
# takes over if the leader's broker is lost, and the first in another rack if its rack is. Then leaders, then copies of
# followers, both only if no broker gets farther from a band.

FAILOVER_ATTEMPTS = 16


def spread_failover(problem: Problem, encoding: Encoding, state: State) -> tuple[IndexArray, float]:
    """Change the state to spread failover.

    Returns the place of each slot in its list, not counting the leader, (S,), and the remaining excess.
    """
    failover = _failover(problem, encoding, state)
    if problem.rules.leaders or problem.rules.between_brokers:
        for _ in range(ROUNDS):
            made = loops.order_pass(encoding, state, failover)
            if problem.rules.topic_leaders is None:  # else that goal decides the leaders
                made += loops.lead_over_pass(encoding, state, failover)
            if problem.rules.between_brokers:
                by_broker = slots_by_broker(state.places, len(encoding.racks))
                made += loops.move_over_pass(encoding, state, failover, by_broker, FAILOVER_ATTEMPTS)
            if not made:
                break
    left = loops.total_excess(failover)
    order = np.arange(len(encoding.owners)) - encoding.offsets[encoding.owners]
    loops.order_lists(encoding, state, failover, order)
    return order, left


def failover_excess(problem: Problem, encoding: Encoding, state: State) -> float:
    """Excess of loads above limits, over all losses."""
    return loops.total_excess(_failover(problem, encoding, state))


def _failover(problem: Problem, encoding: Encoding, state: State) -> Failover:
    partitions, brokers, bands = problem.partitions, problem.brokers, problem.failover_bands
    there = brokers.staying if problem.gone is None else brokers.staying & ~problem.gone.brokers
    racks = _racks(problem, there)
    of_racks = racks[None, :] == np.arange(racks.max(initial=-1) + 1)[:, None]
    lost = np.concatenate([np.eye(len(brokers), dtype=bool), of_racks])
    totals = _failover_totals(problem)
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
        limit=_failover_limits(problem, lost, there) * scale,
        leaders=nobody,
        seconds=nobody.copy(),
        outside=nobody.copy(),
        touched=np.zeros(2 * int(np.diff(encoding.offsets).max(initial=0)) + 1, np.int64),
    )
    loops.begin_pass(encoding, state, failover)
    return failover


def _racks(problem: Problem, there: BoolArray) -> IndexArray:
    """Index of each broker's rack among the racks that can be lost, or NOWHERE."""
    racks = problem.brokers.racks
    known = np.unique(racks[there & (racks != NOWHERE)])
    if problem.rules.racks is RackRule.NONE or (len(known) == 1 and not (racks[there] == NOWHERE).any()):
        known = known[:0]
    numbers = np.full(len(problem.brokers.rack_names) + 1, NOWHERE, np.int64)
    numbers[known] = np.arange(len(known))
    return numbers[racks]


def _failover_totals(problem: Problem) -> FloatArray:
    partitions = problem.partitions
    followers = partitions.wanted_factors - 1.0
    return np.array(
        [
            band.goal.leader(partitions).sum() + (band.goal.follower(partitions) * followers).sum()
            for band in problem.failover_bands
        ]
    )


def _failover_limits(problem: Problem, lost: BoolArray, there: BoolArray) -> FloatArray:
    """Limit of each broker after each loss, (M, N, G); infinite for brokers that are lost or do not stay."""
    tolerance, totals = problem.rules.failover, _failover_totals(problem)
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
    limits[: len(there)][~there] = np.inf  # brokers that are down or leave cannot be lost again
    return limits
