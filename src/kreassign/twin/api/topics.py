"""Create and delete topics, and add partitions: CreateTopics, DeleteTopics, CreatePartitions.

Validation and placement are in `twin/controller/topics.py`.
"""

from __future__ import annotations

import uuid

from kreassign.model.error_codes import NONE, TOPIC_AUTHORIZATION_FAILED
from kreassign.twin.access import Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller import topics
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.described_configs import topic_configs
from kreassign.wire import api
from kreassign.wire.api import Message

_CREATE_TOPICS_RESPONSE = api.CREATE_TOPICS.response
_CREATE_TOPICS_RESULT = _CREATE_TOPICS_RESPONSE.CreatableTopicResult
_NO_ID = uuid.UUID(int=0)


def _create_topics(request: Request) -> Message:
    """CreateTopics: creates topics, placed by hand or by the cluster.

    Permission: CREATE on the cluster or on the topic; without it TOPIC_AUTHORIZATION_FAILED.

    Behaviour:
    - Automatic placement is the striped placer of the KRaft controller; brokers that are down come last, those that are
      shutting down or wholly cordoned (4.3) get nothing. From 4.4 lists given by hand may not name cordoned ones
      (INVALID_REPLICA_ASSIGNMENT).
    - From version 5 on the answer has counts and configuration, if the client may see the configuration.
    - The option to validate only is followed; a time-out of 0 or less is REQUEST_TIMED_OUT for all.
    - In ZooKeeper mode the words are others, only brokers that are alive get replicas, and a request whose time-out
      is 0 or less is executed all the same.

    Left out:
    - Quotas on how much may be created; policies of the operator's own.
    """
    wanted = tuple(_create_topics_wanted(topic) for topic in request.message.topics)
    denied = frozenset(
        topic.name
        for topic in wanted
        if not (request.allows(Operation.CREATE) or request.allows(Operation.CREATE, topic.name))
    )
    command = topics.CreateTopics(wanted, request.message.validate_only, request.message.timeout_ms, denied)
    answers = request.cluster.controller.create_topics(command)
    return _CREATE_TOPICS_RESPONSE(topics=[_create_topics_result(request, answer) for answer in answers])


def _create_topics_wanted(topic: Message) -> topics.WantedTopic:
    return topics.WantedTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((entry.partition_index, tuple(entry.broker_ids)) for entry in topic.assignments),
        tuple((entry.name, entry.value) for entry in topic.configs),
    )


def _create_topics_result(request: Request, created: topics.TopicCreation) -> Message:
    is_failure, is_shown = created.outcome.is_failure, request.allows(Operation.DESCRIBE_CONFIGS, created.name)
    result = _CREATE_TOPICS_RESULT(
        name=created.name,
        topic_id=created.topic_id or _NO_ID,
        error_code=created.outcome.code,
        error_message=created.outcome.message,
        topic_config_error_code=NONE if is_failure or is_shown else TOPIC_AUTHORIZATION_FAILED,
        configs=[],
    )
    if is_failure or not is_shown:
        return result
    configs = topic_configs(request.cluster.context, request.cluster.controller.active_id, created.configs)
    result.num_partitions, result.replication_factor = created.partition_count, created.replication_factor
    result.configs = [
        _CREATE_TOPICS_RESULT.CreatableTopicConfigs(
            name=config.name,
            value=config.value,
            read_only=config.is_read_only,
            config_source=config.source,
            is_sensitive=config.is_sensitive,
        )
        for config in sorted(configs, key=lambda config: config.name)
    ]
    return result


_DELETE_TOPICS_RESPONSE = api.DELETE_TOPICS.response
_FIRST_DELETION_BY_ID = 6


