"""Laws of any sequence of events: `SmallCluster.commit` checks that nothing is changed by deciding, that a
successor that reads the log has the same state, and that the invariants of every partition hold after every record."""

from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import NO_LEADER, ElectionType
from kreassign.twin.controller import brokers, topics
from kreassign.twin.controller.decision import rules_of
from kreassign.twin.controller.leader_and_isr import elect_unclean_leaders, restore_preferred_leaders
from kreassign.twin.metadata import LeaderRecovery
from tests.twin.controller.small_cluster import SmallCluster, every_partition, random, registration

BROKERS = range(6)
broker_ids = st.sampled_from(BROKERS)
lists = st.lists(broker_ids, min_size=1, max_size=4, unique=True)
rules = st.sampled_from([rules_of(release) for release in ("3.7", "3.9", "4.2", "4.3")])


def start(cluster, data):
    cluster.alter(" ".join(map(str, data.draw(lists))), index=draw_index(cluster, data))


def cancel(cluster, data):
    cluster.alter(None, index=draw_index(cluster, data))


def catch_up(cluster, data):
    """Let the leader add whatever is alive, or take somebody out."""
    index = draw_index(cluster, data)
    partition = cluster.partition(index=index)
    if partition.leader != NO_LEADER:
        drawn = data.draw(st.sets(st.sampled_from(partition.replicas)))
        alive = [broker for broker in partition.replicas if cluster.metadata.is_active(broker)]
        recovering = partition.leader_recovery is LeaderRecovery.RECOVERING
        wanted = alive if data.draw(st.booleans()) else [broker for broker in alive if broker in drawn]
        isr = {partition.leader, *wanted} if not recovering else {partition.leader}
        cluster.report_isr(" ".join(map(str, sorted(isr))), index=index)


def elect(cluster, data):
    cluster.elect(data.draw(st.sampled_from(ElectionType)), ("foo", draw_index(cluster, data)))


def balance(cluster, data):
    del data
    cluster.commit(restore_preferred_leaders)
    cluster.commit(elect_unclean_leaders)


def leave(cluster, data):
    broker = data.draw(broker_ids)
    if broker in cluster.metadata.brokers:
        if data.draw(st.booleans()):
            cluster.commit(brokers.begin_shutdown, broker)
        cluster.commit(brokers.fence, broker)


def come_back(cluster, data):
    broker = data.draw(broker_ids)
    known = cluster.metadata.brokers.get(broker)
    if known is None or known.fenced:
        epoch = known.broker_epoch if known and data.draw(st.booleans()) else -1
        cluster.commit(brokers.register, registration(broker), epoch)
        cluster.commit(brokers.unfence, broker)


def vanish(cluster, data):
    cluster.commit(brokers.unregister, data.draw(broker_ids))


def break_disk(cluster, data):
    broker = data.draw(broker_ids)
    if broker in cluster.metadata.brokers:
        cluster.commit(brokers.fail_log_dir, broker, f"dir {broker}.0")


def place(cluster, data):
    partition = cluster.partition(index=draw_index(cluster, data))
    broker = data.draw(st.sampled_from(partition.replicas))
    directory = f"dir {broker}.{data.draw(st.integers(0, 1))}"
    cluster.commit(brokers.assign_directories, broker, {partition.topic_partition: directory})


def grow(cluster, data):
    del data
    count = len(cluster.metadata.topics["foo"].partitions)
    if count < 4:
        cluster.commit(
            topics.create_partitions, topics.CreatePartitions((topics.MorePartitions("foo", count + 1),)), random()
        )


def change_settings(cluster, data):
    cluster.configure("foo", "min.insync.replicas", str(data.draw(st.integers(1, 3))))
    cluster.configure("foo", "unclean.leader.election.enable", data.draw(st.sampled_from(["true", "false"])))


def draw_index(cluster, data):
    return data.draw(st.sampled_from(sorted(cluster.metadata.topics["foo"].partitions)))


STEPS = (
    start, start, start, cancel, catch_up, catch_up, catch_up, elect, balance, leave, come_back, come_back, vanish,
    break_disk, place, grow, change_settings,
)  # fmt: skip


@given(st.data(), rules, st.lists(st.sampled_from(STEPS), min_size=5, max_size=40))
def test_invariants_hold_whatever_happens(data, release, steps):
    cluster = SmallCluster(rules=release).topic("foo", "0 1 2", "3 4")
    for step in steps:
        step(cluster, data)
    before = len(cluster.log)
    cluster.commit(topics.delete_topics, (topics.TopicReference("foo"),))
    assert every_partition(cluster.metadata) == []
    assert cluster.metadata.hosted == {}
    assert cluster.metadata.reassigning | cluster.metadata.leaderless | cluster.metadata.imbalanced == set()
    assert len(cluster.log) == before + 1


@given(rules, lists, lists)
def test_a_move_between_living_brokers_always_ends_with_exactly_its_target(release, source, target):
    cluster = SmallCluster(rules=release).topic("foo", " ".join(map(str, source)))
    cluster.alter(" ".join(map(str, target)))
    if cluster.partition().is_reassigning:
        cluster.report_isr(" ".join(map(str, cluster.partition().replicas)))
    assert cluster.idle().startswith(" ".join(map(str, target)) + " /")
    assert set(cluster.partition().isr) == set(target)
    assert cluster.partition().has_leader


@given(rules, lists, lists)
def test_a_cancel_leaves_the_replicas_that_there_were_before(release, source, target):
    cluster = SmallCluster(rules=release).topic("foo", " ".join(map(str, source)))
    cluster.alter(" ".join(map(str, target)))
    if cluster.partition().is_reassigning:
        cluster.alter(None)
        assert set(cluster.partition().replicas) == set(source) == set(cluster.partition().isr)
    assert not cluster.partition().is_reassigning
