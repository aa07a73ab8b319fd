"""Requests of foreign clients that kreassign never sends: APIs with nothing behind them, and edges of others."""

from __future__ import annotations

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin.controller.config_keys import ValueType, documented_keys
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.conformance.clusters import CONTROLLER, NEWEST, Answered, Cluster
from tests.conformance.test_configs import BROKER, DONE, SET, TOPIC, change, describe, resource

both_releases = pytest.mark.releases(NEWEST, "3.9")
newest_keys = pytest.mark.releases(NEWEST)
EVERYTHING_BUT_CLUSTER = 3576
NOT_TOLD = -(2**31)
DEFAULT = 5


# Answers without anything in them


def test_without_an_authorizer_there_are_no_acls(cluster: Cluster) -> None:
    for node in (0, CONTROLLER):
        answer = cluster.ask(
            api.DESCRIBE_ACLS, node=node, resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
            principal_filter=None, host_filter=None, operation=1, permission_type=1,
        )  # fmt: skip
        assert (answer.error_code, answer.error_message) == (54, "No Authorizer is configured on the broker")
        assert answer.resources == []


def test_no_client_has_a_quota(cluster: Cluster) -> None:
    answer = cluster.ask(api.DESCRIBE_CLIENT_QUOTAS, components=[], strict=False)
    assert (answer.error_code, answer.error_message, answer.entries) == (0, "", [])


