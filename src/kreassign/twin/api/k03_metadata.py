"""Metadata: brokers, topics, partitions with their replicas and leaders.

Versions: 0-12 on 3.7, 3.9; 0-13 on 4.2, 4.3.
Permission: DESCRIBE on each topic; others are left out when all are asked for, else TOPIC_AUTHORIZATION_FAILED.

Behaviour:
- Tells what the asked broker knows, which may be behind the controller.
- A partition without a leader has leader -1 and LEADER_NOT_AVAILABLE; dead replicas stay listed, and as offline.
- A live broker drawn at random is named as controller, as KRaft brokers do.
- Topics can be asked for by id from version 12 on; before, that is INVALID_REQUEST.
- In version 0 an empty list means all topics, and replicas on dead brokers are left out with REPLICA_NOT_AVAILABLE.

Left out:
- Topics are never created by asking for them: it is as if auto.create.topics.enable were false.
"""

from __future__ import annotations

import uuid

from kreassign.model.error_codes import (
    INVALID_REQUEST,
    LEADER_NOT_AVAILABLE,
    NONE,
    REPLICA_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
)
from kreassign.twin.access.permissions import CLUSTER_OPERATIONS, Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.shown import (
    healthy_brokers,
    is_internal,
    metadata_brokers,
    offline_replicas,
    shown_controller,
    shown_leader,
    topic_operations,
    unknown_topic_error,
)
from kreassign.twin.metadata.state import PartitionState, TopicState
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.METADATA.response
_TOPIC = _RESPONSE.MetadataResponseTopic
_PARTITION = _TOPIC.MetadataResponsePartition
_FIRST_BY_ID = 12
_NO_ID = uuid.UUID(int=0)


def _handle(request: Request) -> Message:
    wanted = request.message.topics
    if request.version < _FIRST_BY_ID and any(_is_by_id(topic) for topic in wanted or ()):
        return _invalid(wanted)
    return _RESPONSE(
        brokers=metadata_brokers(request),
        cluster_id=request.cluster.cluster_id,
        controller_id=shown_controller(request),
        topics=_topics(request, wanted),
        authorized_operations=_cluster_operations(request),
    )


def _is_by_id(topic: Message) -> bool:
    return topic.name is None or (topic.topic_id or _NO_ID) != _NO_ID


def _invalid(wanted: list[Message]) -> Message:
    topics = [_failed(topic.name or "", INVALID_REQUEST, topic.topic_id) for topic in wanted]
    return _RESPONSE(brokers=[], topics=topics, error_code=INVALID_REQUEST)


def _failed(name: str | None, code: int, topic_id: uuid.UUID | str | None = None) -> Message:
    internal = name is not None and is_internal(name)
    return _TOPIC(name=name, error_code=code, topic_id=topic_id or _NO_ID, is_internal=internal, partitions=[])


# --- topics -------------------------------------------------------------------------------------------------------


def _topics(request: Request, wanted: list[Message] | None) -> list[Message]:
    topics = request.metadata.topics
    if wanted is None or (request.version == 0 and not wanted):
        return [_topic(request, topic) for topic in topics.values() if request.allows(Operation.DESCRIBE, topic.name)]
    ids = list(dict.fromkeys(str(topic.topic_id) for topic in wanted if (topic.topic_id or _NO_ID) != _NO_ID))
    if ids and request.version >= _FIRST_BY_ID:
        return [_by_id(request, topic_id) for topic_id in ids]
    return [_by_name(request, name) for name in dict.fromkeys(topic.name for topic in wanted)]


def _by_id(request: Request, topic_id: str) -> Message:
    name = request.metadata.topic_names.get(topic_id)
    if name is None:
        return _failed(None, UNKNOWN_TOPIC_ID, topic_id)
    if not request.allows(Operation.DESCRIBE, name):
        return _failed(None, TOPIC_AUTHORIZATION_FAILED, topic_id)
    return _topic(request, request.metadata.topics[name])


def _by_name(request: Request, name: str) -> Message:
    if not request.allows(Operation.DESCRIBE, name):
        return _failed(name, TOPIC_AUTHORIZATION_FAILED)
    topic = request.metadata.topics.get(name)
    return _failed(name, unknown_topic_error(name)) if topic is None else _topic(request, topic)


def _topic(request: Request, topic: TopicState) -> Message:
    operations = topic_operations(request, topic.name) if request.message.include_topic_authorized_operations else None
    healthy = healthy_brokers(request.metadata)
    return _TOPIC(
        error_code=NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(request, partition, healthy) for partition in topic.partitions.values()],
        authorized_operations=operations,
    )


def _partition(request: Request, partition: PartitionState, healthy: set[int]) -> Message:
    leader = shown_leader(request.metadata, partition)
    offline = offline_replicas(request.metadata, partition, healthy)
    replicas, isr = list(partition.replicas), list(partition.isr)
    if request.version == 0:
        replicas, isr = ([broker for broker in ids if broker not in offline] for ids in (replicas, isr))
    is_whole = (len(replicas), len(isr)) == (len(partition.replicas), len(partition.isr))
    code = LEADER_NOT_AVAILABLE if leader < 0 else NONE if is_whole else REPLICA_NOT_AVAILABLE
    return _PARTITION(
        error_code=code,
        partition_index=partition.topic_partition.partition,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _cluster_operations(request: Request) -> set[int] | None:
    if not request.message.include_cluster_authorized_operations:
        return None
    return request.allowed_operations(CLUSTER_OPERATIONS) if request.allows(Operation.DESCRIBE) else set()


HANDLERS = (Handler(api.METADATA, _handle),)
