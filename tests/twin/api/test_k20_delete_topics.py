from __future__ import annotations

import uuid

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.wire import api
from tests.twin.asking import ask, twin

STATE = api.DELETE_TOPICS.request.DeleteTopicState
TOPICS = {"orders": [[0, 1]], "payments": [[1, 2]]}


def test_topics_are_deleted_by_name() -> None:
    asked = twin(TOPICS)
    response = ask(asked, api.DELETE_TOPICS, 5, topic_names=["orders", "nope"], timeout_ms=1000)
    assert [(one.name, one.error_code, one.error_message) for one in response.responses] == [
        ("orders", 0, None),
        ("nope", 3, "This server does not host this topic-partition."),
    ]
    assert asked.metadata.topics.keys() == {"payments"}


def test_topics_are_deleted_by_id_and_their_moves_with_them() -> None:
    asked = twin(TOPICS)
    topic_id = asked.metadata.topics["orders"].topic_id
    move = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    entry = move(name="orders", partitions=[move.ReassignablePartition(partition_index=0, replicas=[2, 3])])
    ask(asked, api.ALTER_PARTITION_REASSIGNMENTS, 1, topics=[entry], timeout_ms=1000)
    wanted = [STATE(name=None, topic_id=uuid.UUID(topic_id)), STATE(name=None, topic_id=uuid.UUID(int=3))]
    deleted, missing = ask(asked, api.DELETE_TOPICS, 6, topics=wanted, timeout_ms=1000).responses
    assert (deleted.name, str(deleted.topic_id), deleted.error_code) == ("orders", topic_id, 0)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, uuid.UUID(int=3), 100)
    assert not asked.metadata.reassigning
    asked.advance(120_000)
    assert not any(log_dir.replicas for log_dir in asked.replication.readings.log_dirs(2)[1:])


def test_who_may_not_delete_is_told_so() -> None:
    asked = twin(TOPICS, permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.DELETE, "orders")})))
    response = ask(asked, api.DELETE_TOPICS, 5, topic_names=["orders", "payments"], timeout_ms=1000)
    assert {one.name: (one.error_code, one.error_message) for one in response.responses} == {
        "orders": (0, None),
        "payments": (29, "Topic authorization failed."),
    }
    assert asked.metadata.topics.keys() == {"payments"}
