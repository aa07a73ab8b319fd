"""Every API that a node of a release offers is answered, in every version, in its own bytes."""

from __future__ import annotations

import pytest

from kreassign.twin.api.handlers import HANDLERS, HANDLERS_BY_KEY
from kreassign.twin.version import RELEASES, Endpoint, KafkaVersion
from kreassign.wire import api
from kreassign.wire.api import Api
from tests.twin.asking import ask, twin

pytestmark = pytest.mark.thorough

OFFERED = [
    (release, endpoint, key, version)
    for release in RELEASES
    for endpoint in Endpoint
    for key, (low, high) in release.all_versions(endpoint).items()
    for version in range(low, high + 1)
]


def _topic(asked: Api, entry: str, **values: object) -> dict[str, object]:
    return {"topics": [getattr(asked.request, entry)(name="orders", **values)], "timeout_ms": 1000}


def _resource(asked: Api, entry: str, **values: object) -> dict[str, object]:
    return {"resources": [getattr(asked.request, entry)(resource_type=2, resource_name="orders", **values)]}


_OFFSETS = api.LIST_OFFSETS.request.ListOffsetsTopic
_END = _OFFSETS.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
_MOVE = api.ALTER_PARTITION_REASSIGNMENTS.request.ReassignableTopic.ReassignablePartition
_FETCHED = api.OFFSET_FETCH.request.OffsetFetchRequestGroup
_RANGE = api.JOIN_GROUP.request.JoinGroupRequestProtocol(name="range", metadata=b"")
_QUORUM = api.DESCRIBE_QUORUM.request.TopicData

# Requests that name something where their APIs can; the rest is as the message classes have it.
FIELDS: dict[Api, dict[str, object]] = {
    api.LIST_OFFSETS: {"replica_id": -1, "topics": [_OFFSETS(name="orders", partitions=[_END])]},
    api.METADATA: {"topics": [api.METADATA.request.MetadataRequestTopic(name="orders")]},
    api.FIND_COORDINATOR: {"coordinator_keys": ["group"], "key": "group"},
    api.OFFSET_FETCH: {
        "groups": [_FETCHED(group_id="group", member_id="", topics=[])],
        "group_id": "group",
        "topics": [],
    },
    api.JOIN_GROUP: {
        "group_id": "group",
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [_RANGE],
    },
    api.API_VERSIONS: {"client_software_name": "tests", "client_software_version": "1.0"},
    api.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    api.CREATE_TOPICS: _topic(api.CREATE_TOPICS, "CreatableTopic", num_partitions=1, replication_factor=1),
    api.DELETE_TOPICS: {**_topic(api.DELETE_TOPICS, "DeleteTopicState"), "topic_names": ["orders"]},
    api.CREATE_PARTITIONS: _topic(api.CREATE_PARTITIONS, "CreatePartitionsTopic", count=3, assignments=None),
    api.DESCRIBE_CONFIGS: _resource(api.DESCRIBE_CONFIGS, "DescribeConfigsResource", configuration_keys=None),
    api.ALTER_CONFIGS: _resource(api.ALTER_CONFIGS, "AlterConfigsResource", configs=[]),
    api.INCREMENTAL_ALTER_CONFIGS: _resource(api.INCREMENTAL_ALTER_CONFIGS, "AlterConfigsResource", configs=[]),
    api.ALTER_PARTITION_REASSIGNMENTS: _topic(
        api.ALTER_PARTITION_REASSIGNMENTS, "ReassignableTopic", partitions=[_MOVE(partition_index=0, replicas=[1, 2])]
    ),
    api.ELECT_LEADERS: {"topic_partitions": None, "timeout_ms": 1000},
    api.DESCRIBE_QUORUM: {
        "topics": [_QUORUM(topic_name="__cluster_metadata", partitions=[_QUORUM.PartitionData(partition_index=0)])]
    },
    api.DESCRIBE_CLUSTER: {"endpoint_type": 1},
    api.PRODUCE: {"transactional_id": None, "acks": -1, "timeout_ms": 1000, "topic_data": []},
    api.UNREGISTER_BROKER: {"broker_id": 3},
}


@pytest.mark.parametrize(
    ("release", "endpoint", "key", "version"),
    OFFERED,
    ids=[
        f"{release}-{endpoint.name.lower()}-{HANDLERS_BY_KEY[key].api.name}-v{v}"
        for release, endpoint, key, v in OFFERED
    ],
)
def test_every_offered_version_is_answered(release: KafkaVersion, endpoint: Endpoint, key: int, version: int) -> None:
    asked = twin({"orders": [[0, 1], [1, 2]]}, version=release)
    node = asked.controller_id if endpoint is Endpoint.CONTROLLER else 0
    api_of_key = HANDLERS_BY_KEY[key].api
    response = ask(asked, api_of_key, version, node=node, **FIELDS.get(api_of_key, {}))
    assert response.header.correlation_id == 7


def test_every_release_has_every_api_but_those_that_came_later() -> None:
    everything = {handler.api.key for handler in HANDLERS if handler.api not in api.KIP_179_APIS}
    missing = {release.name: everything - release.offered.keys() for release in RELEASES}
    assert missing == {"3.7": {75}, "3.9": set(), "4.2": set(), "4.3": set(), "4.4": set()}
