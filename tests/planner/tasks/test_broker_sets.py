"""Replicas outside of the broker set of their topic: a rebalance brings them there, as far as brokers may take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kreassign.model.plan_facts import reason_sentences
from kreassign.planner import Band, BrokerFacts, Budget, PartitionFacts, solve
from kreassign.planner.goals import DISK
from kreassign.planner.problem.holds import Hold
from kreassign.planner.results import Origin, Outcome, outcome_of
from kreassign.planner.search.subproblems import attempt, solve_in_subproblems
from kreassign.planner.tasks import TopicChoice, add_brokers, drain_brokers, only_forced, plan_around, rebalance, repair
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

BANDS = (Band(DISK, 5.0),)
HOSTS = [*brokers(1, 2, 3, broker_set="red"), *brokers(4, 5)]
STRAY = partition(0, 4, 1, broker_set="red")


def planned(hosts: Sequence[BrokerFacts], loads: Sequence[PartitionFacts], parts: int = 1, **facts) -> Outcome:
    problem, left = plan_around(rebalance(posed(hosts, loads, bands=BANDS)))
    problem = replace(problem, **facts)
    found = solve_in_subproblems(problem, parts, 1, lambda problems: [attempt(one) for one in problems])
    return outcome_of(problem, found.assignment, Origin("rebalance", left=left))


@pytest.mark.parametrize("parts", [1, 2])
def test_a_rebalance_brings_replicas_to_their_broker_set(parts: int) -> None:
    outcome = planned(HOSTS, [STRAY, partition(1, 4, 5, topic="u"), partition(2, 2, 3, broker_set="red")], parts)
    (change,) = outcome.plan.assignments
    assert set(change.replicas) < {1, 2, 3}
    assert outcome.facts.remaining == ()
    assert outcome.facts.totals.binding == "forced"
    (fact,) = outcome.facts.partitions
    sentence = next(iter(reason_sentences(fact.reasons)))
    assert sentence.startswith("a copy goes from broker 4 to broker ")
    assert sentence.endswith(": broker 4 is not of the broker set of the topic")


def test_what_no_broker_of_the_set_can_take_stays_and_keeps_no_other() -> None:
    room = {2: 25.0, 3: 25.0}
    hosts = [replace(one, capacity={"disk": room.get(one.id, 500.0) * GIGABYTE}) for one in HOSTS]
    outcome = planned(hosts, [partition(0, 4, 1, gigabytes=50, broker_set="red"), partition(1, 5, 1, broker_set="red")])
    (change,) = outcome.plan.assignments
    assert change.topic_partition.partition == 1
    assert outcome.facts.remaining[0] == (
        "broker 4 keeps replicas of t-0, and is not of their broker set: no broker can take a copy (1, 4 hold one "
        "already; 5 are of another broker set; 2, 3 have no room (disk))"
    )


def test_a_factor_above_its_broker_set_keeps_no_other_from_its_plan() -> None:
    hosts = [*brokers(1, 2, broker_set="red"), *brokers(4, 5)]
    loads = [partition(0, 1, 2, 4, broker_set="red"), *(partition(number, 4, topic="u") for number in range(1, 40))]
    outcome = planned(hosts, loads, bands=(Band(DISK),))
    assert {one.topic_partition.topic for one in outcome.plan.assignments} == {"u"}
    assert outcome.facts.remaining[0].startswith("broker 4 keeps replicas of t-0, and is not of their broker set: no ")


def test_held_partitions_and_a_budget_leave_replicas_outside() -> None:
    held = planned(HOSTS, [replace(STRAY, hold=Hold.EXCLUDED)])
    assert held.plan.assignments == ()
    assert "is not of their broker set: it must stay (of an excluded topic)" in held.facts.remaining[0]
    spent = planned(HOSTS, [STRAY], budget=Budget(moves=0))
    assert spent.plan.assignments == ()
    assert spent.facts.remaining[0].endswith("is not of their broker set: beyond the budget")


def test_topics_that_were_not_chosen_stay_outside() -> None:
    loads = [STRAY, partition(1, 4, 1, topic="u", broker_set="red")]
    problem = rebalance(posed(HOSTS, loads, bands=BANDS), TopicChoice(("u",)))
    outcome = outcome_of(problem, solve(problem).assignment, Origin("rebalance"))
    assert [one.topic_partition.topic for one in outcome.plan.assignments] == ["u"]
    assert "t-0, and is not of their broker set: it must stay (not chosen)" in outcome.facts.remaining[0]


def test_a_topic_with_too_few_brokers_keeps_no_task_from_others() -> None:
    """Three replicas of t-0 are on two brokers of its set and one beside; nothing about it is to change."""
    hosts = [*brokers(1, 2, broker_set="red"), *brokers(4, 5, 6)]
    loads = [partition(0, 1, 2, 4, broker_set="red"), partition(1, 5, 4, topic="u")]
    problem = only_forced(drain_brokers(posed(hosts, loads, bands=BANDS), [5]))
    outcome = outcome_of(problem, solve(problem).assignment, Origin("drain"))
    assert [(one.topic_partition.topic, one.replicas) for one in outcome.plan.assignments] == [("u", (6, 4))]


def test_other_tasks_move_nothing_to_a_broker_set_and_name_it() -> None:
    for task in (lambda one: only_forced(repair(one, leaves_rest=True)), lambda one: add_brokers(one, [5])):
        problem = task(posed(HOSTS, [STRAY], bands=BANDS))
        outcome = outcome_of(problem, solve(problem).assignment, Origin("a task"))
        assert outcome.plan.assignments == ()
        assert outcome.facts.remaining == ("broker 4 keeps replicas of t-0, and is not of their broker set",)
