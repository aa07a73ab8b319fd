"""Repairs of which some partitions find no place: the others are repaired, and each that is left is named with why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench.forced_tasks import random_task, with_limits
from kreassign.model import TopicPartition
from kreassign.model.closures import Closure
from kreassign.planner import BrokerFacts, Budget, PartitionFacts, Problem, RackRule, Rules, solve
from kreassign.planner.check.evaluate import Evaluation, evaluate
from kreassign.planner.problem.holds import Hold
from kreassign.planner.tasks import only_forced, plan_around, repair
from tests.planner.sentences import says
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

DOWN = BrokerFacts(9, is_live=False)
UNLIMITED = Budget()


def planned(
    hosts: Sequence[BrokerFacts], loads: Sequence[PartitionFacts], budget: Budget = UNLIMITED
) -> tuple[dict[int, list[int]], Evaluation]:
    """The lists after a repair that leaves what finds no place, by partition."""
    return evaluated(replace(only_forced(repair(posed(hosts, loads), leaves_rest=True)), budget=budget))


def evaluated(problem: Problem) -> tuple[dict[int, list[int]], Evaluation]:
    """The lists after this repair, by partition, and what the independent check says of it."""
    problem, _ = plan_around(problem, repairs_dead=True)
    assignment = solve(problem).assignment
    evaluation = evaluate(problem, assignment)
    assert evaluation.violations == ()
    ids = problem.brokers.ids
    return {number: ids[one].tolist() for number, one in enumerate(assignment.lists())}, evaluation


def with_room(gigabytes: dict[int, float], hosts: Sequence[BrokerFacts]) -> list[BrokerFacts]:
    return [replace(one, capacity={"disk": gigabytes.get(one.id, 1_000.0) * GIGABYTE}) for one in hosts]


def test_a_rack_without_room_for_one_partition_gets_the_others() -> None:
    hosts = with_room({3: 30.0}, brokers(1, 2, 3, racks="aab"))
    loads = [partition(0, 1, 2, gigabytes=50), partition(1, 1, 2), partition(2, 2, 1)]
    after, judged = planned(hosts, loads)
    assert after == {0: [1, 2], 1: [1, 3], 2: [2, 3]}
    (left,) = judged.unfinished
    why = "no broker can take a copy (1, 2 hold one already; 3 have no room (disk))"
    assert left == f"{says('still crowds a rack', 0)}: {why}"


def test_lost_copies_go_where_room_is_the_last_copies_first() -> None:
    """Of t-1 one copy is left, and of the two others t-2 is the smaller one."""
    hosts = with_room({1: 0.0, 2: 0.0, 3: 0.0, 4: 35.0}, [*brokers(1, 2, 3, 4), DOWN])
    loads = [partition(0, 1, 2, 9, 3, gigabytes=30), partition(1, 3, 9, gigabytes=20), partition(2, 1, 2, 9, 3)]
    after, judged = planned(hosts, loads)
    assert (after[0], after[1], after[2]) == ([1, 2, 9, 3], [3, 4], [1, 2, 4, 3])
    assert [one for one in judged.unfinished if one.startswith(says("still has a copy", 0, 9))]


@pytest.mark.parametrize("sizes", [(20, 21), (21, 20)])
def test_growth_does_not_change_which_copies_find_room(sizes: tuple[int, int]) -> None:
    """A plan that is made twice, minutes apart, is to be the same: which of two is the smaller one changes."""
    hosts = with_room({1: 0.0, 2: 0.0, 3: 25.0}, [*brokers(1, 2, 3), DOWN])
    first, second = sizes
    after, _ = planned(hosts, [partition(0, 1, 9, gigabytes=first), partition(1, 2, 9, gigabytes=second)])
    assert after == {0: [1, 3], 1: [2, 9]}


def test_others_make_room_for_what_they_can() -> None:
    """Broker 3 has room for t-0 once u-2 has gone to broker 4; t-1 is larger than any disk."""
    hosts = with_room({1: 0.0, 2: 0.0, 3: 50.0, 4: 20.0}, [*brokers(1, 2, 3, 4), DOWN])
    loads = [partition(0, 1, 9, gigabytes=40), partition(1, 2, 9, gigabytes=60)]
    after, judged = planned(hosts, [*loads, partition(2, 3, gigabytes=20, topic="u")])
    assert after == {0: [1, 3], 1: [2, 9], 2: [4]}
    (left,) = (one for one in judged.unfinished if one.startswith(says("still has a copy", 1, 9)))
    assert "3, 4 have no room (disk)" in left


@pytest.mark.parametrize("hold", [Hold.EXCLUDED, Hold.MOVING])
def test_a_partition_that_must_stay_keeps_no_other_from_its_copies(hold: Hold) -> None:
    after, judged = planned([*brokers(1, 2), DOWN], [partition(0, 1, 9, hold=hold), partition(1, 1, 9)])
    assert after == {0: [1, 9], 1: [1, 2]}
    assert f"{says('still has a copy', 0, 9)}: it {hold.keeps()}" in judged.unfinished


def test_a_factor_beyond_the_brokers_keeps_no_other_from_its_copies() -> None:
    loads = [partition(0, 1, 2, 9), partition(1, 1, 9), *(partition(number, 1, 2) for number in range(2, 5))]
    after, judged = planned([*brokers(1, 2), DOWN], loads)
    assert (after[0], after[1]) == ([1, 2, 9], [1, 2])
    (left,) = judged.unfinished
    assert left == f"{says('still has a copy', 0, 9)}: no broker can take a copy (1, 2 hold one already)"


def test_a_partition_of_which_not_all_copies_have_a_place_says_so() -> None:
    _, judged = planned([*brokers(1, 3), replace(DOWN, id=8), DOWN], [partition(0, 1, 8, 9)])
    assert (
        "t-0: broker 8 still has a copy, but is to have none: not all 2 copies have a place (1 hold one already)"
        in (judged.unfinished)
    )


def test_a_copy_that_must_leave_a_cordoned_broker_counts_as_missing() -> None:
    cordoned = BrokerFacts(2, closure=Closure.CORDONED | Closure.BINDING)
    after, judged = planned([*brokers(1, 3), cordoned, DOWN], [partition(0, 1, 2, 9)])
    assert after == {0: [1, 2, 9]}
    (left,) = (one for one in judged.unfinished if one.startswith(says("still has a copy", 0, 9)))
    assert left.endswith(": not all 2 copies have a place (1, 2 hold one already)")


def test_no_changed_list_names_a_broker_that_is_down() -> None:
    """A run would refuse it, and with it the whole plan."""
    loads = [partition(0, 1, 8, 9), partition(1, 2, 9)]
    hosts = [*brokers(1, 2, 3), replace(DOWN, id=8), DOWN]
    for left, _ in (planned(hosts, loads, Budget(moves=2)), planned(with_room({2: 0.0}, hosts), loads)):
        changed = [one for number, one in left.items() if one != [*loads[number].replicas]]
        assert changed
        assert not any({8, 9} & {*one} for one in changed)


def test_what_comes_back_takes_no_room_that_is_gone() -> None:
    """The copy that t-0 was to lose on broker 1 would make room for t-1 there."""
    hosts = with_room({1: 40.0, 2: 0.0, 3: 5.0}, [*brokers(1, 2, 3, racks="aab"), replace(DOWN, rack="a")])
    loads = [partition(0, 2, 1, gigabytes=40), partition(1, 3, 9, gigabytes=30)]
    assert planned(hosts, loads)[0] == {0: [2, 1], 1: [3, 9]}


# Leaders of a topic, of which each broker is to have so many.

LEAST = Rules(least_topic_leaders={"t": 1})


def test_a_lost_copy_is_replaced_though_its_broker_leads_too_little() -> None:
    loads = [partition(0, 1, 2, lost_on=(1,)), partition(1, 2, 3), partition(2, 3, 2)]
    after, evaluation = evaluated(only_forced(repair(posed(brokers(1, 2, 3), loads, rules=LEAST), leaves_rest=True)))
    assert sorted(after[0]) == [2, 3]
    assert evaluation.unfinished == (
        f"{says('few leaders of a topic', 1, '0 partitions', 't', 1)}; it lost its copy of t-0",
    )


def test_too_few_partitions_to_lead_keep_no_copy_from_its_repair() -> None:
    """With `--and-balance`: no more than two of three brokers can lead a partition of the topic."""
    loads = [partition(0, 1, 9), partition(1, 2, 3)]
    after, evaluation = evaluated(repair(posed([*brokers(1, 2, 3), DOWN], loads, rules=LEAST), leaves_rest=True))
    assert 9 not in after[0]
    (left,) = evaluation.unfinished
    assert left in {says("few partitions to lead", broker, "t", "t", "2 partitions", 1, 3) for broker in (1, 2, 3)}


# Partitions that share a rack against the rule.


@pytest.mark.parametrize("hold", [Hold.EXCLUDED, Hold.UNSIZED])
def test_a_partition_that_must_stay_and_crowds_a_rack_is_named(hold: Hold) -> None:
    hosts = brokers(1, 2, 3, 4, racks="aabb")
    after, evaluation = planned(hosts, [partition(0, 1, 2, hold=hold), partition(1, 1, 2)])
    assert after[0] == [1, 2]
    assert after[1] != [1, 2]
    assert evaluation.out_of_reach == (f"{says('still crowds a rack', 0)}: it {hold.keeps()}",)
    assert evaluation.unfinished == ()


def test_what_the_task_leaves_alone_is_not_named() -> None:
    name = TopicPartition("t", 0)
    problem = repair(posed(brokers(1, 2, 3, racks="aab"), [partition(0, 1, 2)]), without={name}, leaves_rest=True)
    assert evaluated(only_forced(problem))[1].unfinished == ()


def test_a_lost_copy_is_replaced_in_a_rack_that_nothing_can_relieve() -> None:
    """Three replicas have two racks: t-0 gets its copy back, and t-1, of which none is lost, stays as it is."""
    hosts = [*brokers(1, 2, 3, racks="aab"), replace(DOWN, rack="a")]
    loads = [partition(0, 1, 9, 3), partition(1, 1, 2, 3)]
    problem = posed(hosts, loads, rules=Rules(racks=RackRule.STRICT))
    after, evaluation = evaluated(only_forced(repair(problem, leaves_rest=True)))
    assert after == {0: [1, 2, 3], 1: [1, 2, 3]}
    assert [one.partition(":")[0] for one in evaluation.unfinished] == [
        says("still crowds a rack", 0),
        says("still crowds a rack", 1),
    ]


@pytest.mark.parametrize(("budget", "why"), [
    (Budget(moves=1), "beyond the budget"),
    (UNLIMITED, "no broker can take a copy (1, 2 hold one already; 3, 4 have no room (disk))"),
])  # fmt: skip
def test_of_crowded_racks_the_last_copies_are_replaced_first(budget: Budget, why: str) -> None:
    """Rack b has no room, so that both stay as crowded as they are. Of t-1 one copy is left."""
    room = 15.0 if budget == UNLIMITED else 500.0
    hosts = with_room({2: 0.0, 3: room, 4: 0.0}, [*brokers(1, 2, 3, 4, racks="aaab"), replace(DOWN, rack="a")])
    problem = posed(hosts, [partition(0, 1, 2, 9), partition(1, 1, 9)])
    problem = replace(only_forced(repair(problem, racks=False, leaves_rest=True)), budget=budget)
    after, evaluation = evaluated(problem)
    assert after == {0: [1, 2, 9], 1: [1, 3]}
    (left,) = evaluation.unfinished
    assert left == f"{says('still has a copy', 0, 9)}: {why}"


@pytest.mark.thorough
def test_no_repair_is_refused_for_its_limits() -> None:
    posed_tasks = ((seed, *random_task(seed)) for seed in range(240))
    tight = [with_limits(seed, problem)[1] for seed, task, problem in posed_tasks if task == "repair"]
    judged = [
        evaluate(one, solve(one).assignment)
        for one in (replace(one, rules=replace(one.rules, leaves_rest=True)) for one in tight)
    ]
    assert not any(one.violations for one in judged)
    assert any(one.unfinished and one.moves for one in judged)
