"""Brokers that come, go and break, and their partitions."""

from dataclasses import replace

import pytest

from kreassign.twin.controller import brokers
from kreassign.twin.controller.decision import ZOOKEEPER_RULES, rules_of
from kreassign.twin.metadata import BrokerFenced, BrokerRegistered, BrokerUnfenced, LeaderRecovery, PartitionChanged
from tests.twin.controller.small_cluster import SmallCluster, directories, registration

OLDER = rules_of("3.9")
UNCLEAN = "unclean.leader.election.enable"


def come_back(cluster, broker, *shutdown_epoch):
    """Let a broker register again; its epoch."""
    return cluster.commit(brokers.register, registration(broker), *shutdown_epoch)


def elr(cluster, name="foo", index=0):
    partition = cluster.partition(name, index)
    return partition.elr, partition.last_known_elr


def led_by(cluster, broker):
    """The partitions that this broker leads."""
    return {
        str(partition.topic_partition)
        for partition in cluster.metadata.partitions_on(broker)
        if partition.leader == broker
    }


# Fencing


@pytest.mark.parametrize(("before", "after", "epoch"), [
    ("0 1 2", "0 1 2 / 1 2 / - / - / 1", 1),
    ("1 0 2", "1 0 2 / 1 2 / - / - / 1", 0),  # a follower goes without any new epoch
    ("1 2", "1 2 / 1 2 / - / - / 1", 0),
    ("2 3 0 1 / 0 1 / 2 3 / 0 1 / 0", "2 3 0 1 / 1 / 2 3 / 0 1 / 1", 1),  # the move goes on
    ("0 2 1 / 1 2 / 0 / 1 / 2", "0 2 1 / 1 2 / 0 / 1 / 2", 0),  # a dead adding replica stalls it
])  # fmt: skip
def test_a_fenced_broker_leaves_isr_and_lead(before, after, epoch):
    cluster = SmallCluster(rules=OLDER).topic("foo", before)
    cluster.commit(brokers.fence, 0)
    assert cluster.state() == after
    assert cluster.partition().leader_epoch == epoch
    assert cluster.metadata.brokers[0].fenced


@pytest.mark.parametrize(("before", "after", "epoch"), [
    ("0 1 2", "0 1 2 / 1 2 / - / - / 1", 1),
    ("1 0 2", "1 0 2 / 1 2 / - / - / 1", 1),
    ("1 2 0 / 1 2", "1 2 0 / 1 2 / - / - / 1", 0),
    ("0 1 / 0", "0 1 / 0 / - / - / -", 1),
    ("0 1 / 0 / - / - / -", "0 1 / 0 / - / - / -", 0),
])  # fmt: skip
def test_in_zookeeper_mode_a_follower_that_goes_raises_the_epoch_too(before, after, epoch):
    cluster = SmallCluster(rules=ZOOKEEPER_RULES).topic("foo", before)
    cluster.commit(brokers.fence, 0)
    assert (cluster.state(), cluster.partition().leader_epoch) == (after, epoch)


def test_a_dead_removing_replica_does_not_block_a_move():
    cluster = SmallCluster().topic("foo", "1 2 0 / 0 1 / 2 / 0 / 1")
    cluster.commit(brokers.fence, 0)
    cluster.report_isr("1 2")
    assert cluster.idle() == "1 2 / 1 2"


def test_fencing_may_end_a_move_that_waited_for_nothing_else():
    cluster = SmallCluster().topic("foo", "1 2 0 / 0 1 / - / 0 / 1").topic("bar", "1 2 0 / 0 1 2 / - / 0 / 1")
    cluster.commit(brokers.fence, 0)
    assert cluster.state() == "1 2 0 / 1 / - / 0 / 1"
    assert cluster.idle("bar") == "1 2 / 1 2"


def test_partitions_change_before_the_broker_does():
    cluster = SmallCluster().topic("foo", "0 1")
    records = brokers.fence(cluster.context, 0).records
    assert [type(record) for record in records] == [PartitionChanged, BrokerFenced]
    assert [type(record) for record in brokers.unfence(cluster.context, 0).records] == [BrokerUnfenced]


def test_the_least_isr_is_never_more_than_the_first_partition_has_replicas():
    cluster = SmallCluster().topic("foo", "0", "0 1 2").configure("", "min.insync.replicas", "3")
    cluster.commit(brokers.fence, 1)
    assert elr(cluster, index=1) == ((), ())


def test_a_topic_may_rather_lose_records_than_have_no_leader():
    cluster = SmallCluster(dead=(1,)).topic("foo", "0 1 2 / 0").configure("foo", UNCLEAN, "true")
    cluster.commit(brokers.fence, 0)
    assert cluster.state() == "0 1 2 / 2 / - / - / 2"
    assert cluster.partition().leader_recovery is LeaderRecovery.RECOVERING
    assert elr(cluster) == ((), ())


