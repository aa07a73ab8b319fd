"""Move partitions between brokers and between log directories, show both, and elect leaders.

AlterPartitionReassignments and ListPartitionReassignments (KIP-455), AlterReplicaLogDirs and DescribeLogDirs
(KIP-113), ElectLeaders (KIP-460).
"""

from __future__ import annotations

from kreassign.model import ElectionType, LogDir, OngoingReassignment, TopicPartition, error_codes
from kreassign.twin.access import Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller.decision import DONE, Outcome
from kreassign.twin.controller.leader_and_isr import ElectLeaders, LeadersElected, elections_refused
from kreassign.twin.controller.reassignments import (
    AlterReassignments,
    ReassignmentsAltered,
    Target,
    TopicTargets,
    each_once,
    list_reassignments,
    reassignments_refused,
)
from kreassign.wire import api
from kreassign.wire.api import Message

_REASSIGN_RESPONSE = api.ALTER_PARTITION_REASSIGNMENTS.response
_REASSIGN_TOPIC = _REASSIGN_RESPONSE.ReassignableTopicResponse
_FIRST_WITH_FLAG = 1


def _alter_partition_reassignments(request: Request) -> Message:
    """AlterPartitionReassignments: starts, overrides and cancels moves (KIP-455, KIP-860).

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top and on each partition.

    Behaviour:
    - Each partition has its own outcome, in the order of the request; those that are accepted are written as one batch.
    - Any node takes the request and forwards it to the controller.
    - Version 1 can forbid a change of the replication factor; its response repeats that flag.
    - A time-out of 0 or less is REQUEST_TIMED_OUT for all, and nothing is done.
    - Entries after the first 10,000 that write a record get UNKNOWN_SERVER_ERROR.
    - Completion and overriding follow the release of the twin. From 4.4 no target may name a broker all of whose
      directories are cordoned, not even one that has the replica (INVALID_REPLICA_ASSIGNMENT); cancelling names none.
    - In ZooKeeper mode only the controller takes the request; it ignores the time-out, lists each partition once,
      and always has an empty text at the top.

    Left out:
    - Nothing.
    """
    command = _reassign_command(request)
    if not request.context.rules.takes_reassignments:
        refused = Outcome(error_codes.POLICY_VIOLATION, "Partitions of this cluster are placed by its provider.")
    elif not request.allows(Operation.ALTER):
        refused = Outcome(error_codes.CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.ALTER))
    else:
        return _reassign_response(command, request.cluster.controller.alter_reassignments(command))
    return _reassign_response(command, reassignments_refused(command, refused))


def _reassign_command(request: Request) -> AlterReassignments:
    message = request.message
    return AlterReassignments(
        tuple(
            TopicTargets(
                topic.name,
                tuple(
                    Target(entry.partition_index, None if entry.replicas is None else tuple(entry.replicas))
                    for entry in topic.partitions
                ),
            )
            for topic in message.topics
        ),
        allow_replication_factor_change=request.version < _FIRST_WITH_FLAG or message.allow_replication_factor_change,
        timeout_ms=message.timeout_ms,
    )


def _reassign_response(command: AlterReassignments, answer: ReassignmentsAltered) -> Message:
    return _REASSIGN_RESPONSE(
        # Responses that are not about single partitions do not repeat the flag.
        allow_replication_factor_change=answer.outcome != DONE or command.allow_replication_factor_change,
        error_code=answer.outcome.code,
        error_message=answer.outcome.message,
        responses=[
            _REASSIGN_TOPIC(
                name=topic.topic,
                partitions=[
                    _REASSIGN_TOPIC.ReassignablePartitionResponse(
                        partition_index=index, error_code=one.code, error_message=one.message
                    )
                    for index, one in topic.outcomes
                ],
            )
            for topic in answer.topics
        ],
    )


_ONGOING_RESPONSE = api.LIST_PARTITION_REASSIGNMENTS.response
_ONGOING_TOPIC = _ONGOING_RESPONSE.OngoingTopicReassignment


def _list_partition_reassignments(request: Request) -> Message:
    """ListPartitionReassignments: the moves in progress, as the controller knows them (KIP-455).

    Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top, with no topics.

    Behaviour:
    - Null asks for all, an empty list for none. What is unknown or not being moved is left out without an error.
    - A controller that is not active answers too, without an error, from what it has read: its list may be old, or
      empty. What is asked of a broker is answered by the controller that it takes for the active one.
    - A topic or partition asked for twice is answered twice, in ZooKeeper mode once.
    - The time-out is ignored.

    Left out:
    - Nothing.
    """
    if not request.allows(Operation.DESCRIBE):
        text = request.denial(Operation.DESCRIBE)
        return _ONGOING_RESPONSE(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, error_message=text, topics=[])
    topics = request.message.topics
    wanted = None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]
    if wanted is not None and request.cluster.version.uses_zookeeper:
        wanted = list(each_once(wanted))
    return _ONGOING_RESPONSE(
        error_message=None,
        topics=[
            _ONGOING_TOPIC(
                name=found.topic, partitions=[_ongoing_move(index, move) for index, move in found.partitions]
            )
            for found in list_reassignments(request.forwarded_metadata, wanted)
        ],
    )


