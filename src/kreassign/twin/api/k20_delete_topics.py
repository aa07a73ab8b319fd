"""DeleteTopics: deletes topics, and with them their moves.

Versions: 0-6 on 3.7, 3.9; 1-6 on 4.2, 4.3.
Permission: DELETE on the topic or on the cluster; without it TOPIC_AUTHORIZATION_FAILED.

Behaviour:
- Topics are gone at once; version 6 can name them by id.
- The same topic twice, or by name and by id, is INVALID_REQUEST.
- A time-out of 0 or less is REQUEST_TIMED_OUT for all.

Left out:
- Answers keep the order of the request, which real controllers shuffle.
- A client that may not even see a topic is told its name all the same.
- delete.topic.enable is always true.
"""

from __future__ import annotations

import uuid

from kreassign.twin.api.asked import Asked
from kreassign.twin.api.handler import Handler
from kreassign.twin.controller.topics import TopicDeletion, TopicReference, delete_topics
from kreassign.twin.network.permissions import Operation
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DELETE_TOPICS.response
_FIRST_BY_ID = 6
_NO_ID = uuid.UUID(int=0)


def _handle(asked: Asked) -> Message:
    decision = delete_topics(asked.twin.situation, _references(asked), asked.message.timeout_ms, _denied(asked))
    return _RESPONSE(responses=[_result(one) for one in asked.twin.carry_out(decision)])


def _references(asked: Asked) -> tuple[TopicReference, ...]:
    if asked.version < _FIRST_BY_ID:
        return tuple(map(TopicReference, asked.message.topic_names))
    return tuple(
        TopicReference(topic.name, None if (topic.topic_id or _NO_ID) == _NO_ID else str(topic.topic_id))
        for topic in asked.message.topics
    )


def _denied(asked: Asked) -> set[str]:
    if asked.twin.permissions is None or asked.allows(Operation.DELETE):
        return set()
    named = {reference.name for reference in _references(asked) if reference.name is not None}
    return {topic for topic in named | asked.twin.metadata.topics.keys() if not asked.allows(Operation.DELETE, topic)}


def _result(deletion: TopicDeletion) -> Message:
    return _RESPONSE.DeletableTopicResult(
        name=deletion.name,
        topic_id=deletion.topic_id or _NO_ID,
        error_code=deletion.outcome.code,
        error_message=deletion.outcome.message,
    )


HANDLERS = (Handler(api.DELETE_TOPICS, _handle),)
