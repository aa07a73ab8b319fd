"""Proposals of leaders."""

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.controller.decision import rules_of
from kreassign.twin.controller.leader_and_isr import AlterIsr, IsrAltered, IsrsAltered, Member, ProposedIsr, alter_isr
from kreassign.twin.metadata import LeaderRecovery, LogDirFailed, PartitionChanged
from tests.twin.controller.small_cluster import SmallCluster, topic_id

RECOVERING, RECOVERED = LeaderRecovery.RECOVERING, LeaderRecovery.RECOVERED


def cluster():
    """A partition whose epochs are both 5, so that there are older and newer ones."""
    made = SmallCluster().topic("foo", "0 1 2 / 0 1 2 / - / - / 0")
    made.write(*[PartitionChanged(TopicPartition("foo", 0), leader=0)] * 5)
    return made


@pytest.mark.parametrize(("isr", "changes", "code"), [
    ("0 1 2", {"leader_epoch": 6}, 41),
    ("0 1 2", {"partition_epoch": 6}, 41),
    ("0 1 2", {"partition_epoch": 6, "leader_epoch": 4}, 41),
    ("0 1 2", {"leader_epoch": 4, "partition_epoch": 4}, 74),
    ("0 1 2", {"sender": 1}, 42),
    ("0 1 2", {"sender": 1, "partition_epoch": 4}, 42),
    ("0 1 2", {"partition_epoch": 4}, 95),
    ("-", {}, 42),
    ("0 1 1", {}, 42),
    ("0 1 9", {}, 42),
    ("1 2", {}, 42),
    ("0 1", {"leader_recovery": RECOVERING}, 42),
    ("0", {"leader_recovery": RECOVERING}, 42),  # it had recovered
    ("0 1", {}, 0),
    ("0 1 2", {}, 0),
])  # fmt: skip
def test_proposals_are_judged_in_kafkas_order(isr, changes, code):
    made = cluster()
    before = made.state()
    assert made.report_isr(isr, **changes).code == code
    assert (made.state() == before) == (code != 0 or isr == "0 1 2")


def test_unknown_topics_and_partitions_have_codes_of_their_own():
    made = SmallCluster().topic("foo", "0 1")
    epoch = made.metadata.brokers[0].broker_epoch
    proposals = (
        ProposedIsr("nobody's id", 0, 0, 0, (Member(0),)),
        ProposedIsr(topic_id("foo"), 9, 0, 0, (Member(0),)),
        ProposedIsr(topic_id("foo"), 0, 0, 0, (Member(0),)),
    )
    answer = made.commit(alter_isr, AlterIsr(0, epoch, proposals))
    assert [result.code for result in answer.partitions] == [100, 3, 0]
    assert made.state() == "0 1 / 0 / - / - / 0"


@pytest.mark.parametrize(("sender", "epoch"), [(0, 99), (9, 0)])
def test_a_broker_of_another_life_is_refused_as_a_whole(sender, epoch):
    made = SmallCluster().topic("foo", "0 1")
    answer = made.commit(alter_isr, AlterIsr(sender, epoch, (ProposedIsr(topic_id("foo"), 0, 0, 0, (Member(0),)),)))
    assert (answer.code, answer.partitions) == (77, ())


@pytest.mark.parametrize("options", [{"dead": (2,)}, {"stopping": (2,)}, {"brokers": (0, 1)}])
def test_only_active_brokers_may_join(options):
    made = SmallCluster(**options).topic("foo", "0 1 2 / 0 1 / - / - / 0")
    assert made.report_isr("0 1 2").code == 107
    assert made.state() == "0 1 2 / 0 1 / - / - / 0"


def test_only_the_present_life_of_a_broker_may_join():
    made = SmallCluster().topic("foo", "0 1 2 / 0 1 / - / - / 0")
    epoch = made.metadata.brokers[2].broker_epoch
    assert made.report_isr((Member(0), Member(2, epoch + 1))).code == 107
    assert made.report_isr((Member(0), Member(2, epoch))).code == 0
    assert made.state() == "0 1 2 / 0 2 / - / - / 0"


def test_a_broker_that_came_back_may_join():
    made = SmallCluster(dead=(2,)).topic("foo", "0 1 2 / 0 1 / - / - / 0")
    assert made.report_isr("0 1 2").code == 107
    made.revive(2)
    assert made.report_isr("0 1 2").code == 0


def test_the_answer_tells_what_the_partition_is_now():
    made = SmallCluster().topic("foo", "0 1 2")
    answer = made.report_isr("1 0")
    assert (answer.leader, answer.isr, answer.leader_epoch, answer.partition_epoch) == (0, (1, 0), 0, 1)
    assert answer.leader_recovery is RECOVERED
    again = made.report_isr("1 0 2")
    assert (again.isr, again.leader_epoch, again.partition_epoch) == ((1, 0, 2), 0, 2)


