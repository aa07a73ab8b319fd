"""Controllers that are not active refuse what only the active one may do, item by item."""

from __future__ import annotations

from typing import Any

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


def fields(called: Api) -> dict[str, Any]:
    """A request about topic orders, or broker 0."""
    request = called.request
    config = api.INCREMENTAL_ALTER_CONFIGS.request.AlterConfigsResource
    plain = api.ALTER_CONFIGS.request.AlterConfigsResource
    move = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic
    everything: dict[int, dict[str, Any]] = {
        api.CREATE_TOPICS.key: {"topics": [{"name": "orders", "num_partitions": 1, "replication_factor": 1}]},
        api.DELETE_TOPICS.key: {"topics": [{"name": "orders", "topic_id": None}], "topic_names": ["orders"]},
        api.CREATE_PARTITIONS.key: {"topics": [{"name": "orders", "count": 3, "assignments": None}]},
        api.ELECT_LEADERS.key: {"topic_partitions": [{"topic": "orders", "partitions": [0]}]},
        api.ALTER_CONFIGS.key: {"resources": [plain(resource_type=4, resource_name="0", configs=[])]},
        api.INCREMENTAL_ALTER_CONFIGS.key: {"resources": [config(resource_type=4, resource_name="0", configs=[])]},
        api.ALTER_PARTITION_REASSIGNMENTS.key: {
            "topics": [move(name="orders", partitions=[move.ReassignablePartition(partition_index=0, replicas=[2])])]
        },
        api.UNREGISTER_BROKER.key: {"broker_id": 3},
    }
    return {name: _built(request, name, value) for name, value in everything[called.key].items()}


def _built(request: Any, name: str, value: Any) -> Any:
    kinds = {"CreateTopicsRequest": "CreatableTopic", "DeleteTopicsRequest": "DeleteTopicState",
             "CreatePartitionsRequest": "CreatePartitionsTopic", "ElectLeadersRequest": "TopicPartitions"}  # fmt: skip
    kind = kinds.get(request.__name__)
    if kind is None or not isinstance(value, list):
        return value
    return [getattr(request, kind)(**one) if isinstance(one, dict) else one for one in value]


def codes(response: Message) -> set[int]:
    """The error codes anywhere in an answer."""
    return set(_codes(response.to_dict()))


def _codes(value: Any) -> list[int]:
    if isinstance(value, dict):
        own = [code for key, code in value.items() if key == "error_code"]
        return own + [code for inner in value.values() for code in _codes(inner)]
    return [code for inner in value for code in _codes(inner)] if isinstance(value, list) else []


CALLS = [(called, version) for called in (
    api.CREATE_TOPICS, api.DELETE_TOPICS, api.CREATE_PARTITIONS, api.ELECT_LEADERS, api.ALTER_CONFIGS,
    api.INCREMENTAL_ALTER_CONFIGS, api.ALTER_PARTITION_REASSIGNMENTS, api.UNREGISTER_BROKER,
) for version in (called.min_version, called.max_version)]  # fmt: skip


@pytest.mark.parametrize(("called", "version"), CALLS)
def test_an_inactive_controller_refuses_everything_in_a_request(twin: Twin, called: Api, version: int) -> None:
    before = twin.metadata.offset
    assert codes(ask(twin, called, version, node=100, **fields(called))) == {NOT_CONTROLLER}
    assert twin.metadata.offset == before


@pytest.mark.parametrize(("called", "version"), CALLS)
def test_the_active_controller_and_brokers_refuse_nothing_so(twin: Twin, called: Api, version: int) -> None:
    for node in (101, 0):
        assert NOT_CONTROLLER not in codes(ask(twin, called, version, node=node, **fields(called)))


def test_the_text_names_the_active_controller(twin: Twin) -> None:
    answer = ask(twin, api.UNREGISTER_BROKER, 0, node=102, broker_id=3)
    assert (answer.error_code, answer.error_message) == (NOT_CONTROLLER, TEXT)


def test_an_inactive_controller_lists_reassignments_without_an_error(twin: Twin) -> None:
    for node in (100, 101, 102):
        answer = ask(twin, api.LIST_PARTITION_REASSIGNMENTS, 0, node=node, topics=None)
        assert (answer.error_code, answer.topics) == (NONE, [])


def test_the_quorum_is_described_by_its_leader(twin: Twin) -> None:
    topic = api.DESCRIBE_QUORUM.request.TopicData
    asked = [topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    found = {
        node: ask(twin, api.DESCRIBE_QUORUM, 2, node=node, topics=asked).topics[0].partitions[0]
        for node in (0, 100, 101)
    }
    assert {node: one.error_code for node, one in found.items()} == {
        0: NONE, 100: NOT_LEADER_OR_FOLLOWER, 101: NONE
    }  # fmt: skip
    assert (found[101].leader_id, found[101].leader_epoch) == (101, 2)
    assert [voter.replica_id for voter in found[101].current_voters] == [100, 101, 102]
