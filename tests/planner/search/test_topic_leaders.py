"""Even leaders per topic, after the bands and without a copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.random_clusters import random_cluster
from kreassign.errors import Infeasible
from kreassign.model.plan_facts import TopicLeaders
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.planner import Assignment, Band, Budget, Problem, Rules, evaluate, solve
from kreassign.planner.check.topics import leaders_missed
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.results import Origin, Outcome, explain, outcome_of
from kreassign.planner.tasks import leaders_only, only_forced
from tests.planner.sentences import says
from tests.planner.small_problems import brokers, partition, posed

EVEN = Rules(topic_leaders=0.0)
BANDS = (Band(DISK), Band(LEADERS, 0.0))


def planned(problem: Problem) -> Outcome:
    return outcome_of(problem, solve(problem).assignment, Origin("rebalance"))


def heads(outcome: Outcome, topic: str) -> list[int]:
    problem = outcome.problem
    number = problem.partitions.topic_names.index(topic)
    lists = outcome.assignment.lists()
    return sorted(int(problem.brokers.ids[lists[one][0]]) for one in (problem.partitions.topics == number).nonzero()[0])


def crossed(**changes) -> Problem:
    """Broker 1 leads all of a, 2 all of b: as many leaders each."""
    loads = [*(partition(n, 1, 2, topic="a") for n in range(4)), *(partition(n, 2, 1, topic="b") for n in range(4))]
    return posed(brokers(1, 2), loads, **{"bands": BANDS, "rules": EVEN} | changes)


def test_leaders_of_two_topics_swap_though_each_alone_breaks_a_band() -> None:
    outcome = planned(crossed())
    assert (heads(outcome, "a"), heads(outcome, "b")) == ([1, 1, 2, 2], [1, 1, 2, 2])
    assert (outcome.evaluation.moves, outcome.evaluation.misses(), outcome.facts.remaining) == (0, (), ())
    assert outcome.facts.topic_leaders == TopicLeaders(
        2, uneven_before=2, uneven_after=0, missed_before=8, missed_after=0
    )
    assert parse_facts(format_facts(outcome.facts)) == outcome.facts


def test_a_change_for_it_says_so_and_without_the_goal_there_is_none() -> None:
    outcome = planned(crossed(bands=(Band(LEADERS, None),)))
    assert {reason.goal for one in outcome.facts.partitions for reason in one.reasons} == {"topic-leaders"}
    assert "it spreads the leaders of the topic" in explain(outcome, outcome.facts.partitions[0].topic_partition)[1]
    plain = planned(crossed(rules=Rules()))
    assert (len(plain.plan), plain.facts.topic_leaders) == (0, None)


def test_no_change_for_it_takes_a_broker_out_of_a_band() -> None:
    """Leaders of b have no other replica: any leader of a that left broker 1 would leave it with too few."""
    loads = [*(partition(n, 1, 2, topic="a") for n in range(4)), *(partition(n, 2, topic="b") for n in range(4))]
    outcome = planned(leaders_only(posed(brokers(1, 2), loads, bands=(Band(LEADERS, 0.0),), rules=EVEN)))
    assert heads(outcome, "a") == [1, 1, 1, 1]
    assert outcome.evaluation.misses() == ()
    assert outcome.facts.remaining[0] == says("uneven leaders", "a", 1, "4 of 4", 2)


def test_where_the_bands_would_make_leaders_less_even_than_now_they_yield() -> None:
    """Broker 1 leads all of b, so that the band would have broker 2 lead both of a."""
    loads = [
        partition(0, 1, 2, topic="a"),
        partition(1, 2, 1, topic="a"),
        *(partition(n, 1, topic="b") for n in range(4)),
    ]
    problem = leaders_only(posed(brokers(1, 2), loads, bands=(Band(LEADERS, 0.0),), rules=EVEN))
    assert heads(planned(replace(problem, rules=replace(problem.rules, topic_leaders=None))), "a") == [2, 2]
    outcome = planned(problem)
    assert heads(outcome, "a") == [1, 2]
    assert "broker 1: leaders is 2 above its band" in outcome.facts.remaining


def test_more_partitions_than_brokers_and_fewer_both_are_whole_numbers() -> None:
    loads = [*(partition(n, 1, 2, 3, topic="a") for n in range(7)), partition(0, 1, 2, 3, topic="b")]
    outcome = planned(posed(brokers(1, 2, 3), loads, bands=(), rules=EVEN))
    assert [heads(outcome, "a").count(one) for one in (1, 2, 3)] in ([3, 2, 2], [2, 3, 2], [2, 2, 3])
    assert outcome.facts.remaining == ()


def test_with_a_single_replica_nothing_can_change_and_the_plan_says_so() -> None:
    outcome = planned(posed(brokers(1, 2), [partition(n, 1) for n in range(4)], bands=(), rules=EVEN))
    assert outcome.evaluation.moves == 0
    assert outcome.facts.remaining == (says("uneven leaders", "t", 1, "4 of 4", 2),)


def test_budgets_pins_and_what_must_not_change_are_kept() -> None:
    assert planned(crossed(budget=Budget(leader_changes=0))).evaluation.leader_changes == 0
    assert planned(crossed(budget=Budget(leader_changes=3))).evaluation.leader_changes <= 3
    racked = crossed(rules=replace(EVEN, leader_racks={"a": ("x",)}))
    hosts = posed(brokers(1, 2, racks="xy"), []).brokers
    outcome = planned(replace(racked, brokers=hosts))
    assert heads(outcome, "a") == [1, 1, 1, 1]
    assert len(planned(only_forced(crossed())).plan) == 0
    assert planned(leaders_only(crossed())).facts.remaining == ()


def test_with_failover_both_are_goals_and_leaders_stay_even() -> None:
    loads = [partition(n, 1, 2, 3, topic="ab"[n % 2]) for n in range(12)]
    rules = Rules(topic_leaders=0.0, failover=0.0)
    outcome = planned(posed(brokers(1, 2, 3), loads, bands=(Band(LEADERS, 0.0),), rules=rules))
    assert [line for line in outcome.facts.remaining if line.startswith("topic ")] == []
    assert [one.load for one in outcome.facts.losses if one.state == "after"] == [6]


@pytest.mark.parametrize("seed", range(12))
def test_on_random_clusters_they_get_no_less_even_and_rules_are_kept(seed: int) -> None:
    plain = random_cluster(seed).problem
    problem = replace(plain, rules=replace(plain.rules, topic_leaders=0.1))
    try:
        without, found = solve(plain).assignment, solve(problem).assignment
    except Infeasible:
        return
    assert evaluate(problem, found).violations == ()
    now, before, after = (
        sum(count for count, _ in leaders_missed(problem, one).values())
        for one in (Assignment.current(problem.partitions), without, found)
    )
    assert after <= before
    assert after <= now or evaluate(problem, Assignment.current(problem.partitions)).violations
