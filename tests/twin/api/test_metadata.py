"""Nodes and topics as brokers tell them: what real brokers can be asked, too, is in tests/conformance."""

from __future__ import annotations

import uuid

import pytest

from kreassign.twin.version import KAFKA_3_9
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin


def shown(response: Message) -> list[tuple[int, int, list[int], list[int], list[int]]]:
    """Error code, leader, replicas, ISR and offline replicas of each partition of the one topic."""
    (topic,) = response.topics
    return [
        (one.error_code, one.leader_id, one.replica_nodes, one.isr_nodes, one.offline_replicas)
        for one in topic.partitions
    ]


def test_version_0_asks_for_all_topics_by_an_empty_list() -> None:
    asked = twin({"orders": [[0, 1]], "__consumer_offsets": [[0]]}, version=KAFKA_3_9)
    assert len(ask(asked, api.METADATA, 0, topics=[]).topics) == 2
    internal = {topic.name: topic.is_internal for topic in ask(asked, api.METADATA, 9, topics=None).topics}
    assert internal == {"orders": False, "__consumer_offsets": True}


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_their_time(version: int) -> None:
    topic = {"topic_id": uuid.UUID(int=5), "name": "orders"}
    (refused,) = ask(twin({"orders": [[0, 1]]}), api.METADATA, version, topics=[topic]).topics
    assert (refused.name, refused.error_code) == ("orders", 42)


def test_replicas_of_a_dead_broker_are_offline_or_left_out() -> None:
    asked = twin({"orders": [[0, 1], [1]]}, version=KAFKA_3_9)
    asked.stop(1)
    response = ask(asked, api.METADATA, 12, topics=None)
    assert shown(response) == [(0, 0, [0, 1], [0], [1]), (5, -1, [1], [1], [1])]
    assert [broker.node_id for broker in response.brokers] == [0, 2, 3]
    first, _ = ask(asked, api.METADATA, 0, topics=[]).topics[0].partitions
    assert (first.error_code, first.replica_nodes, first.isr_nodes) == (9, [0], [0])


def test_a_failed_directory_makes_its_replicas_offline() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.fail_log_dir(1, "/data/1/d0")
    assert shown(ask(asked, api.METADATA, 13, topics=None)) == [(0, 0, [0, 1], [0], [1])]


def test_a_cluster_is_described_to_brokers_alone_in_version_0() -> None:
    assert len(ask(twin(), api.DESCRIBE_CLUSTER, 0).brokers) == 4
    assert ask(twin(), api.DESCRIBE_CLUSTER, 0, node=100).error_code == 42


def test_features_that_may_be_at_level_0_are_kept_from_older_clients() -> None:
    named = {"client_software_name": "tests", "client_software_version": "1.0"}
    assert [one.name for one in ask(twin(), api.API_VERSIONS, 3, **named).supported_features] == ["metadata.version"]


def test_only_live_brokers_watch_the_quorum() -> None:
    asked = twin()
    asked.stop(3)
    wanted = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    response = ask(asked, api.DESCRIBE_QUORUM, 2, topics=wanted)
    (partition,) = response.topics[0].partitions
    assert partition.high_watermark == asked.metadata.offset
    assert [one.replica_id for one in partition.observers] == [0, 1, 2]
    (node,) = response.nodes
    assert (node.listeners[0].host, node.listeners[0].port) == ("controller-100", 9093)


def test_version_0_of_described_settings_tells_what_is_a_default() -> None:
    wanted = [{"resource_type": 2, "resource_name": "orders", "configuration_keys": None}]
    answer = ask(twin({"orders": [[0]]}, version=KAFKA_3_9), api.DESCRIBE_CONFIGS, 0, resources=wanted)
    defaults = {config.name: config.is_default for config in answer.results[0].configs}
    assert defaults["retention.ms"] is True
