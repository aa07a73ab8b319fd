"""A cluster is upgraded node by node, from 3.9.1 to 4.3.1, while a partition moves (KIP-455)."""

from __future__ import annotations

from kreassign.model import OngoingReassignment, TopicPartition
from testbed import ClusterSpec, KafkaCluster
from testbed.records import load_topic, verify_readable
from testbed.waiting import wait_until
from tests.real.admin_checks import PATIENCE_S, client_of, created, partitions_of, refusal, wait_idle, wait_replicas

BEFORE, AFTER = "3.9.1", "4.3.1"
ABSENT = TopicPartition("absent", 0)
MOVING = OngoingReassignment((1, 0), adding=(1,), removing=(0,))


def test_a_move_goes_on_while_its_cluster_is_upgraded(topic_name: str) -> None:
    """The broker that it moves to is down until all others are upgraded: no throttle has to hold it."""
    with KafkaCluster.start(ClusterSpec(version=BEFORE, brokers=2)) as cluster:
        with client_of(cluster) as client:
            (partition,) = created(client, topic_name, (0,))
            acknowledged = load_topic(cluster.bootstrap_servers, topic_name, {0: 100_000})
            cluster.brokers[1].stop()
            client.alter_partition_reassignments({partition: (1,)}).raise_if_any()
            assert client.list_partition_reassignments([partition]) == {partition: MOVING}
        for node in (*cluster.controllers.values(), cluster.brokers[0]):
            node.upgrade(AFTER)
        with client_of(cluster) as client:
            wait_until(
                lambda: partitions_of(client, topic_name)[0].leader == 0, timeout_s=PATIENCE_S, what="a leader again"
            )
            assert client.list_partition_reassignments([partition]) == {partition: MOVING}
            # Only Kafka 4.1 and later can guard the factor; an older cluster would be refused as a whole.
            guarded = client.alter_partition_reassignments({ABSENT: (0,)}, allow_replication_factor_change=False)
            assert refusal(guarded, ABSENT)[0] == 3
            cluster.brokers[1].upgrade(AFTER)
            wait_idle(client, partition)
            wait_replicas(client, partition, (1,))
        verify_readable(cluster.bootstrap_servers, acknowledged)
