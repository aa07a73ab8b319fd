"""A snapshot of real Kafka, with a throttle and a move that is held, becomes a twin that goes on with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.admin import AdminClient, client_settings
from kreassign.cli.main import kreassign
from kreassign.model import ConfigResource, TopicPartition, TopicPartitionReplica
from kreassign.model.throttle import clear_broker_changes
from kreassign.operations.snapshot_files import read_snapshot
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.blueprint import Speeds, blueprint_of
from testbed import KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until

WRITTEN = {0: 8_000_000, 1: 4_000_000}
RATE = "100000"
THROTTLES = {
    "leader.replication.throttled.rate": RATE,
    "follower.replication.throttled.rate": RATE,
}


def java(cluster: KafkaCluster, tool: str, *arguments: str) -> str:
    finished = cluster.java_tool(tool, "--bootstrap-server", cluster.bootstrap_servers, *arguments)
    assert finished.exit_code == 0, finished.stderr
    return finished.stdout


def hold_a_move(cluster: KafkaCluster, topic: str, folder: Path) -> tuple[TopicPartition, list[int]]:
    """Begin to move the larger partition under a throttle that lets it through in more than a minute."""
    brokers = sorted(cluster.brokers)
    cluster.create_topic(topic, [brokers[:2], brokers[1:3]])
    load_topic(cluster.bootstrap_servers, topic, WRITTEN, seed=3)
    target = [brokers[3], brokers[1]]
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": target}]}))
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    java(cluster, tool, "--reassignment-json-file", str(plan), "--execute", "--throttle", RATE)
    return TopicPartition(topic, 0), target


def test_a_twin_goes_on_with_what_a_real_cluster_was_doing(
    kafka: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    key, target = hold_a_move(kafka, topic_name, tmp_path)
    settings = client_settings(bootstrap_servers=kafka.bootstrap_servers)
    with AdminClient.connect(settings) as real:
        wait_until(lambda: copied(real, key, target[0]) > 0, what="the first bytes of the new copy")
        file = tmp_path / "cluster.json"
        try:
            arguments = ["snapshot", "--bootstrap-server", kafka.bootstrap_servers, "--out", str(file)]
            said = CliRunner().invoke(kreassign, [*arguments, "--measure-for", "1s"], catch_exceptions=False)
            assert "1 active reassignment;" in said.stdout
            twin = Twin(blueprint_of(read_snapshot(file), Speeds()))
            transport = TwinTransport(twin)
            inside = client_settings(bootstrap_servers="broker-0:9092")
            with AdminClient.connect(inside, clock=transport, transport=transport) as simulated:
                compare(real, simulated, topic_name)
                # Throttled to 0.1 MB/s in the twin as in the cluster; the twin's time costs nothing.
                transport.sleep(10)
                assert list(simulated.list_partition_reassignments()) == [key]
                transport.sleep(110)
                assert simulated.list_partition_reassignments() == {}
                assert simulated.describe_topics([topic_name]).ok[topic_name].partitions[0].replicas == tuple(target)
        finally:
            real.alter_partition_reassignments({key: None})
            clear(real, topic_name)


def copied(client: AdminClient, key: TopicPartition, broker: int) -> int:
    return sizes(client, key.topic).get(TopicPartitionReplica(broker, *key), ("", 0))[1]


def sizes(client: AdminClient, topic: str) -> dict[TopicPartitionReplica, tuple[str, int]]:
    """Directory and bytes of each copy of a topic."""
    return {
        TopicPartitionReplica(broker, *copy.topic_partition): (log_dir.path, copy.size_bytes)
        for broker, log_dirs in client.describe_log_dirs().ok.items()
        for log_dir in log_dirs
        for copy in log_dir.replicas
        if copy.topic_partition.topic == topic
    }


def compare(real: AdminClient, simulated: AdminClient, topic: str) -> None:
    """Both tell of the same brokers, places, sizes, throttles and moves."""
    one, other = real.describe_cluster(), simulated.describe_cluster()
    assert other.cluster_id == one.cluster_id
    assert [(b.id, b.rack) for b in other.brokers] == [(b.id, b.rack) for b in one.brokers]
    assert simulated.list_partition_reassignments() == real.list_partition_reassignments()
    states, expected = (client.describe_topics([topic]).ok[topic].partitions for client in (simulated, real))
    for state, wanted in zip(states, expected, strict=True):
        assert (state.replicas, set(state.isr), state.leader) == (wanted.replicas, set(wanted.isr), wanted.leader)
    found, there = sizes(simulated, topic), sizes(real, topic)
    assert {key: path for key, (path, _) in found.items()} == {key: path for key, (path, _) in there.items()}
    for key, (_, size) in found.items():
        # The copy under way has grown on the real cluster since.
        assert size == pytest.approx(there[key][1], rel=0.01, abs=1_500_000), key
    resources = [ConfigResource.topic(topic), *(ConfigResource.broker(broker.id) for broker in one.brokers)]
    configs, expected = simulated.describe_configs(resources).ok, real.describe_configs(resources).ok
    for resource in resources:
        names = [name for name in expected[resource] if "throttled" in name]
        assert {name: configs[resource][name].value for name in names} == {
            name: expected[resource][name].value for name in names
        }, resource
    assert {name: configs[ConfigResource.broker(0)][name].value for name in THROTTLES} == THROTTLES
    for partition, end in real.list_offsets([TopicPartition(topic, 0), TopicPartition(topic, 1)]).ok.items():
        assert abs(simulated.list_offsets([partition]).ok[partition] - end) <= 1


def clear(client: AdminClient, topic: str) -> None:
    """Leave no throttle behind."""
    brokers = [broker.id for broker in client.describe_cluster().brokers]
    client.incremental_alter_configs(clear_broker_changes(brokers)).raise_if_any()
    client.delete_topics([topic]).raise_if_any()