def _delete_topics(request: Request) -> Message:
    """DeleteTopics: deletes topics, and with them their moves.

    Permission: DELETE on the topic or on the cluster; without it TOPIC_AUTHORIZATION_FAILED.

    Behaviour:
    - Topics are gone at once; version 6 can name them by id.
    - The same topic twice, or by name and by id, is INVALID_REQUEST.
    - A time-out of 0 or less is REQUEST_TIMED_OUT for all.

    Left out:
    - Answers keep the order of the request, which real controllers shuffle.
    - A client that may not even see a topic gets its name all the same.
    - delete.topic.enable is always true.
    - A controller of ZooKeeper mode waits for replicas on brokers that are down; here topics are deleted at once.
    """
    answers = request.cluster.controller.delete_topics(
        _topic_references(request), request.message.timeout_ms, _deletion_denied(request)
    )
    responses = [
        _DELETE_TOPICS_RESPONSE.DeletableTopicResult(
            name=deletion.name,
            topic_id=deletion.topic_id or _NO_ID,
            error_code=deletion.outcome.code,
            error_message=deletion.outcome.message,
        )
        for deletion in answers
    ]
    return _DELETE_TOPICS_RESPONSE(responses=responses)


def _topic_references(request: Request) -> tuple[topics.TopicReference, ...]:
    if request.version < _FIRST_DELETION_BY_ID:
        return tuple(map(topics.TopicReference, request.message.topic_names))
    return tuple(
        topics.TopicReference(topic.name, None if (topic.topic_id or _NO_ID) == _NO_ID else str(topic.topic_id))
        for topic in request.message.topics
    )


def _deletion_denied(request: Request) -> set[str]:
    if request.cluster.permissions is None or request.allows(Operation.DELETE):
        return set()
    named = {reference.name for reference in _topic_references(request) if reference.name is not None}
    return {
        topic for topic in named | request.cluster.metadata.topics.keys() if not request.allows(Operation.DELETE, topic)
    }


_CREATE_PARTITIONS_RESPONSE = api.CREATE_PARTITIONS.response


def _create_partitions(request: Request) -> Message:
    """CreatePartitions: gives topics more partitions, also while they are being moved (not so in ZooKeeper mode).

    Permission: ALTER on the topic; without it TOPIC_AUTHORIZATION_FAILED, and no text.

    Behaviour:
    - New partitions get as many replicas as one of the others has just now, those that come and go in a move
      included. Which one that is Kafka leaves to a hash table: 2 of three or four partitions, 5 of six to nine, 0 of
      fewer.
    - The same topic twice is INVALID_REQUEST, answered once; a time-out of 0 or less is REQUEST_TIMED_OUT for all.
    - The option to validate only is followed.
    - In ZooKeeper mode a topic in a move gets no more partitions, the words are others, and a request whose time-out
      is 0 or less is executed all the same.

    Left out:
    - Quotas on how much may be created.
    """
    wanted = tuple(_create_partitions_wanted(topic) for topic in request.message.topics)
    denied = {one.topic for one in wanted if not request.allows(Operation.ALTER, one.topic)}
    command = topics.CreatePartitions(
        tuple(one for one in wanted if one.topic not in denied),
        request.message.validate_only,
        request.message.timeout_ms,
    )
    refused = [(name, Outcome(TOPIC_AUTHORIZATION_FAILED)) for name in sorted(denied)]
    result = _CREATE_PARTITIONS_RESPONSE.CreatePartitionsTopicResult
    return _CREATE_PARTITIONS_RESPONSE(
        results=[
            result(name=name, error_code=outcome.code, error_message=outcome.message)
            for name, outcome in (*refused, *request.cluster.controller.create_partitions(command))
        ]
    )


def _create_partitions_wanted(topic: Message) -> topics.MorePartitions:
    lists = topic.assignments
    assignments = None if lists is None else tuple(tuple(entry.broker_ids) for entry in lists)
    return topics.MorePartitions(topic.name, topic.count, assignments)


HANDLERS = (
    Handler(api.CREATE_TOPICS, _create_topics),
    Handler(api.DELETE_TOPICS, _delete_topics),
    Handler(api.CREATE_PARTITIONS, _create_partitions),
)
