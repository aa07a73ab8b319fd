"""OffsetFetch: the offsets that groups have committed.

Versions: 0-9 on 3.7, 3.9; 1-10 on 4.2, 4.3.
Permission: DESCRIBE on the group (GROUP_AUTHORIZATION_FAILED) and on each topic (TOPIC_AUTHORIZATION_FAILED).

Behaviour:
- A partition for which nothing was committed has offset -1 and no error, also in a group that does not exist.
- Without a list of topics all offsets of the group are given, those of topics that the client may see.

Left out:
- Version 0 reads where the others do, and not ZooKeeper.
- Member ids and epochs (KIP-848), and offsets of transactions that are not ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from kreassign.model import TopicPartition
from kreassign.model.error_codes import NONE, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.coordination import refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.groups.group import NO_OFFSET, Offset
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.OFFSET_FETCH.response
_TOPIC = _RESPONSE.OffsetFetchResponseTopic
_GROUP = _RESPONSE.OffsetFetchResponseGroup
_GROUP_TOPIC = _GROUP.OffsetFetchResponseTopics
_NO_ID = UUID(int=0)
_FIRST_WITH_GROUPS, _FIRST_WITH_TOPIC_IDS = 8, 10


def _handle(request: Request) -> Message:
    message = request.message
    if request.version >= _FIRST_WITH_GROUPS:
        return _RESPONSE(groups=[_of_group(request, group) for group in message.groups])
    code = refusal(request, message.group_id, Operation.DESCRIBE)
    topics = [] if code != NONE else _topics(request, message.group_id, message.topics)
    return _RESPONSE(
        error_code=code,
        topics=[
            _TOPIC(
                name=name,
                partitions=[
                    _TOPIC.OffsetFetchResponsePartition(**_fields(key.partition, one, failed))
                    for key, one, failed in found
                ],
            )
            for name, _, found in topics
        ],
    )


def _of_group(request: Request, group: Message) -> Message:
    code = refusal(request, group.group_id, Operation.DESCRIBE)
    topics = [] if code != NONE else _topics(request, group.group_id, group.topics)
    return _GROUP(
        group_id=group.group_id,
        error_code=code,
        topics=[
            _GROUP_TOPIC(
                name=name,
                topic_id=topic_id,
                partitions=[
                    _GROUP_TOPIC.OffsetFetchResponsePartitions(**_fields(key.partition, one, failed))
                    for key, one, failed in found
                ],
            )
            for name, topic_id, found in topics
        ],
    )


_Found = tuple[str, UUID, list[tuple[TopicPartition, Offset, int]]]


def _topics(request: Request, group_id: str, topics: Iterable[Message] | None) -> list[_Found]:
    """Name, id and offsets of the topics that are asked for, or (None) of all that the group has offsets of."""
    groups, now_ms = request.cluster.groups, request.cluster.now_ms
    if topics is None:
        return _everything(request, groups.fetch(group_id, None, now_ms))
    answers = []
    for topic in topics:
        name, topic_id, failed = _asked(request, topic)
        keys = [TopicPartition(name, number) for number in topic.partition_indexes]
        offsets = groups.fetch(group_id, keys, now_ms) if failed == NONE else {}
        answers.append((name, topic_id, [(key, offsets.get(key, NO_OFFSET), failed) for key in keys]))
    return answers


def _asked(request: Request, topic: Message) -> tuple[str, UUID, int]:
    """Name and id of a topic, and why its offsets are not shown."""
    name, topic_id = "", _NO_ID
    if request.version < _FIRST_WITH_TOPIC_IDS:
        name = topic.name
    else:
        topic_id = topic.topic_id
        name = request.metadata.topic_names.get(str(topic_id), "")
        if not name:
            return "", topic_id, UNKNOWN_TOPIC_ID
    return name, topic_id, NONE if request.allows(Operation.DESCRIBE, name) else TOPIC_AUTHORIZATION_FAILED


def _everything(request: Request, offsets: dict[TopicPartition, Offset]) -> list[_Found]:
    answers: dict[str, list[tuple[TopicPartition, Offset, int]]] = {}
    for key, one in sorted(offsets.items()):
        if request.allows(Operation.DESCRIBE, key.topic):
            answers.setdefault(key.topic, []).append((key, one, NONE))
    known = request.metadata.topics
    return [(name, UUID(known[name].topic_id) if name in known else _NO_ID, found) for name, found in answers.items()]


def _fields(number: int, offset: Offset, code: int) -> dict[str, object]:
    return {
        "partition_index": number,
        "committed_offset": offset.offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "error_code": code,
    }


HANDLERS = (Handler(api.OFFSET_FETCH, _handle),)