def test_a_leader_that_recovers_stands_alone_until_it_has():
    made = SmallCluster().topic("foo", "0 1 2 / 0 / - / - / 0", leader_recovery=RECOVERING)
    assert made.report_isr("0", leader_recovery=RECOVERING).code == 0
    assert made.report_isr("0 1", leader_recovery=RECOVERING).code == 42
    assert made.report_isr("0", leader_recovery=RECOVERED).code == 0
    assert made.partition().leader_recovery is RECOVERED
    assert made.report_isr("0 1").code == 0


def test_who_completes_a_move_by_which_it_loses_the_lead_is_told_so():
    made = SmallCluster().topic("foo", "3 4 5 0 1 2 / 0 1 2 3 4 / 3 4 5 / 0 1 2 / 0")
    answer = made.report_isr("0 1 2 3 4 5")
    assert (answer.code, answer.leader) == (108, -1)
    assert made.state() == "3 4 5 / 3 4 5 / - / - / 3"


@pytest.mark.parametrize(("allowed", "after"), [("true", "1 2 / 2 / - / - / 2"), ("false", "1 2 / 1 / - / - / -")])
def test_a_leader_without_a_disk_is_only_the_last_choice(allowed, after):
    made = SmallCluster().topic("foo", "1 2 0 / 0 / 1 / 0 / 0", directories=("dir 1.0", "dir 2.0", "dir 0.0"))
    made.configure("foo", "unclean.leader.election.enable", allowed)
    made.write(LogDirFailed(1, "dir 1.0"))
    assert made.report_isr("0 1").code == 108
    assert made.state() == after


def test_who_completes_a_move_and_stays_is_told_the_new_state():
    made = SmallCluster().topic("foo", "0 1 3 2 / 0 1 2 / 3 / 2 / 0")
    answer = made.report_isr("0 1 2 3")
    assert (answer.code, answer.isr, answer.leader_epoch) == (0, (0, 1, 3), 1)


@pytest.mark.parametrize("rules", [rules_of("3.9"), rules_of("4.3")])
def test_an_isr_that_shrinks_and_grows_moves_only_the_partition_epoch(rules):
    made = SmallCluster(rules=rules).topic("foo", "0 1 2")
    made.report_isr("0")
    made.report_isr("0 1")
    assert (made.partition().leader_epoch, made.partition().partition_epoch) == (0, 2)


def test_nobody_becomes_eligible_while_the_isr_is_as_large_as_it_has_to_be():
    made = SmallCluster().topic("foo", "0 1 2").configure("foo", "min.insync.replicas", "2")
    made.report_isr("0 1")
    assert made.partition().elr == ()


def test_members_below_the_least_isr_are_eligible_only_below_it():
    made = SmallCluster().topic("foo", "0 1 2").configure("foo", "min.insync.replicas", "3")
    made.report_isr("0 1")
    assert made.partition().elr == (2,)
    made.report_isr("0")
    assert made.partition().elr == (1, 2)
    made.report_isr("0 1")
    assert made.partition().elr == (2,)
    made.report_isr("0 1 2")
    assert made.partition().elr == ()


def test_the_answer_names_each_partition_in_the_order_asked_for():
    made = SmallCluster().topic("foo", "0 1 2", leader_recovery=RECOVERED).topic("bar", "0 3 / 0 / - / - / 0")
    epoch = made.metadata.brokers[0].broker_epoch
    everybody = tuple(Member(one, made.metadata.brokers[one].broker_epoch) for one in (0, 1))
    proposals = (
        ProposedIsr("nobody's id", 4, 0, 0, (Member(0),)),
        ProposedIsr(topic_id("foo"), 0, 0, 0, everybody),
        ProposedIsr(topic_id("bar"), 0, 0, 0, (Member(0), Member(3, 99))),
        ProposedIsr(topic_id("bar"), 7, 0, 0, (Member(0),)),
    )
    assert made.commit(alter_isr, AlterIsr(0, epoch, proposals)) == IsrsAltered(
        0,
        (
            IsrAltered("nobody's id", 4, 100),
            IsrAltered(topic_id("foo"), 0, 0, 0, 0, (0, 1), RECOVERED, 1),
            IsrAltered(topic_id("bar"), 0, 107),
            IsrAltered(topic_id("bar"), 7, 3),
        ),
    )
    assert made.commit(alter_isr, AlterIsr(0, epoch + 1, proposals)) == IsrsAltered(77)
    recovering = SmallCluster().topic("foo", "0 1 2 / 0 / - / - / 0", leader_recovery=RECOVERING)
    answer = recovering.report_isr("0", leader_recovery=RECOVERING)
    assert answer == IsrAltered(topic_id("foo"), 0, 0, 0, 0, (0,), RECOVERING, 0)
