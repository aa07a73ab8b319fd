"""Answer the APIs that KIP-179 proposed and no Kafka has, if the twin was started with them.

AlterPartitionCounts, AlterReplicationFactors, ReassignPartitions, ReplicaStatus. `model/topic_changes.py` decides
from a view of this node's cluster; valid requests are executed by Kafka's own APIs, with their refusals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kreassign.model import Broker, Partition, Topic, TopicPartition, error_codes
from kreassign.model.requests import NO_COPY, Copy, OffsetRange
from kreassign.model.topic_changes import (
    Refusal,
    TopicsView,
    decide_partition_counts,
    decide_reassignments,
    decide_replication_factors,
    topics_view,
)
from kreassign.twin.access import Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller.decision import DONE, MIN_IN_SYNC_REPLICAS, TIMED_OUT, Outcome, has_expired
from kreassign.twin.controller.reassignments import (
    AlterReassignments,
    ReassignmentsAltered,
    Target,
    TopicOutcomes,
    TopicTargets,
    alter_reassignments,
)
from kreassign.twin.controller.topics import CreatePartitions, MorePartitions
from kreassign.twin.metadata import PartitionState, TopicState
from kreassign.wire import api
from kreassign.wire.api import Message

Named = TypeVar("Named")

# The view of this node's cluster for decisions about topics.


def topics_seen(request: Request, names: Iterable[str]) -> TopicsView:
    """These topics, if they exist, and all brokers with their copies; copies of a broker that is down are unknown.

    With ZooKeeper a broker that is down is not registered.
    """
    metadata, context = request.metadata, request.context
    found = {name: _seen_topic(metadata.topics[name]) for name in names if name in metadata.topics}
    brokers = [
        Broker(one.broker_id, one.host, one.port, one.rack, is_fenced=one.fenced)
        for one in metadata.brokers.values()
        if not (one.fenced and request.cluster.version.uses_zookeeper)
    ]
    running = [broker.id for broker in brokers if request.cluster.is_running(broker.id)]
    return topics_view(
        brokers,
        {broker: request.cluster.replication.readings.log_dirs(broker) for broker in running},
        found,
        ongoing=metadata.reassigning,
        min_in_sync={name: int(context.topic_setting(name, MIN_IN_SYNC_REPLICAS, "1")) for name in found},
    )


def _seen_topic(state: TopicState) -> Topic:
    return Topic(
        state.name, state.topic_id, is_internal=False, partitions=tuple(map(_seen_partition, state.partitions.values()))
    )


def _seen_partition(state: PartitionState) -> Partition:
    return Partition(state.topic_partition, state.replicas, state.isr, state.leader, state.leader_epoch)


def _refused(request: Request, outcome: Outcome) -> Message:
    return request.called.response(error_code=outcome.code, error_message=outcome.message, topics=[])


def _refusal(request: Request) -> Message | None:
    """The response to a change that the client may not make, or that comes too late; None for all others."""
    if not request.allows(Operation.ALTER):
        return _refused(request, Outcome(error_codes.CLUSTER_AUTHORIZATION_FAILED))
    return _refused(request, TIMED_OUT) if has_expired(request.message.timeout_ms) else None


def _refusals(decided: Mapping[Named, object]) -> dict[Named, Outcome]:
    """The outcomes of what was decided against, by topic or partition."""
    return {name: Outcome(one.code, one.message) for name, one in decided.items() if isinstance(one, Refusal)}


def _altered(request: Request, command: AlterReassignments) -> ReassignmentsAltered:
    """Start moves; a dry run has the answer that the controller would give."""
    if request.message.validate_only:
        return alter_reassignments(request.cluster.context, command).answer
    return request.cluster.controller.alter_reassignments(command)


_COUNTS_RESPONSE = api.ALTER_PARTITION_COUNTS.response


def _alter_partition_counts(request: Request) -> Message:
    """AlterPartitionCounts: gives topics so many partitions in all (KIP-179; no Kafka has it).

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - An unknown topic is INVALID_TOPIC_EXCEPTION, a topic that comes twice INVALID_REQUEST. A count that is no
      increase, or one by more than 10,000, is INVALID_PARTITIONS.
    - What is legal goes the way of CreatePartitions, with its refusals.

    Left out:
    - Quotas on how much may be created.
    """
    message = request.message
    if (refused := _refusal(request)) is not None:
        return refused
    view = topics_seen(request, {topic.name for topic in message.topics})
    decided = decide_partition_counts(view, [(topic.name, topic.partition_count) for topic in message.topics])
    wanted = tuple(MorePartitions(name, count) for name, count in decided.items() if not isinstance(count, Refusal))
    command = CreatePartitions(wanted, message.validate_only, message.timeout_ms)
    made = dict(request.cluster.controller.create_partitions(command))
    return _COUNTS_RESPONSE(topics=_topic_outcomes(_COUNTS_RESPONSE.TopicOutcome, decided, made | _refusals(decided)))


def _topic_outcomes(entry: type[Message], names: Iterable[str], outcomes: Mapping[str, Outcome]) -> list[Message]:
    return [entry(name=name, error_code=outcomes[name].code, error_message=outcomes[name].message) for name in names]


_FACTORS_RESPONSE = api.ALTER_REPLICATION_FACTORS.response


def _alter_replication_factors(request: Request) -> Message:
    """AlterReplicationFactors: gives topics so many replicas, and chooses where (KIP-179; no Kafka has it).

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - New replicas go to racks that have none yet, there to the brokers with the fewest bytes; of those that go, the
      leader is never one, and those out of sync go first.
    - An unknown topic is INVALID_TOPIC_EXCEPTION, a factor that cannot be reached or is below min.insync.replicas
      INVALID_REPLICATION_FACTOR, a topic that moves REASSIGNMENT_IN_PROGRESS, one that comes twice INVALID_REQUEST.
    - A dry run is refused what the controller would refuse.

    Left out:
    - Nothing.
    """
    message = request.message
    if (refused := _refusal(request)) is not None:
        return refused
    decided = decide_replication_factors(
        topics_seen(request, {topic.name for topic in message.topics}),
        [(topic.name, topic.replication_factor) for topic in message.topics],
        may_undercut_min_in_sync=message.may_undercut_min_in_sync,
    )
    answer = _altered(request, _factors_command(decided))
    if answer.outcome.is_failure:
        return _refused(request, answer.outcome)
    outcomes = dict.fromkeys(decided, DONE) | _refusals(decided)
    outcomes |= {topic.topic: _first_failure(topic) for topic in answer.topics}
    return _FACTORS_RESPONSE(topics=_topic_outcomes(_FACTORS_RESPONSE.TopicOutcome, decided, outcomes))


def _factors_command(decided: Mapping[str, dict[TopicPartition, tuple[int, ...]] | Refusal]) -> AlterReassignments:
    return AlterReassignments(
        tuple(
            TopicTargets(name, tuple(Target(key.partition, replicas) for key, replicas in targets.items()))
            for name, targets in decided.items()
            if not isinstance(targets, Refusal)
        )
    )


def _first_failure(topic: TopicOutcomes) -> Outcome:
    """The outcome of a topic: its first refused partition, if the controller refuses any."""
    return next((outcome for _partition, outcome in topic.outcomes if outcome.is_failure), DONE)


_REASSIGN_RESPONSE = api.REASSIGN_PARTITIONS.response
_REASSIGN_TOPIC = _REASSIGN_RESPONSE.ReassignedTopicOutcome


def _reassign_partitions(request: Request) -> Message:
    """ReassignPartitions: starts to move partitions (KIP-179; no Kafka has it: AlterPartitionReassignments came).

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - An unknown topic is INVALID_TOPIC_EXCEPTION, an unknown broker UNKNOWN_MEMBER_ID, an unknown partition or an
      illegal list INVALID_REPLICA_ASSIGNMENT, a partition that moves already REASSIGNMENT_IN_PROGRESS, one that comes
      twice INVALID_REQUEST.
    - What is legal goes the way of AlterPartitionReassignments; a dry run is refused what the controller would refuse.

    Left out:
    - Nothing.
    """
    message = request.message
    if (refused := _refusal(request)) is not None:
        return refused
    wanted = [
        (TopicPartition(topic.name, entry.partition_index), tuple(entry.replicas))
        for topic in message.topics
        for entry in topic.partitions
    ]
    decided = decide_reassignments(topics_seen(request, {key.topic for key, _replicas in wanted}), wanted)
    legal = {key: target for key, target in decided.items() if not isinstance(target, Refusal)}
    moves = (TopicTargets(key.topic, (Target(key.partition, target),)) for key, target in legal.items())
    answer = _altered(request, AlterReassignments(tuple(moves)))
    if answer.outcome.is_failure:
        return _refused(request, answer.outcome)
    outcomes = _refusals(decided)
    for topic in answer.topics:
        outcomes |= {TopicPartition(topic.topic, number): outcome for number, outcome in topic.outcomes}
    return _REASSIGN_RESPONSE(topics=_targets_by_topic({key: outcomes[key] for key in decided}))


def _targets_by_topic(outcomes: dict[TopicPartition, Outcome]) -> list[Message]:
    topics: dict[str, list[Message]] = {}
    for (topic, number), outcome in outcomes.items():
        entry = _REASSIGN_TOPIC.ReassignedPartitionOutcome(
            partition_index=number, error_code=outcome.code, error_message=outcome.message
        )
        topics.setdefault(topic, []).append(entry)
    return [_REASSIGN_TOPIC(name=topic, partitions=entries) for topic, entries in topics.items()]


_STATUS_RESPONSE = api.REPLICA_STATUS.response
_STATUS_TOPIC = _STATUS_RESPONSE.ToldTopic
_PARTITION = _STATUS_TOPIC.ToldPartition
_UNKNOWN_BYTES = -1


def _replica_status(request: Request) -> Message:
    """ReplicaStatus: how far the replicas of partitions are that the asked broker leads (KIP-179; no Kafka has it).

    Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - An unknown topic is INVALID_TOPIC_EXCEPTION, an unknown partition INVALID_PARTITIONS, one that another broker
      leads NOT_LEADER_OR_FOLLOWER.
    - Of the brokers asked for, one that is not registered is UNKNOWN_MEMBER_ID, one that has no replica
      UNKNOWN_TOPIC_OR_PARTITION.
    - A replica whose broker is down, or whose directory is offline, is left out.

    Left out:
    - Nothing.
    """
    if not request.allows(Operation.DESCRIBE):
        return _STATUS_RESPONSE(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, topics=[])
    topics = [
        _STATUS_TOPIC(
            name=topic.name, partitions=[_status_partition(request, topic.name, entry) for entry in topic.partitions]
        )
        for topic in request.message.topics
    ]
    return _STATUS_RESPONSE(topics=topics)


def _status_partition(request: Request, topic: str, entry: Message) -> Message:
    state = request.metadata.partition(TopicPartition(topic, entry.partition_index))
    if state is None:
        code = (
            error_codes.INVALID_PARTITIONS if topic in request.metadata.topics else error_codes.INVALID_TOPIC_EXCEPTION
        )
    else:
        code = error_codes.NONE if state.leader == request.node.id else error_codes.NOT_LEADER_OR_FOLLOWER
    replicas = [] if state is None or code != error_codes.NONE else list(_replicas(request, state, entry.brokers))
    return _PARTITION(partition_index=entry.partition_index, error_code=code, replicas=replicas)


def _replicas(request: Request, state: PartitionState, wanted: list[int] | None) -> Iterator[Message]:
    leader, readings = _copy(request, state, state.leader), request.cluster.replication.readings
    hosts = readings.brokers_with(state.topic_partition)
    for broker in state.replicas if wanted is None else wanted:
        if broker not in request.metadata.brokers:
            yield _PARTITION.ToldReplica(broker_id=broker, error_code=error_codes.UNKNOWN_MEMBER_ID)
        elif broker not in state.replicas:
            yield _PARTITION.ToldReplica(broker_id=broker, error_code=error_codes.UNKNOWN_TOPIC_OR_PARTITION)
        elif request.cluster.is_running(broker):
            copy = _copy(request, state, broker)
            if copy.offsets != NO_COPY or broker not in hosts:  # in an offline directory it cannot be read
                yield _told(request, broker, copy, leader)


def _copy(request: Request, state: PartitionState, broker: int) -> Copy:
    readings, key = request.cluster.replication.readings, state.topic_partition
    start, end = readings.local_log_start_offset(key, broker), readings.log_end_offset(key, broker)
    if start is None or end is None:
        return Copy(NO_COPY, 0)
    return Copy(OffsetRange(start, end), readings.size_bytes(key, broker))


def _told(request: Request, broker: int, copy: Copy, leader: Copy) -> Message:
    lag_records, lag_bytes = copy.lag_behind(leader)
    return _PARTITION.ToldReplica(
        broker_id=broker,
        error_code=error_codes.NONE,
        status_time_ms=request.cluster.now_ms,
        log_start_offset=copy.offsets.start,
        log_end_offset=copy.offsets.end,
        lag_records=lag_records,
        lag_bytes=_UNKNOWN_BYTES if lag_bytes is None else lag_bytes,
        size_bytes=_UNKNOWN_BYTES if copy.size_bytes is None else copy.size_bytes,
    )


HANDLERS = (
    Handler(api.ALTER_PARTITION_COUNTS, _alter_partition_counts),
    Handler(api.ALTER_REPLICATION_FACTORS, _alter_replication_factors),
    Handler(api.REASSIGN_PARTITIONS, _reassign_partitions),
    Handler(api.REPLICA_STATUS, _replica_status),
)
