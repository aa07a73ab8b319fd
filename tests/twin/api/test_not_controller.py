"""Controllers that are not active refuse what only the active one may do, item by item."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kreassign.model.error_codes import NONE, NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER
from kreassign.twin import Twin
from kreassign.twin.core import TwinSettings
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.twin.asking import ask, cluster

TEXT = "The active controller appears to be node 101."


@pytest.fixture
def twin() -> Twin:
    made = Twin(cluster({"orders": [[0, 1]]}), TwinSettings(controller_count=3))
    made.fail_over()
    return made


BROKER = {"resource_type": 4, "resource_name": "0", "configs": []}
FIELDS: dict[Api, dict[str, Any]] = {
    api.CREATE_TOPICS: {"topics": [{"name": "orders", "num_partitions": 1, "replication_factor": 1}]},
    api.DELETE_TOPICS: {"topics": [{"name": "orders", "topic_id": None}], "topic_names": ["orders"]},
    api.CREATE_PARTITIONS: {"topics": [{"name": "orders", "count": 3, "assignments": None}]},
    api.ELECT_LEADERS: {"topic_partitions": [{"topic": "orders", "partitions": [0]}]},
    api.ALTER_CONFIGS: {"resources": [BROKER]},
    api.INCREMENTAL_ALTER_CONFIGS: {"resources": [BROKER]},
    api.ALTER_PARTITION_REASSIGNMENTS: {
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "replicas": [2]}]}]
    },
    api.UNREGISTER_BROKER: {"broker_id": 3},
}
"""Requests about topic orders, or a broker."""


def codes(response: Message) -> set[int]:
    """The error codes anywhere in an answer."""
    return set(_codes(response.to_dict()))


def _codes(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [code for key, code in value.items() if key == "error_code"]
        return own + [code for inner in value.values() for code in _codes(inner)]
    return [code for inner in value for code in _codes(inner)] if isinstance(value, list) else []


CALLS = [(called, version) for called in FIELDS for version in (called.min_version, called.max_version)]


@pytest.mark.parametrize(("called", "version"), CALLS)
def test_an_inactive_controller_refuses_everything_in_a_request(twin: Twin, called: Api, version: int) -> None:
    before = twin.metadata.offset
    assert codes(ask(twin, called, version, node=100, **FIELDS[called])) == {NOT_CONTROLLER}
    assert twin.metadata.offset == before


@pytest.mark.parametrize(("called", "version"), CALLS)
def test_the_active_controller_and_brokers_refuse_nothing_so(twin: Twin, called: Api, version: int) -> None:
    for node in (101, 0):
        assert NOT_CONTROLLER not in codes(ask(twin, called, version, node=node, **FIELDS[called]))


def test_the_text_names_the_active_controller(twin: Twin) -> None:
    answer = ask(twin, api.UNREGISTER_BROKER, 0, node=102, broker_id=3)
    assert (answer.error_code, answer.error_message) == (NOT_CONTROLLER, TEXT)


def test_an_inactive_controller_lists_reassignments_without_an_error(twin: Twin) -> None:
    for node in (100, 101, 102):
        answer = ask(twin, api.LIST_PARTITION_REASSIGNMENTS, 0, node=node, topics=None)
        assert (answer.error_code, answer.topics) == (NONE, [])


def test_the_quorum_is_described_by_its_leader(twin: Twin) -> None:
    asked = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    found = {
        node: ask(twin, api.DESCRIBE_QUORUM, 2, node=node, topics=asked).topics[0].partitions[0]
        for node in (0, 100, 101)
    }
    assert {node: one.error_code for node, one in found.items()} == {
        0: NONE, 100: NOT_LEADER_OR_FOLLOWER, 101: NONE
    }  # fmt: skip
    assert (found[101].leader_id, found[101].leader_epoch) == (101, 2)
    assert [voter.replica_id for voter in found[101].current_voters] == [100, 101, 102]


def test_a_topic_that_is_named_by_its_id_is_refused_by_its_id(twin: Twin) -> None:
    topic_id = UUID(twin.metadata.topics["orders"].topic_id)
    (refused,) = ask(twin, api.DELETE_TOPICS, 6, node=100, topics=[{"name": None, "topic_id": topic_id}]).responses
    assert (refused.name, refused.topic_id, refused.error_code) == (None, topic_id, NOT_CONTROLLER)
