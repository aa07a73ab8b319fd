"""Notes of a rebalance on leaders: if they alone would do, and the bytes that saves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kreassign.operations.plan import LeadersAlone, leaders_alone
from kreassign.operations.plan_tasks import Savings, savings_of_leaders
from kreassign.planner import Band, Problem, Rules, solve
from kreassign.planner.check.cost import bytes_bound
from kreassign.planner.goals import CPU, DISK, LEADERS
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.results import Origin, Outcome, outcome_of
from kreassign.planner.tasks import leaders_only, rebalance
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

EVEN = (Band(LEADERS, 0.0),)
LISTS = ((1, 2), (1, 3), (1, 2), (1, 3), (2, 3), (3, 2))
"""Broker 1 leads four, the others one each; each has four replicas."""


def uneven(*sizes: int, **changes) -> Problem:
    loads = [
        partition(number, *replicas, gigabytes=size)
        for number, (replicas, size) in enumerate(zip(LISTS, sizes or (10,) * 6, strict=True))
    ]
    return posed(brokers(1, 2, 3), loads, **{"bands": EVEN} | changes)


def planned(problem: Problem, assignment: Assignment | None = None) -> Outcome:
    return outcome_of(problem, assignment or solve(problem).assignment, Origin("rebalance"))


def test_a_rebalance_that_needs_leaders_alone_says_what_that_saves() -> None:
    """Broker 1 would have to give away two of 0 to 3 in which it leads: those of 10 and 20 GB at least."""
    found = planned(uneven(10, 20, 30, 40, 50, 60))
    assert (found.evaluation.moves, found.evaluation.misses()) == (0, ())
    alone = leaders_alone(found)
    assert alone == LeadersAlone(0, 30 * GIGABYTE)
    assert str(alone) == "leaders alone meet all bands, which saves copies of at least 30 GB"


def test_nobody_who_keeps_roles_copies_less_than_is_said() -> None:
    """Each way to give two of four leaders of broker 1 to brokers that hold no replica of theirs yet."""
    sizes = (10, 20, 30, 40, 50, 60)
    problem, found = uneven(*sizes), []
    for first, second in product((0, 2), (1, 3)):
        plan = planned(problem, moved(problem, (first, (3, 2)), (second, (2, 3))))
        assert plan.evaluation.misses() == ()
        found.append(plan.evaluation.moved_bytes)
    assert min(found) == bytes_bound(problem, leaders_stay=True).total == 30 * GIGABYTE
    assert bytes_bound(problem).total == 0


def test_a_rebalance_that_copies_although_leaders_would_do_says_so() -> None:
    problem = uneven()
    alone = leaders_alone(planned(problem, moved(problem, (0, (3, 2)), (1, (2, 3)))))
    assert alone is not None
    assert alone.saved_bytes == alone.copied_bytes == 20 * GIGABYTE
    assert str(alone) == (
        "leaders alone meet all bands too: `kreassign plan leaders` saves the 20 GB that are copied here"
    )


@pytest.mark.parametrize(
    "problem",
    [
        uneven(bands=(Band(LEADERS, None),)),  # nothing is missed
        uneven(10, 10, 10, 10, 90, 10, bands=(*EVEN, Band(DISK, 0.1))),  # disks have to be copied
        uneven(rules=Rules(failover=0.0)),  # another goal, of which bands say nothing
        uneven(rules=Rules(leaders=False)),  # leaders were not to change
    ],
)
def test_otherwise_nothing_is_said(problem: Problem) -> None:
    assert leaders_alone(planned(problem)) is None


def test_where_leaders_that_must_stay_are_in_the_way_nothing_is_said() -> None:
    problem = uneven()
    stays = ~np.isin(problem.partitions.numbers, (0, 2))
    fixed = replace(problem, partitions=problem.partitions.held(stays, Hold.STAYS))
    found = planned(fixed)
    assert (found.evaluation.moves, found.evaluation.misses()) == (1, ())
    assert leaders_alone(found) is None


def test_what_leaders_save_a_rebalance_that_changes_none_is_exact() -> None:
    """Leading costs 2, following 1. Broker 1 has 5, broker 2 has 3: a leader evens it, or a follower of 20 GB."""
    lists = ((1, 2), (3, 1), (1, 3), (2, 3))
    loads = [
        partition(number, *replicas, gigabytes=10 * number + 10, leader_cpu=2.0, follower_cpu=1.0)
        for number, replicas in enumerate(lists)
    ]
    found = planned(leaders_only(posed(brokers(1, 2, 3), loads, bands=(Band(CPU, 0.1),))))
    assert [one.replicas for one in found.plan.assignments] == [(2, 1)]
    assert savings_of_leaders(found) == Savings(20 * GIGABYTE, 0)
    assert savings_of_leaders(found).saved == 20 * GIGABYTE


def test_no_change_of_leaders_brings_replicas_to_their_broker_set() -> None:
    hosts = [*brokers(1, 2, 3, broker_set="red"), *brokers(4)]
    loads = [partition(number, *replicas, broker_set="red") for number, replicas in enumerate(LISTS)]
    stray = partition(6, 4, 3, gigabytes=1, broker_set="red")
    found = planned(rebalance(posed(hosts, [*loads, stray], bands=(Band(LEADERS, 1.0),))))
    assert (found.evaluation.moves, found.evaluation.misses(before=True) != ()) == (1, True)
    assert leaders_alone(found) is None
