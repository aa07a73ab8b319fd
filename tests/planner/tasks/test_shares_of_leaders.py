"""Target shares of leaders where brokers keep leading that no plan gives leadership."""

from collections.abc import Callable

import numpy as np
import pytest

from kreassign.model.closures import Closure
from kreassign.planner import Band, BrokerFacts, Problem, Rules, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.check.topics import leaders_missed, topics_outside
from kreassign.planner.goals import LEADERS
from kreassign.planner.tasks import demote, drain_brokers, leaders_only, only_forced, plan_around, rebalance
from tests.planner.small_problems import brokers, partition, posed

MAINTENANCE = BrokerFacts(4, closure=Closure.MAINTENANCE)
SILENT = BrokerFacts(4, closure=Closure.MAINTENANCE | Closure.UNREAD | Closure.BINDING)
DEAD = BrokerFacts(5, is_live=False)


def led_by(*leaders: int, **facts) -> list:
    """Partitions with these leaders, each with a follower on the next of brokers 1 to 3."""
    return [partition(number, leader, leader % 3 + 1, **facts) for number, leader in enumerate(leaders)]


def balanced(hosts: list[BrokerFacts], loads: list, task: Callable[[Problem], Problem]) -> tuple[Problem, list]:
    """The problem as solved, and what is outside of its bands before and after."""
    problem, _ = plan_around(task(posed(hosts, loads, bands=(Band(LEADERS),))))
    found = evaluate(problem, solve(problem).assignment)
    bounds = problem.limits
    assert np.allclose(bounds.low, found.low)
    assert np.allclose(bounds.high, found.high)
    return problem, [*found.misses(before=True), *found.misses()]


def test_a_broker_in_maintenance_keeps_its_share_where_no_leader_changes() -> None:
    loads = led_by(1, 2, 3, 4, 1, 2, 3, 4)
    hosts = [*brokers(1, 2, 3), MAINTENANCE, BrokerFacts(6)]
    _, missed = balanced(hosts, loads, lambda problem: only_forced(drain_brokers(problem, [6])))
    assert missed == []


def test_a_broker_in_maintenance_that_leads_nothing_lacks_nothing() -> None:
    hosts = [*brokers(1, 2, 3), MAINTENANCE, BrokerFacts(6)]
    _, missed = balanced(hosts, led_by(1, 2, 3, 1, 2, 3), lambda problem: only_forced(drain_brokers(problem, [6])))
    assert missed == []


@pytest.mark.parametrize("task", [rebalance, leaders_only])
def test_held_partitions_that_it_leads_are_left_to_it(task: Callable[[Problem], Problem]) -> None:
    loads = [*led_by(1, 2, 3, 1, 2, 3), partition(8, 4, 1, may_move=False), partition(9, 4, 2, may_move=False)]
    problem, missed = balanced([*brokers(1, 2, 3), MAINTENANCE], loads, task)
    assert missed == []
    assert problem.limits.mean[:, 0] == pytest.approx([2, 2, 2, 2])


@pytest.mark.parametrize("closed", [MAINTENANCE, SILENT])
def test_a_dead_broker_keeps_its_share_beside_it(closed: BrokerFacts) -> None:
    loads = [*led_by(1, 2, 3, 1, 2, 3), *(partition(10 + one, 5, 1) for one in range(4))]
    problem, missed = balanced([*brokers(1, 2, 3), closed, DEAD], loads, rebalance)
    assert missed == []
    assert problem.limits.mean[:, 0] == pytest.approx([2, 2, 2, 0, 4])


@pytest.mark.parametrize(("closed", "kept"), [(MAINTENANCE, {"may_move": False}), (SILENT, {}), (DEAD, {})])
def test_a_topic_counts_what_a_closed_broker_keeps_of_it(closed: BrokerFacts, kept: dict) -> None:
    """The closed broker leads four partitions of t, and has nothing of u."""
    loads = [*led_by(1, 2, 3, 1, 2, 3), *(partition(10 + one, closed.id, 1, **kept) for one in range(4))]
    loads += [partition(number, number % 3 + 1, topic="u") for number in range(12)]
    rules = Rules(topic_leaders=0.0)
    problem, _ = plan_around(rebalance(posed([*brokers(1, 2, 3), closed], loads, bands=(), rules=rules)))
    found = solve(problem).assignment
    assert (leaders_missed(problem, found), evaluate(problem, found).leader_changes) == ({}, 0)


@pytest.mark.parametrize("closed", [SILENT, DEAD])
def test_a_topic_counts_the_replicas_that_a_closed_broker_keeps(closed: BrokerFacts) -> None:
    loads = [*(partition(one, one % 3 + 1) for one in range(6)), *(partition(10 + one, closed.id) for one in range(4))]
    loads += [partition(number, number % 3 + 1, topic="u") for number in range(12)]
    rules = Rules(topic_spread=0.0)
    problem, _ = plan_around(rebalance(posed([*brokers(1, 2, 3), closed], loads, bands=(), rules=rules)))
    found = solve(problem).assignment
    assert (topics_outside(problem, found), evaluate(problem, found).moves) == ((), 0)


def test_what_no_other_replica_can_lead_stays_with_a_demoted_broker() -> None:
    loads = [*led_by(1, 2, 3, 1, 2, 3), partition(8, 4), partition(9, 4)]
    _, missed = balanced(brokers(1, 2, 3, 4), loads, lambda problem: demote(problem, [4]))
    assert missed == []
