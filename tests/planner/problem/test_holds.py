"""A fixed partition is reported with its cause and the remedy."""

from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import Infeasible
from kreassign.model import TopicPartition
from kreassign.planner import BrokerFacts, solve
from kreassign.planner.problem.build import problem_from
from kreassign.planner.problem.holds import Hold, held_sentences
from kreassign.planner.problem.policy import PlanPolicy, TopicChoice, with_policy
from kreassign.planner.results import Origin, outcome_of, stay_sentences
from kreassign.planner.tasks import drain_brokers, fit_in, ignore_dead_brokers, rebalance
from tests.planner.replica_rows import ReplicaRow, columns_of
from tests.planner.small_problems import brokers, partition, posed

ROWS = [
    ReplicaRow("free", 0, 1, 0, False, 9, 1.0, None),
    ReplicaRow("moving", 0, 1, 0, True, 9, 1.0, None),
    ReplicaRow("unsized", 0, 1, 0, False, None, 1.0, None),
    ReplicaRow("lost", 0, 9, 0, True, None, 1.0, None),
    ReplicaRow("dead", 0, 1, 0, False, 9, 1.0, None),
    ReplicaRow("dead", 0, 9, 1, False, 9, 1.0, None),
]
PROBLEM = problem_from((BrokerFacts(1), BrokerFacts(2)), columns_of(ROWS))


def test_each_cause_is_told_by_its_own_name() -> None:
    problem, _ = ignore_dead_brokers(with_policy(PROBLEM, PlanPolicy(excluded_topics=("unsized",))))
    holds = {str(name): hold for name, hold in problem.partitions.holds_of(range(5))}
    assert holds["free-0"] == Hold.NONE
    assert {name: hold.why for name, hold in holds.items() if hold} == {
        "dead-0": "a broker of it is not live, or lost its copy with a log directory",
        "lost-0": "no live broker has a copy to replicate from",
        "moving-0": "being reassigned",
        "unsized-0": "no broker reported the size and of an excluded topic",
    }


def test_a_partition_without_a_leader_stays() -> None:
    columns = replace(columns_of(ROWS), is_leaderless=np.array([row.topic == "free" for row in ROWS]))
    problem = problem_from((BrokerFacts(1), BrokerFacts(2)), columns)
    assert problem.partitions.holds_of([1]) == [(TopicPartition("free", 0), Hold.LEADERLESS)]
    with pytest.raises(Infeasible, match=r"free-0 must stay \(it has no leader to copy from\); bring back a replica"):
        solve(drain_brokers(problem, (1,)))


def test_tasks_tell_what_they_do_not_choose() -> None:
    chosen = rebalance(PROBLEM, TopicChoice(("moving",)))
    assert [hold.why for name, hold in chosen.partitions.holds_of(range(5)) if name.topic == "free"] == ["not chosen"]
    timed = fit_in(posed(brokers(1, 2), [partition(0, 1, gigabytes=9)]), 1, 1.0)
    assert [hold for _, hold in timed.partitions.holds_of([0])] == [Hold.TOO_LARGE]


def test_a_drain_names_the_cause_of_each_partition_that_stays() -> None:
    with pytest.raises(Infeasible) as refused:
        solve(drain_brokers(PROBLEM, (1,)))
    said = str(refused.value)
    assert "moving-0 must stay (being reassigned); wait for that or cancel it" in said
    assert "unsized-0 must stay (no broker reported the size); see to the log directories" in said
    assert "excluded" not in said


def test_partitions_of_one_cause_share_a_sentence() -> None:
    problem = posed(brokers(1, 2), [partition(number, 1, hold=Hold.MOVING) for number in range(7)])
    (said,) = held_sentences(problem.partitions.holds_of(range(7)))
    assert said.startswith("t-0, t-1, t-2, t-3, t-4 and 2 more must stay (being reassigned)")
    outcome = outcome_of(problem, solve(problem).assignment, Origin("rebalance"))
    late = partition(9, 1).topic_partition
    assert [*stay_sentences(outcome, [late])] == ["t-9 came there while the plan was made; give the command again"]
