"""Offers of nodes, and requests on which they hang up."""

from __future__ import annotations

import struct

import pytest

from kreassign.errors import OutcomeUnknown
from kreassign.twin.version import Endpoint
from kreassign.wire import api
from kreassign.wire.codec import encode_request, framed
from tests.conformance.clusters import CONTROLLER, NEWEST, Cluster, release_of_twin

both_releases = pytest.mark.releases(NEWEST, "3.9")
ALTER_PARTITION, ENVELOPE, NO_API = 56, 58, 999
MOST_ELEMENTS = 1_000_000
"""Of a list, from Kafka 4.4."""


def offered(cluster: Cluster, node: int) -> dict[int, tuple[int, int]]:
    answer = cluster.ask(api.API_VERSIONS, 3, node=node, client_software_name="tests", client_software_version="1")
    assert answer.error_code == 0
    return {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


def head(key: int, version: int) -> bytes:
    """A request with no more than a header (with room for tags) and no body."""
    return framed(struct.pack(">hhihb", key, version, 7, -1, 0))


@both_releases
@pytest.mark.parametrize("endpoint", list(Endpoint), ids=lambda endpoint: endpoint.name.lower())
def test_the_apis_of_the_twin_have_kafkas_versions(cluster: Cluster, endpoint: Endpoint) -> None:
    found = offered(cluster, CONTROLLER if endpoint is Endpoint.CONTROLLER else 0)
    expected = release_of_twin(cluster.release).all_versions(endpoint)
    assert {key: found.get(key) for key in expected} == expected


@both_releases
def test_controllers_do_not_offer_what_is_about_data(cluster: Cluster) -> None:
    found = offered(cluster, CONTROLLER)
    assert not {api.METADATA.key, api.LIST_OFFSETS.key, api.DESCRIBE_LOG_DIRS.key} & found.keys()


@both_releases
def test_brokers_do_not_offer_what_only_controllers_take(cluster: Cluster) -> None:
    assert not {ALTER_PARTITION, ENVELOPE} & offered(cluster, 0).keys()


@both_releases
def test_features_are_told_with_the_level_of_the_cluster(cluster: Cluster) -> None:
    answer = cluster.ask(api.API_VERSIONS, 3, client_software_name="tests", client_software_version="1")
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    # Before version 4 a feature that may be at level 0 is not among those supported.
    known = [feature for feature in release_of_twin(cluster.release).features if feature.low > 0]
    assert {one.name: (one.low, one.high) for one in known}.items() <= supported.items()
    # A feature at level 0 is not told of.
    at_work = {one.name: one.finalized for one in release_of_twin(cluster.release).features if one.finalized}
    assert at_work.items() <= finalized.items()
    assert answer.finalized_features_epoch >= 0


@both_releases
@pytest.mark.parametrize("version", [6, 99])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(cluster: Cluster, version: int) -> None:
    payload = cluster.exchange(head(api.API_VERSIONS.key, version))
    correlation, error, count, key, low, high = struct.unpack(">ihihhh", payload)
    assert (correlation, error, count, key) == (7, 35, 1, 18)
    assert (low, high) == offered(cluster, 0)[18]


HERE, ELSEWHERE, NOT_SAID = "here", "elsewhere", None


@pytest.mark.parametrize(("node", "cluster_id", "node_id", "error"), [
    (0, HERE, 0, 0),
    (0, NOT_SAID, -1, 0),
    (0, ELSEWHERE, 0, 129),
    (0, "", 0, 129),
    (0, HERE, 1, 129),
    (0, ELSEWHERE, -1, 42),
    (0, NOT_SAID, 0, 42),
    (CONTROLLER, HERE, CONTROLLER, 0),
    (CONTROLLER, ELSEWHERE, 1, 0),
    (CONTROLLER, HERE, -1, 42),
    (CONTROLLER, NOT_SAID, CONTROLLER, 42),
])  # fmt: skip
def test_a_broker_refuses_who_means_another_node(
    cluster: Cluster, node: int, cluster_id: str | None, node_id: int, error: int
) -> None:
    if cluster.release == "4.3":
        return  # from 4.4 on (KIP-1242)
    here = cluster.client.describe_cluster().cluster_id
    answer = cluster.ask(
        api.API_VERSIONS,
        5,
        node=node,
        client_software_name="tests",
        client_software_version="1",
        cluster_id=here if cluster_id == HERE else cluster_id,
        node_id=node_id,
    )
    assert (answer.error_code, bool(answer.api_keys)) == (error, error == 0)


@pytest.mark.parametrize("bad", ["", "a/b", " ", "\t"])
def test_a_client_with_a_bad_name_for_its_software_is_refused(cluster: Cluster, bad: str) -> None:
    request = api.API_VERSIONS.request(client_software_name=bad, client_software_version="1")
    payload = cluster.exchange(encode_request(3, request, 7, "tests"))
    # An error code, no APIs, no throttle time, no tags.
    assert payload == struct.pack(">ihbib", 7, 42, 1, 0, 0)


@pytest.mark.parametrize(("key", "version"), [
    (NO_API, 0),
    (-1, 0),
    (ALTER_PARTITION, 3),
    (api.METADATA.key, 99),
    (api.METADATA.key, -1),
    (api.CREATE_TOPICS.key, 1),
    (api.ALTER_PARTITION_REASSIGNMENTS.key, 2),
    (api.LIST_PARTITION_REASSIGNMENTS.key, 1),
])  # fmt: skip
def test_a_broker_closes_the_connection_on_what_it_does_not_offer(cluster: Cluster, key: int, version: int) -> None:
    with pytest.raises(OutcomeUnknown):
        cluster.exchange(head(key, version))


@pytest.mark.parametrize("key", [api.METADATA.key, api.DESCRIBE_LOG_DIRS.key, api.LIST_OFFSETS.key, NO_API])
def test_a_controller_closes_the_connection_on_what_it_does_not_offer(cluster: Cluster, key: int) -> None:
    with pytest.raises(OutcomeUnknown):
        cluster.exchange(head(key, 4), node=CONTROLLER)


def test_a_request_that_ends_too_early_closes_the_connection(cluster: Cluster) -> None:
    whole = encode_request(0, api.LIST_PARTITION_REASSIGNMENTS.request(topics=None, timeout_ms=5), 7, "tests")
    with pytest.raises(OutcomeUnknown):
        cluster.exchange(framed(bytes(whole[4:-3])))


def test_bytes_after_the_end_of_a_request_do_no_harm(cluster: Cluster) -> None:
    whole = encode_request(0, api.LIST_PARTITION_REASSIGNMENTS.request(topics=[], timeout_ms=5), 7, "tests")
    assert cluster.exchange(framed(bytes(whole[4:]) + b"more"))[:4] == struct.pack(">i", 7)


@pytest.mark.parametrize("length", [32_767, 32_768])
def test_strings_of_more_than_32767_bytes_close_the_connection(cluster: Cluster, length: int) -> None:
    names = [{"name": "x" * length}]
    if length > 32_767:
        with pytest.raises(OutcomeUnknown):
            cluster.ask(api.METADATA, 9, topics=names)
    else:
        (topic,) = cluster.ask(api.METADATA, 9, topics=names).topics
        assert topic.error_code == 17


def test_a_null_where_none_may_be_closes_the_connection(cluster: Cluster) -> None:
    with pytest.raises(OutcomeUnknown):
        cluster.ask(api.METADATA, 9, topics=[{"name": None}])


def test_the_connection_that_was_closed_is_the_only_one_that_suffers(cluster: Cluster) -> None:
    with pytest.raises(OutcomeUnknown):
        cluster.exchange(head(NO_API, 0))
    assert offered(cluster, 0)


@pytest.mark.releases(NEWEST, "4.3")
def test_a_list_of_more_than_a_million_closes_the_connection_from_4_4(cluster: Cluster) -> None:
    topic = api.DESCRIBE_LOG_DIRS.request.DescribableLogDirTopic(topic="none", partitions=[0] * MOST_ELEMENTS)
    asked = api.DESCRIBE_LOG_DIRS.request(topics=[topic])
    assert cluster.exchange(encode_request(4, asked, 7, "tests"))
    topic.partitions.append(0)
    frame = encode_request(4, asked, 7, "tests")
    if release_of_twin(cluster.release).longest_list is None:
        assert cluster.exchange(frame)
        return
    with pytest.raises(OutcomeUnknown):
        cluster.exchange(frame)
