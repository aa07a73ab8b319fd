"""The admin client on real clusters: what holds on all of them, and what is special to some."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kreassign.admin import Address, AdminClient, ClientSettings, Connection, TcpTransport, client_settings
from kreassign.errors import ClusterError, OutcomeUnknown, Rejected, Unreachable, Unsupported
from kreassign.model import ConfigChange, ConfigResource, NewTopic, TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Api
from testbed import KafkaCluster, probe
from testbed.records import load_topic
from testbed.waiting import wait_until
from tests.real.admin_checks import (
    CHECKS,
    HELD_BYTES,
    Check,
    client_of,
    created,
    held,
    partitions_of,
    refusal,
    settings_of,
    wait_everywhere,
    wait_idle,
)

SILENCE_MS = 15_000
"""The request timeout where a broker is frozen: one of those that answer took over 4 s on a busy machine."""
RATE = "leader.replication.throttled.rate"

on_every_cluster = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@on_every_cluster
def test_calls_answer_alike_on_the_newest_kafka(check: Check, kafka: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka) as client:
        check(kafka, client, topic_name)


@on_every_cluster
def test_calls_answer_alike_on_kafka_3_9(check: Check, kafka_391: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka_391) as client:
        check(kafka_391, client, topic_name)


@on_every_cluster
def test_calls_answer_alike_on_zookeeper(check: Check, kafka_zookeeper: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka_zookeeper) as client:
        check(kafka_zookeeper, client, topic_name)


class CountingTransport:
    """The real transport, with a count of the requests that went over it, by API and version."""

    takes_turns = False

    def __init__(self, settings: ClientSettings) -> None:
        self._transport = TcpTransport(settings)
        self.sent: list[tuple[int, int]] = []

    def connect(self, address: Address, timeout_s: float) -> Connection:
        return CountingConnection(self._transport.connect(address, timeout_s), self.sent)

    def versions_of(self, asked: Api) -> list[int]:
        return [version for key, version in self.sent if key == asked.key]


class CountingConnection:
    """One connection of it."""

    def __init__(self, connection: Connection, sent: list[tuple[int, int]]) -> None:
        self._connection = connection
        self._sent = sent

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        self._sent.append((int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")))
        return self._connection.exchange(frame, timeout_s)

    def is_usable(self) -> bool:
        return self._connection.is_usable()

    def close(self) -> None:
        self._connection.close()


# Reassignments


def test_more_than_10000_partitions_in_a_call_each_get_their_answer(kafka: KafkaCluster, topic_name: str) -> None:
    transport = CountingTransport(settings_of(kafka))
    with client_of(kafka, transport) as client:
        (there,) = created(client, topic_name, (0, 1))
        absent = [TopicPartition(f"{topic_name}-absent", number) for number in range(10_001)]
        batch = client.alter_partition_reassignments(dict.fromkeys([*absent, there], (1, 0)))
        wait_idle(client, there)
    assert dict(batch.ok) == {there: None}
    assert {refusal(batch, key) for key in absent} == {(3, f"Unable to find a topic named {topic_name}-absent.")}
    assert transport.versions_of(api.ALTER_PARTITION_REASSIGNMENTS) == [1, 1, 1]


def test_a_guarded_factor_stays_and_an_unguarded_one_may_change(kafka: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka) as client:
        first, second = created(client, topic_name, (0, 1, 2), (0, 1, 2))
        requested = {first: (0, 1), second: (1, 2, 3)}
        batch = client.alter_partition_reassignments(requested, allow_replication_factor_change=False)
        assert dict(batch.ok) == {second: None}
        assert refusal(batch, first) == (38, "The replication factor is changed from 3 to 2")
        wait_idle(client, second)
        client.alter_partition_reassignments({first: (0, 1)}).raise_if_any()
        wait_idle(client, first)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_cluster_without_the_guard_is_not_asked_for_it(
    guarded: bool, kafka_391: KafkaCluster, topic_name: str
) -> None:
    transport = CountingTransport(settings_of(kafka_391))
    with client_of(kafka_391, transport) as client:
        (partition,) = created(client, topic_name, (0, 1))
        if guarded:
            with pytest.raises(Unsupported, match="does not support the AllowReplicationFactorChange option"):
                client.alter_partition_reassignments({partition: (0,)}, allow_replication_factor_change=False)
        else:
            client.alter_partition_reassignments({partition: (0,)}).raise_if_any()
    assert transport.versions_of(api.ALTER_PARTITION_REASSIGNMENTS) == ([] if guarded else [0])


def test_zookeeper_mode_describes_topics_by_metadata(kafka_zookeeper: KafkaCluster, topic_name: str) -> None:
    transport = CountingTransport(settings_of(kafka_zookeeper))
    with client_of(kafka_zookeeper, transport) as client:
        created(client, topic_name, (0, 1))
        (partition,) = partitions_of(client, topic_name)
    assert (partition.replicas, partition.eligible_leaders) == ((0, 1), None)
    assert not transport.versions_of(api.DESCRIBE_TOPIC_PARTITIONS)
    assert len(transport.versions_of(api.METADATA)) > 1


def test_kraft_mode_describes_topics_in_pages(kafka: KafkaCluster, topic_name: str) -> None:
    transport = CountingTransport(settings_of(kafka))
    with client_of(kafka, transport) as client:
        names = [f"{topic_name}-a", f"{topic_name}-b"]
        client.create_topics([NewTopic(name, 110, 1) for name in names]).raise_if_any()
        for name in names:
            wait_everywhere(client, name, lambda found: len(found) == 110, what="a wide topic")
        transport.sent.clear()
        described = client.describe_topics(names)
        pages = transport.versions_of(api.DESCRIBE_TOPIC_PARTITIONS)
        client.delete_topics(names).raise_if_any()
    for name in names:
        assert [part.topic_partition.partition for part in described[name].partitions] == list(range(110))
        assert described[name].partitions[0].eligible_leaders == ()
    assert pages == [0, 0]


# The controller moves


def test_a_controller_of_zookeeper_mode_that_moved_is_found(kafka_zookeeper: KafkaCluster, topic_name: str) -> None:
    transport = CountingTransport(settings_of(kafka_zookeeper))
    with client_of(kafka_zookeeper, transport) as client:
        (partition,) = created(client, topic_name, (0, 1))
        old = client.describe_cluster().controller_id
        kafka_zookeeper.brokers[old].restart()
        kafka_zookeeper.wait_ready()
        assert kafka_zookeeper.seen().controller != old
        # The client still takes the old controller for the controller: it is told otherwise, and asks again.
        batch = client.alter_partition_reassignments({partition: None})
    assert refusal(batch, partition)[0] == 85
    assert len(transport.versions_of(api.ALTER_PARTITION_REASSIGNMENTS)) == 2


def test_a_controller_of_a_quorum_that_moved_is_found(three_controllers: KafkaCluster) -> None:
    """By who starts moves and by who elects: both know the controller of before, and are told NOT_CONTROLLER."""
    cluster = three_controllers
    settings = client_settings(bootstrap_controllers=cluster.bootstrap_controllers)
    transport, electing = CountingTransport(settings), CountingTransport(settings)
    absent = TopicPartition("absent", 0)
    with (
        AdminClient.connect(settings, transport=transport) as client,
        AdminClient.connect(settings, transport=electing) as elector,
    ):
        old = client.describe_cluster().controller_id
        assert elector.describe_cluster().controller_id == old
        cluster.controllers[old].restart()
        wait_until(
            lambda: probe.active_controller(cluster.controllers[old].place.ports["CONTROLLER"]) not in {old, -1},
            what="another controller",
        )
        # A list would not tell, see tests/conformance/test_quorum.py.
        batch = client.alter_partition_reassignments({absent: None})
        elected = elector.elect_leaders([absent])
        assert client.describe_cluster().controller_id != old
    assert refusal(batch, absent) == (3, "Unable to find a topic named absent.")
    assert len(transport.versions_of(api.ALTER_PARTITION_REASSIGNMENTS)) == 2
    assert refusal(elected, absent)[0] == 3
    assert len(electing.versions_of(api.ELECT_LEADERS)) == 2


# Broken nodes


def test_a_frozen_broker_costs_one_timeout_and_the_others_answer(kafka: KafkaCluster) -> None:
    transport = CountingTransport(settings_of(kafka))
    with (
        client_of(kafka, transport, request_timeout_ms=str(SILENCE_MS)) as warm,
        client_of(kafka, request_timeout_ms=str(SILENCE_MS)) as cold,
    ):
        warm.describe_log_dirs()
        cold.describe_cluster()
        kafka.brokers[3].freeze()
        transport.sent.clear()
        with ThreadPoolExecutor(2) as clients:
            batches = clients.map(lambda client: client.describe_log_dirs([0, 1, 2, 3]), (warm, cold))
        for batch, kind in zip(batches, (OutcomeUnknown, Unreachable), strict=True):
            assert set(batch.ok) == {0, 1, 2}
            assert isinstance(batch.failed[3], kind)
    assert len(transport.versions_of(api.DESCRIBE_LOG_DIRS)) == 4


def test_a_dead_broker_is_left_out_and_what_can_be_done_without_it_is_done(
    kafka: KafkaCluster, topic_name: str
) -> None:
    with client_of(kafka) as client, controllers_client(kafka) as controllers:
        (partition,) = created(client, topic_name, (3, 0))
        load_topic(kafka.bootstrap_servers, topic_name, {0: 100_000})
        kafka.brokers[3].kill()
        batch = client.describe_log_dirs([0, 3], timeout_ms=10_000)
        assert set(batch.ok) == {0}
        assert isinstance(batch.failed[3], Unreachable)

        wait_until(lambda: 3 not in client.describe_cluster().broker_ids, what="broker 3 unlisted")
        fenced = [broker.id for broker in client.describe_cluster(include_fenced=True).brokers if broker.is_fenced]
        assert fenced == [3]
        assert set(client.describe_log_dirs().ok) == {0, 1, 2}
        wait_until(lambda: partitions_of(client, topic_name)[0].leader == 0, what="leader 0")
        assert partitions_of(client, topic_name)[0].offline == (3,)
        assert [status.broker for status in client.replica_status([partition])[partition]] == [0]
        assert refusal(client.elect_leaders([partition]), partition) == (
            80,
            "The preferred leader was not available.",
        )
        dead = ConfigResource.broker(3)
        assert isinstance(
            client.incremental_alter_configs({dead: [ConfigChange.set(RATE, "1")]}, timeout_ms=300).failed[dead],
            Unreachable,
        )
        client.alter_partition_reassignments({partition: (0, 1)}).raise_if_any()
        wait_idle(client, partition)

        controllers.incremental_alter_configs({dead: [ConfigChange.set(RATE, "1000")]}).raise_if_any()
        try:
            kafka.brokers[3].start()
            kafka.wait_ready()
            assert client.describe_configs([dead], names=[RATE])[dead][RATE].value == "1000"
            assert set(client.describe_log_dirs([0, 3]).ok) == {0, 3}
        finally:
            controllers.incremental_alter_configs({dead: [ConfigChange.delete(RATE)]}).raise_if_any()


def test_a_cluster_that_cannot_list_fenced_brokers_names_a_version(kafka_391: KafkaCluster) -> None:
    with client_of(kafka_391) as client, pytest.raises(Unsupported, match=r"DescribeCluster version 2, Kafka 4\.0"):
        client.describe_cluster(include_fenced=True)


# Controllers


def controllers_client(cluster: KafkaCluster) -> AdminClient:
    return AdminClient.connect(client_settings(bootstrap_controllers=cluster.bootstrap_controllers))


def test_controllers_take_reassignments_elections_topics_and_configs(kafka: KafkaCluster, topic_name: str) -> None:
    with client_of(kafka) as client, controllers_client(kafka) as controllers:
        quorum = controllers.describe_cluster()
        assert quorum.broker_ids == tuple(sorted(kafka.controllers))
        assert quorum.controller_id in quorum.broker_ids
        controllers.create_topics([NewTopic(topic_name, assignments=((0,),))]).raise_if_any()
        partition = TopicPartition(topic_name, 0)
        wait_everywhere(client, topic_name, bool, what="the new topic")
        load_topic(kafka.bootstrap_servers, topic_name, {0: HELD_BYTES})
        with held(controllers, kafka, topic_name):
            controllers.alter_partition_reassignments({partition: (1,)}).raise_if_any()
            assert controllers.list_partition_reassignments([partition]).keys() == {partition}
            controllers.alter_partition_reassignments({partition: None}).raise_if_any()
        assert refusal(controllers.elect_leaders([partition]), partition)[0] == 84
        controllers.delete_topics([topic_name]).raise_if_any()
    with pytest.raises(Unsupported, match="needs brokers"):
        controllers.list_topics()


@pytest.mark.parametrize("controllers_expected", [True, False])
def test_the_wrong_kind_of_address_is_named_at_once(controllers_expected: bool, kafka: KafkaCluster) -> None:
    if controllers_expected:
        settings = client_settings(bootstrap_controllers=kafka.bootstrap_servers)
        words = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    else:
        settings = client_settings(bootstrap_servers=kafka.bootstrap_controllers)
        words = r"does not offer Metadata \(API 3\), as brokers do: a controller listens there"
    with AdminClient.connect(settings) as client, pytest.raises(ClusterError, match=words) as refused:
        client.describe_cluster()
    assert isinstance(refused.value, Rejected if controllers_expected else Unsupported)
