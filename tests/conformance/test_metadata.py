"""Answers of brokers about nodes and topics: Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

import uuid

import pytest

from kreassign.model import NewTopic
from kreassign.wire import api
from tests.conformance.clusters import CONTROLLER, NEWEST, RACKS, Answered, Cluster

both_releases = pytest.mark.releases(NEWEST, "3.9")
UNSET = -2_147_483_648
Fields = dict[str, object]


def described(cluster: Cluster, *topics: Fields, version: int = 12) -> list[tuple[str | None, int]]:
    """Names and error codes."""
    answer = cluster.ask(api.METADATA, version, topics=list(topics), allow_auto_topic_creation=False)
    return [(one.name, one.error_code) for one in answer.topics]


# Metadata


@both_releases
def test_brokers_are_told_with_their_racks(cluster: Cluster) -> None:
    answer = cluster.ask(api.METADATA, 9, topics=[])
    described = {one.node_id: (one.host, one.port, one.rack) for one in answer.brokers}
    assert described == {each: (*cluster.backend.nodes[each], RACKS[each % 3]) for each in cluster.brokers}
    assert answer.controller_id in cluster.brokers


@both_releases
def test_no_topics_are_asked_for_by_an_empty_list_and_all_by_null(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    assert cluster.ask(api.METADATA, 9, topics=[]).topics == []
    assert partition.topic in {one.name for one in cluster.ask(api.METADATA, 9, topics=None).topics}


@both_releases
def test_a_topic_is_told_with_its_partitions(cluster: Cluster) -> None:
    cluster.create((0, 1), (2, 1), (1, 0))
    answer = cluster.ask(api.METADATA, 9, topics=[{"name": cluster.topic}], allow_auto_topic_creation=False)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, cluster.topic, False)
    described = {
        one.partition_index: (one.error_code, one.leader_id, one.leader_epoch, one.replica_nodes, one.offline_replicas)
        for one in topic.partitions
    }
    assert described == {0: (0, 0, 0, [0, 1], []), 1: (0, 2, 0, [2, 1], []), 2: (0, 1, 0, [1, 0], [])}


def test_unknown_names_and_invalid_names_are_distinguished(cluster: Cluster) -> None:
    found = described(cluster, {"name": "nope"}, {"name": "a/b"}, {"name": ""}, {"name": "x" * 250})
    assert sorted(found) == [("", 17), ("a/b", 17), ("nope", 3), ("x" * 250, 17)]


def test_a_topic_asked_for_twice_is_told_once(cluster: Cluster) -> None:
    cluster.create((0,))
    assert described(cluster, {"name": cluster.topic}, {"name": cluster.topic}) == [(cluster.topic, 0)]


def test_topics_are_asked_for_by_id(cluster: Cluster) -> None:
    cluster.create((0,))
    (named,) = cluster.ask(api.METADATA, 12, topics=[{"name": cluster.topic}]).topics
    assert named.topic_id.int != 0
    assert described(cluster, {"name": None, "topic_id": named.topic_id}) == [(cluster.topic, 0)]
    assert described(cluster, {"name": None, "topic_id": uuid.UUID(int=5)}) == [(None, 100)]


def test_a_list_with_an_id_is_not_searched_for_names(cluster: Cluster) -> None:
    cluster.create((0,))
    (named,) = cluster.ask(api.METADATA, 12, topics=[{"name": cluster.topic}]).topics
    found = described(cluster, {"name": cluster.topic}, {"name": None, "topic_id": named.topic_id})
    assert found == [(cluster.topic, 0)]


def test_what_a_client_may_do_is_told_when_it_asks(cluster: Cluster) -> None:
    cluster.create((0,))
    quiet = cluster.ask(api.METADATA, 9, topics=[{"name": cluster.topic}])
    described = cluster.ask(
        api.METADATA, 9, topics=[{"name": cluster.topic}],
        include_cluster_authorized_operations=True, include_topic_authorized_operations=True,
    )  # fmt: skip
    assert (quiet.authorized_operations, quiet.topics[0].authorized_operations) == (None, None)
    assert described.authorized_operations == {5, 7, 8, 9, 10, 11, 12}
    assert described.topics[0].authorized_operations == {3, 4, 5, 6, 7, 8, 10, 11}


# DescribeCluster


@both_releases
def test_the_cluster_has_one_id_whoever_tells_it(cluster: Cluster) -> None:
    ids = {cluster.ask(api.DESCRIBE_CLUSTER, 1, node=node, endpoint_type=1).cluster_id for node in cluster.brokers}
    ids.add(cluster.ask(api.DESCRIBE_CLUSTER, 1, node=CONTROLLER, endpoint_type=2).cluster_id)
    ids.add(cluster.ask(api.METADATA, 9, topics=[]).cluster_id)
    assert len(ids) == 1


@both_releases
def test_brokers_list_brokers_and_controllers_list_controllers(cluster: Cluster) -> None:
    brokers = cluster.ask(api.DESCRIBE_CLUSTER, 1, endpoint_type=1)
    assert {one.broker_id: one.rack for one in brokers.brokers} == {each: RACKS[each % 3] for each in cluster.brokers}
    assert (brokers.endpoint_type, brokers.controller_id in cluster.brokers) == (1, True)
    controllers = cluster.ask(api.DESCRIBE_CLUSTER, 1, node=CONTROLLER, endpoint_type=2)
    assert [(one.broker_id, one.rack) for one in controllers.brokers] == [(CONTROLLER, None)]
    assert (controllers.endpoint_type, controllers.controller_id) == (2, CONTROLLER)


@pytest.mark.parametrize(("node", "wanted", "code", "text"), [
    (0, 2, 114, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"),
    (CONTROLLER, 1, 114,
     "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"),
    (0, 9, 115, "Unsupported endpoint type 9"),
    (0, 3, 115, "Unsupported endpoint type 3"),
])  # fmt: skip
def test_the_wrong_kind_of_endpoint_says_so(cluster: Cluster, node: int, wanted: int, code: int, text: str) -> None:
    answer = cluster.ask(api.DESCRIBE_CLUSTER, 2, node=node, endpoint_type=wanted)
    assert Answered(answer.error_code, answer.error_message) == (code, text)
    assert (answer.cluster_id, answer.controller_id, answer.endpoint_type, answer.brokers) == ("", -1, 1, [])


def test_all_brokers_are_told_as_not_fenced_while_they_live(cluster: Cluster) -> None:
    answer = cluster.ask(api.DESCRIBE_CLUSTER, 2, endpoint_type=1, include_fenced_brokers=True)
    assert {one.broker_id: one.is_fenced for one in answer.brokers} == dict.fromkeys(cluster.brokers, False)


def test_what_a_client_may_do_to_the_cluster_is_told_when_it_asks(cluster: Cluster) -> None:
    assert cluster.ask(api.DESCRIBE_CLUSTER, 2).authorized_operations is None
    described = cluster.ask(api.DESCRIBE_CLUSTER, 2, include_cluster_authorized_operations=True)
    assert described.authorized_operations == {5, 7, 8, 9, 10, 11, 12}


# DescribeTopicPartitions


def page(
    cluster: Cluster, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[list[tuple[str, int, list[int]]], tuple[str, int] | None]:
    """Name, error code and partitions of each topic, and where to go on."""
    answer = cluster.ask(
        api.DESCRIBE_TOPIC_PARTITIONS,
        topics=[{"name": name} for name in topics],
        response_partition_limit=limit,
        cursor=None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    found = [(one.name, one.error_code, [each.partition_index for each in one.partitions]) for one in answer.topics]
    following = answer.next_cursor
    return found, None if following is None else (following.topic_name, following.partition_index)


def two_topics(cluster: Cluster) -> tuple[str, str]:
    """The test's topic with three partitions and another, which sorts behind it, with one."""
    cluster.client.create_topics([NewTopic(f"{cluster.topic}-b", assignments=((0,),))]).raise_if_any()
    cluster.create((0,), (1,), (2,))
    return cluster.topic, f"{cluster.topic}-b"


