"""The worked examples of KIP-455 on real Kafka, with and without ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kreassign.admin import AdminClient
from kreassign.model import TopicPartition
from kreassign.model.throttle import clear_broker_changes, move_map, rate_changes, topic_changes
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_reassignments, parse_reassignments, parse_topic
from testbed import ClusterSpec, KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until
from testbed.zookeeper import ZooKeeper, zookeeper_client
from tests.kips.kip_455_examples import BROKERS, EXAMPLES, Stage
from tests.real.admin_checks import client_of

SPECS = {
    "KRaft": ClusterSpec(brokers=BROKERS),
    "3.9.1 with ZooKeeper": ClusterSpec(version="3.9.1", brokers=BROKERS, mode="zookeeper"),
}


def stage(cluster: KafkaCluster, client: AdminClient, topic: str) -> Stage:
    """A partition of its own with data on a real cluster."""
    cluster.create_topic(topic, [[1, 2, 3]])
    load_topic(cluster.bootstrap_servers, topic, {0: 12_000_000}, value_bytes=(20_000, 20_000))
    return Stage(client, TopicPartition(topic, 0), lambda condition, what: wait_until(condition, what=what), 1)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    with KafkaCluster.start(SPECS[request.param]) as started:
        yield started


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
@pytest.mark.parametrize("cluster", SPECS, indirect=True, scope="module")
def test_the_example_on_real_kafka(example: Callable[[Stage], None], cluster: KafkaCluster, topic_name: str) -> None:
    with client_of(cluster) as client:
        example(stage(cluster, client, topic_name))


def test_the_edge_case_of_znode_and_api_at_a_failover(kafka_zookeeper: KafkaCluster, topic_name: str) -> None:
    """A znode move of A and B, then an API move of A, then another controller.

    By the document the znode's target of A would win in the end. Kafka takes A out of the znode when the API overrides
    it, so the API's target stays; B goes on as the znode has it.
    """
    with client_of(kafka_zookeeper) as client:
        a, b = (held(kafka_zookeeper, client, f"{topic_name}-{name}") for name in "ab")
        with zookeeper_client(kafka_zookeeper.zookeeper_connect) as znodes:
            znodes.create(paths.REASSIGN_PARTITIONS, format_reassignments({a: (1,), b: (1,)}))
            wait_until(lambda: len(client.list_partition_reassignments()) == 2, what="both moves")
            client.alter_partition_reassignments({a: (2,)}, warns_of_overrides=False).raise_if_any()
            left = {b: (1,)}
            wait_until(lambda: _requested(znodes) == left, what="a znode without A")
            znodes.delete(paths.CONTROLLER)
            targets = {a: (2,), b: (1,)}
            wait_until(lambda: _targets(client) == targets, what="both moves under another controller")
            client.incremental_alter_configs(clear_broker_changes(range(3))).raise_if_any()
            for key, target in targets.items():
                wait_until(lambda key=key, target=target: _replicas(znodes, key) == target, what=str(key))


def held(cluster: KafkaCluster, client: AdminClient, topic: str) -> TopicPartition:
    """A partition on broker 0 of which no copy comes into sync, wherever it is sent."""
    cluster.create_topic(topic, [[0]])
    load_topic(cluster.bootstrap_servers, topic, {0: 12_000_000}, value_bytes=(20_000, 20_000))
    partition = TopicPartition(topic, 0)
    moves = move_map({}, {partition: (1, 2)}, {partition: (0,)})
    client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
    client.incremental_alter_configs(rate_changes(range(3), 1)).raise_if_any()
    return partition


def _requested(znodes: ZooKeeper) -> dict[TopicPartition, tuple[int, ...]]:
    return parse_reassignments(znodes.get(paths.REASSIGN_PARTITIONS))


def _targets(client: AdminClient) -> dict[TopicPartition, tuple[int, ...]]:
    return {key: move.target for key, move in client.list_partition_reassignments().items()}


def _replicas(znodes: ZooKeeper, key: TopicPartition) -> tuple[int, ...]:
    return parse_topic(key.topic, znodes.get(paths.topic_path(key.topic))).partitions[key.partition]
