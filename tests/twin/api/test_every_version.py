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


_TOPIC, _CONFIGURED = {"name": "orders"}, {"resource_type": 2, "resource_name": "orders"}
_END = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
_MOVE = {"name": "orders", "partitions": [{"partition_index": 0, "replicas": [1, 2]}]}

# Requests that name something where their APIs can; the rest is as the message classes have it.
FIELDS: dict[Api, dict[str, object]] = {
    api.LIST_OFFSETS: {"replica_id": -1, "topics": [{**_TOPIC, "partitions": [_END]}]},
    api.METADATA: {"topics": [_TOPIC]},
    api.FIND_COORDINATOR: {"coordinator_keys": ["group"], "key": "group"},
    api.OFFSET_FETCH: {
        "groups": [{"group_id": "group", "member_id": "", "topics": []}],
        "group_id": "group",
        "topics": [],
    },
    api.JOIN_GROUP: {
        "group_id": "group",
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    },
    api.API_VERSIONS: {"client_software_name": "tests", "client_software_version": "1.0"},
    api.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    api.CREATE_TOPICS: {"topics": [{**_TOPIC, "num_partitions": 1, "replication_factor": 1}], "timeout_ms": 1000},
    api.DELETE_TOPICS: {"topics": [_TOPIC], "topic_names": ["orders"], "timeout_ms": 1000},
    api.CREATE_PARTITIONS: {"topics": [{**_TOPIC, "count": 3, "assignments": None}], "timeout_ms": 1000},
    api.DESCRIBE_CONFIGS: {"resources": [{**_CONFIGURED, "configuration_keys": None}]},
    api.ALTER_CONFIGS: {"resources": [{**_CONFIGURED, "configs": []}]},
    api.INCREMENTAL_ALTER_CONFIGS: {"resources": [{**_CONFIGURED, "configs": []}]},
    api.ALTER_PARTITION_REASSIGNMENTS: {"topics": [_MOVE], "timeout_ms": 1000},
    api.ELECT_LEADERS: {"topic_partitions": None, "timeout_ms": 1000},
    api.DESCRIBE_QUORUM: {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
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
