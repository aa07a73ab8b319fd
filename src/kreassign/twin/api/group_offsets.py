"""Keep, show and delete the offsets of consumer groups: OffsetCommit, OffsetFetch, OffsetDelete.

Only the coordinator of a group does (`groups.py`). The rules are in `twin/groups.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from kreassign.model import TopicPartition, error_codes
from kreassign.twin.access import Operation
from kreassign.twin.api.groups import group_refusal
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.groups import NO_OFFSET, MemberClaim, Offset
from kreassign.wire import api
from kreassign.wire.api import Message

_COMMIT_RESPONSE = api.OFFSET_COMMIT.response
_COMMIT_TOPIC = _COMMIT_RESPONSE.OffsetCommitResponseTopic
_FIRST_WITH_INSTANCES, _FIRST_COMMIT_WITH_TOPIC_IDS = 7, 10


@dataclass(frozen=True, slots=True)
class _WantedCommit:
    topic: Message
    name: str | None
    partition: Message

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.name or "", self.partition.partition_index)


def _offset_commit(request: Request) -> Message:
    """OffsetCommit: keep offsets of a group, with a text for each.

    Permission: READ on the group (GROUP_AUTHORIZATION_FAILED) and on each topic (TOPIC_AUTHORIZATION_FAILED).

    Behaviour:
    - Only a member of the present generation may commit, or, while the group is empty, anybody without a generation.
    - A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, a text of more than 4,096 characters
      OFFSET_METADATA_TOO_LARGE; the others are committed all the same.

    Left out:
    - Version 0 keeps offsets where the others do; a real broker in KRaft mode refuses it.
    - Topic ids that are not there are UNKNOWN_TOPIC_ID without regard to permissions.
    """
    message = request.message
    wanted = list(_wanted_commits(request))
    code = group_refusal(request, message.group_id)
    codes = {one.key: code or _commit_topic_refusal(request, one) for one in wanted}
    offsets = {
        one.key: Offset(
            one.partition.committed_offset, one.partition.committed_leader_epoch, one.partition.committed_metadata or ""
        )
        for one in wanted
        if codes[one.key] == error_codes.NONE
    }
    instance = message.group_instance_id if request.version >= _FIRST_WITH_INSTANCES else None
    claim = MemberClaim(message.group_id, message.generation_id_or_member_epoch, message.member_id, instance)
    if offsets:
        codes |= request.cluster.groups.commit(claim, offsets, request.cluster.now_ms)
    return _COMMIT_RESPONSE(topics=[_commit_answer(request, topic, codes) for topic in message.topics])


def _wanted_commits(request: Request) -> Iterator[_WantedCommit]:
    for topic in request.message.topics:
        for partition in topic.partitions:
            yield _WantedCommit(topic, _commit_topic_name(request, topic), partition)


def _commit_topic_name(request: Request, topic: Message) -> str | None:
    if request.version < _FIRST_COMMIT_WITH_TOPIC_IDS:
        return str(topic.name)
    return request.metadata.topic_names.get(str(topic.topic_id))


def _commit_topic_refusal(request: Request, wanted: _WantedCommit) -> int:
    return error_codes.UNKNOWN_TOPIC_ID if wanted.name is None else _partition_refusal(request, wanted.key)


def _partition_refusal(request: Request, key: TopicPartition) -> int:
    if not request.allows(Operation.READ, key.topic):
        return error_codes.TOPIC_AUTHORIZATION_FAILED
    return error_codes.NONE if request.metadata.partition(key) else error_codes.UNKNOWN_TOPIC_OR_PARTITION


def _commit_answer(request: Request, topic: Message, codes: dict[TopicPartition, int]) -> Message:
    name = _commit_topic_name(request, topic) or ""
    numbers = [partition.partition_index for partition in topic.partitions]
    partitions = [
        _COMMIT_TOPIC.OffsetCommitResponsePartition(
            partition_index=number, error_code=codes[TopicPartition(name, number)]
        )
        for number in numbers
    ]
    if request.version < _FIRST_COMMIT_WITH_TOPIC_IDS:
        return _COMMIT_TOPIC(name=name, partitions=partitions)
    return _COMMIT_TOPIC(topic_id=topic.topic_id, partitions=partitions)


_OFFSET_FETCH_RESPONSE = api.OFFSET_FETCH.response
_FETCHED_TOPIC = _OFFSET_FETCH_RESPONSE.OffsetFetchResponseTopic
_FETCHED_GROUP = _OFFSET_FETCH_RESPONSE.OffsetFetchResponseGroup
_FETCHED_GROUP_TOPIC = _FETCHED_GROUP.OffsetFetchResponseTopics
_NO_ID = UUID(int=0)
_FIRST_WITH_GROUPS, _FIRST_FETCH_WITH_TOPIC_IDS = 8, 10


def _offset_fetch(request: Request) -> Message:
    """OffsetFetch: the offsets that groups have committed.

    Permission: DESCRIBE on the group (GROUP_AUTHORIZATION_FAILED) and on each topic (TOPIC_AUTHORIZATION_FAILED).

    Behaviour:
    - A partition for which nothing was committed has offset -1 and no error, also in a group that does not exist.
    - Without a list of topics all offsets of the group are given, those of topics that the client may see.

    Left out:
    - Version 0 reads where the others do, and not ZooKeeper.
    - Member ids and epochs (KIP-848), and offsets of transactions that are not ended.
    """
    message = request.message
    if request.version >= _FIRST_WITH_GROUPS:
        return _OFFSET_FETCH_RESPONSE(groups=[_offsets_of_group(request, group) for group in message.groups])
    code = group_refusal(request, message.group_id, Operation.DESCRIBE)
    topics = [] if code != error_codes.NONE else _fetched_topics(request, message.group_id, message.topics)
    return _OFFSET_FETCH_RESPONSE(
        error_code=code,
        topics=[
            _FETCHED_TOPIC(
                name=name,
                partitions=[
                    _FETCHED_TOPIC.OffsetFetchResponsePartition(**_offset_fields(key.partition, one, failed))
                    for key, one, failed in found
                ],
            )
            for name, _, found in topics
        ],
    )


def _offsets_of_group(request: Request, group: Message) -> Message:
    code = group_refusal(request, group.group_id, Operation.DESCRIBE)
    topics = [] if code != error_codes.NONE else _fetched_topics(request, group.group_id, group.topics)
    return _FETCHED_GROUP(
        group_id=group.group_id,
        error_code=code,
        topics=[
            _FETCHED_GROUP_TOPIC(
                name=name,
                topic_id=topic_id,
                partitions=[
                    _FETCHED_GROUP_TOPIC.OffsetFetchResponsePartitions(**_offset_fields(key.partition, one, failed))
                    for key, one, failed in found
                ],
            )
            for name, topic_id, found in topics
        ],
    )


_FoundOffsets = tuple[str, UUID, list[tuple[TopicPartition, Offset, int]]]


def _fetched_topics(request: Request, group_id: str, topics: Iterable[Message] | None) -> list[_FoundOffsets]:
    """Name, id and offsets of the requested topics, or (None) of all topics with offsets of the group."""
    groups, now_ms = request.cluster.groups, request.cluster.now_ms
    if topics is None:
        return _all_offsets(request, groups.fetch(group_id, None, now_ms))
    answers = []
    for topic in topics:
        name, topic_id, failed = _asked_offsets(request, topic)
        keys = [TopicPartition(name, number) for number in topic.partition_indexes]
        offsets = groups.fetch(group_id, keys, now_ms) if failed == error_codes.NONE else {}
        answers.append((name, topic_id, [(key, offsets.get(key, NO_OFFSET), failed) for key in keys]))
    return answers


def _asked_offsets(request: Request, topic: Message) -> tuple[str, UUID, int]:
    """Name and id of a topic, and the error code if its offsets are not shown."""
    name, topic_id = "", _NO_ID
    if request.version < _FIRST_FETCH_WITH_TOPIC_IDS:
        name = topic.name
    else:
        topic_id = topic.topic_id
        name = request.metadata.topic_names.get(str(topic_id), "")
        if not name:
            return "", topic_id, error_codes.UNKNOWN_TOPIC_ID
    return (
        name,
        topic_id,
        error_codes.NONE if request.allows(Operation.DESCRIBE, name) else error_codes.TOPIC_AUTHORIZATION_FAILED,
    )


def _all_offsets(request: Request, offsets: dict[TopicPartition, Offset]) -> list[_FoundOffsets]:
    answers: dict[str, list[tuple[TopicPartition, Offset, int]]] = {}
    for key, one in sorted(offsets.items()):
        if request.allows(Operation.DESCRIBE, key.topic):
            answers.setdefault(key.topic, []).append((key, one, error_codes.NONE))
    known = request.metadata.topics
    return [(name, UUID(known[name].topic_id) if name in known else _NO_ID, found) for name, found in answers.items()]


def _offset_fields(number: int, offset: Offset, code: int) -> dict[str, object]:
    return {
        "partition_index": number,
        "committed_offset": offset.offset,
        "committed_leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "error_code": code,
    }


_DELETE_RESPONSE = api.OFFSET_DELETE.response
_DELETE_TOPIC = _DELETE_RESPONSE.OffsetDeleteResponseTopic


def _offset_delete(request: Request) -> Message:
    """OffsetDelete: forget what a group has committed for single partitions.

    Permission: DELETE on the group (GROUP_AUTHORIZATION_FAILED) and READ on each topic (TOPIC_AUTHORIZATION_FAILED).

    Behaviour:
    - A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, one of a topic that the group consumes
      GROUP_SUBSCRIBED_TO_TOPIC; the others are deleted all the same, also where nothing was committed.
    - A group that does not exist is GROUP_ID_NOT_FOUND, one whose members are no consumers NON_EMPTY_GROUP, both at
      the top.

    Left out:
    - Nothing.
    """
    message, now_ms = request.message, request.cluster.now_ms
    keys = [TopicPartition(topic.name, one.partition_index) for topic in message.topics for one in topic.partitions]
    codes = {key: _partition_refusal(request, key) for key in keys}
    code = group_refusal(request, message.group_id, Operation.DELETE)
    if code == error_codes.NONE:
        known = [key for key in keys if codes[key] == error_codes.NONE]
        code, deleted = request.cluster.groups.delete_offsets(message.group_id, known, now_ms)
        codes |= deleted
    topics = [] if code != error_codes.NONE else [_deleted_topic(topic, codes) for topic in message.topics]
    return _DELETE_RESPONSE(error_code=code, topics=topics)


def _deleted_topic(topic: Message, codes: dict[TopicPartition, int]) -> Message:
    partitions = [
        _DELETE_TOPIC.OffsetDeleteResponsePartition(
            partition_index=one.partition_index, error_code=codes[TopicPartition(topic.name, one.partition_index)]
        )
        for one in topic.partitions
    ]
    return _DELETE_TOPIC(name=topic.name, partitions=partitions)


HANDLERS = (
    Handler(api.OFFSET_COMMIT, _offset_commit),
    Handler(api.OFFSET_FETCH, _offset_fetch),
    Handler(api.OFFSET_DELETE, _offset_delete),
)
