"""Show topics and partitions: Metadata and DescribeTopicPartitions, and what other APIs show of brokers and topics.

A node answers from its own view of the metadata, which may lag behind the controller's.
"""

from __future__ import annotations

import uuid

from kreassign.model import NO_LEADER, error_codes
from kreassign.twin.access import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller.decision import is_online
from kreassign.twin.controller.topics import check_topic_name
from kreassign.twin.metadata import BrokerState, ClusterMetadata, PartitionState, TopicState
from kreassign.wire import api
from kreassign.wire.api import Message

# Brokers, topics and partitions as brokers show them in any API.

_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def live_brokers(metadata: ClusterMetadata) -> list[BrokerState]:
    """The registered and unfenced brokers, by id."""
    return [
        metadata.brokers[broker_id] for broker_id in sorted(metadata.brokers) if not metadata.brokers[broker_id].fenced
    ]


def metadata_brokers(request: Request) -> list[Message]:
    """The live brokers as Metadata lists them."""
    entry = api.METADATA.response.MetadataResponseBroker
    brokers = []
    for broker in live_brokers(request.metadata):
        host, port = request.address(broker.broker_id)
        brokers.append(entry(node_id=broker.broker_id, host=host, port=port, rack=broker.rack))
    return brokers


def shown_controller(request: Request) -> int:
    """The controller id that a broker shows to clients."""
    return request.cluster.controller.advertised_id([one.broker_id for one in live_brokers(request.metadata)])


def shown_leader(metadata: ClusterMetadata, partition: PartitionState) -> int:
    """The leader's id; -1 if there is no leader, or the leader is not registered."""
    return partition.leader if partition.leader in metadata.brokers else NO_LEADER


def healthy_brokers(metadata: ClusterMetadata) -> set[int]:
    """The live brokers without a failed log directory: all of their replicas are online."""
    return {broker.broker_id for broker in metadata.brokers.values() if not (broker.fenced or broker.failed_dirs)}


def offline_replicas(metadata: ClusterMetadata, partition: PartitionState, healthy: set[int]) -> list[int]:
    """The replicas on unregistered or fenced brokers, or in failed log directories."""
    if healthy.issuperset(partition.replicas):
        return []  # The usual case, which must be quick: there may be many partitions.
    return [
        broker_id
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=True)
        if (broker := metadata.brokers.get(broker_id)) is None or broker.fenced or not is_online(broker, directory)
    ]


def is_internal(topic: str) -> bool:
    """True if Kafka keeps its own state in this topic."""
    return topic in _INTERNAL


def unknown_topic_error(topic: str) -> int:
    """The error code of a missing topic: an invalid name has another code."""
    return check_topic_name(topic).code or error_codes.UNKNOWN_TOPIC_OR_PARTITION


def topic_operations(request: Request, topic: str | None) -> set[int]:
    """Kafka's numbers of the operations that the client may run on a topic."""
    return request.allowed_operations(TOPIC_OPERATIONS, topic or "")


_METADATA_RESPONSE = api.METADATA.response
_METADATA_TOPIC = _METADATA_RESPONSE.MetadataResponseTopic
_METADATA_PARTITION = _METADATA_TOPIC.MetadataResponsePartition
_FIRST_WITH_TOPIC_IDS = 12
_NO_ID = uuid.UUID(int=0)


