"""Starting, overriding, cancelling and listing moves: the rows of the published tables, and what real brokers did."""

import pytest

from kreassign.model import ElectionType
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


# What is refused


@pytest.mark.parametrize(("name", "index", "target", "code", "message"), [
    ("nope", 0, "0 1", 3, "Unable to find a topic named nope."),
    ("nope", 0, None, 3, "Unable to find a topic named nope."),
    ("", 0, "0", 3, "Unable to find a topic named ."),
    ("foo", 77, "0 1", 3, "Unable to find partition foo:77."),
    ("foo", -1, "-", 3, "Unable to find partition foo:-1."),
    ("foo", 77, None, 3, "Unable to find partition foo:77."),
    ("foo", 0, None, 85, None),
    ("foo", 0, "-", 39, "The manual partition assignment includes an empty replica list."),
    ("foo", 0, "0 1 9", 39, "The manual partition assignment includes broker 9, but no such broker is registered."),
    ("foo", 0, "9 8 1", 39, "The manual partition assignment includes broker 8, but no such broker is registered."),
    ("foo", 0, "0 -1 1", 39, "The manual partition assignment includes broker -1, but no such broker is registered."),
    ("foo", 0, "5 5 -3", 39, "The manual partition assignment includes broker -3, but no such broker is registered."),
    ("foo", 0, "9 9 1", 39, "The manual partition assignment includes broker 9, but no such broker is registered."),
    ("foo", 0, "9 1 1", 39, "The manual partition assignment includes the broker 1 more than once."),
    ("foo", 0, "0 0", 39, "The manual partition assignment includes the broker 0 more than once."),
])  # fmt: skip
@pytest.mark.parametrize("may_change_factor", [True, False])
def test_what_cannot_be_done_is_refused_in_kafkas_words(name, index, target, code, message, may_change_factor):
    cluster = foo("0 1 2")
    outcome = cluster.alter(target, name, index, allow_replication_factor_change=may_change_factor)
    assert result(outcome) == (code, message)
    assert cluster.idle() == "0 1 2 / 0 1 2"


@pytest.mark.parametrize("target", ["3 1", "5 3 0", "3 0 1 2"])
def test_dead_brokers_are_fine_as_targets(target):
    cluster = foo("0 1 2", dead=(3, 5))
    assert result(cluster.alter(target)) == DONE
    assert cluster.partition().is_reassigning


def test_dead_brokers_are_fine_even_if_all_are():
    cluster = foo("0 1 / 0 / - / - / -", dead=range(6))
    assert result(cluster.alter("2 3")) == DONE
    assert cluster.state() == "2 3 0 1 / 0 / 2 3 / 0 1 / -"


# What a start writes


@pytest.mark.parametrize(("replicas", "target", "after"), [
    ("3 2 1", "3 2 1", "3 2 1 / 3 2 1 / - / - / 3"),
    ("3 2 1", "3 0 2 1 5", "3 0 2 1 5 / 3 2 1 / 0 5 / - / 3"),
    ("3 2 1 0", "5 3 1 4", "5 3 1 4 0 2 / 3 2 1 0 / 4 5 / 0 2 / 3"),
    ("3 2 1 0", "0 1 3 2", "0 1 3 2 / 3 2 1 0 / - / - / 3"),
    ("3 2 1 0", "3 1", "3 1 / 3 1 / - / - / 3"),
])  # fmt: skip
def test_a_start_lists_the_target_first_and_what_goes_last(replicas, target, after):
    cluster = foo(replicas)
    assert result(cluster.alter(target)) == DONE
    assert cluster.state() == after


def test_what_goes_stays_until_the_rest_is_in_sync():
    cluster = foo("3 2 1 0 / 2 1 0 / - / - / 2")
    cluster.alter("3 1")
    assert cluster.state() == "3 1 0 2 / 2 1 0 / - / 0 2 / 2"
    assert cluster.ongoing() == {"foo-0": "replicas: 3,1,0,2. removing: 0,2."}


def test_the_same_list_writes_nothing():
    cluster = foo("0 1 2")
    before = cluster.metadata.offset
    assert result(cluster.alter("0 1 2")) == DONE
    assert cluster.metadata.offset == before


