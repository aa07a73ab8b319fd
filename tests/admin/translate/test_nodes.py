from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.translate.cluster import controller_nodes, describe_cluster, nodes, unregister_broker
from kreassign.errors import Rejected, Unsupported
from kreassign.model import Broker, Cluster
from kreassign.wire import api
from tests.admin import answers
from tests.admin.values import BROKERS, NAMES, TIMEOUT_MS, as_read_by_us, as_seen_by_broker, versions

NODES = st.builds(Broker, BROKERS, NAMES, st.integers(1, 65535), st.none() | NAMES, st.booleans())
CLUSTERS = st.builds(
    Cluster,
    NAMES,
    st.just(-1) | BROKERS,
    st.lists(NODES, max_size=4, unique_by=lambda node: node.id).map(lambda found: tuple(sorted(found))),
)


@given(CLUSTERS, versions(api.METADATA))
def test_nodes_are_read_from_metadata(cluster: Cluster, version: int) -> None:
    told = replace(cluster, brokers=tuple(replace(node, is_fenced=False) for node in cluster.brokers))
    assert as_read_by_us(nodes(), version, answers.metadata(cluster)) == told


@given(versions(api.METADATA))
def test_asking_for_nodes_asks_for_no_topic(version: int) -> None:
    seen = as_seen_by_broker(nodes(), version)
    assert list(seen.topics) == []
    assert seen.allow_auto_topic_creation is False


@given(CLUSTERS, versions(api.DESCRIBE_CLUSTER))
def test_nodes_are_read_from_describe_cluster_and_sorted(cluster: Cluster, version: int) -> None:
    told = replace(
        cluster, brokers=tuple(replace(node, is_fenced=node.is_fenced and version >= 2) for node in cluster.brokers)
    )
    shuffled = replace(cluster, brokers=tuple(reversed(cluster.brokers)))
    assert as_read_by_us(describe_cluster(), version, answers.cluster_nodes(shuffled)) == told


def test_a_node_reads_whether_brokers_or_controllers_are_wanted() -> None:
    assert as_seen_by_broker(describe_cluster(), 2).endpoint_type == 1
    assert as_seen_by_broker(controller_nodes(), 2).endpoint_type == 2
    assert as_seen_by_broker(describe_cluster(), 2).include_fenced_brokers is False
    assert as_seen_by_broker(describe_cluster(include_fenced=True), 2).include_fenced_brokers is True


@pytest.mark.parametrize("version", [0, 1])
def test_a_cluster_that_cannot_list_fenced_brokers_is_not_asked_to(version: int) -> None:
    with pytest.raises(Unsupported, match=r"cannot list fenced brokers \(DescribeCluster version 2"):
        describe_cluster(include_fenced=True).build(version, TIMEOUT_MS)


def test_a_node_that_knows_no_controllers_is_not_asked_for_them() -> None:
    with pytest.raises(Unsupported, match=r"DescribeCluster version 1.*is it a broker"):
        controller_nodes().build(0, TIMEOUT_MS)


def test_the_broker_to_unregister_is_named_and_a_refusal_keeps_its_words() -> None:
    assert as_seen_by_broker(unregister_broker(3), 0).broker_id == 3
    done, refused = (
        api.UNREGISTER_BROKER.response(error_code=code, error_message=text)
        for code, text in ((0, ""), (102, "Broker ID 3 is not currently registered"))
    )
    as_read_by_us(unregister_broker(3), 0, done)
    with pytest.raises(Rejected, match="Broker ID 3 is not currently registered"):
        as_read_by_us(unregister_broker(3), 0, refused)


def test_a_broker_asked_for_controllers_refuses_and_its_words_are_kept() -> None:
    text = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    with pytest.raises(Rejected, match=text) as refused:
        as_read_by_us(controller_nodes(), 1, answers.cluster_nodes(Cluster("", -1, ()), outcome=(114, text)))
    assert (refused.value.code, refused.value.name) == (114, "MISMATCHED_ENDPOINT_TYPE")