def test_topics_are_told_in_their_order_and_once(cluster: Cluster) -> None:
    first, second = two_topics(cluster)
    assert page(cluster, second, first, second) == ([(first, 0, [0, 1, 2]), (second, 0, [0])], None)


def test_pages_end_where_the_limit_is_reached(cluster: Cluster) -> None:
    first, second = two_topics(cluster)
    assert page(cluster, first, second, limit=2) == ([(first, 0, [0, 1])], (first, 2))
    assert page(cluster, first, second, limit=3) == ([(first, 0, [0, 1, 2])], (second, 0))
    assert page(cluster, first, second, limit=4) == ([(first, 0, [0, 1, 2]), (second, 0, [0])], None)
    assert page(cluster, first, second, limit=0) == ([(first, 0, [0])], (first, 1))


def test_a_cursor_goes_on_where_the_page_before_ended(cluster: Cluster) -> None:
    first, second = two_topics(cluster)
    assert page(cluster, first, second, cursor=(first, 2)) == ([(first, 0, [2]), (second, 0, [0])], None)
    assert page(cluster, first, second, cursor=(second, 0)) == ([(second, 0, [0])], None)
    assert page(cluster, first, second, cursor=(first, 9)) == ([(first, 0, []), (second, 0, [0])], None)


def test_a_cursor_that_cannot_be_is_refused_on_every_topic(cluster: Cluster) -> None:
    first, second = two_topics(cluster)
    assert page(cluster, first, cursor=(second, 0)) == ([(first, 42, [])], None)
    assert page(cluster, first, second, cursor=(first, -1)) == ([(first, 42, []), (second, 42, [])], None)


def test_unknown_topics_are_told_as_unknown_also_as_a_cursor(cluster: Cluster) -> None:
    first, _ = two_topics(cluster)
    absent = f"{first}-absent"
    assert page(cluster, absent, first) == ([(first, 0, [0, 1, 2]), (absent, 3, [])], None)
    assert page(cluster, absent, first, cursor=(absent, 0)) == ([(absent, 3, [])], None)


def test_a_partition_in_sync_has_empty_lists_of_eligible_leaders(cluster: Cluster) -> None:
    cluster.create((0, 1))
    answer = cluster.ask(api.DESCRIBE_TOPIC_PARTITIONS, topics=[{"name": cluster.topic}], response_partition_limit=10)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 0, 0)
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ([], [], [])
