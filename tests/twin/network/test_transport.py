"""The twin in-process: the client's own calls in the twin's time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kreassign import model
from kreassign.admin import Address, AdminClient, client_settings
from kreassign.errors import OutcomeUnknown, Rejected, Unreachable, Unsupported
from kreassign.twin import Twin, TwinTransport, kafka_version
from kreassign.wire import api
from kreassign.wire.codec import encode_request, framed
from tests.twin.asking import partition, twin

ORDERS = model.TopicPartition("orders", 0)
TOPICS = {"orders": [[0, 1], [1, 2]]}


def client(transport: TwinTransport, **settings: str | None) -> AdminClient:
    found = client_settings(**(settings or {"bootstrap_servers": "broker-0:9092,broker-1:9092"}))
    return AdminClient.connect(found, clock=transport, transport=transport)


@pytest.fixture
def asked() -> Twin:
    return twin(TOPICS)


@pytest.fixture
def admin(asked: Twin) -> Iterator[AdminClient]:
    with client(TwinTransport(asked)) as connected:
        yield connected


# What a client can do


def test_every_call_of_the_client_is_answered(asked: Twin, admin: AdminClient) -> None:
    assert admin.describe_cluster(include_fenced=True).broker_ids == (0, 1, 2, 3)
    assert admin.list_topics() == ("orders",)
    assert [one.replicas for one in admin.describe_topics()["orders"].partitions] == [(0, 1), (1, 2)]
    admin.create_topics([model.NewTopic("new", 2, 2, configs={"retention.ms": "1000"})]).raise_if_any()
    admin.create_partitions({"new": model.NewPartitions(3)}).raise_if_any()
    change = {model.ConfigResource.topic("new"): [model.ConfigChange.set("retention.ms", "2000")]}
    admin.incremental_alter_configs(change).raise_if_any()
    shown = admin.describe_configs([model.ConfigResource.topic("new"), model.ConfigResource.broker(2)]).raise_if_any()
    assert shown[model.ConfigResource.topic("new")]["retention.ms"].value == "2000"
    assert shown[model.ConfigResource.broker(2)]["node.id"].value == "2"
    assert admin.describe_log_dirs().ok.keys() == {0, 1, 2, 3}
    assert admin.list_offsets([ORDERS])[ORDERS] == 10_000
    assert admin.list_offsets([ORDERS], model.OffsetSpec.EARLIEST)[ORDERS] == 0
    replica = model.TopicPartitionReplica(0, *ORDERS)
    admin.alter_replica_log_dirs({replica: "/data/0/d1"}).raise_if_any()
    with pytest.raises(Rejected, match="Leader election not needed"):
        admin.elect_leaders([ORDERS], model.ElectionType.PREFERRED).raise_if_any()
    admin.delete_topics(["new"]).raise_if_any()
    assert asked.metadata.topics.keys() == {"orders"}


def test_waiting_takes_no_time_but_the_twin_lives_through_it(asked: Twin) -> None:
    transport = TwinTransport(asked)
    with client(transport) as admin:
        admin.alter_partition_reassignments({ORDERS: (2, 3)}).raise_if_any()
        assert admin.list_partition_reassignments().keys() == {ORDERS}
        transport.sleep(24 * 3600.0)
        assert (transport.now_ms(), transport.monotonic_s()) == (86_400_000, 86_400.0)
        assert admin.list_partition_reassignments() == {}
    assert partition(asked, "orders") == ((2, 3), {2, 3}, 2)


def test_the_same_story_gives_the_same_end() -> None:
    def story() -> str:
        told = twin(TOPICS)
        transport = TwinTransport(told)
        with client(transport) as admin:
            admin.create_topics([model.NewTopic("new", 20, 3)]).raise_if_any()
            admin.alter_partition_reassignments({model.TopicPartition("new", number): (0, 1) for number in range(20)})
            transport.sleep(0.05)
        return repr(told.metadata)

    assert story() == story()


def test_a_client_of_controllers_is_answered(asked: Twin) -> None:
    transport = TwinTransport(asked)
    with client(transport, bootstrap_controllers="controller-100:9093") as admin:
        assert admin.describe_cluster().broker_ids == (100,)
        assert admin.list_partition_reassignments() == {}
        with pytest.raises(Unsupported):
            admin.list_topics()


def test_an_older_release_does_not_know_newer_options() -> None:
    with client(TwinTransport(twin(TOPICS, version=kafka_version("3.7")))) as admin:
        assert admin.describe_topics()["orders"].partitions[1].replicas == (1, 2)
        with pytest.raises(Unsupported):
            admin.alter_partition_reassignments({ORDERS: (2,)}, allow_replication_factor_change=False)


# Connections


def metadata_frame() -> bytes:
    return encode_request(12, api.METADATA.request(topics=None), 1, "tests")


def test_nobody_listens_at_another_address(asked: Twin) -> None:
    transport = TwinTransport(asked)
    for address in (Address("broker-9", 9092), Address("broker-0", 9999)):
        with pytest.raises(Unreachable, match="connection refused"):
            transport.connect(address, 1.0)


def test_a_connection_does_not_outlast_its_broker(asked: Twin) -> None:
    transport = TwinTransport(asked)
    connection, other = (transport.connect(Address("broker-1", 9092), 1.0) for _ in range(2))
    assert connection.exchange(metadata_frame(), 1.0)
    asked.crash(1)
    assert not connection.is_usable()
    with pytest.raises(OutcomeUnknown):
        connection.exchange(metadata_frame(), 1.0)
    with pytest.raises(Unreachable, match="connection refused"):
        transport.connect(Address("broker-1", 9092), 1.0)
    asked.start(1)
    assert not connection.is_usable()
    assert not other.is_usable()
    assert transport.connect(Address("broker-1", 9092), 1.0).exchange(metadata_frame(), 1.0)


def test_nonsense_ends_a_connection(asked: Twin) -> None:
    connection = TwinTransport(asked).connect(Address("broker-1", 9092), 1.0)
    with pytest.raises(OutcomeUnknown, match="closed the connection"):
        connection.exchange(framed(b"nonsense"), 1.0)
    with pytest.raises(Unreachable, match="closed"):
        connection.exchange(metadata_frame(), 1.0)


def test_a_closed_connection_is_not_used_again(asked: Twin) -> None:
    connection = TwinTransport(asked).connect(Address("broker-1", 9092), 1.0)
    assert connection.is_usable()
    connection.close()
    assert not connection.is_usable()
    with pytest.raises(Unreachable):
        connection.exchange(metadata_frame(), 1.0)


def test_a_broker_that_is_down_costs_the_client_a_failure_not_an_answer(asked: Twin, admin: AdminClient) -> None:
    asked.stop(1)
    log_dirs = admin.describe_log_dirs([0, 1])
    assert log_dirs.ok.keys() == {0}
    assert isinstance(log_dirs.failed[1], Unreachable)