def test_several_brokers_fall_one_after_the_other():
    cluster = SmallCluster(rules=OLDER).topic("foo", "0 1 2", "1 2 3", "2 3 0")
    for broker in (0, 1, 2):
        cluster.commit(brokers.fence, broker)
    assert [cluster.state(index=index) for index in range(3)] == [
        "0 1 2 / 2 / - / - / -",
        "1 2 3 / 3 / - / - / 3",
        "2 3 0 / 3 / - / - / 3",
    ]


# Registering


def test_a_new_broker_is_fenced_at_first():
    cluster = SmallCluster(brokers=())
    assert come_back(cluster, 7) == 0
    assert cluster.metadata.brokers[7].fenced
    assert not cluster.metadata.is_active(7)


def test_every_registration_gives_a_higher_epoch():
    cluster = SmallCluster().topic("foo", "0 1")
    epochs = [come_back(cluster, broker) for broker in (0, 0, 1, 0)]
    assert epochs == sorted(set(epochs))
    assert cluster.metadata.brokers[0].broker_epoch == epochs[-1]


def test_a_broker_that_died_unnoticed_loses_its_place_when_it_comes_back():
    cluster = SmallCluster().topic("foo", "0 1 2")
    come_back(cluster, 0)
    assert cluster.state() == "0 1 2 / 1 2 / - / - / 1"
    assert not cluster.metadata.is_active(0)


def test_a_crashed_last_leader_may_lead_again_uncleanly():
    cluster = SmallCluster().topic("foo", "0 1 / 0 / - / - / 0")
    cluster.commit(brokers.fence, 0)
    come_back(cluster, 0)
    assert elr(cluster) == ((), (0,))
    cluster.commit(brokers.unfence, 1)
    assert cluster.partition().leader == -1
    cluster.commit(brokers.unfence, 0)
    assert cluster.state() == "0 1 / 0 / - / - / 0"
    assert cluster.partition().leader_recovery is LeaderRecovery.RECOVERING
    assert elr(cluster) == ((), ())


def test_a_crashed_broker_that_did_not_lead_last_does_not_lead():
    cluster = SmallCluster().topic("foo", "0 1 2 / 0 1").configure("foo", "min.insync.replicas", "2")
    for broker in (1, 0):
        cluster.commit(brokers.fence, broker)
    assert elr(cluster) == ((0, 1), (0,))
    come_back(cluster, 1)
    cluster.commit(brokers.unfence, 1)
    assert (cluster.state(), elr(cluster)) == ("0 1 2 / - / - / - / -", ((0,), (0,)))


def test_after_a_clean_shutdown_a_broker_is_still_eligible():
    cluster = SmallCluster().topic("foo", "0 1 / 0 / - / - / 0")
    epoch = cluster.metadata.brokers[0].broker_epoch
    cluster.commit(brokers.begin_shutdown, 0)
    cluster.commit(brokers.fence, 0)
    come_back(cluster, 0, epoch)
    assert elr(cluster) == ((0,), (0,))
    cluster.commit(brokers.unfence, 0)
    assert cluster.state() == "0 1 / 0 / - / - / 0"
    assert cluster.partition().leader_recovery is LeaderRecovery.RECOVERED


def test_a_crash_without_eligible_leaders_is_like_being_fenced():
    cluster = SmallCluster(rules=OLDER).topic("foo", "0 1 / 0 / - / - / 0")
    come_back(cluster, 0)
    assert cluster.state() == "0 1 / 0 / - / - / -"
    cluster.commit(brokers.unfence, 0)
    assert cluster.state() == "0 1 / 0 / - / - / 0"


def test_the_registration_is_the_last_record():
    cluster = SmallCluster().topic("foo", "0 1")
    *_, last = brokers.register(cluster.context, registration(0)).records
    assert last == replace(registration(0), broker_epoch=cluster.metadata.offset)


def test_a_replica_whose_directory_is_gone_does_not_lead():
    cluster = SmallCluster().topic("foo", "0 1 / 0 1 / - / - / 1", directories=("dir 0.0", "dir 1.0"))
    cluster.write(BrokerRegistered(0, "host0", 9092, None, directories(9, 1), 99), BrokerUnfenced(0))
    cluster.commit(brokers.fence, 1)
    assert cluster.partition().leader == -1


def brief(cluster, name):
    """Leader, leader epoch, ISR, eligible leaders and last leader."""
    partition = cluster.partition(name)
    return partition.leader, partition.leader_epoch, partition.isr, partition.elr, partition.last_known_elr


