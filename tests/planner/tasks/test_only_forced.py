"""Forced tasks move replicas, not partitions: what may stay stays, and no byte more than needed is copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.forced_tasks import KINDS, broken_laws, judged, random_task, verdict, with_budget
from kreassign.errors import Infeasible
from kreassign.model import TopicPartition
from kreassign.model.text import counted
from kreassign.operations.twin import scenario_file
from kreassign.planner import BrokerFacts, LogDirFacts, PartitionFacts, Problem, problem_of
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.results import Origin, Outcome, explain, outcome_of
from kreassign.planner.search.search import solve
from kreassign.planner.tasks import TopicChoice, change_factors, drain_brokers, drain_log_dirs, only_forced
from kreassign.twin.scenario import parse_scenario
from tests.planner.sentences import says
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

SCENARIO = scenario_file("skewed")


def skewed() -> Problem:
    """The scenario of that name: every partition has two replicas, and all lie unevenly."""
    blueprint = parse_scenario(SCENARIO.read_text(encoding="utf-8"), SCENARIO.name).blueprint
    loads = [
        PartitionFacts(TopicPartition(topic.name, number), one.replicas, size_bytes=one.traffic.size_bytes)
        for topic in blueprint.topics
        for number, one in enumerate(topic.partitions)
    ]
    return problem_of([BrokerFacts(one.id, one.rack) for one in blueprint.brokers], loads)


def planned(problem: Problem) -> Outcome:
    return outcome_of(problem, solve(problem).assignment, Origin("a task"))


def lists(outcome: Outcome) -> list[tuple[int, ...]]:
    return [one.replicas for one in outcome.plan.assignments]


def test_a_drain_copies_the_replicas_of_the_broker_and_no_others() -> None:
    problem = only_forced(drain_brokers(skewed(), [3]))
    held = int((problem.partitions.replicas == 3).sum())
    outcome = planned(problem)
    assert (outcome.evaluation.moves, held) == (11, 11)
    assert (outcome.facts.totals.gap, outcome.facts.totals.binding) == (0, "forced")
    for before, after in zip(outcome.current.assignments, outcome.plan.assignments, strict=True):
        assert [after.replicas.index(one) == before.replicas.index(one) for one in before.replicas if one != 3] == [
            True
        ]


def test_a_higher_factor_copies_one_replica_and_keeps_leaders() -> None:
    problem = only_forced(change_factors(skewed(), 3, TopicChoice(("payments",))))
    outcome = planned(problem)
    assert (outcome.evaluation.moves, outcome.evaluation.leader_changes, outcome.facts.totals.gap) == (8, 0, 0)
    assert all(
        after.replicas[:2] == before.replicas
        for before, after in zip(outcome.current.assignments, outcome.plan.assignments, strict=True)
    )


def test_what_must_move_goes_where_the_goals_want_it() -> None:
    loads = [*(partition(number, 1, 2) for number in range(6)), *(partition(number, 3) for number in range(6, 12))]
    outcome = planned(only_forced(drain_brokers(posed(brokers(1, 2, 3, 4, 5), loads), [3])))
    assert sorted(broker for one in lists(outcome) for broker in one) == [4, 4, 4, 5, 5, 5]


def test_a_lower_factor_copies_nothing_and_keeps_the_leader() -> None:
    outcome = planned(only_forced(change_factors(posed(brokers(1, 2, 3), [partition(0, 2, 1, 3)]), 2)))
    assert (outcome.evaluation.moves, outcome.evaluation.leader_changes) == (0, 0)
    assert lists(outcome)[0][0] == 2


def test_a_new_replica_leads_in_the_place_of_the_leader_that_goes() -> None:
    outcome = planned(only_forced(drain_brokers(posed(brokers(1, 2, 3), [partition(0, 1, 2)]), [1])))
    assert lists(outcome) == [(3, 2)]


def test_a_follower_takes_over_where_the_new_replica_may_not_lead() -> None:
    hosts = [replace(host, may_lead=host.id != 3) for host in brokers(1, 2, 3)]
    outcome = planned(only_forced(drain_brokers(posed(hosts, [partition(0, 1, 2)]), [1])))
    assert lists(outcome) == [(2, 3)]


def test_the_last_replica_stays_although_it_may_not_lead() -> None:
    hosts = [replace(host, may_lead=host.id != 2) for host in brokers(1, 2, 3)]
    drained = drain_brokers(posed(hosts, [partition(0, 1, 2)]), [1])
    assert lists(planned(only_forced(change_factors(drained, 1)))) == [(2,)]


def test_who_may_not_lead_hands_over_to_a_new_replica_and_stays() -> None:
    hosts = [replace(host, may_lead=host.id != 1) for host in brokers(1, 2)]
    assert lists(planned(only_forced(change_factors(posed(hosts, [partition(0, 1)]), 2)))) == [(2, 1)]


@pytest.mark.parametrize(("before", "factor"), [((1,), 2), ((1, 2), 1)])
def test_what_must_not_move_keeps_its_factor_and_the_plan_says_so(before: tuple[int, ...], factor: int) -> None:
    loads = [partition(0, *before, may_move=False), partition(1, *before)]
    for task in (only_forced, lambda problem: problem):
        outcome = planned(task(change_factors(posed(brokers(1, 2, 3), loads), factor)))
        assert [len(one) for one in lists(outcome)] == [factor]
        kept = says("keeps its factor", 0, counted(len(before), "replica"), factor)
        assert kept in outcome.facts.remaining


def test_a_replica_on_a_full_disk_moves_and_the_plan_names_the_limit() -> None:
    room = {1: 1000.0, 2: 100.0, 3: 60.0}
    hosts = [replace(host, capacity={"disk": room[host.id] * GIGABYTE}) for host in brokers(1, 2, 3)]
    loads = [partition(0, 1, gigabytes=80), partition(1, 2, gigabytes=30), partition(2, 2, gigabytes=10)]
    outcome = planned(only_forced(drain_brokers(posed(hosts, loads), [1])))
    assert [str(one.topic_partition) for one in outcome.plan.assignments] == ["t-0", "t-1"]
    (reason,) = outcome.facts.partitions[1].reasons
    assert (reason.goal, reason.limit, reason.source, reason.destination) == ("capacity:disk", "disk", 2, 3)
    assert "without it broker 2 would exceed its limit of disk by 20 GB" in explain(outcome, TopicPartition("t", 1))[1]
    assert "only what must moves" in explain(outcome, TopicPartition("t", 2))[1]


def test_a_limit_that_nothing_can_keep_is_refused() -> None:
    hosts = brokers(1, 2, capacity={"disk": 50.0 * GIGABYTE})
    loads = [partition(0, 1, gigabytes=30), partition(1, 2, gigabytes=30)]
    hosts.append(replace(brokers(3)[0], capacity={"disk": 500.0 * GIGABYTE}, may_receive=False))
    with pytest.raises(Infeasible, match="no receiver has enough disk left"):
        solve(only_forced(drain_brokers(posed(hosts, loads), [1])))


def test_a_broker_that_was_over_its_limit_before_is_left_alone() -> None:
    room = {1: 1000.0, 2: 50.0, 3: 500.0}
    hosts = [replace(host, capacity={"disk": room[host.id] * GIGABYTE}) for host in brokers(1, 2, 3)]
    outcome = planned(only_forced(drain_brokers(posed(hosts, [partition(0, 1), partition(1, 2, gigabytes=80)]), [1])))
    assert lists(outcome) == [(3,)]
    assert any(sentence.startswith("broker 2: disk is") for sentence in outcome.facts.remaining)


@pytest.mark.parametrize(
    ("lists_after", "said"),
    [
        ((4, 3), says("moves without need", 0, 2, 3)),
        ((2, 1), says("leads without need", 0)),
        ((1, 4, 2), "t-0 has 3 replicas, not 2"),
    ],
)  # fmt: skip
def test_the_check_finds_changes_without_need(lists_after: tuple[int, ...], said: str) -> None:
    problem = only_forced(posed(brokers(1, 2, 3, 4), [partition(0, 1, 2)]))
    assert said in " ".join(evaluate(problem, moved(problem, (0, lists_after))).violations)


def test_the_check_finds_another_order() -> None:
    problem = only_forced(drain_brokers(posed(brokers(1, 2, 3, 4, 5), [partition(0, 1, 2, 3, 4)]), [4]))
    found = evaluate(problem, moved(problem, (0, (1, 3, 2, 5)))).violations
    assert found == (says("ordered without need", 0),)


DISKS = tuple(LogDirFacts(path) for path in ("/a", "/b"))


def test_only_what_is_in_a_directory_to_be_drained_changes_its_directory() -> None:
    loads = [partition(number, 1, log_dirs=("/a" if number < 2 else "/b",)) for number in range(8)]
    outcome = planned(only_forced(drain_log_dirs(posed(brokers(1, 2, log_dirs=DISKS), loads), [(1, "/a")])))
    assert [(one.replicas, one.log_dirs) for one in outcome.plan.assignments] == [((1,), ("/b",))] * 2
    assert outcome.evaluation.moves == 0


def test_replicas_leaving_a_directory_may_leave_the_broker() -> None:
    loads = [partition(number, 3, 1, log_dirs=("/a", "/a" if number < 4 else "/b")) for number in range(8)]
    problem = drain_log_dirs(posed(brokers(1, 2, 3, log_dirs=DISKS), loads), [(1, "/a")], between_brokers=True)
    outcome = planned(only_forced(problem))
    assert [one.topic_partition.partition for one in outcome.plan.assignments] == [0, 1, 2, 3]
    assert {one.replicas for one in outcome.plan.assignments} >= {(3, 2)}


# --- thousands of clusters ------------------------------------------------------------------------------------------


@given(st.integers(0, 1_000_000))
def test_what_may_stay_stays_in_its_place_and_no_byte_more_is_copied(seed: int) -> None:
    assert verdict(seed).wrong == ()


@pytest.mark.parametrize("seed", [1369, 1420, 1868, 1680, 2392])
def test_who_leads_is_right_where_brokers_are_full_or_may_not_lead(seed: int) -> None:
    """In the first three a leader stays as a follower, for leading would exceed a limit; in the others one who may lead
    comes to a partition only after it was asked who could take over."""
    assert verdict(seed).wrong == ()


@pytest.mark.parametrize("seed", [158, 1264])
def test_a_budget_leaves_whole_what_would_be_illegal_by_half(seed: int) -> None:
    """A falling factor with a drain that does not fit, and a rack repair of which one copy does not."""
    problem = with_budget(seed, random_task(seed)[1])
    found, violations = judged(problem, 1)
    assert violations == ()
    assert evaluate(problem, found).unfinished


@pytest.mark.thorough
def test_the_same_holds_for_hundreds_of_clusters_of_every_kind() -> None:
    found = [verdict(seed) for seed in range(200)]
    assert [(seed, one.task, one.wrong) for seed, one in enumerate(found) if one.wrong] == []
    assert {one.task for one in found} >= set(KINDS)
    assert any(one.more for one in found)
    assert sum(not one.task for one in found) < 100


def test_the_laws_see_what_is_done_without_need() -> None:
    """Each replica list and directory that is changed although it might stay is found by the lists alone."""
    hosts = brokers(1, 2, 3, 4, log_dirs=DISKS)
    loads = [partition(0, 1, 2, log_dirs=("/a", "/a")), partition(1, 3, 1, log_dirs=("/a", "/b"))]
    problem = only_forced(drain_brokers(posed(hosts, loads), [1]))
    assert broken_laws(problem, moved(problem, (0, (3, 2)), (1, (3, 4)))) == []
    for lists, said in (
        (((0, (3, 4)), (1, (3, 4))), "[0, 1] -> [2, 3]: [1] could stay"),
        (((0, (2, 3)), (1, (3, 4))), "[0, 1] -> [1, 2]: a follower leads, and a new replica could"),
        (((0, (3, 2)), (1, (4, 3))), "[2, 0] -> [3, 2]: the leader changes"),
    ):
        assert said in broken_laws(problem, moved(problem, *lists))
    elsewhere = moved(problem, (0, (3, 2)), (1, (3, 4)))
    there = Assignment(elsewhere.offsets, elsewhere.replicas, np.array([NOWHERE, 3, NOWHERE, NOWHERE], np.int32))
    assert broken_laws(problem, there) == ["t-0 on 1: /a -> /b without need"]
