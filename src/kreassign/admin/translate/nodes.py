"""Which nodes a cluster has: Metadata, DescribeCluster and UnregisterBroker."""

from __future__ import annotations

from kreassign import __version__
from kreassign.admin.call import Call, raise_if_failed
from kreassign.errors import Unsupported
from kreassign.model import Broker, Cluster, operation_names
from kreassign.wire import api
from kreassign.wire.api import Message

_BROKERS, _CONTROLLERS = 1, 2  # EndpointType of DescribeCluster (KIP-919)
_ENDPOINT_TYPE_VERSION = 1
_FENCED_VERSION = 2


def nodes() -> Call[Cluster]:
    """Brokers and controller id, from any broker's metadata; asks for no topic."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.METADATA.request(topics=[], allow_auto_topic_creation=False)

    def read(response: Message) -> Cluster:
        brokers = (Broker(node.node_id, node.host, node.port, node.rack) for node in response.brokers)
        return Cluster(response.cluster_id or "", response.controller_id, tuple(sorted(brokers, key=_by_id)))

    return Call(api.METADATA, build, read)


def describe_cluster(*, include_fenced: bool = False) -> Call[Cluster]:
    """Brokers and controller id by DescribeCluster; fenced brokers only from Kafka 4.0 on."""
    return _describe_cluster(_BROKERS, include_fenced=include_fenced)


def controller_nodes() -> Call[Cluster]:
    """The controllers of the quorum and which of them is active, asked at a controller (KIP-919)."""
    return _describe_cluster(_CONTROLLERS, include_fenced=False)


def has_quorum() -> Call[bool]:
    """Whether the cluster keeps its metadata in a quorum, and not in ZooKeeper: only then it can describe one."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.API_VERSIONS.request(client_software_name="kreassign", client_software_version=__version__)

    def read(response: Message) -> bool:
        raise_if_failed(api.API_VERSIONS, response.error_code)
        return any(offer.api_key == api.DESCRIBE_QUORUM.key for offer in response.api_keys)

    return Call(api.API_VERSIONS, build, read)


def allowed_on_cluster() -> Call[frozenset[str] | None]:
    """What this client may do to the cluster; None where the cluster does not tell."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.DESCRIBE_CLUSTER.request(include_cluster_authorized_operations=True, endpoint_type=_BROKERS)

    def read(response: Message) -> frozenset[str] | None:
        raise_if_failed(api.DESCRIBE_CLUSTER, response.error_code, response.error_message)
        found = response.authorized_operations
        return None if found is None else operation_names(found)

    return Call(api.DESCRIBE_CLUSTER, build, read)


def allowed_on_topics() -> Call[dict[str, frozenset[str]]]:
    """What this client may do to each topic that it may see."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.METADATA.request(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )

    def read(response: Message) -> dict[str, frozenset[str]]:
        told = {topic.name: topic.authorized_operations for topic in response.topics if not topic.error_code}
        return {name: operation_names(found) for name, found in told.items() if found is not None}

    return Call(api.METADATA, build, read)


def unregister_broker(broker: int) -> Call[None]:
    """Take a broker out of a KRaft cluster for good."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.UNREGISTER_BROKER.request(broker_id=broker)

    def read(response: Message) -> None:
        raise_if_failed(api.UNREGISTER_BROKER, response.error_code, response.error_message)

    return Call(api.UNREGISTER_BROKER, build, read, is_write=True, routing_codes=lambda answer: (answer.error_code,))


def _describe_cluster(endpoint_type: int, *, include_fenced: bool) -> Call[Cluster]:
    def build(version: int, _timeout_ms: int) -> Message:
        if endpoint_type == _CONTROLLERS and version < _ENDPOINT_TYPE_VERSION:
            raise Unsupported("this node does not list controllers (DescribeCluster version 1 does); is it a broker?")
        if include_fenced and version < _FENCED_VERSION:
            raise Unsupported("this cluster cannot list fenced brokers (DescribeCluster version 2, Kafka 4.0)")
        return api.DESCRIBE_CLUSTER.request(endpoint_type=endpoint_type, include_fenced_brokers=include_fenced)

    def read(response: Message) -> Cluster:
        raise_if_failed(api.DESCRIBE_CLUSTER, response.error_code, response.error_message)
        brokers = (
            Broker(node.broker_id, node.host, node.port, node.rack, bool(node.is_fenced)) for node in response.brokers
        )
        return Cluster(response.cluster_id, response.controller_id, tuple(sorted(brokers, key=_by_id)))

    return Call(api.DESCRIBE_CLUSTER, build, read)


def _by_id(broker: Broker) -> int:
    return broker.id
