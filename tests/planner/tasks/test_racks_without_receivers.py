"""Racks of which no broker receives: in an outage, in maintenance, excluded, or without room."""

from dataclasses import replace

import pytest

from kreassign.model.closures import Closure
from kreassign.planner import Band, BrokerFacts, Budget, PartitionFacts, Problem, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.goals import DISK
from kreassign.planner.tasks import change_factors, drain_brokers, only_forced, plan_around
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

DEAD, CLOSED, BARRED = {"is_live": False}, {"closure": Closure.MAINTENANCE}, {"may_receive": False}


def beside(rack_a: dict, *loads: PartitionFacts) -> Problem:
    """Brokers 1 and 2 in rack a, like that, and 3, 4 and 5 in rack b."""
    return posed([*brokers(1, 2, racks="aa", **rack_a), *brokers(3, 4, 5, racks="bbb")], loads, bands=(Band(DISK),))


def after(problem: Problem) -> list[set[int]]:
    """The brokers of each partition in the plan of what must be, which is legal and complete."""
    return complete(only_forced(problem))


def complete(problem: Problem) -> list[set[int]]:
    """The brokers of each partition in the plan, which is legal and complete."""
    problem, _ = plan_around(problem)
    assignment = solve(problem).assignment
    judged = evaluate(problem, assignment)
    assert (judged.violations, judged.unfinished) == ((), ())
    return [set(problem.brokers.ids[one].tolist()) for one in assignment.lists()]


@pytest.mark.parametrize("rack_a", [DEAD, CLOSED, BARRED])
def test_the_others_may_be_as_full_as_they_need(rack_a: dict) -> None:
    problem = beside(rack_a, partition(0, 3, 4))
    assert after(drain_brokers(problem, [3])) == [{4, 5}]
    assert after(change_factors(problem, 3)) == [{3, 4, 5}]


@pytest.mark.parametrize("rack_a", [CLOSED, BARRED])
def test_a_replica_there_counts(rack_a: dict) -> None:
    problem = beside(rack_a, partition(0, 1, 3), partition(1, 1, 2, 3))
    assert rack_excess(problem, moved(problem, (0, (3, 4)), (1, (1, 3, 4)))).tolist() == [1, 0]
    assert after(change_factors(problem, 3)) == [{1, 3, 4}, {1, 2, 3}]
    assert after(change_factors(problem, 4)) in ([{1, 3, 4, 5}, {1, 2, 3, one}] for one in (4, 5))


def test_a_rack_counts_by_those_that_receive() -> None:
    hosts = [*brokers(1, racks="a"), BrokerFacts(2, "a", may_receive=False), *brokers(3, 4, 5, racks="bbb")]
    assert after(change_factors(posed(hosts, [partition(0, 3, 4)]), 4)) == [{1, 3, 4, 5}]


def test_a_broker_that_lost_its_copy_is_no_place_for_it() -> None:
    problem = posed(brokers(1, 3, 4, racks="abb"), [partition(0, 1, 3, lost_on=(1,))])
    assert [set(problem.brokers.ids[one].tolist()) for one in solve(problem).assignment.lists()] == [{3, 4}]


def test_one_that_shares_a_rack_moves_within_it_if_others_are_full() -> None:
    hosts = [BrokerFacts(1, "a", capacity={"disk": 900 * GIGABYTE}), *brokers(3, 4, 5, racks="bbb")]
    loads = [partition(0, 1, gigabytes=890), partition(1, 3, 4, gigabytes=50)]
    assert after(drain_brokers(posed(hosts, loads, bands=(Band(DISK),)), [3])) == [{1}, {4, 5}]
    drained = drain_brokers(posed(hosts, loads, bands=(Band(DISK, None),)), [3])
    assert complete(replace(only_forced(drained), budget=Budget(moves=1))) == [{1}, {4, 5}]
    assert complete(drained) == [{1}, {4, 5}]
    roomy = [replace(hosts[0], capacity={}), *hosts[1:]]
    assert after(drain_brokers(posed(roomy, loads, bands=(Band(DISK),)), [3])) == [{1}, {1, 4}]
