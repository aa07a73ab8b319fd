"""Which leaders are in the racks that are preferred for them, without the search's code.

A leader is in its preferred rack if no other replica of its partition that may lead is in one that comes earlier in the
order of its topic; racks that are not in that order come last, all alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kreassign.model.plan_facts import LeaderRacks
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem


def leader_racks(problem: Problem, assignment: Assignment) -> LeaderRacks | None:
    """How many leaders have racks preferred for them, and are there now and in the end; None if no topic has any."""
    if not problem.rules.leader_racks:
        return None
    chosen = _pinned(problem)
    before, after = (chosen & _is_held(problem, one) for one in (Assignment.current(problem.partitions), assignment))
    return LeaderRacks(int(chosen.sum()), int(before.sum()), int(after.sum()))


def leaders_elsewhere(problem: Problem, assignment: Assignment) -> Iterator[str]:
    """A sentence for each topic of which leaders are not where they are preferred, or can be in none of these racks."""
    held, out_of_reach = _is_held(problem, assignment), _has_none(problem, assignment)
    for topic, racks in sorted(problem.rules.leader_racks.items()):
        its = problem.partitions.topics == problem.partitions.topic_names.index(topic)
        total, named = int(its.sum()), ", ".join(racks)
        if missing := int((its & out_of_reach).sum()):
            yield f"topic {topic}: {missing} of {total} partitions have no replica in rack {named} that may lead"
        if wrong := int((its & ~held).sum()):
            yield (
                f"topic {topic}: {wrong} of {total} partitions do not lead from the first of rack {named} that has a "
                "replica: they must not change, or a limit or the budget is in the way"
            )


def _pinned(problem: Problem) -> BoolArray:
    names = problem.partitions.topic_names
    pinned: BoolArray = np.array([name in problem.rules.leader_racks for name in names])[problem.partitions.topics]
    return pinned


def _ranks(problem: Problem, assignment: Assignment) -> FloatArray:
    """How far down the order of its topic the rack of each replica is; infinitely far for who may not lead."""
    brokers, names = problem.brokers, problem.partitions.topic_names
    racks = [None if rack == NOWHERE else brokers.rack_names[rack] for rack in brokers.racks.tolist()]
    table = np.zeros((len(names), len(brokers)))
    for topic, order in problem.rules.leader_racks.items():
        ranks = [order.index(rack) if rack in order else len(order) for rack in racks]
        table[names.index(topic)] = ranks
    may_lead = brokers.may_lead & brokers.is_live & ~brokers.must_empty
    if problem.gone is not None:
        may_lead &= ~problem.gone.brokers
    topics = problem.partitions.topics[assignment.owners]
    found: FloatArray = np.where(may_lead[assignment.replicas], table[topics, assignment.replicas], np.inf)
    return found


def _is_held(problem: Problem, assignment: Assignment) -> BoolArray:
    ranks, heads = _ranks(problem, assignment), assignment.offsets[:-1]
    held: BoolArray = ranks[heads] == np.minimum.reduceat(ranks, heads)
    return held


def _has_none(problem: Problem, assignment: Assignment) -> BoolArray:
    """Partitions that have no replica which may lead in any of the racks of their topic."""
    best = np.minimum.reduceat(_ranks(problem, assignment), assignment.offsets[:-1])
    counts = [len(problem.rules.leader_racks.get(name, ())) for name in problem.partitions.topic_names]
    missing: BoolArray = best >= np.array(counts)[problem.partitions.topics]
    return missing
