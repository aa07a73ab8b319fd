"""Even out the work of leading; no byte is copied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks.broker_choice import chosen_brokers


def leaders_only(problem: Problem) -> Problem:
    """Only the order of replica lists changes."""
    return replace(problem, rules=replace(problem.rules, between_brokers=False, between_log_dirs=False))


def demote(problem: Problem, ids: Iterable[int]) -> Problem:
    """The brokers with these ids lead nothing that another replica can lead; no byte is copied.

    Raises InputError for a broker that is not there.
    """
    brokers = problem.brokers
    may_lead = brokers.may_lead & ~chosen_brokers(brokers, ids)
    return leaders_only(replace(problem, brokers=replace(brokers, may_lead=may_lead)))
