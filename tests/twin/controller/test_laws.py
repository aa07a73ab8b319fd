"""Whatever happens in whatever order: `World.commit` checks that nothing is changed by deciding, that a successor
that reads the log has the same state, and that the invariants of every partition hold after every record."""

from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import NO_LEADER, ElectionType
from kreassign.twin.controller.brokers import (
    Registration,
    begin_shutdown,
    fail_log_dir,
    fence,
    register,
    unfence,
    unregister,
)
from kreassign.twin.controller.directories import assign_directories
from kreassign.twin.controller.elections import elect_unclean_leaders, restore_preferred_leaders
from kreassign.twin.controller.partitions import CreatePartitions, MorePartitions, create_partitions
from kreassign.twin.controller.rules import rules_of
from kreassign.twin.controller.topics import TopicReference, delete_topics
from kreassign.twin.metadata.records import LeaderRecovery
from tests.twin.controller.worlds import World, directories, every_partition, random

BROKERS = range(6)
broker_ids = st.sampled_from(BROKERS)
lists = st.lists(broker_ids, min_size=1, max_size=4, unique=True)
rules = st.sampled_from([rules_of(release) for release in ("3.7", "3.9", "4.2", "4.3")])


def start(world, data):
    world.alter(" ".join(map(str, data.draw(lists))), index=draw_index(world, data))


def cancel(world, data):
    world.alter(None, index=draw_index(world, data))


def catch_up(world, data):
    """Let the leader add whatever is alive, or take somebody out."""
    index = draw_index(world, data)
    partition = world.partition(index=index)
    if partition.leader != NO_LEADER:
        drawn = data.draw(st.sets(st.sampled_from(partition.replicas)))
        alive = [broker for broker in partition.replicas if world.metadata.is_active(broker)]
        recovering = partition.leader_recovery is LeaderRecovery.RECOVERING
        wanted = alive if data.draw(st.booleans()) else [broker for broker in alive if broker in drawn]
        isr = {partition.leader, *wanted} if not recovering else {partition.leader}
        world.report_isr(" ".join(map(str, sorted(isr))), index=index)


def elect(world, data):
    world.elect(data.draw(st.sampled_from(ElectionType)), ("foo", draw_index(world, data)))


def balance(world, data):
    del data
    world.commit(restore_preferred_leaders)
    world.commit(elect_unclean_leaders)


def leave(world, data):
    broker = data.draw(broker_ids)
    if broker in world.metadata.brokers:
        if data.draw(st.booleans()):
            world.commit(begin_shutdown, broker)
        world.commit(fence, broker)


def come_back(world, data):
    broker = data.draw(broker_ids)
    known = world.metadata.brokers.get(broker)
    if known is None or known.fenced:
        epoch = known.broker_epoch if known and data.draw(st.booleans()) else -1
        registration = Registration(broker, "host", 1, None, directories(broker, 2), previous_epoch=epoch)
        world.commit(register, registration)
        world.commit(unfence, broker)


def vanish(world, data):
    world.commit(unregister, data.draw(broker_ids))


def break_disk(world, data):
    broker = data.draw(broker_ids)
    if broker in world.metadata.brokers:
        world.commit(fail_log_dir, broker, f"dir {broker}.0")


def place(world, data):
    partition = world.partition(index=draw_index(world, data))
    broker = data.draw(st.sampled_from(partition.replicas))
    directory = f"dir {broker}.{data.draw(st.integers(0, 1))}"
    world.commit(assign_directories, broker, {partition.topic_partition: directory})


def grow(world, data):
    del data
    count = len(world.metadata.topics["foo"].partitions)
    if count < 4:
        world.commit(create_partitions, CreatePartitions((MorePartitions("foo", count + 1),)), random())


def change_settings(world, data):
    world.configure("foo", "min.insync.replicas", str(data.draw(st.integers(1, 3))))
    world.configure("foo", "unclean.leader.election.enable", data.draw(st.sampled_from(["true", "false"])))


def draw_index(world, data):
    return data.draw(st.sampled_from(sorted(world.metadata.topics["foo"].partitions)))


STEPS = (
    start, start, start, cancel, catch_up, catch_up, catch_up, elect, balance, leave, come_back, come_back, vanish,
    break_disk, place, grow, change_settings,
)  # fmt: skip


@given(st.data(), rules, st.lists(st.sampled_from(STEPS), min_size=5, max_size=40))
def test_invariants_hold_whatever_happens(data, release, steps):
    world = World(rules=release).topic("foo", "0 1 2", "3 4")
    for step in steps:
        step(world, data)
    before = len(world.log)
    world.commit(delete_topics, (TopicReference("foo"),))
    assert every_partition(world.metadata) == []
    assert world.metadata.hosted == {}
    assert world.metadata.reassigning | world.metadata.leaderless | world.metadata.imbalanced == set()
    assert len(world.log) == before + 1


@given(rules, lists, lists)
def test_a_move_between_living_brokers_always_ends_with_exactly_its_target(release, source, target):
    world = World(rules=release).topic("foo", " ".join(map(str, source)))
    world.alter(" ".join(map(str, target)))
    if world.partition().is_reassigning:
        world.report_isr(" ".join(map(str, world.partition().replicas)))
    assert world.idle().startswith(" ".join(map(str, target)) + " /")
    assert set(world.partition().isr) == set(target)
    assert world.partition().has_leader


@given(rules, lists, lists)
def test_a_cancel_leaves_the_replicas_that_there_were_before(release, source, target):
    world = World(rules=release).topic("foo", " ".join(map(str, source)))
    world.alter(" ".join(map(str, target)))
    if world.partition().is_reassigning:
        world.alter(None)
        assert set(world.partition().replicas) == set(source) == set(world.partition().isr)
    assert not world.partition().is_reassigning