def test_another_order_is_done_at_once_and_never_listed():
    cluster = foo("0 1 2")
    cluster.alter("2 0 1")
    assert cluster.state() == "2 0 1 / 0 1 2 / - / - / 0"
    assert cluster.partition().leader_epoch == 0
    assert result(cluster.alter(None)) == NO_MOVE


def test_another_order_with_a_member_out_of_sync_is_done_at_once():
    cluster = foo("0 3 1 / 0 1", dead=(3,))
    cluster.alter("1 3 0")
    assert cluster.state() == "1 3 0 / 0 1 / - / - / 0"
    assert cluster.partition().leader_epoch == 0


def test_removing_replicas_is_done_at_once_and_raises_the_epoch_though_the_leader_stays():
    cluster = foo("0 1 2")
    cluster.alter("0 1")
    assert cluster.state() == "0 1 / 0 1 / - / - / 0"
    assert cluster.partition().leader_epoch == 1
    assert cluster.partition().partition_epoch == 1


def test_adding_replicas_leaves_the_leader_epoch_alone():
    cluster = foo("0 1 2")
    cluster.alter("3 4 5")
    assert cluster.partition().leader_epoch == 0
    assert cluster.partition().partition_epoch == 1


@pytest.mark.parametrize(("target", "dead", "answer"), [
    ("3 1", (), (-1, None)),  # as 4.3.1, which asks for the log directory of 3
    ("2 3", (), (0, None)),  # 2 comes first and has one
    ("3 1", (3,), (0, None)),
    ("1", (), (0, None)),
])  # fmt: skip
def test_kafka_stumbles_over_an_eligible_leader_that_comes_back_while_nobody_is_in_sync(target, dead, answer):
    cluster = SmallCluster(dead=dead).topic("foo", "1 2 / - / - / - / -", elr=(2, 3))
    assert result(cluster.alter(target)) == answer


def test_the_least_isr_plays_no_part():
    cluster = foo("0 1 2").configure("foo", "min.insync.replicas", "2")
    cluster.alter("0")
    assert cluster.idle() == "0 / 0"
    assert cluster.partition().elr == (1, 2)  # so on Kafka 4.3.1, though they are no replicas any more


# How moves end


@pytest.mark.parametrize(("before", "dead", "target", "isr", "after", "epoch"), [
    ("0 3 1 / 0 1", (3,), "0 3 2", "0 1 2", "0 3 2 / 0 2 / - / - / 0", 1),
    ("0 3 / 0", (3,), "0 3 1", "0 1", "0 3 1 / 0 1 / - / - / 0", 0),
    ("0 3 1 / 0 1", (3,), "0 3 4 5", "0 1 4 5", "0 3 4 5 / 0 4 5 / - / - / 0", 1),
    ("0 3 1 2 / 0 1 2", (3,), "0 3 4 5", "0 1 2 4 5", "0 3 4 5 / 0 4 5 / - / - / 0", 1),
    ("0 3 2 / 0 2", (3,), "0 3", None, "0 3 2 / 0 2 / - / 2 / 0", 0),
    ("3 2 1 0 / 2 1 0", (3,), "3 1", None, "3 1 0 2 / 2 1 0 / - / 0 2 / 2", 0),
    ("0 3 1 2 / 0 1 2", (3,), "0 3 4", "0 1 2 4", "0 3 4 1 2 / 0 1 2 4 / 4 / 1 2 / 0", 0),
    ("0 3 1 2 / 0 1 2", (3,), "0 1 2", None, "0 1 2 / 0 1 2 / - / - / 0", 1),
])  # fmt: skip
def test_moves_end_as_on_kafka_4_3(before, dead, target, isr, after, epoch):
    cluster = foo(before, dead=dead)
    cluster.alter(target)
    if isr is not None:
        assert cluster.report_isr(isr).code == 0
    assert cluster.state() == after
    assert cluster.partition().leader_epoch == epoch


def test_an_open_removal_ends_when_the_missing_replica_joins():
    cluster = foo("0 3 2 / 0 2", dead=(3,))
    cluster.alter("0 3")
    cluster.revive(3)
    cluster.report_isr("0 2 3")
    assert cluster.idle() == "0 3 / 0 3"