def _ongoing_move(index: int, move: OngoingReassignment) -> Message:
    return _ONGOING_TOPIC.OngoingPartitionReassignment(
        partition_index=index,
        replicas=move.replicas,
        adding_replicas=move.adding,
        removing_replicas=move.removing,
    )


_ALTER_LOG_DIRS_RESPONSE = api.ALTER_REPLICA_LOG_DIRS.response
_ALTER_LOG_DIRS_TOPIC = _ALTER_LOG_DIRS_RESPONSE.AlterReplicaLogDirTopicResult
# A future copy's directory is called <topic>-<partition>.<32 digits>-future, and file names have 255 characters.
_LONGEST_TOPIC_NAME = 255 - len(".-future") - 32


def _alter_replica_log_dirs(request: Request) -> Message:
    """AlterReplicaLogDirs: moves copies into other directories of the asked broker (KIP-113).

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED on each partition.

    Behaviour:
    - The answer says only that a move began, or that nothing had to be done. The directory where a copy already is
      gives up a running move, another one replaces it.
    - A path that is not configured, to the letter, is LOG_DIR_NOT_FOUND; an offline one KAFKA_STORAGE_ERROR; a
      cordoned one (4.3) INVALID_REPLICA_ASSIGNMENT.
    - An unknown partition is UNKNOWN_TOPIC_OR_PARTITION, one that the broker does not host REPLICA_NOT_AVAILABLE. In
      both cases the broker remembers the directory and puts the copy there when it gets one.
    - A partition named under two directories goes to the last.

    Left out:
    - A broker with another directory offline refuses moves to healthy ones; the twin does not.
    """
    targets = {
        TopicPartition(topic.name, number): entry.path
        for entry in request.message.dirs
        for topic in entry.topics
        for number in topic.partitions
    }
    if request.allows(Operation.ALTER):
        log_dirs = {log_dir.path: log_dir for log_dir in request.cluster.replication.readings.log_dirs(request.node.id)}
        codes = {key: _alter_log_dir(request, key, path, log_dirs.get(path)) for key, path in targets.items()}
    else:
        codes = dict.fromkeys(targets, error_codes.CLUSTER_AUTHORIZATION_FAILED)
    return _ALTER_LOG_DIRS_RESPONSE(results=_alter_log_dirs_results(codes))


def _alter_log_dir(request: Request, key: TopicPartition, path: str, log_dir: LogDir | None) -> int:
    if len(str(key)) > _LONGEST_TOPIC_NAME:
        return error_codes.INVALID_TOPIC_EXCEPTION
    if log_dir is None:
        return error_codes.LOG_DIR_NOT_FOUND
    if log_dir.error is not None:
        return error_codes.KAFKA_STORAGE_ERROR
    if log_dir.is_cordoned:
        return error_codes.INVALID_REPLICA_ASSIGNMENT
    if request.cluster.replication.alter_log_dir(key, request.node.id, path):
        return error_codes.NONE
    known = request.metadata.partition(key)
    return error_codes.UNKNOWN_TOPIC_OR_PARTITION if known is None else error_codes.REPLICA_NOT_AVAILABLE


def _alter_log_dirs_results(codes: dict[TopicPartition, int]) -> list[Message]:
    topics: dict[str, list[Message]] = {}
    for (topic, number), code in codes.items():
        entry = _ALTER_LOG_DIRS_TOPIC.AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)
        topics.setdefault(topic, []).append(entry)
    return [_ALTER_LOG_DIRS_TOPIC(topic_name=topic, partitions=partitions) for topic, partitions in topics.items()]


_LOG_DIRS_RESPONSE = api.DESCRIBE_LOG_DIRS.response
_LOG_DIRS_RESULT = _LOG_DIRS_RESPONSE.DescribeLogDirsResult
_LOG_DIRS_TOPIC = _LOG_DIRS_RESULT.DescribeLogDirsTopic


