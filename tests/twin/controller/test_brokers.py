"""Brokers that come, go and break, and their partitions."""

import pytest

from kreassign.twin.controller.brokers import (
    Registration,
    begin_shutdown,
    fail_log_dir,
    fence,
    register,
    unfence,
    unregister,
)
from kreassign.twin.controller.rules import rules_of
from kreassign.twin.metadata.records import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    LeaderRecovery,
    PartitionChanged,
)
from tests.twin.controller.worlds import World, directories

OLDER = rules_of("3.9")
UNCLEAN = "unclean.leader.election.enable"


def come_back(world, broker, **fields):
    """Let a broker register again; the answer."""
    registration = Registration(broker, f"host{broker}", 9092, None, directories(broker, 2), **fields)
    return world.commit(register, registration)


def elr(world, name="foo", index=0):
    partition = world.partition(name, index)
    return partition.elr, partition.last_known_elr


def led_by(world, broker):
    """The partitions that this broker leads."""
    return {
        str(partition.topic_partition)
        for partition in world.metadata.partitions_on(broker)
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
    world = World(rules=OLDER).topic("foo", before)
    world.commit(fence, 0)
    assert world.state() == after
    assert world.partition().leader_epoch == epoch
    assert world.metadata.brokers[0].fenced


def test_a_dead_removing_replica_does_not_block_a_move():
    world = World().topic("foo", "1 2 0 / 0 1 / 2 / 0 / 1")
    world.commit(fence, 0)
    world.report_isr("1 2")
    assert world.idle() == "1 2 / 1 2"


def test_fencing_may_end_a_move_that_waited_for_nothing_else():
    world = World().topic("foo", "1 2 0 / 0 1 / - / 0 / 1").topic("bar", "1 2 0 / 0 1 2 / - / 0 / 1")
    world.commit(fence, 0)
    assert world.state() == "1 2 0 / 1 / - / 0 / 1"
    assert world.idle("bar") == "1 2 / 1 2"


def test_partitions_change_before_the_broker_does():
    world = World().topic("foo", "0 1")
    records = fence(world.context, 0).records
    assert [type(record) for record in records] == [PartitionChanged, BrokerFenced]
    assert [type(record) for record in unfence(world.context, 0).records] == [BrokerUnfenced]


def test_without_eligible_leaders_the_last_member_stays_and_leads_again():
    world = World(rules=OLDER).topic("foo", "0 1 / 0 / - / - / 0")
    world.commit(fence, 0)
    assert world.state() == "0 1 / 0 / - / - / -"
    world.commit(unfence, 1)
    assert world.state() == "0 1 / 0 / - / - / -"
    world.commit(unfence, 0)
    assert world.state() == "0 1 / 0 / - / - / 0"
    assert world.partition().leader_epoch == 2


def test_with_eligible_leaders_the_isr_becomes_empty_and_the_last_member_eligible():
    world = World().topic("foo", "0 1 / 0 / - / - / 0")
    world.commit(fence, 0)
    assert world.state() == "0 1 / - / - / - / -"
    assert elr(world) == ((0,), (0,))
    world.commit(unfence, 1)
    assert world.state() == "0 1 / - / - / - / -"
    world.commit(unfence, 0)
    assert world.state() == "0 1 / 0 / - / - / 0"
    assert elr(world) == ((), ())
    assert world.partition().leader_recovery is LeaderRecovery.RECOVERED


def test_who_drops_below_the_least_isr_stays_eligible():
    world = World().topic("foo", "0 1 2").configure("foo", "min.insync.replicas", "2")
    world.commit(fence, 0)
    assert elr(world) == ((), ())
    world.commit(fence, 1)
    assert (world.state(), elr(world)) == ("0 1 2 / 2 / - / - / 2", ((1,), ()))
    world.commit(fence, 2)
    assert (world.state(), elr(world)) == ("0 1 2 / - / - / - / -", ((1, 2), (2,)))
    world.commit(unfence, 1)
    assert (world.state(), elr(world)) == ("0 1 2 / 1 / - / - / 1", ((2,), ()))
    world.commit(unfence, 2)
    world.report_isr("1 2")
    assert (world.state(), elr(world)) == ("0 1 2 / 1 2 / - / - / 1", ((), ()))


def test_the_least_isr_is_never_more_than_the_first_partition_has_replicas():
    world = World().topic("foo", "0", "0 1 2").configure("", "min.insync.replicas", "3")
    world.commit(fence, 1)
    assert elr(world, index=1) == ((), ())


def test_a_topic_may_rather_lose_records_than_have_no_leader():
    world = World(dead=(1,)).topic("foo", "0 1 2 / 0").configure("foo", UNCLEAN, "true")
    world.commit(fence, 0)
    assert world.state() == "0 1 2 / 2 / - / - / 2"
    assert world.partition().leader_recovery is LeaderRecovery.RECOVERING
    assert elr(world) == ((), ())


def test_several_brokers_fall_one_after_the_other():
    world = World(rules=OLDER).topic("foo", "0 1 2", "1 2 3", "2 3 0")
    for broker in (0, 1, 2):
        world.commit(fence, broker)
    assert [world.state(index=index) for index in range(3)] == [
        "0 1 2 / 2 / - / - / -",
        "1 2 3 / 3 / - / - / 3",
        "2 3 0 / 3 / - / - / 3",
    ]


# Registering


def test_a_new_broker_is_fenced_at_first():
    world = World(brokers=())
    answer = come_back(world, 7)
    assert (answer.outcome.code, answer.broker_epoch) == (0, 0)
    assert world.metadata.brokers[7].fenced
    assert not world.metadata.is_active(7)


def test_every_registration_gives_a_higher_epoch():
    world = World().topic("foo", "0 1")
    epochs = [come_back(world, broker).broker_epoch for broker in (0, 0, 1, 0)]
    assert epochs == sorted(set(epochs))
    assert world.metadata.brokers[0].broker_epoch == epochs[-1]


def test_a_second_broker_of_the_same_id_is_refused_while_the_first_lives():
    world = World().topic("foo", "0 1")
    answer = come_back(world, 0, has_live_session=True)
    assert answer.outcome.code == 101
    assert "Another broker is registered with that broker id." in answer.outcome.message
    assert world.state() == "0 1 / 0 1 / - / - / 0"


def test_a_broker_that_died_unnoticed_loses_its_place_when_it_comes_back():
    world = World().topic("foo", "0 1 2")
    come_back(world, 0)
    assert world.state() == "0 1 2 / 1 2 / - / - / 1"
    assert not world.metadata.is_active(0)


def test_after_a_crash_a_broker_is_not_eligible_but_may_lead_again_as_the_last_leader_uncleanly():
    world = World().topic("foo", "0 1 / 0 / - / - / 0")
    world.commit(fence, 0)
    come_back(world, 0)
    assert elr(world) == ((), (0,))
    world.commit(unfence, 1)
    assert world.partition().leader == -1
    world.commit(unfence, 0)
    assert world.state() == "0 1 / 0 / - / - / 0"
    assert world.partition().leader_recovery is LeaderRecovery.RECOVERING
    assert elr(world) == ((), ())


def test_after_a_crash_of_one_that_did_not_lead_last_the_partition_stays_without_a_leader():
    world = World().topic("foo", "0 1 2 / 0 1").configure("foo", "min.insync.replicas", "2")
    for broker in (1, 0):
        world.commit(fence, broker)
    assert elr(world) == ((0, 1), (0,))
    come_back(world, 1)
    world.commit(unfence, 1)
    assert (world.state(), elr(world)) == ("0 1 2 / - / - / - / -", ((0,), (0,)))


def test_after_a_clean_shutdown_a_broker_is_still_eligible():
    world = World().topic("foo", "0 1 / 0 / - / - / 0")
    epoch = world.metadata.brokers[0].broker_epoch
    world.commit(begin_shutdown, 0)
    world.commit(fence, 0)
    come_back(world, 0, previous_epoch=epoch)
    assert elr(world) == ((0,), (0,))
    world.commit(unfence, 0)
    assert world.state() == "0 1 / 0 / - / - / 0"
    assert world.partition().leader_recovery is LeaderRecovery.RECOVERED


def test_a_crash_without_eligible_leaders_is_like_being_fenced():
    world = World(rules=OLDER).topic("foo", "0 1 / 0 / - / - / 0")
    come_back(world, 0)
    assert world.state() == "0 1 / 0 / - / - / -"
    world.commit(unfence, 0)
    assert world.state() == "0 1 / 0 / - / - / 0"


def test_the_registration_is_the_last_record():
    world = World().topic("foo", "0 1")
    registration = Registration(0, "elsewhere", 9, "a", directories(0, 1))
    *_, last = register(world.context, registration).records
    assert last == BrokerRegistered(0, "elsewhere", 9, "a", directories(0, 1), world.metadata.offset)


def test_a_replica_whose_directory_is_gone_does_not_lead():
    world = World().topic("foo", "0 1 / 0 1 / - / - / 1", directories=("dir 0.0", "dir 1.0"))
    world.write(BrokerRegistered(0, "host0", 9092, None, directories(9, 1), 99), BrokerUnfenced(0))
    world.commit(fence, 1)
    assert world.partition().leader == -1


def brief(world, name):
    """Leader, leader epoch, ISR, eligible leaders and last leader."""
    partition = world.partition(name)
    return partition.leader, partition.leader_epoch, partition.isr, partition.elr, partition.last_known_elr


def test_what_four_topics_went_through_on_kafka_4_3_1():
    world = World(brokers=range(4)).topic("a", "2 3").topic("b", "2 3").topic("c", "3 2").topic("d", "3 2")
    world.configure("b", "min.insync.replicas", "2").configure("d", UNCLEAN, "true")

    def states():
        return [brief(world, name) for name in "abcd"]

    epoch = world.metadata.brokers[3].broker_epoch
    world.commit(begin_shutdown, 3)
    world.commit(fence, 3)
    assert states() == [(2, 0, (2,), (), ()), (2, 0, (2,), (3,), ()), (2, 1, (2,), (), ()), (2, 1, (2,), (), ())]
    world.commit(fence, 2)  # killed
    assert states() == [
        (-1, 1, (), (2,), (2,)), (-1, 1, (), (2, 3), (2,)), (-1, 2, (), (2,), (2,)), (-1, 2, (), (2,), (2,)),
    ]  # fmt: skip
    come_back(world, 3, previous_epoch=epoch)
    world.commit(unfence, 3)
    assert states() == [
        (-1, 1, (), (2,), (2,)), (3, 2, (3,), (2,), ()), (-1, 2, (), (2,), (2,)), (3, 3, (3,), (), ()),
    ]  # fmt: skip
    come_back(world, 2)
    world.commit(unfence, 2)
    assert states() == [(2, 2, (2,), (), ()), (3, 2, (3,), (), ()), (2, 3, (2,), (), ()), (3, 3, (3,), (), ())]


def test_a_move_without_a_leader_starts_and_ends_once_the_last_leader_is_back():
    world = World(dead=(3,)).topic("foo", "2 3 / 2 / - / - / 2")
    world.commit(fence, 2)
    assert world.alter("0 1").code == 0
    assert world.state() == "0 1 2 3 / - / 0 1 / 2 3 / -"
    assert brief(world, "foo") == (-1, 1, (), (2,), (2,))
    come_back(world, 2)
    world.commit(unfence, 2)
    world.report_isr("2", leader_recovery=LeaderRecovery.RECOVERED)
    assert world.report_isr("2 0 1").code == 108
    assert (world.state(), world.partition().leader_epoch) == ("0 1 / 0 1 / - / - / 0", 3)


# Shutting down


def test_a_broker_that_wants_to_stop_hands_everything_over_first():
    world = World().topic("foo", "0 1", "1 0").topic("bar", "0")
    assert led_by(world, 0) == {"foo-0", "bar-0"}
    world.commit(begin_shutdown, 0)
    assert world.metadata.brokers[0].shutting_down
    assert not world.metadata.brokers[0].fenced
    assert world.state("foo", 0) == "0 1 / 1 / - / - / 1"
    assert world.state("foo", 1) == "1 0 / 1 / - / - / 1"
    assert world.state("bar") == "0 / - / - / - / -"
    assert led_by(world, 0) == set()


def test_asking_to_stop_again_writes_only_what_is_new():
    world = World().topic("foo", "0 1")
    world.commit(begin_shutdown, 0)
    assert begin_shutdown(world.context, 0).records == ()


# Taking out


def test_an_unregistered_broker_leaves_the_isr_but_not_the_replicas():
    world = World().topic("foo", "0 1 2").topic("bar", "0 3 1 / 1 3 / 0 / 1 / 3")
    assert world.commit(unregister, 0).code == 0
    assert 0 not in world.metadata.brokers
    assert world.state() == "0 1 2 / 1 2 / - / - / 1"
    assert world.state("bar") == "0 3 1 / 1 3 / 0 / 1 / 3"
    assert world.alter("0 3", "bar").message.startswith("The manual partition assignment includes broker 0, but no")


def test_an_unknown_broker_cannot_be_taken_out():
    outcome = World().commit(unregister, 9)
    assert (outcome.code, outcome.message) == (102, "Broker ID 9 is not currently registered")


# Directories


def test_a_failed_directory_takes_only_its_own_replicas_along():
    world = World().topic("foo", "0 1", directories=("dir 0.0", "dir 1.0"))
    world.topic("bar", "0 1", directories=("dir 0.1", "dir 1.0"))
    world.commit(fail_log_dir, 0, "dir 0.0")
    assert world.state("foo") == "0 1 / 1 / - / - / 1"
    assert world.state("bar") == "0 1 / 0 1 / - / - / 0"
    assert world.metadata.brokers[0].failed_dirs == {"dir 0.0"}
    world.commit(fence, 1)
    assert world.partition("foo").leader == -1
    assert world.partition("bar").leader == 0
