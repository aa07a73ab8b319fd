"""OffsetCommit: keep offsets of a group, with a text for each.

Versions: 0-9 on 3.7, 3.9; 2-10 on 4.2, 4.3.
Permission: READ on the group (GROUP_AUTHORIZATION_FAILED) and on each topic (TOPIC_AUTHORIZATION_FAILED).

Behaviour:
- Only a member of the present generation may commit, or, while the group is empty, anybody without a generation.
- A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, a text of more than 4,096 characters
  OFFSET_METADATA_TOO_LARGE; the others are committed all the same.

Left out:
- Version 0 keeps offsets where the others do; a real broker in KRaft mode refuses it.
- Topic ids that are not there are UNKNOWN_TOPIC_ID without regard to permissions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.model.error_codes import (
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.coordination import refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.groups.coordinator import Claim
from kreassign.twin.groups.group import Offset
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.OFFSET_COMMIT.response
_TOPIC = _RESPONSE.OffsetCommitResponseTopic
_FIRST_WITH_INSTANCES, _FIRST_WITH_TOPIC_IDS = 7, 10


@dataclass(frozen=True, slots=True)
class _Wanted:
    topic: Message
    name: str | None
    partition: Message

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.name or "", self.partition.partition_index)


def _handle(request: Request) -> Message:
    message = request.message
    wanted = list(_wanted(request))
    code = refusal(request, message.group_id)
    codes = {one.key: code or _topic_refusal(request, one) for one in wanted}
    offsets = {
        one.key: Offset(
            one.partition.committed_offset, one.partition.committed_leader_epoch, one.partition.committed_metadata or ""
        )
        for one in wanted
        if codes[one.key] == NONE
    }
    instance = message.group_instance_id if request.version >= _FIRST_WITH_INSTANCES else None
    claim = Claim(message.group_id, message.generation_id_or_member_epoch, message.member_id, instance)
    if offsets:
        codes |= request.cluster.groups.commit(claim, offsets, request.cluster.now_ms)
    return _RESPONSE(topics=[_answer(request, topic, codes) for topic in message.topics])


def _wanted(request: Request) -> Iterator[_Wanted]:
    for topic in request.message.topics:
        for partition in topic.partitions:
            yield _Wanted(topic, _name(request, topic), partition)


def _name(request: Request, topic: Message) -> str | None:
    if request.version < _FIRST_WITH_TOPIC_IDS:
        return str(topic.name)
    return request.metadata.topic_names.get(str(topic.topic_id))


def _topic_refusal(request: Request, wanted: _Wanted) -> int:
    if wanted.name is None:
        return UNKNOWN_TOPIC_ID
    if not request.allows(Operation.READ, wanted.name):
        return TOPIC_AUTHORIZATION_FAILED
    return NONE if request.metadata.partition(wanted.key) else UNKNOWN_TOPIC_OR_PARTITION


def _answer(request: Request, topic: Message, codes: dict[TopicPartition, int]) -> Message:
    name = _name(request, topic) or ""
    numbers = [partition.partition_index for partition in topic.partitions]
    partitions = [
        _TOPIC.OffsetCommitResponsePartition(partition_index=number, error_code=codes[TopicPartition(name, number)])
        for number in numbers
    ]
    if request.version < _FIRST_WITH_TOPIC_IDS:
        return _TOPIC(name=name, partitions=partitions)
    return _TOPIC(topic_id=topic.topic_id, partitions=partitions)


HANDLERS = (Handler(api.OFFSET_COMMIT, _handle),)