def test_a_move_ends_with_its_new_leader_where_the_old_one_left():
    cluster = foo("0 1")
    cluster.alter("2 3")
    assert cluster.report_isr("0 1 2 3").code == 108
    assert cluster.state() == "2 3 / 2 3 / - / - / 2"
    assert cluster.partition().leader_epoch == 1


@pytest.mark.parametrize(("before", "target", "leader"), [("2 0 1", "0 3 2", 2), ("0 1", "2 0", 0), ("2 3", "4 0", 4)])
def test_the_leader_stays_if_it_is_in_the_new_list(before, target, leader):
    cluster = foo(before)
    cluster.alter(target)
    cluster.report_isr(f"{before} " + " ".join(broker for broker in target.split() if broker not in before.split()))
    assert cluster.partition().leader == leader


# Going back


@pytest.mark.parametrize(("before", "after"), [
    ("4 1 0 2 / 0 1 2 / 4 / 2 / 0", "1 0 2 / 0 1 2 / - / - / 0"),
    ("5 2 0 4 1 / 0 1 2 / 4 5 / 1 / 0", "2 0 1 / 0 1 2 / - / - / 0"),
    ("0 3 5 1 2 / 0 1 2 3 / 3 5 / 1 2 / 0", "0 1 2 / 0 1 2 / - / - / 0"),
    ("4 5 3 2 1 / 4 5 2 / 4 5 / - / 4", "3 2 1 / 2 / - / - / 2"),
])  # fmt: skip
def test_a_cancel_keeps_the_order_and_throws_the_new_replicas_out_of_the_isr(before, after):
    cluster = foo(before)
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == after
    assert cluster.partition().leader_epoch == 1
    assert cluster.ongoing() == {}


def test_a_cancel_does_not_restore_the_order():
    cluster = foo("1 2 3", brokers=range(4))
    cluster.alter("0 2 1")
    assert cluster.state() == "0 2 1 3 / 1 2 3 / 0 / 3 / 1"
    cluster.alter(None)
    assert cluster.state() == "2 1 3 / 1 2 3 / - / - / 1"


def test_cancelling_a_pure_removal_changes_no_epoch_of_the_leader():
    cluster = foo("0 3 2 / 0 2 / - / 2 / 0", dead=(3,))
    cluster.alter(None)
    assert cluster.state() == "0 3 2 / 0 2 / - / - / 0"
    assert cluster.partition().leader_epoch == 0


@pytest.mark.parametrize("isr", ["3", "-"])
def test_a_cancel_that_would_lose_records_is_refused(isr):
    cluster = foo(f"3 0 1 2 / {isr} / 3 / - / {'3' if isr == '3' else '-'}", dead=(0, 1, 2))
    before = cluster.state()
    assert result(cluster.alter(None)) == (
        39,
        "Unable to revert partition assignment for foo:0 because it would require an unclean leader election.",
    )
    assert cluster.state() == before


def test_a_cancel_that_loses_records_can_be_allowed():
    cluster = foo("4 5 3 2 1 / 4 5 / 4 5 / - / 4").configure("foo", UNCLEAN, "true")
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == "3 2 1 / 3 / - / - / 3"


def test_a_cancel_to_a_dead_broker_leaves_nobody_to_lead():
    cluster = foo("4 3 / 4 / 4 / - / 4", dead=(3,), rules=OLD).configure("", UNCLEAN, "true")
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == "3 / 3 / - / - / -"
    assert cluster.partition().leader_epoch == 1


@pytest.mark.parametrize(("isr", "dead", "after"), [
    ("4", (3,), "3 2 1 / 2 / - / - / 2"),  # nobody of the old replicas is in sync, and the first of them is dead
    ("4 3", (3,), "3 2 1 / 2 / - / - / 2"),  # the only one in sync is dead
    ("4 3", (), "3 2 1 / 3 / - / - / 3"),
])  # fmt: skip
def test_a_cancel_that_may_lose_records_rather_finds_a_living_leader(isr, dead, after):
    cluster = foo(f"4 3 2 1 / {isr} / 4 / - / 4", dead=dead).configure("foo", UNCLEAN, "true")
    assert result(cluster.alter(None)) == DONE
    assert cluster.state() == after


