"""Leaders in the racks that are preferred for them, in order, as far as replicas are there."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.model.plan_facts import LeaderRacks
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.planner import (
    Band,
    BrokerFacts,
    Budget,
    PlanPolicy,
    Problem,
    RackRule,
    Rules,
    evaluate,
    solve,
    with_policy,
)
from kreassign.planner.check.topics import leader_racks
from kreassign.planner.goals import DISK, LEADERS, REPLICAS
from kreassign.planner.results import Origin, Outcome, explain, outcome_of
from kreassign.planner.tasks import drain_brokers, leaders_only, only_forced
from tests.planner.sentences import says
from tests.planner.small_problems import brokers, partition, posed

PREFERRED = {"t": ("b", "a")}
ANY = (Band(LEADERS, None),)


def planned(problem: Problem) -> Outcome:
    return outcome_of(problem, solve(problem).assignment, Origin("rebalance"))


def pinned(loads, racks: str = "abc", **changes) -> Problem:
    rules = Rules(leader_racks=PREFERRED)
    return posed(brokers(*range(1, len(racks) + 1), racks=racks), loads, **{"rules": rules, "bands": ANY} | changes)


def heads(outcome: Outcome) -> list[int]:
    lists, ids = outcome.assignment.lists(), outcome.problem.brokers.ids
    return [int(ids[one[0]]) for one in lists]


def test_a_leader_is_in_the_first_of_the_racks_that_has_a_replica() -> None:
    outcome = planned(pinned([partition(0, 1, 2, 3), partition(1, 3, 1), partition(2, 2, 3)]))
    assert heads(outcome) == [2, 1, 2]
    assert outcome.evaluation.moves == 0
    assert outcome.facts.leader_racks == LeaderRacks(partitions=3, before=1, after=3)
    assert parse_facts(format_facts(outcome.facts)) == outcome.facts


def test_other_topics_lead_from_anywhere_and_level_what_is_pinned() -> None:
    loads = [*(partition(number, 2, 1) for number in range(3)), *(partition(n, 1, 2, topic="u") for n in range(3))]
    outcome = planned(pinned(loads, racks="ab", bands=(Band(LEADERS, 0.0),)))
    assert heads(outcome) == [2, 2, 2, 1, 1, 1]
    assert outcome.facts.remaining == ()


def test_a_change_of_leader_for_a_rack_says_so() -> None:
    outcome = planned(pinned([partition(0, 1, 2)]))
    (fact,) = outcome.facts.partitions
    assert [(one.goal, one.source, one.destination) for one in fact.reasons] == [("leader-racks", 1, 2)]
    assert "another rack is preferred for leaders of the topic" in explain(outcome, fact.topic_partition)[1]


def test_between_brokers_of_one_rack_leaders_are_balanced() -> None:
    loads = [partition(number, 1, 2, 3) for number in range(6)]
    rules = Rules(racks=RackRule.NONE, leader_racks=PREFERRED)
    outcome = planned(pinned(loads, racks="abb", bands=(Band(LEADERS, 0.5),), rules=rules))
    assert sorted(heads(outcome)) == [2, 2, 2, 3, 3, 3]


def test_partitions_without_a_replica_in_the_racks_are_named() -> None:
    outcome = planned(pinned([partition(0, 3), partition(1, 1, 3)]))
    assert outcome.evaluation.moves == 0
    assert outcome.facts.remaining == (says("no replica in the racks", "t", "1 of 2", "b, a"),)


@pytest.mark.parametrize("why", ["fixed", "budget", "limit"])
def test_leaders_that_cannot_change_are_named(why: str) -> None:
    loads = [partition(0, 1, 2, may_move=why != "fixed")]
    problem = pinned(loads, racks="ab", budget=Budget(leader_changes=0) if why == "budget" else Budget())
    if why == "limit":
        hosts = [replace(host, capacity={"leaders": 2.0 - host.id}) for host in brokers(1, 2, racks="ab")]
        problem = posed(hosts, loads, rules=problem.rules, bands=ANY)
    outcome = planned(problem)
    assert heads(outcome) == [1]
    assert "1 of 1 partitions do not lead from the first of rack b, a that has a replica" in outcome.facts.remaining[0]


def test_brokers_that_may_not_lead_are_passed_over() -> None:
    hosts = [replace(host, may_lead=host.id != 2) for host in brokers(1, 2, 3, racks="abc")]
    problem = posed(hosts, [partition(0, 3, 1, 2)], rules=Rules(leader_racks=PREFERRED), bands=ANY)
    assert heads(planned(problem)) == [1]
    drained = only_forced(drain_brokers(pinned([partition(0, 1, 2), partition(1, 1, 3)], racks="abca"), [3]))
    assert heads(planned(drained)) == [1, 1]


def test_leaders_alone_are_pinned_without_a_copy() -> None:
    outcome = planned(leaders_only(pinned([partition(0, 1, 2), partition(1, 3, 2)])))
    assert (heads(outcome), outcome.evaluation.moves) == ([2, 2], 0)


def test_racks_and_topics_that_are_not_there_are_refused() -> None:
    problem = posed(brokers(1, 2, racks="ab"), [partition(0, 1, 2)])
    with pytest.raises(InputError, match="leader-racks: there is no rack 'x' in this cluster; it has a, b"):
        with_policy(problem, PlanPolicy(leader_racks={"t": ("a", "x")}))
    with pytest.raises(InputError, match="no topic matches 'z'"):
        with_policy(problem, PlanPolicy(leader_racks={"z": ("a",)}))
    with pytest.raises(InputError, match="no broker says its rack"):
        with_policy(posed(brokers(1, 2), [partition(0, 1, 2)]), PlanPolicy(leader_racks={"t": ("a",)}))
    first = with_policy(problem, PlanPolicy(leader_racks={"t": ("b",), ".*": ("a",)}))
    assert first.rules.leader_racks == {"t": ("b",)}


def random_problem(seed: int) -> Problem:
    random = Random(seed)
    count = random.randint(3, 9)
    hosts = [BrokerFacts(one, rack="abc"[one % 3]) for one in range(count)]
    loads = [
        partition(
            number, *random.sample(range(count), random.randint(1, 3)), topic=random.choice("tu"),
            gigabytes=random.lognormvariate(0, 1), may_move=random.random() < 0.9,
        )
        for number in range(random.randint(5, 50))
    ]  # fmt: skip
    topics = {one.topic_partition.topic for one in loads}
    orders = {"t": ("b", "a"), "u": ("c",)}
    rules = Rules(
        leader_racks={topic: orders[topic] for topic in topics},
        topic_spread=random.choice((None, 0.1)),
        failover=random.choice((None, 0.1)),
    )
    bands = (Band(DISK), Band(LEADERS), Band(REPLICAS))
    return posed(hosts, loads, rules=rules, bands=bands, budget=random.choice((Budget(), Budget(moves=3))))


@pytest.mark.parametrize("seed", range(15))
def test_on_random_clusters_leaders_are_in_their_racks(seed: int) -> None:
    problem = random_problem(seed)
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    counts = leader_racks(problem, found)
    assert counts is not None
    assert counts.after >= counts.before
    nothing = np.zeros(len(problem.partitions), np.int32)
    free = replace(problem, partitions=replace(problem.partitions, holds=nothing))
    of_all = leader_racks(free, solve(free).assignment)
    assert of_all is not None
    assert of_all.after == of_all.partitions
