"""DeleteTopics: deletes topics, and with them their moves.

Versions: 0-6 on 3.7, 3.9; 1-6 on 4.2, 4.3.
Permission: DELETE on the topic or on the cluster; without it TOPIC_AUTHORIZATION_FAILED.

Behaviour:
- Topics are gone at once; version 6 can name them by id.
- The same topic twice, or by name and by id, is INVALID_REQUEST.
- A time-out of 0 or less is REQUEST_TIMED_OUT for all.

Left out:
- Answers keep the order of the request, which real controllers shuffle.
- A client that may not even see a topic gets its name all the same.
- delete.topic.enable is always true.
"""

from __future__ import annotations

import uuid

from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.topics import TopicDeletion, TopicReference
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DELETE_TOPICS.response
_FIRST_BY_ID = 6
_NO_ID = uuid.UUID(int=0)


def _handle(request: Request) -> Message:
    answers = request.cluster.controller.delete_topics(
        _references(request), request.message.timeout_ms, _denied(request)
    )
    return _RESPONSE(responses=[_result(one) for one in answers])


def _references(request: Request) -> tuple[TopicReference, ...]:
    if request.version < _FIRST_BY_ID:
        return tuple(map(TopicReference, request.message.topic_names))
    return tuple(
        TopicReference(topic.name, None if (topic.topic_id or _NO_ID) == _NO_ID else str(topic.topic_id))
        for topic in request.message.topics
    )


def _denied(request: Request) -> set[str]:
    if request.cluster.permissions is None or request.allows(Operation.DELETE):
        return set()
    named = {reference.name for reference in _references(request) if reference.name is not None}
    return {
        topic for topic in named | request.cluster.metadata.topics.keys() if not request.allows(Operation.DELETE, topic)
    }


def _result(deletion: TopicDeletion) -> Message:
    return _RESPONSE.DeletableTopicResult(
        name=deletion.name,
        topic_id=deletion.topic_id or _NO_ID,
        error_code=deletion.outcome.code,
        error_message=deletion.outcome.message,
    )


HANDLERS = (Handler(api.DELETE_TOPICS, _handle),)