def _metadata(request: Request) -> Message:
    """Metadata: brokers, topics, partitions with their replicas and leaders.

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
    wanted = request.message.topics
    if request.version < _FIRST_WITH_TOPIC_IDS and any(_names_topics_by_id(topic) for topic in wanted or ()):
        return _metadata_invalid(wanted)
    return _METADATA_RESPONSE(
        brokers=metadata_brokers(request),
        cluster_id=request.cluster.cluster_id,
        controller_id=shown_controller(request),
        topics=_metadata_topics(request, wanted),
        authorized_operations=cluster_operations(request),
    )


def _names_topics_by_id(topic: Message) -> bool:
    return topic.name is None or (topic.topic_id or _NO_ID) != _NO_ID


def _metadata_invalid(wanted: list[Message]) -> Message:
    topics = [metadata_failed(topic.name or "", error_codes.INVALID_REQUEST, topic.topic_id) for topic in wanted]
    return _METADATA_RESPONSE(brokers=[], topics=topics, error_code=error_codes.INVALID_REQUEST)


def metadata_failed(name: str | None, code: int, topic_id: uuid.UUID | str | None = None) -> Message:
    """The entry of a topic in Metadata that has only an error."""
    internal = name is not None and is_internal(name)
    return _METADATA_TOPIC(name=name, error_code=code, topic_id=topic_id or _NO_ID, is_internal=internal, partitions=[])


# --- topics -------------------------------------------------------------------------------------------------------


def _metadata_topics(request: Request, wanted: list[Message] | None) -> list[Message]:
    topics = request.metadata.topics
    if wanted is None or (request.version == 0 and not wanted):
        return [
            _metadata_topic(request, topic)
            for topic in topics.values()
            if request.allows(Operation.DESCRIBE, topic.name)
        ]
    ids = list(dict.fromkeys(str(topic.topic_id) for topic in wanted if (topic.topic_id or _NO_ID) != _NO_ID))
    if ids and request.version >= _FIRST_WITH_TOPIC_IDS:
        return [_metadata_by_id(request, topic_id) for topic_id in ids]
    return [_metadata_by_name(request, name) for name in dict.fromkeys(topic.name for topic in wanted)]


def _metadata_by_id(request: Request, topic_id: str) -> Message:
    name = request.metadata.topic_names.get(topic_id)
    if name is None:
        return metadata_failed(None, error_codes.UNKNOWN_TOPIC_ID, topic_id)
    if not request.allows(Operation.DESCRIBE, name):
        return metadata_failed(None, error_codes.TOPIC_AUTHORIZATION_FAILED, topic_id)
    return _metadata_topic(request, request.metadata.topics[name])


def _metadata_by_name(request: Request, name: str) -> Message:
    if not request.allows(Operation.DESCRIBE, name):
        return metadata_failed(name, error_codes.TOPIC_AUTHORIZATION_FAILED)
    topic = request.metadata.topics.get(name)
    return metadata_failed(name, unknown_topic_error(name)) if topic is None else _metadata_topic(request, topic)


def _metadata_topic(request: Request, topic: TopicState) -> Message:
    operations = topic_operations(request, topic.name) if request.message.include_topic_authorized_operations else None
    healthy = healthy_brokers(request.metadata)
    return _METADATA_TOPIC(
        error_code=error_codes.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_metadata_partition(request, partition, healthy) for partition in topic.partitions.values()],
        authorized_operations=operations,
    )


def _metadata_partition(request: Request, partition: PartitionState, healthy: set[int]) -> Message:
    leader = shown_leader(request.metadata, partition)
    offline = offline_replicas(request.metadata, partition, healthy)
    replicas, isr = list(partition.replicas), list(partition.isr)
    if request.version == 0:
        replicas, isr = ([broker for broker in ids if broker not in offline] for ids in (replicas, isr))
    is_whole = (len(replicas), len(isr)) == (len(partition.replicas), len(partition.isr))
    code = (
        error_codes.LEADER_NOT_AVAILABLE
        if leader < 0
        else error_codes.NONE
        if is_whole
        else error_codes.REPLICA_NOT_AVAILABLE
    )
    return _METADATA_PARTITION(
        error_code=code,
        partition_index=partition.topic_partition.partition,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def cluster_operations(request: Request) -> set[int] | None:
    """Kafka's numbers of the operations that the client may run on the cluster; None if it did not ask."""
    if not request.message.include_cluster_authorized_operations:
        return None
    return request.allowed_operations(CLUSTER_OPERATIONS) if request.allows(Operation.DESCRIBE) else set()


_TOPIC_PARTITIONS_RESPONSE = api.DESCRIBE_TOPIC_PARTITIONS.response
_TOPIC_PARTITIONS_TOPIC = _TOPIC_PARTITIONS_RESPONSE.DescribeTopicPartitionsResponseTopic
_TOPIC_PARTITIONS_PARTITION = _TOPIC_PARTITIONS_TOPIC.DescribeTopicPartitionsResponsePartition
_MOST_PARTITIONS = 2000
_NO_OPERATIONS = -(2**31)


