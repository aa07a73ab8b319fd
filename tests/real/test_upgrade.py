"""A cluster is upgraded while a partition moves (KIP-455), and the oldest brokers here elect leaders (KIP-183)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kreassign.model import ElectionType, OngoingReassignment, TopicPartition
from testbed import ClusterSpec, KafkaCluster
from testbed.records import load_topic, verify_readable
from testbed.releases import DEFAULT
from testbed.waiting import wait_until
from tests.real.admin_checks import client_of, created, partitions_of, refusal, wait_idle, wait_replicas

OLDEST = ClusterSpec(version="2.8.2", brokers=2, mode="zookeeper")
ABSENT = TopicPartition("absent", 0)


@dataclass(frozen=True)
class Upgrade:
    """A cluster, the release that it gets, and whether that can guard the replication factor (KIP-860)."""

    spec: ClusterSpec
    after: str
    guards: bool


UPGRADES = {
    "kraft": Upgrade(ClusterSpec(version="3.9.1", brokers=2), DEFAULT, guards=True),
    "zookeeper": Upgrade(OLDEST, "3.9.1", guards=False),
}


@pytest.mark.parametrize("mode", UPGRADES)
def test_a_move_goes_on_while_its_cluster_is_upgraded(mode: str, topic_name: str) -> None:
    """The broker that it moves to is down until all others are upgraded: no throttle has to hold it."""
    upgrade = UPGRADES[mode]
    with KafkaCluster.start(upgrade.spec) as cluster:
        with client_of(cluster) as client:
            # With ZooKeeper the controller is one of them, and moves nothing to another that it knows to be down.
            here = cluster.seen().controller if cluster.zookeeper else 0
            there = 1 - here
            moving = OngoingReassignment((there, here), adding=(there,), removing=(here,))
            (partition,) = created(client, topic_name, (here,))
            acknowledged = load_topic(cluster.bootstrap_servers, topic_name, {0: 100_000})
            if cluster.zookeeper:
                cluster.brokers[there].freeze()
            else:
                cluster.brokers[there].stop()
            client.alter_partition_reassignments({partition: (there,)}).raise_if_any()
            cluster.brokers[there].kill()
            assert client.list_partition_reassignments([partition]) == {partition: moving}
        zookeeper = (cluster.zookeeper,) if cluster.zookeeper else ()
        for node in (*zookeeper, *cluster.controllers.values(), cluster.brokers[here]):
            node.upgrade(upgrade.after)
        with client_of(cluster) as client:
            wait_until(
                lambda: [one.leader for one in partitions_of(client, topic_name)] == [here], what="a leader again"
            )
            assert client.list_partition_reassignments([partition]) == {partition: moving}
            if upgrade.guards:
                # Only Kafka 4.1 and later can guard the factor; an older cluster would be refused as a whole.
                guarded = client.alter_partition_reassignments({ABSENT: (0,)}, allow_replication_factor_change=False)
                assert refusal(guarded, ABSENT)[0] == 3
            cluster.brokers[there].upgrade(upgrade.after)
            wait_idle(client, partition)
            wait_replicas(client, partition, (there,))
        verify_readable(cluster.bootstrap_servers, acknowledged)


def test_brokers_of_2_8_elect_the_preferred_leader(topic_name: str) -> None:
    with KafkaCluster.start(OLDEST) as cluster, client_of(cluster) as client:
        (partition,) = created(client, topic_name, (1, 0))
        cluster.brokers[1].stop()
        wait_until(lambda: partitions_of(client, topic_name)[0].leader == 0, what="the other as leader")
        cluster.brokers[1].start()
        wait_until(lambda: set(partitions_of(client, topic_name)[0].isr) == {0, 1}, what="both in sync")
        elected = client.elect_preferred_leaders([partition, ABSENT])
        elected.partition_result(partition)
        assert refusal(client.elect_leaders([ABSENT], ElectionType.PREFERRED), ABSENT)[0] == 3
        wait_until(lambda: partitions_of(client, topic_name)[0].leader == 1, what="the preferred leader")
