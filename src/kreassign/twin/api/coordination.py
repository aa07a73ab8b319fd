"""Which broker coordinates a group, and whether it may be asked: what the APIs of groups have in common."""

from __future__ import annotations

from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, NONE, NOT_COORDINATOR
from kreassign.model.java_hash import share_of, string_hash
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.request import Request
from kreassign.twin.controller.topics import CreateTopics, WantedTopic
from kreassign.twin.groups.coordinator import Claim
from kreassign.wire.api import Message

OFFSETS_TOPIC = "__consumer_offsets"
_PARTITIONS = "offsets.topic.num.partitions"
_FACTOR = "offsets.topic.replication.factor"
_CONFIGS = (("cleanup.policy", "compact"), ("compression.type", "producer"), ("segment.bytes", "104857600"))


def refusal(request: Request, group_id: str, operation: Operation = Operation.READ) -> int:
    """Why this node does not answer about a group; NONE if it does."""
    if not request.allows_group(operation, group_id):
        return GROUP_AUTHORIZATION_FAILED
    return NONE if coordinator_of(request, group_id) == request.node.id else NOT_COORDINATOR


def coordinator_of(request: Request, group_id: str) -> int | None:
    """The broker that leads the group's partition of `__consumer_offsets`; None if there is none."""
    topic = request.metadata.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return None
    partition = topic.partitions[share_of(string_hash(group_id), len(topic.partitions))]
    broker = request.metadata.brokers.get(partition.leader)
    return None if broker is None or broker.fenced else partition.leader


def create_offsets_topic(request: Request) -> None:
    """Create the topic in which brokers keep groups, as they do when the first coordinator is looked for."""
    static = request.context.server.static
    live = sum(not broker.fenced for broker in request.metadata.brokers.values())
    factor = int(static.get(_FACTOR, min(3, live)))
    topic = WantedTopic(OFFSETS_TOPIC, int(static.get(_PARTITIONS, "50")), factor, (), _CONFIGS)
    request.cluster.controller.create_topics(CreateTopics((topic,)))


def claim_of(message: Message) -> Claim:
    """As whom a member asks."""
    return Claim(message.group_id, message.generation_id, message.member_id, message.group_instance_id)