def test_what_was_added_altogether_cannot_be_cancelled():
    cluster = foo("1 2 / 1 2 / 1 2 / - / 1")
    assert result(cluster.alter(None)) == (39, "Invalid replica assignment: addingReplicas contains all replicas.")


# The replication factor (KIP-860)


@pytest.mark.parametrize(("before", "target", "message"), [
    ("0 1 2", "1 2 3", None),
    ("0 1 2", "0 1", "The replication factor is changed from 3 to 2"),
    ("0 1 2", "0 1 2 3", "The replication factor is changed from 3 to 4"),
    ("1 2 3 0 / 0 1 2 / 3 / 0 / 0", "0 1", "The replication factor is changed from 3 to 2"),
    ("1 2 3 0 / 0 1 2 / 3 / 0 / 0", "0 1 2 3", "The replication factor is changed from 3 to 4"),
    ("1 2 3 0 / 0 1 2 / 3 / 0 / 0", "1 2 3 0", "The replication factor is changed from 3 to 4"),
    ("1 2 3 0 / 0 1 2 / 3 / 0 / 0", "0 2 3", None),
    ("1 2 3 0 / 0 1 2 / 3 / 0 / 0", None, None),
])  # fmt: skip
def test_the_factor_counts_what_a_move_ends_with(before, target, message):
    refused = foo(before).alter(target, allow_replication_factor_change=False)
    assert result(refused) == (DONE if message is None else (38, message))
    assert result(foo(before).alter(target)) == DONE


# Changing a running move


RUNNING = "2 3 0 1 / 0 1 / 2 3 / 0 1 / 0"


