"""The design documents on real Kafka with ZooKeeper: calls, and the tools through brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kreassign.admin import Address, AdminClient, TcpTransport
from kreassign.errors import Unsupported
from kreassign.model import TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import parse_topic
from kreassign.wire import api
from kreassign.wire.codec import decode_response, encode_request
from testbed import KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until
from testbed.zookeeper import ZooKeeper, zookeeper_client
from tests.real.admin_checks import (
    client_of,
    created,
    held,
    partitions_of,
    settings_of,
    wait_everywhere,
    wait_idle,
    wait_replicas,
    wait_undisturbed,
)
from tests.real.kip_checks import CHECKS, RECORDS_BYTES, Check, tool
from tests.real.pacing_checks import PACING_CHECKS, paced, partitions_started, started

PACED = 5

both_checks = pytest.mark.parametrize("check", [*CHECKS, *PACING_CHECKS], ids=lambda check: check.__name__)


@pytest.fixture
def client(zookeeper_mode: KafkaCluster) -> Iterator[AdminClient]:
    with client_of(zookeeper_mode) as found:
        yield found


@pytest.fixture
def znodes(zookeeper_mode: KafkaCluster) -> Iterator[ZooKeeper]:
    with zookeeper_client(zookeeper_mode.zookeeper_connect) as found:
        yield found


@both_checks
def test_in_zookeeper_mode(check: Check, zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str) -> None:
    wait_undisturbed(client)
    check(zookeeper_mode, client, topic_name)


# Messages


@pytest.mark.parametrize("timeout_ms", [30_000, 0, -1])
def test_in_zookeeper_mode_a_move_is_started_whatever_time_the_request_has(
    zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str, timeout_ms: int
) -> None:
    """KIP-455 says so; a controller of a quorum heeds the time."""
    (partition,) = created(client, topic_name, (0, 1))
    entry = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    topic = entry(name=topic_name, partitions=[entry.ReassignablePartition(partition_index=0, replicas=[2, 1])])
    controller = client.describe_cluster().controller_id
    asked = api.ALTER_PARTITION_REASSIGNMENTS
    answer = _ask(zookeeper_mode, controller, asked, 0, timeout_ms=timeout_ms, topics=[topic])
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    wait_idle(client, partition)
    wait_replicas(client, partition, (2, 1))


def test_in_zookeeper_mode_only_the_controller_takes_requests(
    zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str
) -> None:
    """To an election it says so for each partition, and else for the request."""
    created(client, topic_name, (0, 1))
    controller = client.describe_cluster().controller_id
    other = next(broker for broker in zookeeper_mode.brokers if broker != controller)
    entry = api.ELECT_LEADERS.request.TopicPartitions(topic=topic_name, partitions=[0])

    def code(node: int) -> int:
        answer = _ask(zookeeper_mode, node, api.ELECT_LEADERS, 1, timeout_ms=9_000, topic_partitions=[entry])
        return int(answer.replica_election_results[0].partition_result[0].error_code)

    assert (code(other), code(controller)) == (41, 84)
    refused = [
        _ask(zookeeper_mode, other, call, 0, timeout_ms=9_000, topics=[])
        for call in (api.ALTER_PARTITION_REASSIGNMENTS, api.LIST_PARTITION_REASSIGNMENTS)
    ]
    assert [answer.error_code for answer in refused] == [41, 41]
    assert (refused[0].responses, refused[1].topics) == ([], [])


def _ask(cluster: KafkaCluster, node: int, asked: api.Api, version: int, **fields: object) -> api.Message:
    """The answer of one broker, as it is on the wire."""
    frame = encode_request(version, asked.request(**fields), 7, "kips")
    host, _, port = cluster.brokers[node].address("PLAINTEXT").rpartition(":")
    with closing(TcpTransport(settings_of(cluster)).connect(Address(host, int(port)), 30)) as connection:
        return decode_response(asked, version, connection.exchange(frame, 30), 7)


# Znodes


def test_both_maps_are_listed_and_empty_when_nothing_moves(
    zookeeper_mode: KafkaCluster, client: AdminClient, znodes: ZooKeeper, topic_name: str
) -> None:
    (partition,) = created(client, topic_name, (0, 1))
    load_topic(zookeeper_mode.bootstrap_servers, topic_name, {0: RECORDS_BYTES})

    def told() -> dict[str, object]:
        content = json.loads(znodes.get(paths.topic_path(topic_name)))
        return {key: content[key] for key in ("version", "partitions", "adding_replicas", "removing_replicas")}

    def rests(*replicas: int) -> dict[str, object]:
        return {"version": 3, "partitions": {"0": [*replicas]}, "adding_replicas": {}, "removing_replicas": {}}

    assert told() == rests(0, 1)
    with held(client, zookeeper_mode, topic_name):
        client.alter_partition_reassignments({partition: (2, 1)}).raise_if_any()
        assert told() == {
            "version": 3,
            "partitions": {"0": [2, 1, 0]},
            "adding_replicas": {"0": [2]},
            "removing_replicas": {"0": [0]},
        }
    wait_until(lambda: told() == rests(2, 1), what="empty maps")


def test_a_topic_of_version_1_is_read(
    zookeeper_mode: KafkaCluster, client: AdminClient, znodes: ZooKeeper, topic_name: str
) -> None:
    znodes.create(paths.topic_path(topic_name), b'{"version":1,"partitions":{"0":[2,0]}}')
    wait_everywhere(client, topic_name, lambda found: [one.isr for one in found] == [(2, 0)], what="the topic")
    partition = TopicPartition(topic_name, 0)
    client.alter_partition_reassignments({partition: (1, 0)}).raise_if_any()
    wait_idle(client, partition)
    wait_replicas(client, partition, (1, 0))
    assert parse_topic(topic_name, znodes.get(paths.topic_path(topic_name))).partitions == {0: (1, 0)}


# Tools


def test_in_zookeeper_mode_an_empty_list_says_so(zookeeper_mode: KafkaCluster) -> None:
    done = tool("reassign_partitions", "--bootstrap-server", zookeeper_mode.bootstrap_servers, "--list")
    assert (done.exit_code, done.stdout) == (0, "No partition reassignments found.\n")


def test_in_zookeeper_mode_preferred_replicas_are_elected_through_brokers(
    zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str, tmp_path: Path
) -> None:
    (partition,) = created(client, topic_name, (0, 1))
    client.alter_partition_reassignments({partition: (1, 0)}).raise_if_any()
    wait_idle(client, partition)
    wait_replicas(client, partition, (1, 0))
    file = tmp_path / "elections.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic_name, "partition": 0}]}), encoding="utf-8")
    servers = ("--bootstrap-server", zookeeper_mode.bootstrap_servers)
    words = (*servers, "--path-to-json-file", str(file))
    refused = tool("preferred_replica_election", *words, "--zookeeper", zookeeper_mode.zookeeper_connect)
    assert refused.exit_code == 1
    assert partitions_of(client, topic_name)[0].leader == 0
    done = tool("preferred_replica_election", *words)
    assert done.exit_code == 0
    assert f"Successfully completed preferred leader election for partitions {topic_name}-0\n" in done.stdout
    wait_everywhere(client, topic_name, lambda found: found[0].leader == 1, what="leader 1")


@pytest.mark.parametrize("incremental", [False, True], ids=["batches", "incremental"])
def test_in_zookeeper_mode_a_plan_is_started_in_batches_of_one(
    zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str, *, incremental: bool
) -> None:
    keys = created(client, topic_name, *[(0, 1)] * PACED)
    options = ("--reassignment-batch-size", "1", *(("--incremental",) if incremental else ()))
    done = paced(zookeeper_mode, dict.fromkeys(keys, (2, 1)), *options)
    assert (done.exit_code, done.stderr, len(started(done))) == (0, "", PACED)
    assert partitions_started(done) == [str(key) for key in keys]
    wait_idle(client, *keys)
    for key in keys:
        wait_replicas(client, key, (2, 1))


def test_in_zookeeper_mode_a_factor_and_an_assignment_are_reached(
    zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str
) -> None:
    (partition,) = created(client, topic_name, (0, 1))
    words = ("--bootstrap-server", zookeeper_mode.bootstrap_servers, "--alter", "--topic", topic_name)
    assert tool("topics", *words, "--replication-factor", "3").exit_code == 0
    wait_idle(client, partition)
    wait_everywhere(client, topic_name, lambda found: len(found[0].isr) == 3, what="three replicas")
    assert tool("topics", *words, "--replica-assignment", "2:0").exit_code == 0
    wait_idle(client, partition)
    wait_replicas(client, partition, (2, 0))


@pytest.mark.parametrize("tries", ["with the option", "without it"])
def test_in_zookeeper_mode_the_guard_of_the_factor_is_refused(
    zookeeper_mode: KafkaCluster, client: AdminClient, topic_name: str, tries: str
) -> None:
    (partition,) = created(client, topic_name, (0, 1))
    if tries == "with the option":
        with pytest.raises(Unsupported, match="does not support the AllowReplicationFactorChange option"):
            client.alter_partition_reassignments({partition: (0,)}, allow_replication_factor_change=False)
        assert partitions_of(client, topic_name)[0].replicas == (0, 1)
    else:
        client.alter_partition_reassignments({partition: (0,)}).raise_if_any()
        wait_replicas(client, partition, (0,))
