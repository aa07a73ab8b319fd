"""Starting, overriding, cancelling and listing moves.

What brokers that run can be asked is in tests/conformance; here are states that are hard to come to, and older rules.
"""

import pytest

from kreassign.twin.controller.decision import rules_of
from kreassign.twin.controller.reassignments import (
    AlterReassignments,
    Target,
    TopicTargets,
    alter_reassignments,
    list_reassignments,
)
from tests.twin.controller.small_cluster import SmallCluster, ids

OLDEST, OLD, LATEST = rules_of("3.7"), rules_of("3.9"), rules_of("4.3")
NO_MOVE = (85, None)
DONE = (0, None)
UNCLEAN = "unclean.leader.election.enable"


def result(outcome):
    return outcome.code, outcome.message


def foo(text, **options):
    return SmallCluster(**options).topic("foo", text)


def test_dead_brokers_are_fine_even_if_all_are():
    cluster = foo("0 1 / 0 / - / - / -", dead=range(6))
    assert result(cluster.alter("2 3")) == DONE
    assert cluster.state() == "2 3 0 1 / 0 / 2 3 / 0 1 / -"


def test_the_same_list_writes_nothing():
    cluster = foo("0 1 2")
    before = cluster.metadata.offset
    assert result(cluster.alter("0 1 2")) == DONE
    assert cluster.metadata.offset == before


@pytest.mark.parametrize(("target", "dead", "answer"), [
    ("3 1", (), (-1, None)),  # as 4.3.1, which asks for the log directory of 3
    ("2 3", (), (0, None)),  # 2 comes first and has one
    ("3 1", (3,), (0, None)),
    ("1", (), (0, None)),
])  # fmt: skip
def test_kafka_fails_on_an_eligible_leader_while_none_is_in_sync(target, dead, answer):
    cluster = SmallCluster(dead=dead).topic("foo", "1 2 / - / - / - / -", elr=(2, 3))
    assert result(cluster.alter(target)) == answer


# How moves end


def test_an_open_removal_ends_when_the_missing_replica_joins():
    cluster = foo("0 3 2 / 0 2", dead=(3,))
    cluster.alter("0 3")
    cluster.revive(3)
    cluster.report_isr("0 2 3")
    assert cluster.idle() == "0 3 / 0 3"


# Going back


@pytest.mark.parametrize(("before", "after"), [
    ("0 3 5 1 2 / 0 1 2 3 / 3 5 / 1 2 / 0", "0 1 2 / 0 1 2 / - / - / 0"),
    ("4 5 3 2 1 / 4 5 2 / 4 5 / - / 4", "3 2 1 / 2 / - / - / 2"),
])  # fmt: skip
def test_a_cancel_keeps_the_order_and_removes_new_replicas_from_the_isr(before, after):
    cluster = foo(before)
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == after
    assert cluster.partition().leader_epoch == 1
    assert cluster.ongoing() == {}


@pytest.mark.parametrize("isr", ["3", "-"])
def test_a_cancel_that_would_lose_records_is_refused(isr):
    cluster = foo(f"3 0 1 2 / {isr} / 3 / - / {'3' if isr == '3' else '-'}", dead=(0, 1, 2))
    before = cluster.state()
    assert result(cluster.alter(None)) == (
        39,
        "Unable to revert partition assignment for foo:0 because it would require an unclean leader election.",
    )
    assert cluster.state() == before


def test_a_cancel_to_a_dead_broker_leaves_nobody_to_lead():
    cluster = foo("4 3 / 4 / 4 / - / 4", dead=(3,), rules=OLD).configure("", UNCLEAN, "true")
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == "3 / 3 / - / - / -"
    assert cluster.partition().leader_epoch == 1


@pytest.mark.parametrize(("isr", "dead", "after"), [
    ("4", (3,), "3 2 1 / 2 / - / - / 2"),  # nobody of the old replicas is in sync, and the first of them is dead
    ("4 3", (3,), "3 2 1 / 2 / - / - / 2"),  # the only one in sync is dead
    ("4 3", (), "3 2 1 / 3 / - / - / 3"),
    ("4", (), "3 2 1 / 3 / - / - / 3"),
])  # fmt: skip
def test_a_cancel_that_may_lose_records_rather_finds_a_living_leader(isr, dead, after):
    cluster = foo(f"4 3 2 1 / {isr} / 4 / - / 4", dead=dead).configure("foo", UNCLEAN, "true")
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == after


def test_what_was_added_altogether_cannot_be_cancelled():
    cluster = foo("1 2 / 1 2 / 1 2 / - / 1")
    assert result(cluster.alter(None)) == (39, "Invalid replica assignment: addingReplicas contains all replicas.")


# Changing a running move


RUNNING = "2 3 0 1 / 0 1 / 2 3 / 0 1 / 0"


