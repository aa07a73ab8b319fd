"""Topic spread: the replicas of each topic spread evenly over the brokers, in whole replicas.

It comes after all other goals: no change that takes a broker farther from any band is made for it. What counts is how
many replicas of topic t broker b holds, n(t, b); with s(b) the share of the broker and N(t) the replicas of the topic,
it should be from floor(N s (1 - tolerance)) to ceil(N s (1 + tolerance)).
"""

from __future__ import annotations

import numpy as np

from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IndexArray
from kreassign.planner.goals import REPLICAS
from kreassign.planner.problem.problem import Problem
from kreassign.planner.search.compiled.spread_loops import Spread, spread_pass
from kreassign.planner.search.compiled.state import Encoding, State, slots_by_broker

ROUNDS = 4
ATTEMPTS = 64
ROUNDING = 1e-9


def spread_topics(problem: Problem, encoding: Encoding, state: State) -> None:
    """Change a state so that topics are spread, as far as bands, rules and budget allow."""
    tolerance = problem.rules.topic_spread
    if tolerance is None or not problem.rules.between_brokers:
        return
    counts = np.zeros((len(problem.partitions.topic_names), len(problem.brokers)), np.int64)
    placed = state.places >= 0
    np.add.at(counts, (problem.partitions.topics[encoding.owners[placed]], state.places[placed]), 1)
    least, most = _limits(problem, tolerance)
    spread = Spread(problem.partitions.topics.astype(np.int64), counts, least, most)
    for _ in range(ROUNDS):
        if not spread_pass(encoding, state, spread, slots_by_broker(state.places, len(encoding.racks)), ATTEMPTS):
            break


def _limits(problem: Problem, tolerance: float) -> tuple[IndexArray, IndexArray]:
    """The fewest and the most replicas of each topic on each broker, shapes (T, N)."""
    partitions = problem.partitions
    replicas = np.bincount(partitions.topics, partitions.wanted_factors, len(partitions.topic_names))
    middle = replicas[:, None] * _shares(problem)
    least = np.floor(middle * (1 - tolerance) + ROUNDING).astype(np.int64)
    most = np.ceil(middle * (1 + tolerance) - ROUNDING).astype(np.int64)
    return least, most


def _shares(problem: Problem) -> FloatArray:
    """Which part of each topic a broker should hold: its share of all replicas, among those the topic may use."""
    weights = problem.brokers.weights(REPLICAS.name)
    sets = np.full(len(problem.partitions.topic_names), NOWHERE, np.int32)
    sets[problem.partitions.topics] = problem.partitions.broker_sets
    members: BoolArray = (sets[:, None] == NOWHERE) | (sets[:, None] == problem.brokers.broker_sets[None, :])
    shares = np.where(members, weights[None, :], 0.0)
    total = shares.sum(axis=1, keepdims=True)
    parts: FloatArray = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    return parts
