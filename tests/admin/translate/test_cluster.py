"""Calls about nodes, topics and configurations: what depends on the version, and what no broker of today answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.call import Call
from kreassign.admin.translate import cluster
from kreassign.errors import ProtocolViolation, Rejected, Unsupported
from kreassign.model import (
    Batch,
    Broker,
    Cluster,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import NAMES, TIMEOUT_MS, as_read_by_us, as_seen_by_broker, versions

ORDERS = ConfigResource.topic("orders")

# Nodes


@given(versions(api.METADATA))
def test_asking_for_nodes_asks_for_no_topic(version: int) -> None:
    seen = as_seen_by_broker(cluster.nodes(), version)
    assert (list(seen.topics), seen.allow_auto_topic_creation) == ([], False)


@pytest.mark.parametrize("version", [0, 1])
def test_a_cluster_that_cannot_list_fenced_brokers_is_not_asked_to(version: int) -> None:
    with pytest.raises(Unsupported, match=r"cannot list fenced brokers \(DescribeCluster version 2"):
        cluster.describe_cluster(include_fenced=True).build(version, TIMEOUT_MS)


def test_a_node_that_knows_no_controllers_is_not_asked_for_them() -> None:
    with pytest.raises(Unsupported, match=r"DescribeCluster version 1.*is it a broker"):
        cluster.controller_nodes().build(0, TIMEOUT_MS)


def test_a_broker_asked_for_controllers_refuses_and_its_words_are_kept() -> None:
    text = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    with pytest.raises(Rejected, match=text) as refused:
        as_read_by_us(cluster.controller_nodes(), 1, answers.cluster_nodes(Cluster("", -1, ()), outcome=(114, text)))
    assert (refused.value.code, refused.value.name) == (114, "MISMATCHED_ENDPOINT_TYPE")


# Topics


@given(versions(api.METADATA))
def test_listing_asks_for_all_topics_and_creates_none(version: int) -> None:
    seen = as_seen_by_broker(cluster.list_topics(), version)
    assert (seen.topics, seen.allow_auto_topic_creation) == (None, False)


@given(st.none() | st.lists(NAMES, max_size=3), versions(api.METADATA))
def test_a_broker_reads_by_metadata_which_topics_are_wanted(names: list[str] | None, version: int) -> None:
    seen = as_seen_by_broker(cluster.describe_topics_by_metadata(names), version)
    assert (None if seen.topics is None else [topic.name for topic in seen.topics]) == names
    assert seen.allow_auto_topic_creation is False


def test_partitions_come_in_the_order_of_their_numbers() -> None:
    partitions = tuple(Partition(TopicPartition("t", number), (1,), (1,), 1) for number in (2, 0, 1))
    answer = answers.metadata(Cluster("id", 1, (Broker(1, "a", 9092),)), [Topic("t", None, False, partitions)])
    batch = as_read_by_us(cluster.describe_topics_by_metadata(["t"]), 12, answer)
    assert [partition.topic_partition.partition for partition in batch["t"].partitions] == [0, 1, 2]


def creation(names: list[str]) -> Call[Batch[str, None]]:
    return cluster.create_topics([NewTopic(name) for name in names], validate_only=False)


def growth(names: list[str]) -> Call[Batch[str, None]]:
    return cluster.create_partitions({name: NewPartitions(2) for name in names}, validate_only=False)


@pytest.mark.parametrize("change", [creation, cluster.delete_topics, growth], ids=["create", "delete", "grow"])
def test_a_wrong_controller_says_so_for_every_topic(change: Callable[[list[str]], Call[Batch[str, None]]]) -> None:
    call = change(["a", "b"])
    assert call.is_write
    assert list(call.routing_codes(answers.named(call.api, {"a": (41, None), "b": (41, None)}))) == [41, 41]


# Configurations


def test_a_source_of_a_later_kafka_is_unknown() -> None:
    response = answers.configs({ORDERS: [ConfigEntry("k", "v", ConfigSource.DEFAULT)]}, {})
    response.results[0].configs[0].config_source = 99
    batch = as_read_by_us(cluster.describe_configs([ORDERS], None), 4, response)
    assert batch[ORDERS]["k"].source is ConfigSource.UNKNOWN


def test_a_kind_of_resource_that_nobody_asked_about_is_a_broken_answer() -> None:
    response = answers.configs({ORDERS: []}, {})
    response.results[0].resource_type = 77
    with pytest.raises(ProtocolViolation, match="resource type 77"):
        as_read_by_us(cluster.describe_configs([ORDERS], None), 4, response)
