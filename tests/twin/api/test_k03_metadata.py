from __future__ import annotations

import uuid

import pytest

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.version import KAFKA_3_9
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, twin

TOPIC = api.METADATA.request.MetadataRequestTopic
TOPICS = {"orders": [[0, 1], [1, 2]], "payments": [[2, 3]], "__consumer_offsets": [[0]]}


def shown(response: Message) -> dict[str, list[tuple[int, int, list[int], list[int], list[int]]]]:
    """Per topic and partition: error code, leader, replicas, ISR, offline replicas."""
    return {
        topic.name: [
            (one.error_code, one.leader_id, one.replica_nodes, one.isr_nodes, one.offline_replicas)
            for one in topic.partitions
        ]
        for topic in response.topics
    }


def test_null_asks_for_all_topics_and_an_empty_list_for_none() -> None:
    asked = twin(TOPICS)
    response = ask(asked, api.METADATA, 13, topics=None)
    assert shown(response)["orders"] == [(0, 0, [0, 1], [0, 1], []), (0, 1, [1, 2], [1, 2], [])]
    assert {topic.name: topic.is_internal for topic in response.topics} == {
        "orders": False, "payments": False, "__consumer_offsets": True,
    }  # fmt: skip
    assert ask(asked, api.METADATA, 13, topics=[]).topics == []
    assert len(ask(asked, api.METADATA, 0, topics=[]).topics) == 3


def test_brokers_are_told_with_racks_and_one_of_them_is_called_the_controller() -> None:
    response = ask(twin(), api.METADATA, 13, topics=[])
    assert [(one.node_id, one.host, one.port, one.rack) for one in response.brokers] == [
        (0, "broker-0", 9092, "a"), (1, "broker-1", 9092, "b"), (2, "broker-2", 9092, "a"), (3, "broker-3", 9092, "b"),
    ]  # fmt: skip
    assert response.cluster_id == "twin"
    assert response.controller_id in range(4)


def test_unknown_topics_and_invalid_names_are_distinguished() -> None:
    response = ask(twin(), api.METADATA, 13, topics=[TOPIC(name="nope"), TOPIC(name="no such/topic"), TOPIC(name="")])
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("nope", 3),
        ("no such/topic", 17),
        ("", 17),
    ]


def test_topics_are_found_by_id() -> None:
    asked = twin(TOPICS)
    topic_id = uuid.UUID(asked.metadata.topics["orders"].topic_id)
    other = uuid.UUID(int=5)
    wanted = [TOPIC(topic_id=topic_id, name=None), TOPIC(topic_id=other, name=None)]
    found, missing = ask(asked, api.METADATA, 12, topics=wanted).topics
    assert (found.name, found.topic_id, len(found.partitions)) == ("orders", topic_id, 2)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, other, 100)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_their_time(version: int) -> None:
    topic = TOPIC(topic_id=uuid.UUID(int=5), name="orders")
    (refused,) = ask(twin(TOPICS), api.METADATA, version, topics=[topic]).topics
    assert (refused.name, refused.error_code) == ("orders", 42)


def test_what_a_dead_broker_leaves_is_offline_and_leaderless_partitions_say_so() -> None:
    asked = twin({"orders": [[0, 1], [1]]})
    asked.stop(1)
    response = ask(asked, api.METADATA, 13, topics=None)
    assert shown(response)["orders"] == [(0, 0, [0, 1], [0], [1]), (5, -1, [1], [], [1])]
    assert [broker.node_id for broker in response.brokers] == [0, 2, 3]


def test_version_0_leaves_dead_replicas_out() -> None:
    asked = twin({"orders": [[0, 1]]}, version=KAFKA_3_9)
    asked.stop(1)
    (topic,) = ask(asked, api.METADATA, 0, topics=[]).topics
    (partition,) = topic.partitions
    assert (partition.error_code, partition.replica_nodes, partition.isr_nodes) == (9, [0], [0])


def test_a_failed_directory_makes_its_replicas_offline() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.fail_log_dir(1, "/data/1/d0")
    assert shown(ask(asked, api.METADATA, 13, topics=None))["orders"] == [(0, 0, [0, 1], [0], [1])]


def test_topics_that_a_client_may_not_see_are_left_out_or_refused() -> None:
    only_orders = Permissions(frozenset({Allow(ANONYMOUS, Operation.DESCRIBE, "orders")}))
    asked = twin(TOPICS, permissions=only_orders)
    assert shown(ask(asked, api.METADATA, 13, topics=None)).keys() == {"orders"}
    named = ask(asked, api.METADATA, 13, topics=[TOPIC(name="payments"), TOPIC(name="nope")])
    assert [(topic.name, topic.error_code) for topic in named.topics] == [("payments", 29), ("nope", 29)]


def test_operations_are_told_when_they_are_asked_for() -> None:
    asked = twin(TOPICS)
    response = ask(
        asked, api.METADATA, 10, topics=[TOPIC(name="orders")],
        include_cluster_authorized_operations=True, include_topic_authorized_operations=True,
    )  # fmt: skip
    assert response.authorized_operations == {5, 7, 8, 9, 10, 11, 12}
    assert response.topics[0].authorized_operations == {3, 4, 5, 6, 7, 8, 10, 11}
    assert ask(asked, api.METADATA, 10, topics=None).topics[0].authorized_operations is None
