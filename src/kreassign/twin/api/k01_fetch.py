"""Fetch: records to read.

Versions: 0-16 on 3.7; 0-17 on 3.9; 4-18 on 4.2, 4.3.
Permission: none is checked.

Behaviour:
- Every partition is refused with POLICY_VIOLATION, which no client takes for something that passes.
- Fetch sessions are not begun.

Left out:
- Reading: there are no records, so that even an empty partition is refused.
"""

from __future__ import annotations

from kreassign.model.error_codes import POLICY_VIOLATION
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.FETCH.response
_TOPIC = _RESPONSE.FetchableTopicResponse
_NO_SESSION = 0


def _handle(request: Request) -> Message:
    topics = [_topic(topic) for topic in request.message.topics]
    return _RESPONSE(session_id=_NO_SESSION, responses=topics)


def _topic(topic: Message) -> Message:
    partitions = [
        _TOPIC.PartitionData(
            partition_index=entry.partition, error_code=POLICY_VIOLATION, high_watermark=-1, aborted_transactions=None,
            records=b"",  # As Kafka sends it: librdkafka takes null for a broken answer.
        )
        for entry in topic.partitions
    ]  # fmt: skip
    return _TOPIC(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)


HANDLERS = (Handler(api.FETCH, _handle),)
