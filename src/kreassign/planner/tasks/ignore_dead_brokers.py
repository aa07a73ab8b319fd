"""Plan for the brokers that live, and leave what concerns dead ones to `repair`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kreassign.planner.arrays import BoolArray, FloatArray
from kreassign.planner.problem.cluster import Brokers, Partitions
from kreassign.planner.problem.problem import Gone, Problem
from kreassign.planner.tasks.balance import forced


def ignore_dead_brokers(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """The problem with dead brokers and lost copies left as they are, and a sentence for each broker with any.

    Partitions with a copy there are fixed; only those that the task forces to change are repaired with it, because a
    change of such a list recreates all its replicas. A dead broker receives nothing, and is expected to carry what it
    is left with. Brokers to be drained are not left: they may be dead.
    """
    dead = ~problem.brokers.is_live & ~problem.brokers.must_empty
    gone = dead[problem.partitions.replicas] | problem.partitions.is_lost
    touched = _any(problem.partitions, gone)
    if not (touched.any() or dead.any()):
        return problem, ()
    repaired = touched & problem.partitions.may_move & _demanded(problem, dead)
    left = touched & ~repaired
    brokers, partitions = problem.brokers, problem.partitions
    stays = left[partitions.owners]
    problem = replace(
        problem,
        gone=Gone(dead, gone & stays),
        brokers=_frozen(problem.brokers, dead, problem),
        partitions=replace(
            partitions,
            is_lost=gone & ~stays,
            may_move=partitions.may_move & ~left,
            wanted_factors=np.where(left, partitions.factors, partitions.wanted_factors).astype(np.int32),
        ),
    )
    shares = _shares(problem, dead, problem.partitions.may_move)
    problem = replace(problem, brokers=replace(problem.brokers, shares=shares))
    return problem, tuple(_sentences(brokers, partitions, gone & stays, dead))


def _any(partitions: Partitions, replicas: BoolArray) -> BoolArray:
    result: BoolArray = np.logical_or.reduceat(replicas, partitions.offsets[:-1])
    return result


def _demanded(problem: Problem, dead: BoolArray) -> BoolArray:
    """Partitions that the task would change if every copy were there."""
    if not problem.rules.between_brokers:
        return np.zeros(len(problem.partitions), bool)
    whole = replace(
        problem,
        brokers=replace(problem.brokers, is_live=problem.brokers.is_live | dead),
        partitions=replace(problem.partitions, is_lost=np.zeros(len(problem.partitions.replicas), bool)),
    )
    return forced(whole)


def _frozen(brokers: Brokers, dead: BoolArray, problem: Problem) -> Brokers:
    """Dead brokers hold what they hold. Least leaders of a topic are not asked of them."""
    may_lead = brokers.may_lead & ~dead if problem.rules.least_topic_leaders else brokers.may_lead
    return replace(brokers, is_live=brokers.is_live | dead, may_receive=brokers.may_receive & ~dead, may_lead=may_lead)


def _shares(problem: Problem, dead: BoolArray, may_move: BoolArray) -> dict[str, FloatArray]:
    """Of every load, dead brokers are to carry what they are left with, and the others what is left, as before."""
    brokers, partitions = problem.brokers, problem.partitions
    alive = replace(brokers, must_empty=brokers.must_empty | dead)
    shares = dict(brokers.shares)
    held = dead[partitions.replicas] & ~may_move[partitions.owners]
    leads = np.isin(np.arange(len(partitions.replicas)), partitions.offsets[:-1])
    for band, total in zip(problem.bands, problem.totals.tolist(), strict=True):
        loads = np.where(leads, *(one(partitions)[partitions.owners] for one in (band.goal.leader, band.goal.follower)))
        left = np.bincount(partitions.replicas, np.where(held, loads, 0.0), len(brokers))
        shares[band.goal.name] = np.where(dead, left, alive.weights(band.goal.name) * max(0.0, total - left.sum()))
    return shares


def _sentences(brokers: Brokers, partitions: Partitions, left: BoolArray, dead: BoolArray) -> Iterator[str]:
    for broker in np.unique(partitions.replicas[left]):
        count = int((left & (partitions.replicas == broker)).sum())
        why = "is not live" if dead[broker] else "has lost copies with a log directory"
        yield (
            f"broker {brokers.ids[broker]} {why}: {count} partitions with a replica there are not touched; "
            "`kreassign plan repair` repairs them"
        )