def test_no_user_logs_in_with_scram(cluster: Cluster) -> None:
    for everybody in (None, []):
        answer = cluster.ask(api.DESCRIBE_USER_SCRAM_CREDENTIALS, users=everybody)
        assert (answer.error_code, answer.error_message, answer.results) == (0, "", [])
    answer = cluster.ask(api.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": name} for name in ("ann", "bob", "ann")])
    assert [(one.user, one.error_code, one.error_message) for one in answer.results] == [
        ("ann", 92, "Cannot describe SCRAM credentials for the same user twice in a single request: ann"),
        ("bob", 91, "Attempt to describe a user credential that does not exist: bob"),
    ]


def test_a_controller_cannot_tell_who_logs_in_with_scram(cluster: Cluster) -> None:
    answer = cluster.ask(api.DESCRIBE_USER_SCRAM_CREDENTIALS, node=CONTROLLER, users=[{"name": "ann"}])
    assert (answer.error_code, answer.error_message) == (-1, None)
    assert [(one.user, one.error_code) for one in answer.results] == [("", -1)]


def test_there_are_no_transactions(cluster: Cluster) -> None:
    answer = cluster.ask(
        api.LIST_TRANSACTIONS, state_filters=["Ongoing", "Nope"], producer_id_filters=[], duration_filter=-1,
        transactional_id_pattern=None,
    )  # fmt: skip
    assert (answer.error_code, answer.unknown_state_filters, answer.transaction_states) == (0, ["Nope"], [])


def test_what_can_be_configured_is_listed_by_kind(cluster: Cluster) -> None:
    cluster.create((0,))

    def listed(*kinds: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
        answer = cluster.ask(api.LIST_CONFIG_RESOURCES, version, resource_types=list(kinds))
        found = [(one.resource_type, one.resource_name) for one in answer.config_resources]
        return answer.error_code, [one for one in found if one[0] != TOPIC or one[1] == cluster.topic]

    brokers = [str(broker) for broker in cluster.brokers]
    assert listed(version=0) == (0, [])
    assert listed(TOPIC) == (0, [(TOPIC, cluster.topic)])
    assert listed(BROKER) == (0, [(BROKER, broker) for broker in brokers])
    assert sorted(listed()[1]) == sorted([
        (TOPIC, cluster.topic), *((kind, broker) for kind in (BROKER, 8) for broker in brokers)
    ])  # fmt: skip
    assert listed(16) == listed(32) == (0, [])
    assert listed(TOPIC, 77) == (35, [])


def test_a_broker_that_is_not_registered_cannot_be_unregistered(cluster: Cluster) -> None:
    for node in (0, CONTROLLER):
        answer = cluster.ask(api.UNREGISTER_BROKER, node=node, broker_id=9)
        assert (answer.error_code, answer.error_message) == (102, "Broker ID 9 is not currently registered")


@both_releases
def test_produce_and_fetch_are_offered(cluster: Cluster) -> None:
    answer = cluster.ask(api.API_VERSIONS, 3, client_software_name="tests", client_software_version="1")
    found = {one.api_key: one.min_version for one in answer.api_keys}
    assert found[api.PRODUCE.key] == 0
    assert api.FETCH.key in found


# Offsets


@pytest.mark.parametrize(("timestamp", "version", "found"), [
    (-1, 7, (0, 0, 0)),
    (-2, 7, (0, 0, 0)),
    (-3, 7, (0, -1, -1)),
    (-4, 8, (0, 0, 0)),
    (-4, 7, (35, -1, -1)),
    (-5, 11, (0, -1, -1)),
    (-6, 11, (0, -1, -1)),
    (-7, 11, (35, -1, -1)),
    (0, 7, (0, -1, -1)),
    (1_700_000_000_000, 7, (0, -1, -1)),
])  # fmt: skip
def test_an_empty_log_has_a_start_an_end_and_no_record_of_any_time(
    cluster: Cluster, timestamp: int, version: int, found: tuple[int, int, int]
) -> None:
    assert offset(cluster, cluster.create_one(0, 1), timestamp, version) == found


@pytest.mark.parametrize("timestamp", [-2, -4])
def test_the_start_of_a_log_has_the_leader_epoch_of_its_first_record(cluster: Cluster, timestamp: int) -> None:
    partition = cluster.create_one(0, 1)
    cluster.backend.write(partition, 100_000)
    assert offset(cluster, partition, timestamp, 8) == (0, 0, 0)


def offset(cluster: Cluster, partition: TopicPartition, timestamp: int, version: int) -> tuple[int, int, int]:
    """Error code, offset and leader epoch."""
    entry = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": partition.topic, "partitions": [entry]}]
    answer = cluster.ask(
        api.LIST_OFFSETS, version, replica_id=-1, isolation_level=0, timeout_ms=1_000, topics=topics
    )  # fmt: skip
    (one,) = answer.topics[0].partitions
    return one.error_code, one.offset, one.leader_epoch


# Topics, the cluster, the quorum


def test_an_isr_that_a_leader_proposed_is_in_the_order_of_ids(cluster: Cluster) -> None:
    partition = cluster.create_one(2)
    cluster.move(partition, 0, 2, 1)
    cluster.becomes(partition, (0, 2, 1), {0, 1, 2}, 2)
    (found,) = page(cluster, cluster.topic)[0].partitions
    assert found.isr_nodes == [0, 1, 2]


def page(cluster: Cluster, *names: str) -> list[Message]:
    answer = cluster.ask(
        api.DESCRIBE_TOPIC_PARTITIONS, topics=[{"name": name} for name in names], response_partition_limit=10
    )
    topics: list[Message] = answer.topics
    return topics


def test_topics_in_error_tell_what_the_client_may_do_too(cluster: Cluster) -> None:
    cluster.create((0,))
    found = {
        one.name: (one.error_code, one.topic_authorized_operations)
        for one in page(cluster, cluster.topic, "a/b", "nope")
    }
    assert found == {
        cluster.topic: (0, EVERYTHING_BUT_CLUSTER), "a/b": (17, EVERYTHING_BUT_CLUSTER),
        "nope": (3, EVERYTHING_BUT_CLUSTER),
    }  # fmt: skip


def test_an_empty_name_makes_a_page_fail(cluster: Cluster) -> None:
    cluster.create((0,))
    found = page(cluster, cluster.topic, "", "nope")
    assert [(one.name, one.error_code, one.topic_authorized_operations) for one in found] == [
        (name, -1, NOT_TOLD) for name in (cluster.topic, "", "nope")
    ]


@pytest.mark.parametrize("asked", [
    [("nope", 0)], [("__cluster_metadata", 1)], [("__cluster_metadata", 0), ("nope", 0)], []
], ids=str)  # fmt: skip
def test_only_the_metadata_alone_has_a_quorum(cluster: Cluster, asked: list[tuple[str, int]]) -> None:
    topics = [
        {"topic_name": name, "partitions": [{"partition_index": number}]} for name, number in asked
    ]  # fmt: skip
    answer = cluster.ask(api.DESCRIBE_QUORUM, 2, topics=topics)
    assert [one.error_code for topic in answer.topics for one in topic.partitions] == [3] * len(asked)
    assert (answer.error_code, answer.nodes) == (0, [])


def test_every_feature_is_told_with_its_levels(cluster: Cluster) -> None:
    # Our own version of ApiVersions leaves out features whose lowest level is 0.
    answer = cluster.ask(api.API_VERSIONS, 4, client_software_name="tests", client_software_version="1")
    metadata, share = (30, 1) if cluster.release == "4.3" else (33, 2)
    assert {one.name.removesuffix(".version"): (one.min_version, one.max_version)
            for one in answer.supported_features} == {
        "eligible.leader.replicas": (0, 1), "group": (0, 1), "kraft": (0, 1), "metadata": (7, metadata),
        "share": (0, share),
        "streams": (0, 1), "transaction": (0, 2),
    }  # fmt: skip
    assert {one.name.removesuffix(".version"): one.max_version_level for one in answer.finalized_features} == {
        "eligible.leader.replicas": 1, "group": 1, "metadata": metadata, "share": share, "streams": 1, "transaction": 2,
    }  # fmt: skip


# Configuration

# What differs from machine to machine, or is set by the testbed.
OWN = {
    "advertised.listeners", "broker.rack", "listeners", "log.dir", "log.dirs", "node.id", "broker.id", "process.roles",
    "metadata.log.dir",
}  # fmt: skip


@newest_keys
@pytest.mark.parametrize("kind", [TOPIC, BROKER])
def test_every_key_is_told_with_type_and_documentation(cluster: Cluster, kind: int) -> None:
    cluster.create((0,))
    name = cluster.topic if kind == TOPIC else "0"
    entry = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = cluster.ask(
        api.DESCRIBE_CONFIGS, 4, resources=[entry], include_synonyms=True, include_documentation=True
    )  # fmt: skip
    found = {one.name: one for one in answer.results[0].configs}
    data = documented_keys("topics" if kind == TOPIC else "brokers")
    assert found.keys() - OWN == data.keys() - OWN
    for key, one in found.items():
        if key in OWN:
            continue
        known = data[key]
        assert (one.config_type, one.read_only) == (known.type, known.is_read_only)
        assert one.is_sensitive == (known.type == ValueType.PASSWORD)
        assert one.documentation == known.documentation
        if one.config_source == DEFAULT and known.default is not None:
            assert (key, one.value) == (key, known.default)


@newest_keys
@pytest.mark.parametrize("name", ["0", ""])
def test_only_read_only_keys_cannot_be_changed_while_a_broker_runs(cluster: Cluster, name: str) -> None:
    internal = "unclean.leader.election.interval.ms"
    steps = [(SET, key, "1") for key in documented_keys("brokers")]
    ((_, refused),) = change(cluster, resource(BROKER, name, *steps, (SET, internal, "1")), validate_only=True)
    assert refused.code == 42
    beginning, _, listed = str(refused.text).partition(": ")
    assert beginning == "Cannot update these configs dynamically"
    read_only = {name for name, key in documented_keys("brokers").items() if key.is_read_only}
    assert set(listed.strip("[]").split(", ")) == read_only | {internal}


PER_BROKER = [
    "listeners", "principal.builder.class", "sasl.enabled.mechanisms", "ssl.client.auth", "ssl.protocol",
    "sasl.kerberos.service.name",
]  # fmt: skip


@pytest.mark.parametrize("key", PER_BROKER)
def test_what_every_broker_must_be_given_by_itself_has_no_default_for_all(cluster: Cluster, key: str) -> None:
    text = f"Cannot update these configs at default cluster level, broker id must be specified: [{key}]"
    default = documented_keys("brokers")[key].default or "x"
    step = resource(BROKER, "", (SET, key, default))
    assert change(cluster, step, validate_only=True) == [("", Answered(42, text))]


def test_documentation_is_told_only_if_it_is_asked_for(cluster: Cluster) -> None:
    _, found = describe(cluster, BROKER, "0", "num.partitions", "auto.leader.rebalance.enable")
    assert {name: one.documentation for name, one in found.items()} == {
        "num.partitions": None, "auto.leader.rebalance.enable": None
    }  # fmt: skip


@both_releases
def test_tiered_storage_that_is_off_cannot_be_used(cluster: Cluster) -> None:
    cluster.create((0,))
    text = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    key = "remote.storage.enable"
    refused = change(cluster, resource(TOPIC, cluster.topic, (SET, key, "true")), validate_only=True)
    assert refused == [(cluster.topic, Answered(40, text))]
    allowed = change(cluster, resource(TOPIC, cluster.topic, (SET, key, "false")), validate_only=True)
    assert allowed == [(cluster.topic, DONE)]


@pytest.mark.parametrize(
    "key",
    ["num.io.threads", "num.network.threads", "num.replica.fetchers", "background.threads",
     "num.recovery.threads.per.data.dir"],
)  # fmt: skip
def test_a_pool_of_threads_can_at_the_most_be_doubled(cluster: Cluster, key: str) -> None:
    owner = ConfigResource.broker(0)
    entry = cluster.client.describe_configs([owner], names=[key])[owner][key]
    present = int(entry.value or 0)
    text = (
        "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed "
        f"for {key}={{}}, value should not be greater than double the current value {present} for configuration "
        "Invalid dynamic configuration"
    )
    for count, outcome in ((2 * present, DONE), (2 * present + 1, Answered(42, text.format(2 * present + 1)))):
        step = resource(BROKER, "0", (SET, key, str(count)))
        assert change(cluster, step, validate_only=True) == [("0", outcome)]


# What only a twin says


def test_a_twin_refuses_records_at_once(cluster: Cluster) -> None:
    if CONTROLLER not in cluster.backend.nodes or type(cluster.backend).__name__ == "RealKafka":
        pytest.skip("real brokers take them")
    partition = cluster.create_one(0, 1)
    data = [{"name": partition.topic, "partition_data": [{"index": 0, "records": b""}]}]
    fields = {"transactional_id": None, "timeout_ms": 1_000, "topic_data": data}
    answer = cluster.ask(api.PRODUCE, 9, acks=-1, **fields)
    (one,) = answer.responses[0].partition_responses
    assert (one.error_code, one.error_message.startswith("This is a twin: it keeps no records")) == (44, True)
    with pytest.raises(OutcomeUnknown):
        cluster.ask(api.PRODUCE, 9, acks=0, **fields)
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000, "log_start_offset": -1}
    answer = cluster.ask(
        api.FETCH, 12, max_wait_ms=500, min_bytes=1, max_bytes=1_000, isolation_level=0, session_id=0,
        session_epoch=-1, topics=[{"topic": partition.topic, "partitions": [wanted]}], forgotten_topics_data=[],
        rack_id="", replica_id=-1,
    )  # fmt: skip
    assert [one.error_code for found in answer.responses for one in found.partitions] == [44]
