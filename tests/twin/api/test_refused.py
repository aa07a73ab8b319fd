"""APIs that the twin does not simulate are refused on every item; every API of Kafka's is in a table."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kreassign.errors import ProtocolViolation
from kreassign.model.error_codes import error_code
from kreassign.twin.access import ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.api.handlers import HANDLERS
from kreassign.twin.refused import REFUSED, Refusal
from kreassign.twin.version import CONTROLLER_KEYS, NOT_OFFERED, RELEASES, Endpoint, KafkaVersion, Versions
from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, encode_request
from tests.twin.asking import ask, ask_on, twin
from tests.wire.peer import message

# What brokers of 4.4.0 offer, by its published definitions of messages.
KAFKA_4_4 = {
    0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4),
    13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 5), 19: (2, 7), 20: (1, 6), 21: (0, 2),
    22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 6), 29: (1, 3), 30: (1, 3),
    31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2),
    40: (1, 2), 41: (1, 3), 42: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1),
    49: (0, 1), 50: (0, 0), 51: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0),
    66: (0, 2), 68: (0, 1), 69: (0, 1), 71: (0, 0), 72: (0, 0), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1),
    78: (1, 2), 79: (1, 2), 80: (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1),
    88: (0, 1), 89: (0, 1), 90: (0, 1), 91: (0, 0), 92: (0, 0), 93: (0, 0), 94: (0, 0),
}  # fmt: skip
_ORDERS = {"name": "orders", "partitions": [0]}
FIELDS: dict[api.Api, dict[str, Any]] = {
    api.DELETE_RECORDS: {"topics": [{"name": "orders", "partitions": [{"partition_index": 1, "offset": 7}]}]},
    api.ALTER_CLIENT_QUOTAS: {"entries": [{
        "entity": [{"entity_type": "user", "entity_name": None}],
        "ops": [{"key": "producer_byte_rate", "value": 1.0}],
    }]},
    api.ALTER_USER_SCRAM_CREDENTIALS: {
        "deletions": [{"name": "alice", "mechanism": 1}],
        "upsertions": [
            {"name": "bob", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"},
        ],
    },
    api.CREATE_ACLS: {"creations": [{
        "resource_type": 2, "resource_name": "orders", "principal": "User:a", "host": "*", "operation": 3,
        "permission_type": 3,
    }]},
    api.DELETE_ACLS: {"filters": [{
        "resource_type_filter": 2, "resource_name_filter": "orders", "principal_filter": None, "host_filter": None,
        "operation": 3, "permission_type": 3,
    }]},
    api.DESCRIBE_PRODUCERS: {"topics": [{"name": "orders", "partition_indexes": [0, 1]}]},
    api.CONSUMER_GROUP_HEARTBEAT: {"group_id": "readers", "member_id": "a", "member_epoch": 0},
    api.CONSUMER_GROUP_DESCRIBE: {"group_ids": ["readers", "writers"]},
    api.OFFSET_FOR_LEADER_EPOCH: {"topics": [
        {"topic": "orders", "partitions": [{"partition": 0, "leader_epoch": 0}, {"partition": 1, "leader_epoch": 0}]},
    ]},
    api.TXN_OFFSET_COMMIT: {"topics": [
        {"name": "orders", "partitions": [{"partition_index": 1, "committed_offset": 7, "committed_metadata": ""}]},
    ]},
    api.UPDATE_FEATURES: {"feature_updates": [{"feature": "metadata.version", "max_version_level": 7}]},
    api.DESCRIBE_TRANSACTIONS: {"transactional_ids": ["payments"]},
    api.ADD_PARTITIONS_TO_TXN: {
        "v3_and_below_transactional_id": "payments",
        "v3_and_below_topics": [_ORDERS],
        "transactions": [
            {"transactional_id": "payments", "producer_id": 1, "producer_epoch": 0, "topics": [_ORDERS]},
        ],
    },
}  # fmt: skip


def errors_of(answer: Any) -> Iterator[int]:
    """Every error code in an answer, at the top and in its items."""
    for name, value in answer.to_dict().items() if hasattr(answer, "to_dict") else answer.items():
        if name.endswith("error_code"):
            yield value
        for item in value if isinstance(value, list) else ():
            if isinstance(item, dict):
                yield from errors_of(item)


def test_every_api_of_kafka_has_a_handler_or_a_reason() -> None:
    handled = {handler.api.key for handler in HANDLERS if handler.api not in api.KIP_179_APIS}
    refused = {row.api.key for row in REFUSED}
    assert handled | refused | NOT_OFFERED.keys() == KAFKA_4_4.keys()
    assert len(handled) + len(refused) + len(NOT_OFFERED) == len(KAFKA_4_4)


@pytest.mark.parametrize(
    ("release", "row"),
    [(release, row) for release in RELEASES for row in REFUSED if release.versions(row.api.key)],
    ids=lambda one: one.api.name if isinstance(one, Refusal) else str(one),
)
def test_a_refused_api_answers_every_version_with_its_error(release: KafkaVersion, row: Refusal) -> None:
    asked = twin({"orders": [[0, 1], [1, 2]]}, version=release)
    nodes = {Endpoint.BROKER: 0, Endpoint.CONTROLLER: asked.controller_id}
    for endpoint in Endpoint if row.api.key in CONTROLLER_KEYS else [Endpoint.BROKER]:
        low, high = release.versions(row.api.key, endpoint) or (0, -1)
        assert low <= high
        for version in range(low, high + 1):
            answer = ask(asked, row.api, version, node=nodes[endpoint], **FIELDS.get(row.api, {}))
            assert set(errors_of(answer)) == {row.code}


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_connection_outlives_all_refusals(release: KafkaVersion) -> None:
    asked = twin({"orders": [[0, 1], [1, 2]]}, version=release)
    connection = asked.connect(0)
    for row in REFUSED:
        for version in range(*_span(release.versions(row.api.key))):
            frame = encode_request(version, message(row.api.request, FIELDS.get(row.api, {})), 7, "tests")
            reply = connection.answer(bytes(frame[PREFIX_BYTES:]))
            assert (bool(reply.frame), reply.is_last, reply.delay_ms) == (True, False, 0)
    listed = {one.api_key for one in ask_on(connection, api.API_VERSIONS, 0).api_keys}
    assert listed == release.all_versions(Endpoint.BROKER).keys()


def _span(offered: Versions | None) -> tuple[int, int]:
    return (0, 0) if offered is None else (offered.low, offered.high + 1)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.api.name)
def test_no_client_asks_again_after_a_refusal(row: Refusal) -> None:
    assert not error_code(row.code).retriable


def test_a_refused_request_is_answered_item_by_item() -> None:
    asked = twin({"orders": [[0, 1]]})
    (topic,) = ask(asked, api.DELETE_RECORDS, 2, **FIELDS[api.DELETE_RECORDS]).topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.error_code) == ("orders", 1, 44)
    (quota,) = ask(asked, api.ALTER_CLIENT_QUOTAS, 1, **FIELDS[api.ALTER_CLIENT_QUOTAS]).entries
    assert [(one.entity_type, one.entity_name) for one in quota.entity] == [("user", None)]
    assert (quota.error_code, quota.error_message) == (44, "This is a twin: it keeps no quotas.")
    users = ask(asked, api.ALTER_USER_SCRAM_CREDENTIALS, 0, **FIELDS[api.ALTER_USER_SCRAM_CREDENTIALS]).results
    assert [(one.user, one.error_code) for one in users] == [("alice", 44), ("bob", 44)]
    (producers,) = ask(asked, api.DESCRIBE_PRODUCERS, 0, **FIELDS[api.DESCRIBE_PRODUCERS]).topics
    assert [(one.partition_index, one.error_code) for one in producers.partitions] == [(0, 44), (1, 44)]
    (epochs,) = ask(asked, api.OFFSET_FOR_LEADER_EPOCH, 4, **FIELDS[api.OFFSET_FOR_LEADER_EPOCH]).topics
    assert [(one.partition, one.error_code) for one in epochs.partitions] == [(0, 35), (1, 35)]
    (committed,) = ask(asked, api.TXN_OFFSET_COMMIT, 3, **FIELDS[api.TXN_OFFSET_COMMIT]).topics
    assert [(one.partition_index, one.error_code) for one in committed.partitions] == [(1, 35)]
    groups = ask(asked, api.CONSUMER_GROUP_DESCRIBE, 1, **FIELDS[api.CONSUMER_GROUP_DESCRIBE]).groups
    text = "This is a twin: DescribeGroups describes its groups."
    assert [(one.group_id, one.error_code, one.error_message) for one in groups] == [
        ("readers", 35, text), ("writers", 35, text)
    ]  # fmt: skip


def test_a_controller_is_not_unregistered() -> None:
    asked = twin()
    for node in (0, asked.controller_id):
        answer = ask(asked, api.UNREGISTER_CONTROLLER, 0, node=node, controller_id=asked.controller_id)
        assert (answer.error_code, answer.error_message) == (44, "This is a twin: its controllers stay.")


def test_access_rules_are_refused_as_without_an_authorizer() -> None:
    (created,) = ask(twin(), api.CREATE_ACLS, 3, **FIELDS[api.CREATE_ACLS]).results
    assert (created.error_code, created.error_message) == (54, "No Authorizer is configured.")


def test_access_rules_of_a_scenario_stay_as_they_are() -> None:
    guarded = twin(permissions=Permissions(frozenset()))
    (created,) = ask(guarded, api.CREATE_ACLS, 3, **FIELDS[api.CREATE_ACLS]).results
    assert (created.error_code, created.error_message) == (
        44,
        "This is a twin: its access rules are those of its scenario.",
    )


def test_access_rules_of_a_scenario_are_not_shown_as_none() -> None:
    guarded = twin(permissions=Permissions(frozenset({Allow(ANONYMOUS, Operation.DESCRIBE)})))
    answer = ask(guarded, api.DESCRIBE_ACLS, 3, resource_type_filter=1, operation=1, permission_type=1)
    assert (answer.error_code, answer.error_message, answer.resources) == (
        44,
        "This is a twin: its access rules are those of its scenario.",
        [],
    )


@pytest.mark.parametrize("key", NOT_OFFERED, ids=lambda key: NOT_OFFERED[key][0])
def test_the_connection_ends_on_what_is_not_offered(key: int) -> None:
    asked = twin()
    for version in range(KAFKA_4_4[key][0], KAFKA_4_4[key][1] + 1):
        with pytest.raises(ProtocolViolation, match="offered"):
            asked.connect(0).answer(struct.pack(">hhih", key, version, 7, -1))


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_what_clients_do_better_without_is_not_listed(release: KafkaVersion) -> None:
    unlisted = {row.api.key for row in REFUSED if not row.is_listed} | NOT_OFFERED.keys()
    for endpoint in Endpoint:
        answer = ask(twin(version=release), api.API_VERSIONS, 3, client_software_name="a", client_software_version="1")
        assert not unlisted & {one.api_key for one in answer.api_keys}
        assert not unlisted & release.all_versions(endpoint).keys()
