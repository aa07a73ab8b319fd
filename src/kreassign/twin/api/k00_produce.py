"""Produce: records to write.

Versions: 0-10 on 3.7; 0-11 on 3.9; 0-13 on 4.2, 4.3.
Permission: none is checked.

Behaviour:
- Every partition is refused with POLICY_VIOLATION and a text that says why: clients give up at once and do not retry.
- A client that wants no answer (acks 0) has its connection closed, as with any error of Kafka's.

Left out:
- Writing: there are no records. That the API is offered at all is for clients that take it for a sign of life.
- Versions below 3 are answered by 4.2 and 4.3 too, which close the connection.
"""

from __future__ import annotations

from kreassign.errors import ProtocolViolation
from kreassign.model.error_codes import POLICY_VIOLATION
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.PRODUCE.response
_TOPIC = _RESPONSE.TopicProduceResponse
WHY = "This is a twin: it keeps no records, so that nothing can be produced to it or consumed from it."


def _handle(request: Request) -> Message:
    if request.message.acks == 0:
        raise ProtocolViolation("nothing can be produced, and the client wants no answer that says so")
    return _RESPONSE(responses=[_topic(topic) for topic in request.message.topic_data])


def _topic(topic: Message) -> Message:
    partitions = [
        _TOPIC.PartitionProduceResponse(
            index=entry.index, error_code=POLICY_VIOLATION, base_offset=-1, record_errors=[], error_message=WHY
        )
        for entry in topic.partition_data
    ]
    return _TOPIC(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)


HANDLERS = (Handler(api.PRODUCE, _handle),)
