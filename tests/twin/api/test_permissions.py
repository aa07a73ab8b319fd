"""Answers to clients without a permission, by each API: on every item, and nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.twin.api.test_every_version import FIELDS
from tests.twin.asking import ask, twin

TOPICS = {"orders": [[0, 1], [1, 2]], "payments": [[2, 3]]}
TOPIC, CLUSTER = (29, "Topic authorization failed."), (31, "Cluster authorization failed.")
NEEDS_ALTER, NEEDS_DESCRIBE = (31, "Request … needs ALTER permission."), (31, "Request … needs DESCRIBE permission.")
CONTROLLER = 100
Error = tuple[int, str | None]


def errors(response: Message) -> set[Error]:
    """Code and text of the answer and of each of its items; what names the connection is left out of texts."""
    return set(_errors(response.to_dict()))


def _errors(value: Any) -> Iterator[Error]:
    if isinstance(value, dict):
        if "error_code" in value:
            text = value.get("error_message")
            yield value["error_code"], text and re.sub(r"^Request Request\(.*\) needs", "Request … needs", text)
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _errors(inner)


def only(*operations: tuple[Operation, str]) -> Permissions:
    return Permissions(frozenset(Allow(ANONYMOUS, operation, topic) for operation, topic in operations))


def about(field: str, *topics: str, **values: object) -> list[dict[str, object]]:
    """Items of a request, each about a topic."""
    return [{field: topic, **values} for topic in topics]


_FIRST = about("topic", "orders", partitions=[0])
_DIR = {"path": "/data/0/d1", "topics": about("name", "orders", partitions=[0, 1])}
_BROKER = {"resource_type": 4, "resource_name": "0"}
_DESCRIBED = {**_BROKER, "configuration_keys": None}
_RATE = {"name": "leader.replication.throttled.rate", "config_operation": 0, "value": "9"}
_CHANGED = {**_BROKER, "configs": [_RATE]}


@pytest.mark.parametrize(("called", "version", "node", "fields", "expected"), [
    (api.LIST_OFFSETS, 7, 0, {}, {(29, None)}),
    (api.METADATA, 13, 0, {}, {(29, None), (0, None)}),
    (api.CREATE_TOPICS, 7, 0, {}, {(29, "Authorization failed.")}),
    (api.DELETE_TOPICS, 5, 0, {}, {TOPIC}),
    (api.CREATE_PARTITIONS, 3, 0, {}, {(29, None)}),
    (api.DESCRIBE_CONFIGS, 4, 0, {}, {TOPIC}),
    (api.DESCRIBE_CONFIGS, 4, 0, {"resources": [_DESCRIBED]}, {CLUSTER}),
    (api.ALTER_CONFIGS, 2, 0, {}, {TOPIC}),
    (api.INCREMENTAL_ALTER_CONFIGS, 1, 0, {}, {TOPIC}),
    (api.INCREMENTAL_ALTER_CONFIGS, 1, 0, {"resources": [_CHANGED]}, {CLUSTER}),
    (api.ALTER_REPLICA_LOG_DIRS, 2, 0, {"dirs": [_DIR]}, {(31, None)}),
    (api.DESCRIBE_LOG_DIRS, 5, 0, {"topics": None}, {(31, None)}),
    (api.DESCRIBE_LOG_DIRS, 2, 0, {"topics": None}, set()),
    (api.ELECT_LEADERS, 2, 0, {}, {(31, None)}),
    (api.ELECT_LEADERS, 2, 0, {"topic_partitions": _FIRST}, {(31, None), NEEDS_ALTER}),
    (api.ELECT_LEADERS, 0, 0, {"topic_partitions": _FIRST}, {NEEDS_ALTER}),
    (api.ALTER_PARTITION_REASSIGNMENTS, 1, 0, {}, {NEEDS_ALTER}),
    (api.ALTER_PARTITION_REASSIGNMENTS, 1, 0, {"timeout_ms": 0}, {NEEDS_ALTER}),
    (api.LIST_PARTITION_REASSIGNMENTS, 0, 0, {"topics": None}, {NEEDS_DESCRIBE}),
    (api.DESCRIBE_QUORUM, 2, 0, {}, {NEEDS_DESCRIBE}),
    (api.DESCRIBE_CLUSTER, 2, 0, {}, {(0, None)}),
    (api.DESCRIBE_CLUSTER, 2, CONTROLLER, {"endpoint_type": 2}, {NEEDS_ALTER}),
    (api.DESCRIBE_TOPIC_PARTITIONS, 0, 0, {"topics": about("name", "orders")}, {(29, None)}),
])  # fmt: skip
def test_a_client_without_permissions_is_refused_on_every_item(
    called: Api, version: int, node: int, fields: dict[str, object], expected: set[Error]
) -> None:
    asked = twin(TOPICS, permissions=Permissions(frozenset()))
    before = asked.metadata.offset
    response = ask(asked, called, version, node=node, **{**FIELDS.get(called, {}), **fields})
    assert errors(response) == expected
    assert asked.metadata.offset == before
    assert not asked.replication.is_copying


def test_an_answer_that_is_refused_at_the_top_has_no_items() -> None:
    nobody = twin(TOPICS, permissions=Permissions(frozenset()))
    for called, version in ((api.LIST_PARTITION_REASSIGNMENTS, 0), (api.DESCRIBE_QUORUM, 2)):
        assert ask(nobody, called, version, **FIELDS.get(called, {"topics": None})).topics == []
    assert ask(nobody, api.DESCRIBE_LOG_DIRS, 5, topics=None).results == []
    assert ask(nobody, api.DESCRIBE_CONFIGS, 4, **FIELDS[api.DESCRIBE_CONFIGS]).results[0].configs == []


def test_every_partition_of_a_refused_request_repeats_the_refusal() -> None:
    nobody = twin(TOPICS, permissions=Permissions(frozenset()))
    response = ask(nobody, api.ALTER_PARTITION_REASSIGNMENTS, 1, **FIELDS[api.ALTER_PARTITION_REASSIGNMENTS])
    (topic,) = response.responses
    assert [(one.partition_index, one.error_message) for one in topic.partitions] == [(0, response.error_message)]
    moved = ask(nobody, api.ALTER_REPLICA_LOG_DIRS, 2, dirs=[_DIR])
    assert [(one.partition_index, one.error_code) for one in moved.results[0].partitions] == [(0, 31), (1, 31)]


@pytest.mark.parametrize(("called", "version", "node", "fields"), [
    (api.ALTER_PARTITION_REASSIGNMENTS, 1, 0, {}),
    (api.DESCRIBE_CLUSTER, 2, CONTROLLER, {"endpoint_type": 2}),
    (api.INCREMENTAL_ALTER_CONFIGS, 1, 0, {"resources": [_CHANGED]}),
])  # fmt: skip
def test_a_permission_on_the_cluster_is_enough(called: Api, version: int, node: int, fields: dict[str, object]) -> None:
    allowed = Permissions(frozenset({Allow(ANONYMOUS, one) for one in (Operation.ALTER, Operation.ALTER_CONFIGS)}))
    response = ask(
        twin(TOPICS, permissions=allowed), called, version, node=node, **{**FIELDS.get(called, {}), **fields}
    )
    assert errors(response) == {(0, None)}


def test_of_two_topics_only_the_allowed_one_is_changed() -> None:
    create, grow = api.CREATE_TOPICS, api.CREATE_PARTITIONS
    asked = twin(TOPICS, permissions=only(
        (Operation.CREATE, "mine"), (Operation.ALTER, "orders"), (Operation.DELETE, "orders"),
    ))  # fmt: skip
    topics = about("name", "mine", "yours", num_partitions=1, replication_factor=1)
    created = ask(asked, create, 7, topics=topics, timeout_ms=1000).topics
    # The client may create the topic, but not see how it was configured.
    assert {one.name: (one.error_code, one.topic_config_error_code) for one in created} == {
        "mine": (0, 29), "yours": (29, 0),
    }  # fmt: skip
    topics = about("name", "orders", "payments", count=3, assignments=None)
    grown = ask(asked, grow, 3, topics=topics, timeout_ms=1000).results
    assert {one.name: one.error_code for one in grown} == {"orders": 0, "payments": 29}
    assert {name: len(topic.partitions) for name, topic in asked.metadata.topics.items()} == {
        "orders": 3, "payments": 1, "mine": 1,
    }  # fmt: skip
    deleted = ask(asked, api.DELETE_TOPICS, 5, topic_names=["orders", "payments"], timeout_ms=1000).responses
    assert {one.name: one.error_code for one in deleted} == {"orders": 0, "payments": 29}
    assert asked.metadata.topics.keys() == {"payments", "mine"}


def test_topics_that_a_client_may_not_describe_are_left_out_or_refused() -> None:
    asked = twin(TOPICS, permissions=only((Operation.DESCRIBE, "payments")))
    assert [one.name for one in ask(asked, api.METADATA, 13, topics=None).topics] == ["payments"]
    named = about("name", "orders", "nope")
    assert errors(ask(asked, api.METADATA, 13, topics=named)) == {(29, None), (0, None)}
    pages = {
        one.name: one.error_code
        for wanted in ((), ("orders", "payments"))
        for one in ask(
            asked, api.DESCRIBE_TOPIC_PARTITIONS, 0, response_partition_limit=10,
            topics=about("name", *wanted),
        ).topics
    }  # fmt: skip
    # Refused topics come last.
    assert list(pages.items()) == [("payments", 0), ("orders", 29)]