@pytest.mark.parametrize(("rules", "before", "target", "after", "cancelled"), [
    (LATEST, "2 3 0 1 / 0 1 2 / 2 3 / 0 1 / 2", "4 5", "4 5 0 1 2 3 / 0 1 2 / 4 5 / 0 1 2 3 / 2", "0 1 2 3"),
    (OLD, RUNNING, "0 1", "0 1 / 0 1 / - / - / 0", None),
    (OLDEST, RUNNING, "0 1", "0 1 2 3 / 0 1 / 2 3 / 2 3 / 0", "0 1"),
    (LATEST, "1 2 4 3 / 1 2 3 / 4 / 3 / 1", "1 2 4 5", "1 2 4 5 3 / 1 2 3 / 5 / 3 / 1", "1 2 4 3"),
    (LATEST, "1 2 4 3 / 1 2 3 / 4 / 3 / 1", "1 2", "1 2 3 4 / 1 2 3 / 4 / 3 4 / 1", "1 2 3"),
    (OLD, "1 2 4 3 / 1 2 3 / 4 / 3 / 1", "1 2", "1 2 / 1 2 / - / - / 1", None),
    (LATEST, "1 2 3 / 1 3 / - / - / 1", "1 2", "1 2 3 / 1 3 / - / 3 / 1", "1 2 3"),
    (OLD, "1 2 3 / 1 3 / - / - / 1", "1 2", "1 2 3 / 1 3 / - / 3 / 1", "1 2 3"),
    (OLDEST, "1 2 3 / 1 3 / - / - / 1", "1 2", "1 2 / 1 / - / - / 1", None),
])  # fmt: skip
def test_a_new_target_starts_from_all_present_replicas(rules, before, target, after, cancelled):
    cluster = foo(before, rules=rules)
    assert result(cluster.alter(target)) == DONE
    assert cluster.state() == after
    if cancelled is None:
        assert result(cluster.alter(None)) == NO_MOVE
    else:
        assert result(cluster.alter(None)) == DONE
        assert cluster.partition().replicas == ids(cancelled)


@pytest.mark.parametrize(("before", "target", "isr", "after"), [
    # A target with a replica that is really new overwrites what was being added.
    ("2 1 0 3 / 0 1 2 3 / 2 3 / 0 3 / 0", "2 5", "0 1 2 3 5", "2 5 / 2 5"),
    # A target that keeps all that were being added.
    ("0 4 5 1 2 3 / 0 1 2 3 4 5 / 3 4 5 / 1 2 3 / 0", "3 4 5", None, "3 4 5 / 3 4 5"),
])  # fmt: skip
def test_other_ways_out_of_a_move_that_hangs(before, target, isr, after):
    cluster = foo(before)
    cluster.alter(target)
    if isr is not None:
        cluster.report_isr(isr)
    assert cluster.idle() == after


# Requests as a whole


def test_a_millisecond_is_enough():
    assert result(foo("0 1 2").alter("1 0 2", timeout_ms=1)) == DONE


def test_a_request_writes_at_most_ten_thousand_records():
    cluster = SmallCluster()
    cluster.topic("foo", *["0 1"] * 10_002)
    entries = [Target(10_001, (0, 1)), *(Target(index, (1, 0)) for index in range(10_001)), Target(99_999, (1,))]
    command = AlterReassignments((TopicTargets("foo", tuple(entries)),))
    decision = alter_reassignments(cluster.context, command)
    outcomes = [result(outcome) for _, outcome in decision.answer.topics[0].outcomes]
    assert len(decision.records) == 10_000
    assert result(decision.answer.outcome) == DONE
    assert outcomes[:10_001] == [DONE] * 10_001  # the first of them writes nothing
    assert outcomes[10_001:] == [(-1, None), (3, "Unable to find partition foo:99999.")]


# The list


def test_the_list_has_only_what_moves():
    cluster = SmallCluster().topic("foo", "0 1", RUNNING).topic("bar", "0 1").topic("baz", "0 1 2 / 0 1 / - / 1 / 0")
    assert cluster.ongoing() == {
        "foo-1": "replicas: 2,3,0,1. adding: 2,3. removing: 0,1.",
        "baz-0": "replicas: 0,1,2. removing: 1.",
    }


def test_all_that_moves_is_listed_by_name_and_number():
    cluster = SmallCluster().topic("foo", RUNNING, "0 1", RUNNING).topic("bar", RUNNING)
    found = list_reassignments(cluster.metadata)
    assert [(topic.topic, [index for index, _ in topic.partitions]) for topic in found] == [
        ("bar", [0]),
        ("foo", [0, 2]),
    ]


# Kafka's ReplicationControlManagerTest


def test_the_older_rule_cancels_with_old_replicas_out_of_sync():
    cluster = SmallCluster(brokers=range(5), dead=(3,), rules=OLD).topic("bar", "4 3 2 / 4 2")
    cluster.alter("1 2 3 4 0", "bar")
    cluster.report_isr("4 1 2 0", "bar")
    assert cluster.state("bar") == "1 2 3 4 0 / 4 1 2 0 / 0 1 / - / 4"
    cluster.alter(None, "bar")
    assert cluster.state("bar") == "2 3 4 / 4 2 / - / - / 4"
    assert cluster.partition("bar").leader_epoch == 1
