"""CreatePartitions: gives topics more partitions, also while they are being moved (not so in ZooKeeper mode).

Versions: 0-3.
Permission: ALTER on the topic; without it TOPIC_AUTHORIZATION_FAILED, and no text.

Behaviour:
- New partitions get as many replicas as one of the others has just now, those that come and go in a move included.
  Which one that is Kafka leaves to a hash table: 2 of three or four partitions, 5 of six to nine, 0 of fewer.
- The same topic twice is INVALID_REQUEST, answered once; a time-out of 0 or less is REQUEST_TIMED_OUT for all.
- The option to validate only is followed.
- In ZooKeeper mode a topic in a move gets no more partitions, the words are others, and a request whose time-out is 0
  or less is executed all the same.

Left out:
- Quotas on how much may be created.
"""

from __future__ import annotations

from kreassign.model.error_codes import TOPIC_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.partitions import CreatePartitions, MorePartitions
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.CREATE_PARTITIONS.response


def _handle(request: Request) -> Message:
    wanted = tuple(_wanted(topic) for topic in request.message.topics)
    denied = {one.topic for one in wanted if not request.allows(Operation.ALTER, one.topic)}
    command = CreatePartitions(
        tuple(one for one in wanted if one.topic not in denied),
        request.message.validate_only,
        request.message.timeout_ms,
    )
    answers = [(name, Outcome(TOPIC_AUTHORIZATION_FAILED)) for name in sorted(denied)]
    return _RESPONSE(
        results=[_result(*answer) for answer in (*answers, *request.cluster.controller.create_partitions(command))]
    )


def _wanted(topic: Message) -> MorePartitions:
    lists = topic.assignments
    assignments = None if lists is None else tuple(tuple(entry.broker_ids) for entry in lists)
    return MorePartitions(topic.name, topic.count, assignments)


def _result(name: str, outcome: Outcome) -> Message:
    return _RESPONSE.CreatePartitionsTopicResult(name=name, error_code=outcome.code, error_message=outcome.message)


HANDLERS = (Handler(api.CREATE_PARTITIONS, _handle),)
