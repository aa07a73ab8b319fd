"""Leaders of a plan where replicas lag: Kafka elects only those in sync."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kreassign.errors import Infeasible
from kreassign.planner import Band, Budget, PartitionFacts, Problem, Rules, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.check.topics import leaders_kept
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.tasks import demote, drain_brokers, leaders_only, only_forced, rebalance
from tests.planner.small_problems import brokers, partition, posed


def of_broker_3(count: int, *others: int, isr: tuple[int, ...]) -> list[PartitionFacts]:
    return [partition(number, 3, *others, isr=isr) for number in range(count)]


def led(problem: Problem) -> list[int]:
    """The leader of each partition after the plan, which the independent check finds legal."""
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    assert all(": its next leader is not in sync" not in one for one in leaders_kept(problem, found))
    ids = problem.brokers.ids.tolist()
    return [ids[one[0]] for one in found.lists()]


def test_a_demoted_broker_hands_over_to_a_replica_in_sync() -> None:
    loads = of_broker_3(6, 1, 2, isr=(3, 2))
    assert led(demote(posed(brokers(1, 2, 3, racks="aab"), loads), [3])) == [2] * 6


@pytest.mark.parametrize("rules", [
    Rules(),
    Rules(topic_leaders=0.0),
    Rules(failover=0.1),
    Rules(leader_racks={"t": ("a",)}),
    Rules(least_topic_leaders={"t": 1}),
])  # fmt: skip
@pytest.mark.parametrize("task", [leaders_only, rebalance])
def test_no_pass_lets_a_replica_lead_that_lags(rules: Rules, task: Callable[[Problem], Problem]) -> None:
    """Broker 1 lags, broker 2 is in sync, broker 3 leads all."""
    loads = [*of_broker_3(9, 1, 2, isr=(3, 2)), partition(9, 1, 2, isr=(1, 2))]
    problem = posed(brokers(1, 2, 3, racks="aab"), loads, bands=(Band(LEADERS),), rules=rules)
    leaders = led(task(problem))
    assert 1 not in leaders[:9]
    assert 2 in leaders


def test_a_follower_in_sync_takes_over_from_a_drained_leader() -> None:
    loads = of_broker_3(4, 1, 2, isr=(3, 2))
    hosts = brokers(1, 2, 3, 4)
    hosts[3] = replace(hosts[3], may_lead=False)
    assert led(only_forced(drain_brokers(posed(hosts, loads), [3]))) == [2] * 4


@pytest.mark.parametrize("lists", [
    {(3, 2): 5, (4, 2): 3, (1, 4): 5, (2, 1): 8},
    {(4, 1): 8, (3, 4): 3, (3, 1): 5, (1, 2): 8},
])  # fmt: skip
def test_a_leader_that_moves_does_not_come_to_a_copy_that_lags(lists: dict[tuple[int, int], int]) -> None:
    loads = [
        partition(number, leader, follower, gigabytes=size, isr=(leader,))
        for number, ((leader, follower), size) in enumerate(lists.items())
    ]
    leaders = led(rebalance(posed(brokers(1, 2, 3, 4), loads, bands=(Band(DISK, 0.0),))))
    assert [one for one, (_, lags) in zip(leaders, lists, strict=True) if one == lags] == []


def test_one_that_lags_leads_where_no_other_can() -> None:
    problem = demote(posed(brokers(1, 2, 3), of_broker_3(2, 1, isr=(3,))), [3])
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    assert list(leaders_kept(problem, found)) == [
        "broker 3 keeps leading t-0, t-1: its next leader is not in sync, and Kafka elects only what is"
    ]


LAGGING = [partition(number, 2, 1, isr=(2,)) for number in range(2)]
FEW = "broker 1 leads 0 partitions of topic t, not 1"
BEHIND = "its copies of t-0, t-1 are not in sync, and Kafka elects only what is"


def test_too_few_leaders_of_a_topic_are_refused_with_the_copies_that_lag() -> None:
    problem = leaders_only(posed(brokers(1, 2), LAGGING, rules=Rules(least_topic_leaders={"t": 1})))
    with pytest.raises(Infeasible) as refused:
        solve(problem)
    assert f"{FEW}; {BEHIND}" in str(refused.value)
    problem = replace(problem, budget=Budget(leader_changes=2))
    assert evaluate(problem, solve(problem).assignment).unfinished == (f"{FEW}; {BEHIND}",)


def test_a_lost_copy_that_the_budget_leaves_does_not_lead() -> None:
    loads = [partition(number, 1, 2, lost_on=(2,)) for number in range(4)]
    problem = posed(brokers(1, 2, 3), loads, bands=(Band(LEADERS),), budget=Budget(moves=0))
    assert led(problem) == [1] * 4


def test_the_preferred_leader_may_lead_again_although_it_lags() -> None:
    loads = [partition(number, 1, 2, isr=(2,)) for number in range(4)]
    problem = leaders_only(posed(brokers(1, 2), loads, bands=(Band(LEADERS),)))
    assert sorted(led(problem)) == [1, 1, 2, 2]
