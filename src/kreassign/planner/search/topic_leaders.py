"""Even leaders per topic: those of each topic spread over the brokers, in whole leaders, without a copy.

It comes after the bands: no change that takes a broker farther from one is made for it, unless the bands have made it
worse than it is now. What counts is how many partitions of topic t broker b leads, n(t, b); with s(b) its share of all
leaders and N(t) the partitions of the topic, it should be from floor(N s (1 - tolerance)) to ceil(N s (1 + tolerance)).
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.arrays import NOWHERE, FloatArray, IndexArray
from kreassign.planner.goals import LEADERS
from kreassign.planner.problem.problem import Problem
from kreassign.planner.search.compiled.leader_spread_loops import spread_leaders_pass
from kreassign.planner.search.compiled.spread_loops import Spread
from kreassign.planner.search.compiled.state import Encoding, State, slots_by_broker

ROUNDS = 4
ATTEMPTS = 64
ROUNDING = 1e-9


def spread_leaders(problem: Problem, encoding: Encoding, state: State, allowed: int) -> int:
    """Change leaders so that those of topics are spread; how many are missed then, at most `allowed` if that can be."""
    spread = _spread(problem, state)
    for keeps_bands in (True, False):
        for _ in range(ROUNDS):
            by_broker = slots_by_broker(state.places, len(encoding.racks))
            if not spread_leaders_pass(encoding, state, spread, by_broker, ATTEMPTS, keeps_bands):
                break
        if _missed(spread) <= allowed:
            break
    return _missed(spread)


def missed(problem: Problem, state: State) -> int:
    """By how many leaders brokers miss what they should lead of each topic, in all."""
    return _missed(_spread(problem, state))


def _missed(spread: Spread) -> int:
    off = np.maximum(spread.counts - spread.most, 0) + np.maximum(spread.least - spread.counts, 0)
    return int(off.sum())


def _spread(problem: Problem, state: State) -> Spread:
    counts = np.zeros((len(problem.partitions.topic_names), len(problem.brokers)), np.int64)
    hosts = state.places[state.leaders]
    np.add.at(counts, (problem.partitions.topics[hosts >= 0], hosts[hosts >= 0]), 1)
    least, most = _limits(problem)
    return Spread(problem.partitions.topics.astype(np.int64), counts, least, most)


def _limits(problem: Problem) -> tuple[IndexArray, IndexArray]:
    """The fewest and the most leaders of each topic on each broker, shapes (T, N)."""
    tolerance = problem.rules.topic_leaders or 0.0
    topics = problem.partitions.topics
    middle = np.bincount(topics, minlength=len(problem.partitions.topic_names))[:, None] * _shares(problem)
    least = np.floor(middle * (1 - tolerance) + ROUNDING).astype(np.int64)
    return np.maximum(least, 0), np.ceil(middle * (1 + tolerance) - ROUNDING).astype(np.int64)


def _shares(problem: Problem) -> FloatArray:
    """Which part of the leaders of each topic a broker should have, among those that the topic may use; (T, N)."""
    sets = np.full(len(problem.partitions.topic_names), NOWHERE, np.int32)
    sets[problem.partitions.topics] = problem.partitions.broker_sets
    members = (sets[:, None] == NOWHERE) | (sets[:, None] == problem.brokers.broker_sets[None, :])
    shares = np.where(members, problem.shares_of(LEADERS)[None, :], 0.0)
    total = shares.sum(axis=1, keepdims=True)
    parts: FloatArray = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    return parts