@pytest.mark.parametrize(("rules", "before", "target", "after", "cancelled"), [
    (LATEST, "0 1", "2 3", RUNNING, "0 1"),
    (LATEST, "2 3 0 1 / 0 1 2 / 2 3 / 0 1 / 2", "4 5", "4 5 0 1 2 3 / 0 1 2 / 4 5 / 0 1 2 3 / 2", "0 1 2 3"),
    (LATEST, RUNNING, "2 3", RUNNING, "0 1"),
    (LATEST, RUNNING, "3 2", "3 2 0 1 / 0 1 / 2 3 / 0 1 / 0", "0 1"),
    (LATEST, RUNNING, "2 3 0 1", RUNNING, "0 1"),
    (LATEST, RUNNING, "0 1", "0 1 2 3 / 0 1 / 2 3 / 2 3 / 0", "0 1"),
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


@pytest.mark.parametrize(("before", "target", "after"), [
    ("4 5 0 1 / 0 1 / 4 5 / 0 1 / 0", "0 1", "0 1 4 5 / 0 1 4 5 / 4 5 / 4 5 / 0"),
    ("0 1 4 2 / 0 1 2 / 4 / 2 / 0", "0 1", "0 1 2 4 / 0 1 2 4 / 4 / 2 4 / 0"),
    ("4 5 0 1 / 0 1 / 4 5 / 0 1 / 0", "4", "4 0 1 5 / 0 1 4 5 / 4 5 / 0 1 5 / 0"),
    ("0 3 5 / 5 / 0 3 / 5 / 5", "0 5", "0 5 3 / 0 3 5 / 0 3 / 3 / 5"),
])  # fmt: skip
def test_a_target_that_adds_nothing_while_an_adding_replica_goes_hangs_for_ever(before, target, after):
    cluster = foo(before)
    cluster.alter(target)
    cluster.report_isr(" ".join(sorted(after.split(" / ")[0].split())))
    assert cluster.state() == after
    assert cluster.ongoing()
    assert result(cluster.alter(None)) == DONE
    assert cluster.ongoing() == {}


@pytest.mark.parametrize("target", ["0 1", "1 0"])
def test_resubmitting_does_not_free_a_move_that_hangs(target):
    cluster = foo("0 1 4 5 / 0 1 4 5 / 4 5 / 4 5 / 0")
    cluster.alter(target)
    assert cluster.partition().adding == cluster.partition().removing == (4, 5)


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


def test_entries_are_judged_each_by_itself_and_answered_in_their_order():
    cluster = SmallCluster().topic("foo", "0 1 2", "0 1 2").topic("bar", "0 1")
    answers = cluster.alter_many(("foo", 1, "3"), ("bar", 9, "1"), ("bar", 0, "9"), ("foo", 0, None), ("bar", 0, "1 0"))
    assert [code for code, _ in answers] == [0, 3, 39, 85, 0]
    assert cluster.state("foo", 1) == "3 0 1 2 / 0 1 2 / 3 / 0 1 2 / 0"
    assert cluster.state("bar") == "1 0 / 0 1 / - / - / 0"


@pytest.mark.parametrize(("before", "targets", "answers", "after", "epoch"), [
    ("0 1 2", ["0 1 3", "0 1 4"], [DONE, DONE], "0 1 4 2 / 0 1 2 / 4 / 2 / 0", 0),
    ("0 1 4 2 / 0 1 2 / 4 / 2 / 0", [None, "0 1 5"], [DONE, DONE], "0 1 5 2 4 / 0 1 2 / 5 / 2 4 / 0", 1),
    ("0 1 2", ["0 1 5", None], [DONE, NO_MOVE], "0 1 5 2 / 0 1 2 / 5 / 2 / 0", 0),
    ("0 1 4 2 / 0 1 2 / 4 / 2 / 0", [None, None], [DONE, DONE], "0 1 2 / 0 1 2 / - / - / 0", 2),
])  # fmt: skip
def test_two_entries_about_one_partition_start_from_the_same_state(before, targets, answers, after, epoch):
    cluster = foo(before)
    assert cluster.alter_many(*(("foo", 0, target) for target in targets)) == answers
    assert cluster.state() == after
    assert cluster.partition().leader_epoch == epoch


def test_a_topic_may_come_twice_and_without_partitions_even_if_nobody_knows_it():
    cluster = foo("0 1 2")
    entries = (TopicTargets("nope", ()), TopicTargets("foo", (Target(0, (1, 0, 2)),)), TopicTargets("foo", ()))
    answer = cluster.commit(alter_reassignments, AlterReassignments(entries))
    assert [(topic.topic, len(topic.outcomes)) for topic in answer.topics] == [("nope", 0), ("foo", 1), ("foo", 0)]
    assert result(answer.outcome) == DONE


def test_no_topics_are_answered_with_an_empty_text():
    answer = foo("0 1 2").commit(alter_reassignments, AlterReassignments(()))
    assert (result(answer.outcome), answer.topics) == ((0, ""), ())


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_request_without_time_does_nothing_and_says_so_everywhere(timeout_ms):
    cluster = foo("0 1 2")
    entries = (TopicTargets("foo", (Target(0, (3,)), Target(9, None))), TopicTargets("nope", ()))
    answer = cluster.commit(alter_reassignments, AlterReassignments(entries, timeout_ms=timeout_ms))
    assert result(answer.outcome) == (7, None)
    assert [[result(outcome) for _, outcome in topic.outcomes] for topic in answer.topics] == [[(7, None)] * 2, []]
    assert cluster.idle() == "0 1 2 / 0 1 2"


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


@pytest.mark.parametrize(("wanted", "listed"), [
    ((), []),
    ((("foo", (0, 1)), ("nope", (0,))), [("foo", [1])]),
    ((("foo", (0,)), ("bar", (0, -1, 9))), []),
    ((("foo", ()),), []),
    ((("foo", (1, 1)), ("foo", (1,))), [("foo", [1, 1]), ("foo", [1])]),
])  # fmt: skip
def test_what_was_asked_for_is_listed_as_often_as_it_was(wanted, listed):
    cluster = SmallCluster().topic("foo", "0 1", RUNNING).topic("bar", "0 1")
    found = list_reassignments(cluster.metadata, wanted)
    assert [(topic.topic, [index for index, _ in topic.partitions]) for topic in found] == listed


def test_all_that_moves_is_listed_by_name_and_number():
    cluster = SmallCluster().topic("foo", RUNNING, "0 1", RUNNING).topic("bar", RUNNING)
    found = list_reassignments(cluster.metadata)
    assert [(topic.topic, [index for index, _ in topic.partitions]) for topic in found] == [
        ("bar", [0]),
        ("foo", [0, 2]),
    ]


# Kafka's ReplicationControlManagerTest


def test_reassign_partitions():
    cluster = SmallCluster(brokers=range(4)).topic("foo", "1 2 3", "3 2 1").topic("bar", "1 2 3")
    answers = cluster.alter_many(("foo", 0, "3 2 1"), ("foo", 1, "0 2 1"), ("foo", 2, "0 2 1"))
    assert answers == [DONE, DONE, (3, "Unable to find partition foo:2.")]
    assert cluster.ongoing() == {"foo-1": "replicas: 0,2,1,3. adding: 0. removing: 3."}
    assert cluster.report_isr("3 0 2 1", index=1).code == 108
    assert cluster.idle(index=1) == "0 2 1 / 0 2 1"


def test_reassign_partitions_and_cancel():
    cluster = SmallCluster(brokers=range(4)).topic("foo", "1 2 3", "3 2 1").topic("bar", "1 2 3")
    cluster.alter("3 2 1")
    cluster.alter("0 2 1", index=1)
    answers = cluster.alter_many(("foo", 0, None), ("foo", 1, None), ("foo", 2, None), ("bar", 0, None))
    assert answers == [NO_MOVE, DONE, (3, "Unable to find partition foo:2."), NO_MOVE]
    assert cluster.state(index=1) == "2 1 3 / 3 2 1 / - / - / 3"
    assert cluster.partition(index=1).leader_epoch == 1


def test_cancel_reassign_partitions():
    cluster = SmallCluster(brokers=range(5), dead=(3,)).topic(
        "foo", "1 2 3 4 / 1 2 4", "0 1 2 3 / 0 1 2", "0 1 3 4 / 0 1 4"
    )
    cluster.topic("bar", "4 3 2 / 4 2")
    assert result(cluster.alter("1 2 4")) == DONE
    assert cluster.idle() == "1 2 4 / 1 2 4"
    assert cluster.partition().leader_epoch == 1
    assert result(cluster.alter("1 2 3 0", index=1)) == DONE
    assert cluster.state(index=1) == "1 2 3 0 / 0 1 2 / - / - / 0"
    assert cluster.partition(index=1).leader_epoch == 0
    assert cluster.alter("5 6 7", index=2).code == 39
    assert cluster.alter("-", index=2).code == 39
    assert result(cluster.alter("1 2 3 4 0", "bar")) == DONE
    assert cluster.state("bar") == "1 2 3 4 0 / 4 2 / 0 1 / - / 4"
    cluster.report_isr("4 1 2 0", "bar")
    assert cluster.idle("bar") == "1 2 3 4 0 / 4 1 2 0"  # Kafka's own test is of the older rule; see the next one
    assert result(cluster.alter(None, "bar")) == NO_MOVE


def test_cancel_while_the_old_replicas_are_not_all_in_sync_under_the_older_rule():
    cluster = SmallCluster(brokers=range(5), dead=(3,), rules=OLD).topic("bar", "4 3 2 / 4 2")
    cluster.alter("1 2 3 4 0", "bar")
    cluster.report_isr("4 1 2 0", "bar")
    assert cluster.state("bar") == "1 2 3 4 0 / 4 1 2 0 / 0 1 / - / 4"
    cluster.alter(None, "bar")
    assert cluster.state("bar") == "2 3 4 / 4 2 / - / - / 4"
    assert cluster.partition("bar").leader_epoch == 1


def test_a_new_target_removes_what_was_being_added():
    cluster = foo("0 1")
    cluster.alter("2 3")
    cluster.report_isr("0 1 2")
    assert cluster.elect(ElectionType.PREFERRED, ("foo", 0)) == [DONE]
    cluster.alter("4 5")
    assert cluster.state() == "4 5 0 1 2 3 / 0 1 2 / 4 5 / 0 1 2 3 / 2"
    assert cluster.report_isr("0 1 2 3 4 5").code == 108
    assert cluster.state() == "4 5 / 4 5 / - / - / 4"