def _describe_topic_partitions(request: Request) -> Message:
    """DescribeTopicPartitions: topics and partitions page by page, with eligible leader replicas (KIP-966).

    Permission: DESCRIBE on each topic; others are left out when all are asked for, else TOPIC_AUTHORIZATION_FAILED.

    Behaviour:
    - Topics are sorted; no list of topics means all. At most 2,000 partitions a page, or fewer if the client says so,
      and at least one; the next page begins at the cursor.
    - With a cursor, topics that sort before it are skipped. A cursor whose topic was not asked for, or with a
      negative partition, is INVALID_REQUEST on every topic.
    - An empty name makes the whole request fail with UNKNOWN_SERVER_ERROR.
    - Without eligible leader replicas in the cluster their lists are empty.

    Left out:
    - The limit of a page is Kafka's default and cannot be configured.
    """
    cursor = request.message.cursor
    if any(not topic.name for topic in request.message.topics):
        # Kafka fails the whole request on an empty name.
        failed = [
            topic_partitions_failed(topic.name, error_codes.UNKNOWN_SERVER_ERROR) for topic in request.message.topics
        ]
        return _TOPIC_PARTITIONS_RESPONSE(topics=failed, next_cursor=None)
    start = cursor.topic_name if cursor else ""
    named = {topic.name for topic in request.message.topics if topic.name >= start}
    if cursor and ((request.message.topics and start not in named) or cursor.partition_index < 0):
        failed = [topic_partitions_failed(topic.name, error_codes.INVALID_REQUEST) for topic in request.message.topics]
        return _TOPIC_PARTITIONS_RESPONSE(topics=failed, next_cursor=None)
    if not request.message.topics:
        named = {name for name in request.metadata.topics if name >= start}
    allowed = {name for name in named if request.allows(Operation.DESCRIBE, name)}
    response = _topic_partitions_page(request, sorted(allowed))
    if request.message.topics:
        response.topics += [
            topic_partitions_failed(name, error_codes.TOPIC_AUTHORIZATION_FAILED) for name in sorted(named - allowed)
        ]
    return response


def _topic_partitions_page(request: Request, names: list[str]) -> Message:
    cursor = request.message.cursor
    room = max(1, min(_MOST_PARTITIONS, request.message.response_partition_limit))
    topics: list[Message] = []
    for name in names:
        if room == 0:
            return _TOPIC_PARTITIONS_RESPONSE(
                topics=topics, next_cursor=_TOPIC_PARTITIONS_RESPONSE.Cursor(topic_name=name, partition_index=0)
            )
        topic = request.metadata.topics.get(name)
        if topic is None:
            # Requested by name; among all topics there is no unknown one.
            topics.append(
                topic_partitions_failed(name, unknown_topic_error(name), _topic_partitions_operations(request, name))
            )
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        end = min(len(topic.partitions), first + room)
        topics.append(_topic_partitions_topic(request, topic, range(first, end)))
        if end < len(topic.partitions):
            return _TOPIC_PARTITIONS_RESPONSE(
                topics=topics, next_cursor=_TOPIC_PARTITIONS_RESPONSE.Cursor(topic_name=name, partition_index=end)
            )
        room -= max(0, end - first)
    return _TOPIC_PARTITIONS_RESPONSE(topics=topics, next_cursor=None)


def topic_partitions_failed(name: str, code: int, operations: int = _NO_OPERATIONS) -> Message:
    """The entry of a topic in DescribeTopicPartitions that has only an error."""
    return _TOPIC_PARTITIONS_TOPIC(
        error_code=code, name=name, topic_id=_NO_ID, is_internal=False, partitions=[],
        topic_authorized_operations=operations,
    )  # fmt: skip


def _topic_partitions_operations(request: Request, topic: str) -> int:
    # kafka-python has this field as a set in other APIs, here as the number that Kafka sends.
    return sum(1 << operation for operation in topic_operations(request, topic))


def _topic_partitions_topic(request: Request, topic: TopicState, wanted: range) -> Message:
    healthy = healthy_brokers(request.metadata)
    return _TOPIC_PARTITIONS_TOPIC(
        error_code=error_codes.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_topic_partitions_partition(request, topic.partitions[number], healthy) for number in wanted],
        topic_authorized_operations=_topic_partitions_operations(request, topic.name),
    )


def _topic_partitions_partition(request: Request, partition: PartitionState, healthy: set[int]) -> Message:
    return _TOPIC_PARTITIONS_PARTITION(
        error_code=error_codes.NONE,
        partition_index=partition.topic_partition.partition,
        leader_id=shown_leader(request.metadata, partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(request.metadata, partition, healthy),
    )


HANDLERS = (
    Handler(api.METADATA, _metadata),
    Handler(api.DESCRIBE_TOPIC_PARTITIONS, _describe_topic_partitions),
)
