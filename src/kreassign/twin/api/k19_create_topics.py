"""CreateTopics: creates topics, placed by hand or by the cluster.

Versions: 0-7 on 3.7, 3.9; 2-7 on 4.2, 4.3.
Permission: CREATE on the cluster or on the topic; without it TOPIC_AUTHORIZATION_FAILED.

Behaviour:
- Automatic placement is the striped placer of the KRaft controller; brokers that are fenced, shutting down or wholly
  cordoned (4.3) are avoided.
- From version 5 on the answer has counts and configuration, if the client may see the configuration.
- The option to validate only is followed; a time-out of 0 or less is REQUEST_TIMED_OUT for all.
- In ZooKeeper mode the words are others, only brokers that are alive get replicas, and a request whose time-out is 0
  or less is executed all the same.

Left out:
- Quotas on how much may be created; policies of the operator's own.
"""

from __future__ import annotations

import uuid

from kreassign.model.error_codes import TOPIC_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.described_configs import DescribedConfig, topic_configs
from kreassign.twin.controller.topics import CreateTopics, TopicCreation, WantedTopic
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.CREATE_TOPICS.response
_RESULT = _RESPONSE.CreatableTopicResult
_NO_ID = uuid.UUID(int=0)


def _handle(request: Request) -> Message:
    wanted = tuple(_wanted(topic) for topic in request.message.topics)
    denied = frozenset(topic.name for topic in wanted if not _may_create(request, topic.name))
    command = CreateTopics(wanted, request.message.validate_only, request.message.timeout_ms, denied)
    answers = request.cluster.controller.create_topics(command)
    return _RESPONSE(topics=[_result(request, answer) for answer in answers])


def _may_create(request: Request, topic: str) -> bool:
    return request.allows(Operation.CREATE) or request.allows(Operation.CREATE, topic)


def _wanted(topic: Message) -> WantedTopic:
    return WantedTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((entry.partition_index, tuple(entry.broker_ids)) for entry in topic.assignments),
        tuple((entry.name, entry.value) for entry in topic.configs),
    )


def _result(request: Request, created: TopicCreation) -> Message:
    if created.outcome.is_failure:
        return _RESULT(
            name=created.name,
            topic_id=_NO_ID,
            error_code=created.outcome.code,
            error_message=created.outcome.message,
            configs=[],
        )
    if not request.allows(Operation.DESCRIBE_CONFIGS, created.name):
        return _RESULT(
            name=created.name,
            topic_id=created.topic_id,
            error_message=None,
            topic_config_error_code=TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    configs = topic_configs(request.cluster.context, request.cluster.controller.active_id, created.configs)
    return _RESULT(
        name=created.name,
        topic_id=created.topic_id,
        error_message=None,
        num_partitions=created.partition_count,
        replication_factor=created.replication_factor,
        configs=[_config(config) for config in sorted(configs, key=lambda config: config.name)],
    )


def _config(config: DescribedConfig) -> Message:
    return _RESULT.CreatableTopicConfigs(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
    )


HANDLERS = (Handler(api.CREATE_TOPICS, _handle),)