def _describe_log_dirs(request: Request) -> Message:
    """DescribeLogDirs: the log directories of the asked broker and the copies in them.

    Permission: DESCRIBE on the cluster; without it CLUSTER_AUTHORIZATION_FAILED, which before version 3 shows as no
    results.

    Behaviour:
    - One result for each configured directory, in the order of the configuration, with its size and what is free.
    - An offline directory has KAFKA_STORAGE_ERROR and no topics.
    - A move between directories shows as a second entry with the future flag, whose lag is in records; ordinary copies
      have a lag of 0, however far behind they are.
    - Null asks for all partitions, an empty list for none.

    Left out:
    - Sizes have no segments: indexes and space set aside are not counted.
    """
    if not request.allows(Operation.DESCRIBE):
        return _LOG_DIRS_RESPONSE(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, results=[])
    topics = request.message.topics
    wanted = None if topics is None else {TopicPartition(t.topic, number) for t in topics for number in t.partitions}
    log_dirs = request.cluster.replication.readings.log_dirs(request.node.id)
    return _LOG_DIRS_RESPONSE(results=[_described_log_dir(log_dir, wanted) for log_dir in log_dirs])


def _described_log_dir(log_dir: LogDir, wanted: set[TopicPartition] | None) -> Message:
    topics: dict[str, list[Message]] = {}
    for replica in log_dir.replicas:
        topic, number = replica.topic_partition
        if wanted is None or replica.topic_partition in wanted:
            entry = _LOG_DIRS_TOPIC.DescribeLogDirsPartition(
                partition_index=number,
                partition_size=replica.size_bytes,
                offset_lag=replica.offset_lag,
                is_future_key=replica.is_future,
            )
            topics.setdefault(topic, []).append(entry)
    return _LOG_DIRS_RESULT(
        error_code=error_codes.NONE if log_dir.error is None else error_codes.KAFKA_STORAGE_ERROR,
        log_dir=log_dir.path,
        topics=[_LOG_DIRS_TOPIC(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=-1 if log_dir.total_bytes is None else log_dir.total_bytes,
        usable_bytes=-1 if log_dir.usable_bytes is None else log_dir.usable_bytes,
        is_cordoned=log_dir.is_cordoned,
    )


_ELECT_RESPONSE = api.ELECT_LEADERS.response
_ELECT_RESULT = _ELECT_RESPONSE.ReplicaElectionResult
_FIRST_WITH_TYPE = 1


def _elect_leaders(request: Request) -> Message:
    """ElectLeaders: makes preferred replicas leaders, or replicas out of sync where nobody leads (KIP-183, KIP-460).

    Permission: ALTER on the cluster; without it CLUSTER_AUTHORIZATION_FAILED at the top and on each
    partition asked for.

    Behaviour:
    - Version 0 knows only the preferred election and has no error at the top.
    - Null asks for all partitions: those that need no election are left out, their topics are not.
    - A time-out of 0 or less is REQUEST_TIMED_OUT for all.
    - In ZooKeeper mode only the controller takes the request, lists each partition once, and leaves out topics without
      a result. With a time-out of 0 or less it holds the elections all the same: REQUEST_TIMED_OUT where a leader
      changed, since its broker does not show that at once.

    Left out:
    - Nothing.
    """
    command = _elect_command(request)
    if request.allows(Operation.ALTER):
        return _elect_response(request.cluster.controller.elect_leaders(command))
    refused = Outcome(error_codes.CLUSTER_AUTHORIZATION_FAILED, request.denial(Operation.ALTER))
    return _elect_response(elections_refused(command, refused))


def _elect_command(request: Request) -> ElectLeaders:
    message = request.message
    topics = message.topic_partitions
    return ElectLeaders(
        message.election_type if request.version >= _FIRST_WITH_TYPE else ElectionType.PREFERRED,
        None if topics is None else tuple((entry.topic, tuple(entry.partitions)) for entry in topics),
        message.timeout_ms,
    )


def _elect_response(answer: LeadersElected) -> Message:
    return _ELECT_RESPONSE(
        error_code=answer.outcome.code,
        replica_election_results=[
            _ELECT_RESULT(
                topic=topic.topic,
                partition_result=[
                    _ELECT_RESULT.PartitionResult(partition_id=index, error_code=one.code, error_message=one.message)
                    for index, one in topic.outcomes
                ],
            )
            for topic in answer.topics
        ],
    )


HANDLERS = (
    Handler(api.ALTER_PARTITION_REASSIGNMENTS, _alter_partition_reassignments),
    Handler(api.LIST_PARTITION_REASSIGNMENTS, _list_partition_reassignments),
    Handler(api.ALTER_REPLICA_LOG_DIRS, _alter_replica_log_dirs),
    Handler(api.DESCRIBE_LOG_DIRS, _describe_log_dirs),
    Handler(api.ELECT_LEADERS, _elect_leaders),
)
