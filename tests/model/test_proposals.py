"""Answers of Cruise Control: what becomes a plan, and what is said of those that have none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.proposals import Proposals, has_proposals, is_plain_answer, parse_proposals

ORDERS_0 = {"topic": "orders", "partition": 0, "hash": 0}
O_0, O_1, O_2, O_3 = (TopicPartition("orders", number) for number in range(4))


def proposal(**changes: object) -> dict[str, Any]:
    return {"topicPartition": ORDERS_0, "oldLeader": 1, "oldReplicas": [1, 2], "newReplicas": [3, 2]} | changes


def answer(**changes: object) -> str:
    return json.dumps({"version": 1, "summary": {"numReplicaMovements": 1}, "proposals": [proposal(**changes)]})


def at(number: int, **changes: object) -> dict[str, Any]:
    return proposal(topicPartition={"topic": "orders", "partition": number}, **changes)


def test_proposals_become_a_plan_that_knows_what_it_was_made_from() -> None:
    plan = Plan((PartitionAssignment(O_0, (3, 2)),))
    assert parse_proposals(answer()) == Proposals(plan, {O_0: (1, 2)}, violated=(), elections=(), log_dir_moves=())


def test_proposals_keep_their_order() -> None:
    read = parse_proposals(json.dumps({"proposals": [at(2), at(0), at(1, newReplicas=[0])]}))
    assert [str(one) for one in read.plan.assignments] == ["orders-2: 3,2", "orders-0: 3,2", "orders-1: 0"]
    assert list(read.expected) == [O_2, O_0, O_1]


def test_an_answer_may_propose_nothing() -> None:
    assert parse_proposals('{"proposals": []}') == Proposals(Plan(), {})


@pytest.mark.parametrize("old", [{"oldReplicas": []}, {"oldReplicas": [], "oldLeader": 3}])
def test_a_proposal_without_old_replicas_expects_nothing(old: dict[str, object]) -> None:
    read = parse_proposals(answer(**old))
    assert (read.expected, read.elections, read.log_dir_moves) == ({}, (), ())


def test_old_replicas_may_be_left_out() -> None:
    entry = {name: value for name, value in proposal().items() if name != "oldReplicas"}
    assert parse_proposals(json.dumps({"proposals": [entry]})) == Proposals(
        Plan((PartitionAssignment(O_0, (3, 2)),)), {}
    )


def test_the_same_list_is_an_election_or_a_move_of_log_dirs() -> None:
    same = [1, 2]
    read = parse_proposals(json.dumps({
        "proposals": [
            at(0, oldLeader=2, newReplicas=same),
            at(1, oldLeader=1, newReplicas=same),
            at(2, oldLeader=None, newReplicas=same),
            at(3, oldLeader=2, newReplicas=[2, 1]),
        ]
    }))  # fmt: skip
    assert (read.elections, read.log_dir_moves) == ((O_0,), (O_1, O_2))
    assert read.expected == dict.fromkeys((O_0, O_1, O_2, O_3), (1, 2))


def test_a_leader_that_is_not_told_leads_already() -> None:
    entry = {name: value for name, value in proposal(newReplicas=[1, 2]).items() if name != "oldLeader"}
    read = parse_proposals(json.dumps({"proposals": [entry]}))
    assert (read.elections, read.log_dir_moves) == ((), (O_0,))


@pytest.mark.parametrize(("summary", "violated"), [
    (
        [
            {"goal": "RackAwareGoal", "status": "FIXED"}, {"goal": "DiskCapacityGoal", "status": "VIOLATED"},
            "VIOLATED", {"status": "VIOLATED"}, {"goal": "CpuCapacityGoal"}, {"goal": "X", "status": "VIOLATED"},
        ],
        ("DiskCapacityGoal", "None", "X"),
    ),
    ({"status": "VIOLATED"}, ()),
    (None, ()),
    ([], ()),
])  # fmt: skip
def test_goals_that_cruise_control_does_not_meet_are_told(summary: object, violated: tuple[str, ...]) -> None:
    assert parse_proposals(json.dumps({"proposals": [], "goalSummary": summary})).violated == violated


@pytest.mark.parametrize(("text", "is_one"), [
    ('{"version":1,"partitions":[]}', False),
    ('{"version":1,"partitions":[],"proposals":[]}', False),
    ('["proposals"]', False),
    ('once "proposals"', False),
    ('{"proposals": NaN}', True),
    ('{"proposals": [{"oldLeader": NaN}]}', True),
    ('{"goalSummary": []}', True),
    ('{"progress": []}', True),
    ('{"errorMessage": ""}', True),
    ('{"a": "proposals"}', False),
    ('{"a": {"proposals": []}}', False),
    ("{}", False),
])  # fmt: skip
def test_proposals_are_told_from_kafkas_json(text: str, is_one: bool) -> None:
    assert has_proposals(text) is is_one


@pytest.mark.parametrize(("text", "is_plain"), [
    ("{orders-0, oldLeader: 1, [1,2] -> [3,2]}", True),
    ("\n\n Cluster load after rebalance:", True),
    ("Optimized load: none", True),
    ("Optimization has 3 inter-broker replica moves", True),
    ('  {"a": "oldLeader: 1"}', False),
    ("{ oldLeader: 1}", True),
    ("Cluster load after", False),
    ('{"proposals": []}', False),
    ("", False),
])  # fmt: skip
def test_an_answer_for_people_is_told_from_one_for_programs(text: str, is_plain: bool) -> None:
    assert is_plain_answer(text) is is_plain


NO_ARRAY = "no array `proposals` in it; ask Cruise Control with json=true&verbose=true"
COMPUTING = (
    "Cruise Control was still computing when it gave this answer; ask again with the same User-Task-ID until the "
    "answer has `proposals`"
)


@pytest.mark.parametrize(("text", "said"), [
    ("once", "not JSON: it is a text of another kind"),
    ("{}", NO_ARRAY),
    ("[]", NO_ARRAY),
    ('{"proposals": {}}', NO_ARRAY),
    ('["errorMessage", "progress"]', NO_ARRAY),
    ('{"errorMessage": "no", "progress": []}', "Cruise Control answered with an error: no"),
    (f'{{"errorMessage": "{"x" * 41}"}}', f"Cruise Control answered with an error: {'x' * 40}…"),
    ('{"errorMessage": 5}', "Cruise Control answered with an error: 5"),
    ('{"progress": [], "version": 1}', COMPUTING),
    ('{"proposals": [3]}', "proposal 0: `topicPartition` has no topic and partition"),
])  # fmt: skip
def test_what_has_no_proposals_is_told_with_what_to_do(text: str, said: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_proposals(text)
    assert str(refused.value) == said


NO_PLACE = "`topicPartition` has no topic and partition"


@pytest.mark.parametrize(("changes", "said"), [
    ({"topicPartition": "orders-0"}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"topic": "orders"}}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"partition": 0}}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"topic": 5, "partition": 0}}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"topic": "..", "partition": 0}}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"topic": "orders", "partition": True}}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"topic": "orders", "partition": -1}}, f"proposal 1: {NO_PLACE}"),
    ({"topicPartition": {"topic": "orders", "partition": 2**31}}, f"proposal 1: {NO_PLACE}"),
    ({"newReplicas": []}, "proposal 1 (orders-0): `newReplicas` is missing or empty"),
    ({"newReplicas": ["1"]}, "proposal 1: `newReplicas` is not a list of broker ids"),
    ({"newReplicas": [1, -1]}, "proposal 1: `newReplicas` is not a list of broker ids"),
    ({"newReplicas": [2**31]}, "proposal 1: `newReplicas` is not a list of broker ids"),
    ({"newReplicas": [True]}, "proposal 1: `newReplicas` is not a list of broker ids"),
    ({"newReplicas": None}, "proposal 1: `newReplicas` is not a list of broker ids"),
    ({"oldReplicas": 3}, "proposal 1: `oldReplicas` is not a list of broker ids"),
    ({"oldReplicas": [1.0]}, "proposal 1: `oldReplicas` is not a list of broker ids"),
])  # fmt: skip
def test_what_is_wrong_with_a_proposal_is_told_with_its_number(changes: dict[str, object], said: str) -> None:
    with pytest.raises(MalformedPlan) as refused:
        parse_proposals(json.dumps({"proposals": [at(1), proposal(**changes)]}))
    assert str(refused.value) == said


def test_new_replicas_must_be_there() -> None:
    entry = {name: value for name, value in proposal().items() if name != "newReplicas"}
    with pytest.raises(MalformedPlan, match=r"^proposal 0 \(orders-0\): `newReplicas` is missing or empty$"):
        parse_proposals(json.dumps({"proposals": [entry]}))


def test_ids_and_partitions_may_be_as_large_as_kafkas() -> None:
    place = {"topic": "orders", "partition": 2**31 - 1}
    read = parse_proposals(answer(topicPartition=place, newReplicas=[0, 2**31 - 1]))
    assert read.plan.replicas == {TopicPartition("orders", 2**31 - 1): (0, 2**31 - 1)}