def test_what_four_topics_went_through_on_kafka_4_3_1():
    cluster = SmallCluster(brokers=range(4)).topic("a", "2 3").topic("b", "2 3").topic("c", "3 2").topic("d", "3 2")
    cluster.configure("b", "min.insync.replicas", "2").configure("d", UNCLEAN, "true")

    def states():
        return [brief(cluster, name) for name in "abcd"]

    epoch = cluster.metadata.brokers[3].broker_epoch
    cluster.commit(brokers.begin_shutdown, 3)
    cluster.commit(brokers.fence, 3)
    assert states() == [(2, 0, (2,), (), ()), (2, 0, (2,), (3,), ()), (2, 1, (2,), (), ()), (2, 1, (2,), (), ())]
    cluster.commit(brokers.fence, 2)  # killed
    assert states() == [
        (-1, 1, (), (2,), (2,)), (-1, 1, (), (2, 3), (2,)), (-1, 2, (), (2,), (2,)), (-1, 2, (), (2,), (2,)),
    ]  # fmt: skip
    come_back(cluster, 3, epoch)
    cluster.commit(brokers.unfence, 3)
    assert states() == [
        (-1, 1, (), (2,), (2,)), (3, 2, (3,), (2,), ()), (-1, 2, (), (2,), (2,)), (3, 3, (3,), (), ()),
    ]  # fmt: skip
    come_back(cluster, 2)
    cluster.commit(brokers.unfence, 2)
    assert states() == [(2, 2, (2,), (), ()), (3, 2, (3,), (), ()), (2, 3, (2,), (), ()), (3, 3, (3,), (), ())]


def test_a_leaderless_move_ends_once_the_last_leader_is_back():
    cluster = SmallCluster(dead=(3,)).topic("foo", "2 3 / 2 / - / - / 2")
    cluster.commit(brokers.fence, 2)
    assert cluster.alter("0 1").code == 0
    assert cluster.state() == "0 1 2 3 / - / 0 1 / 2 3 / -"
    assert brief(cluster, "foo") == (-1, 1, (), (2,), (2,))
    come_back(cluster, 2)
    cluster.commit(brokers.unfence, 2)
    cluster.report_isr("2")
    assert cluster.report_isr("2 0 1") == 108
    assert (cluster.state(), cluster.partition().leader_epoch) == ("0 1 / 0 1 / - / - / 0", 3)


# Shutting down


def test_a_broker_that_wants_to_stop_hands_everything_over_first():
    cluster = SmallCluster().topic("foo", "0 1", "1 0").topic("bar", "0")
    assert led_by(cluster, 0) == {"foo-0", "bar-0"}
    cluster.commit(brokers.begin_shutdown, 0)
    assert cluster.metadata.brokers[0].shutting_down
    assert not cluster.metadata.brokers[0].fenced
    assert cluster.state("foo", 0) == "0 1 / 1 / - / - / 1"
    assert cluster.state("foo", 1) == "1 0 / 1 / - / - / 1"
    assert cluster.state("bar") == "0 / - / - / - / -"
    assert led_by(cluster, 0) == set()


def test_asking_to_stop_again_writes_only_what_is_new():
    cluster = SmallCluster().topic("foo", "0 1")
    cluster.commit(brokers.begin_shutdown, 0)
    assert brokers.begin_shutdown(cluster.context, 0).records == ()


# Taking out


def test_an_unregistered_broker_leaves_the_isr_but_not_the_replicas():
    cluster = SmallCluster().topic("foo", "0 1 2").topic("bar", "0 3 1 / 1 3 / 0 / 1 / 3")
    assert cluster.commit(brokers.unregister, 0).code == 0
    assert 0 not in cluster.metadata.brokers
    assert cluster.state() == "0 1 2 / 1 2 / - / - / 1"
    assert cluster.state("bar") == "0 3 1 / 1 3 / 0 / 1 / 3"
    assert cluster.alter("0 3", "bar").message.startswith("The manual partition assignment includes broker 0, but no")


def test_an_unknown_broker_cannot_be_taken_out():
    outcome = SmallCluster().commit(brokers.unregister, 9)
    assert (outcome.code, outcome.message) == (102, "Broker ID 9 is not currently registered")


# Directories


def test_a_failed_directory_takes_only_its_own_replicas_along():
    cluster = SmallCluster().topic("foo", "0 1", directories=("dir 0.0", "dir 1.0"))
    cluster.topic("bar", "0 1", directories=("dir 0.1", "dir 1.0"))
    cluster.commit(brokers.fail_log_dir, 0, "dir 0.0")
    assert cluster.state("foo") == "0 1 / 1 / - / - / 1"
    assert cluster.state("bar") == "0 1 / 0 1 / - / - / 0"
    assert cluster.metadata.brokers[0].failed_dirs == {"dir 0.0"}
    cluster.commit(brokers.fence, 1)
    assert cluster.partition("foo").leader == -1
    assert cluster.partition("bar").leader == 0
