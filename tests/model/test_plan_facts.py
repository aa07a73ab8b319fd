"""Facts of a plan besides its replica lists, as values."""

from __future__ import annotations

import math

import pytest

from kreassign.model import TopicPartition, plan_facts
from kreassign.model.plan import PartitionAssignment, Plan

ONE = PartitionAssignment(TopicPartition("t", 0), (1, 2))
OTHER = PartitionAssignment(TopicPartition("t", 1), (2, 1))


def test_the_id_of_a_plan_follows_its_content_and_not_its_order() -> None:
    assert plan_facts.plan_id(Plan((ONE, OTHER))) == plan_facts.plan_id(Plan((OTHER, ONE)))
    assert plan_facts.plan_id(Plan((ONE,))) != plan_facts.plan_id(Plan((OTHER,)))
    assert plan_facts.plan_id(Plan()) == "c4eb806c53c47534"


@pytest.mark.parametrize(("least_bytes", "gap"), [(100, 110 / 100 - 1), (110, 0.0), (1, 109.0), (0, None)])
def test_the_gap_is_told_only_where_there_is_a_bound(least_bytes: int, gap: float | None) -> None:
    assert plan_facts.Totals(moved_bytes=110, moves=1, leader_changes=0, least_bytes=least_bytes).gap == gap


@pytest.mark.parametrize(("seconds", "least_s", "gap"), [
    (30.0, 20.0, 0.5), (20.0, 20.0, 0.0), (30.0, 0.0, None), (math.inf, 20.0, None), (math.inf, 0.0, None),
])  # fmt: skip
def test_the_gap_of_a_time_is_told_only_where_there_is_a_bound_and_an_end(
    seconds: float, least_s: float, gap: float | None
) -> None:
    assert plan_facts.Prediction(1.0, seconds, 1.0, least_s).gap == gap


@pytest.mark.parametrize(("load", "limit", "use"), [
    (9.0, 6.0, 1.5), (6.0, 6.0, 1.0), (0.0, 6.0, 0.0), (0.5, 0.0, math.inf), (0.0, 0.0, 0.0),
])  # fmt: skip
def test_the_use_of_a_limit_of_nothing_is_infinite(load: float, limit: float, use: float) -> None:
    assert plan_facts.WorstLoss("after", "disk", "rack a", 2, load, limit).use == use


@pytest.mark.parametrize(("source", "target", "crosses"), [
    ("a", "b", True), ("a", "a", False), (None, "a", False), ("a", None, False), (None, None, False),
])  # fmt: skip
def test_only_what_goes_between_two_known_racks_crosses(source: str | None, target: str | None, crosses: bool) -> None:
    assert plan_facts.RackBytes(source, target, 1).crosses is crosses


def test_the_expected_state_is_that_of_the_partitions() -> None:
    facts = plan_facts.PlanFacts("id", "hash", "rebalance", plan_facts.Totals(0, 0, 0), partitions=(
        plan_facts.PlannedPartition(TopicPartition("t", 0), (1, 2), 10),
    ))  # fmt: skip
    assert facts.expected == {TopicPartition("t", 0): (1, 2)}


def test_only_a_reason_of_capacity_tells_which_limit_would_be_exceeded() -> None:
    goals = ("capacity:disk", "capacity", "disk", "drain:disk", "capacity:disk:a")
    assert [plan_facts.Reason(goal).limit for goal in goals] == ["disk", "", "", "", "disk:a"]


@pytest.mark.parametrize(("reason", "sentence"), [
    (plan_facts.Reason("disk"), "the order of followers changes: brings disk 0 closer to balance"),
    (plan_facts.Reason("disk", None, 2, 5.0, "B"), "broker 2 gets a copy: brings disk 5 B closer to balance"),
    (plan_facts.Reason("disk", 1, None, 5e3, "B"), "the copy on broker 1 goes: brings disk 5 kB closer to balance"),
    (plan_facts.Reason("disk", 0, 0, 1.0),
     "a copy goes to another log directory of broker 0: brings disk 1 closer to balance"),
    (plan_facts.Reason("disk", 0, 1, 2.5), "a copy goes from broker 0 to broker 1: brings disk 2.5 closer to balance"),
    (plan_facts.Reason("leaders", 1, 0, 2.0, leading=True),
     "leading goes from broker 1 to broker 0: brings leaders 2 closer to balance"),
    (plan_facts.Reason("capacity:disk", 3, 1, 7e6, "B"),
     "a copy goes from broker 3 to broker 1: without it broker 3 would exceed its limit of disk by 7 MB"),
    (plan_facts.Reason("drain", 3, 1), "a copy goes from broker 3 to broker 1: broker 3 is to be emptied"),
    (plan_facts.Reason("drain-dirs", 3, 3),
     "a copy goes to another log directory of broker 3: its log directory is to be emptied"),
    (plan_facts.Reason("demote", 3, 1, leading=True),
     "leading goes from broker 3 to broker 1: broker 3 is to lead nothing"),
    (plan_facts.Reason("racks", None, 1), "broker 1 gets a copy: too many replicas are in one rack"),
])  # fmt: skip
def test_a_reason_says_what_goes_where_and_why(reason: plan_facts.Reason, sentence: str) -> None:
    assert str(reason) == sentence


@pytest.mark.parametrize(("goal", "cause"), [
    ("disk", "balancing disk"), ("capacity:disk", "a limit of disk"),
    ("capacity", "balancing capacity"),
    ("drain", "a broker is to be emptied"), ("repair", "a broker is dead"),
    ("drain-dirs", "a log directory is to be emptied"),
    ("together", "together with others nearer to the bands"),
])  # fmt: skip
def test_the_cause_of_a_change_names_no_brokers(goal: str, cause: str) -> None:
    assert plan_facts.Reason(goal, 1, 2).cause == cause
