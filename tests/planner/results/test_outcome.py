import re
from dataclasses import replace

import pytest

from kreassign.errors import IllegalPlan
from kreassign.model import TopicPartition
from kreassign.model.plan_facts import plan_id
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.planner import Band, LogDirFacts, Problem, Rules, solve
from kreassign.planner.goals import DISK, LEADERS
from kreassign.planner.results import Origin, outcome_of
from kreassign.planner.tasks import demote, drain_brokers, leaders_only, only_forced
from tests.planner.sentences import says
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, plan, posed

ORIGIN = Origin("rebalance", "c", "s", rate_bytes_per_s=1e9)
LOADS = [partition(number, 1, gigabytes=10) for number in range(4)]


def test_the_facts_tell_what_the_plan_was_made_from_costs_and_brings() -> None:
    problem = posed(brokers(1, 2), LOADS, bands=(Band(DISK, 0.1),))
    found = outcome_of(problem, moved(problem, (0, (2,))), ORIGIN)
    facts = found.facts
    assert (found.plan, found.current) == (plan((0, (2,))), plan((0, (1,))))
    assert (facts.plan_id, facts.task, facts.cluster_id, facts.snapshot_id) == (
        plan_id(found.plan),
        "rebalance",
        "c",
        "s",
    )
    assert facts.expected == {TopicPartition("t", 0): (1,)}
    assert (facts.totals.moved_bytes, facts.totals.moves, facts.totals.leader_changes) == (10 * GIGABYTE, 1, 1)
    assert facts.prediction is not None
    assert (facts.prediction.seconds, facts.prediction.least_s) == (10.0, 0.0)
    assert [one.peak_bytes // GIGABYTE for one in facts.brokers] == [40, 10]
    assert facts.remaining == (
        "broker 1: disk is 8 GB above its band",
        "broker 2: disk is 8 GB below its band",
    )
    assert parse_facts(format_facts(facts)) == facts


def test_a_plan_with_missed_bands_is_not_measured_by_meeting_them() -> None:
    problem = posed(brokers(1, 2), LOADS, bands=(Band(DISK, 0.1),))
    assert outcome_of(problem, moved(problem, (0, (2,))), ORIGIN).facts.totals.least_bytes == 0
    whole = outcome_of(problem, moved(problem, (0, (2,)), (1, (2,))), ORIGIN).facts.totals
    assert (whole.least_bytes, whole.binding) == (18 * GIGABYTE, "excess")


def test_the_time_of_a_plan_is_told_with_the_least_that_any_takes() -> None:
    problem = posed(brokers(1, 2), LOADS, bands=(Band(DISK, 0.1),))
    prediction = outcome_of(problem, moved(problem, (0, (2,)), (1, (2,))), ORIGIN).facts.prediction
    assert prediction is not None
    assert (prediction.seconds, prediction.least_s) == (20.0, 18.0)
    assert prediction.gap == pytest.approx(1 / 9)


def test_present_directories_are_kept_where_all_are_known() -> None:
    hosts = brokers(1, 2, log_dirs=(LogDirFacts("/a"),))
    problem = posed(hosts, [partition(0, 1, log_dirs=("/a",)), partition(1, 1)])
    found = outcome_of(problem, moved(problem, (0, (2,)), (1, (2,))), ORIGIN)
    assert [fact.log_dirs for fact in found.facts.partitions] == [("/a",), ()]


def left_by(problem: Problem) -> tuple[str, ...]:
    """Sentences on what remains after the plan for the problem."""
    return outcome_of(problem, solve(problem).assignment, ORIGIN).facts.remaining


def test_only_bands_that_the_task_aims_at_remain() -> None:
    loads = [partition(number, 1, gigabytes=10) for number in range(4)] + [partition(4, 1, 2)]
    problem = posed(brokers(1, 2, 3), loads, bands=(Band(DISK), Band(LEADERS)))
    assert left_by(leaders_only(problem)) == (
        "broker 1: leaders is 2 above its band",
        "broker 3: leaders is 1 below its band",
    )
    assert left_by(only_forced(drain_brokers(problem, (3,)))) == ()
    assert left_by(replace(problem, rules=Rules(between_brokers=False, leaders=False))) == ()


def test_a_load_that_stays_above_its_limit_remains_whatever_the_task() -> None:
    hosts = [*brokers(1, capacity={"disk": 25.0 * GIGABYTE}), *brokers(2)]
    problem = posed(hosts, LOADS, bands=(Band(DISK),), rules=Rules(between_brokers=False))
    assert left_by(problem) == ("broker 1: disk is 40 GB, 15 GB above its limit of 25 GB",)


def test_leaders_that_a_demoted_broker_keeps_remain() -> None:
    loads = [
        partition(0, 1, 2, isr=(1,)), partition(1, 1, isr=(1,)), partition(2, 1, 2, isr=(1, 2)),
        partition(3, 1, 2, isr=(1, 2), may_move=False),
    ]  # fmt: skip
    assert left_by(demote(posed(brokers(1, 2), loads, bands=()), (1,))) == (
        "broker 1 keeps leading: t-3 must stay (to stay); plan without that",
        "broker 1 keeps leading t-1: no other replica may lead",
        "broker 1 keeps leading t-0: its next leader is not in sync, and Kafka elects only what is",
    )


def test_replicas_outside_their_broker_set_remain() -> None:
    hosts = brokers(1) + brokers(2, 3, broker_set="red")
    problem = posed(hosts, [partition(0, 1, 3, broker_set="red")], bands=())
    assert left_by(problem) == ("broker 1 keeps replicas of t-0, and is not of their broker set",)


def test_an_illegal_plan_is_no_outcome() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, may_move=False)])
    with pytest.raises(IllegalPlan, match=re.escape(says("must not move", 0))):
        outcome_of(problem, moved(problem, (0, (2,))), ORIGIN)
