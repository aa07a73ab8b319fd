"""What brokers show of topics and partitions, whatever the API."""

from __future__ import annotations

from kreassign.model import NO_LEADER
from kreassign.model.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from kreassign.twin.access.permissions import TOPIC_OPERATIONS
from kreassign.twin.api.request import Request
from kreassign.twin.controller.context import is_online
from kreassign.twin.controller.topic_names import check_topic_name
from kreassign.twin.metadata.state import BrokerState, ClusterMetadata, PartitionState
from kreassign.wire import api
from kreassign.wire.api import Message

_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def live_brokers(metadata: ClusterMetadata) -> list[BrokerState]:
    """The brokers that are registered and not fenced, by id."""
    return [
        metadata.brokers[broker_id] for broker_id in sorted(metadata.brokers) if not metadata.brokers[broker_id].fenced
    ]


def metadata_brokers(request: Request) -> list[Message]:
    """The live brokers as Metadata tells them."""
    entry = api.METADATA.response.MetadataResponseBroker
    brokers = []
    for broker in live_brokers(request.metadata):
        host, port = request.address(broker.broker_id)
        brokers.append(entry(node_id=broker.broker_id, host=host, port=port, rack=broker.rack))
    return brokers


def shown_controller(request: Request) -> int:
    """What a broker gives for the controller's id."""
    return request.cluster.controller.advertised_id([one.broker_id for one in live_brokers(request.metadata)])


def shown_leader(metadata: ClusterMetadata, partition: PartitionState) -> int:
    """The leader's id, or -1 if nobody leads or the leader is not registered."""
    return partition.leader if partition.leader in metadata.brokers else NO_LEADER


def healthy_brokers(metadata: ClusterMetadata) -> set[int]:
    """The live brokers of which no log directory failed: all of their replicas are online."""
    return {broker.broker_id for broker in metadata.brokers.values() if not (broker.fenced or broker.failed_dirs)}


def offline_replicas(metadata: ClusterMetadata, partition: PartitionState, healthy: set[int]) -> list[int]:
    """The replicas whose broker is not registered or fenced, or whose log directory failed."""
    if healthy.issuperset(partition.replicas):
        return []  # The usual case, which must be quick: there may be many partitions.
    return [
        broker_id
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=True)
        if _is_offline(metadata.brokers.get(broker_id), directory)
    ]


def _is_offline(broker: BrokerState | None, directory: str) -> bool:
    return broker is None or broker.fenced or not is_online(broker, directory)


def is_internal(topic: str) -> bool:
    """Whether Kafka itself keeps its state in this topic."""
    return topic in _INTERNAL


def unknown_topic_error(topic: str) -> int:
    """The error code for a topic that is not there: an invalid name has another one."""
    return check_topic_name(topic).code or UNKNOWN_TOPIC_OR_PARTITION


def topic_operations(request: Request, topic: str | None) -> set[int]:
    """Kafka's numbers of what the client may do to a topic."""
    return request.allowed_operations(TOPIC_OPERATIONS, topic or "")
