"""Bring brokers that were added to the cluster into use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.broker_choice import chosen_brokers


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
