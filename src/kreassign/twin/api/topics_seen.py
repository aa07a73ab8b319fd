"""What the requests of KIP-179 are decided upon: a view of this node's cluster."""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.model import Broker, Partition, Topic
from kreassign.model.topic_changes import TopicsView, topics_view
from kreassign.twin.api.request import Request
from kreassign.twin.controller.context import MIN_IN_SYNC_REPLICAS
from kreassign.twin.metadata.state import PartitionState, TopicState


def topics_seen(request: Request, names: Iterable[str]) -> TopicsView:
    """These topics, if they exist, and all brokers with their copies; those of a broker that is down are unknown."""
    metadata, context = request.metadata, request.context
    found = {name: _topic(metadata.topics[name]) for name in names if name in metadata.topics}
    brokers = [
        Broker(one.broker_id, one.host, one.port, one.rack, is_fenced=one.fenced) for one in metadata.brokers.values()
    ]
    running = [broker.id for broker in brokers if request.cluster.is_running(broker.id)]
    return topics_view(
        brokers,
        {broker: request.cluster.replication.readings.log_dirs(broker) for broker in running},
        found,
        ongoing=metadata.reassigning,
        min_in_sync={name: int(context.topic_setting(name, MIN_IN_SYNC_REPLICAS, "1")) for name in found},
    )


def _topic(state: TopicState) -> Topic:
    return Topic(
        state.name, state.topic_id, is_internal=False, partitions=tuple(map(_partition, state.partitions.values()))
    )


def _partition(state: PartitionState) -> Partition:
    return Partition(state.topic_partition, state.replicas, state.isr, state.leader, state.leader_epoch)
