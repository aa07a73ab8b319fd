import json

import pytest

from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.proposals import has_proposals, parse_proposals

ORDERS_0 = {"topic": "orders", "partition": 0, "hash": 0}


def answer(**changes):
    proposal = {"topicPartition": ORDERS_0, "oldLeader": 1, "oldReplicas": [1, 2], "newReplicas": [3, 2]} | changes
    return json.dumps({"version": 1, "summary": {"numReplicaMovements": 1}, "proposals": [proposal]})


def test_proposals_become_a_plan_that_knows_what_it_was_made_from():
    found = parse_proposals(answer())
    assert found.plan.replicas == {TopicPartition("orders", 0): (3, 2)}
    assert found.expected == {TopicPartition("orders", 0): (1, 2)}


def test_a_proposal_without_old_replicas_expects_nothing():
    assert parse_proposals(answer(oldReplicas=[])).expected == {}


@pytest.mark.parametrize(("text", "is_one"), [
    (answer(), True),
    ('{"version":1,"partitions":[]}', False),
    ('{"version":1,"partitions":[],"proposals":[]}', False),
    ('["proposals"]', False),
    ('once "proposals"', False),
    (answer(oldLeader=float("nan")), True),
])  # fmt: skip
def test_proposals_are_told_from_kafkas_json(text, is_one):
    assert has_proposals(text) == is_one


@pytest.mark.parametrize(("text", "words"), [
    ("once", "not JSON"),
    ("{}", "no array `proposals`"),
    ("[]", "no array `proposals`"),
    ('{"proposals": [3]}', "proposal 0: `topicPartition`"),
    (answer(topicPartition="orders-0"), "proposal 0: `topicPartition`"),
    (answer(topicPartition={"topic": "orders", "partition": True}), "proposal 0: `topicPartition`"),
    (answer(newReplicas=[]), "orders-0.*`newReplicas` is missing or empty"),
    (answer(newReplicas=["1"]), "`newReplicas` is not a list of broker ids"),
    (answer(oldReplicas=3), "`oldReplicas` is not a list of broker ids"),
])  # fmt: skip
def test_what_is_wrong_is_named(text, words):
    with pytest.raises(MalformedPlan, match=words):
        parse_proposals(text)
