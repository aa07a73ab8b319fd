"""Calls about groups: coordinator, members (classic protocol, KIP-345), and committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kreassign.admin import call
from kreassign.model import Batch, TopicPartition, operation_names
from kreassign.model.error_codes import GROUP_ID_NOT_FOUND
from kreassign.model.requests import DEAD, CommittedOffset, Group, GroupCandidate, GroupMember, Membership
from kreassign.wire import api
from kreassign.wire.api import Message

_GROUP = 0  # Key type of FindCoordinator
_MANY_KEYS_VERSION = 4


def find_coordinator(group_id: str) -> call.Call[int]:
    """The id of the broker that coordinates a group. A cluster that never had a group creates its internal topic."""

    def build(version: int, _timeout_ms: int) -> Message:
        if version < _MANY_KEYS_VERSION:
            return api.FIND_COORDINATOR.request(key=group_id, key_type=_GROUP)
        return api.FIND_COORDINATOR.request(key_type=_GROUP, coordinator_keys=[group_id])

    def read(response: Message) -> int:
        found = response
        if response.API_VERSION >= _MANY_KEYS_VERSION:
            found = call.entry_of(api.FIND_COORDINATOR, ((one.key, one) for one in response.coordinators), group_id)
        call.raise_if_failed(api.FIND_COORDINATOR, found.error_code, found.error_message, group_id)
        return int(found.node_id)

    return call.Call(api.FIND_COORDINATOR, build, read)


def join_group(candidate: GroupCandidate, rebalance_timeout_ms: int) -> call.Call[Membership]:
    """Join a group. Repetition is harmless: a later request under the same instance id replaces the earlier one."""

    def build(_version: int, _timeout_ms: int) -> Message:
        request = api.JOIN_GROUP.request
        return request(
            group_id=candidate.group_id,
            session_timeout_ms=candidate.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id="",
            group_instance_id=candidate.instance_id,
            protocol_type=candidate.protocol_type,
            protocols=[request.JoinGroupRequestProtocol(name=candidate.protocol, metadata=candidate.metadata)],
        )

    def read(response: Message) -> Membership:
        call.raise_if_failed(api.JOIN_GROUP, response.error_code, item=candidate.group_id)
        return Membership(candidate.group_id, candidate.instance_id, response.member_id, response.generation_id)

    return call.Call(api.JOIN_GROUP, build, read)


def sync_group(membership: Membership, candidate: GroupCandidate) -> call.Call[None]:
    """Give the only member an empty assignment. The coordinator stores the group only after this."""

    def build(_version: int, _timeout_ms: int) -> Message:
        request = api.SYNC_GROUP.request
        assignment = request.SyncGroupRequestAssignment(member_id=membership.member_id, assignment=b"")
        return request(
            **_as_member(membership),
            protocol_type=candidate.protocol_type,
            protocol_name=candidate.protocol,
            assignments=[assignment],
        )

    return call.Call(
        api.SYNC_GROUP,
        build,
        lambda response: call.raise_if_failed(api.SYNC_GROUP, response.error_code, item=membership.group_id),
    )


def heartbeat(membership: Membership) -> call.Call[None]:
    """Renew a membership; refused for a former member."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.HEARTBEAT.request(**_as_member(membership))

    return call.Call(api.HEARTBEAT, build, lambda response: call.raise_if_failed(api.HEARTBEAT, response.error_code))


def leave_group(group_id: str, instance_id: str, member_id: str) -> call.Call[None]:
    """Remove a member from a group by its instance id, and with a member id only if that matches."""

    def build(_version: int, _timeout_ms: int) -> Message:
        request = api.LEAVE_GROUP.request
        member = request.MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        return request(group_id=group_id, members=[member])

    def read(response: Message) -> None:
        call.raise_if_failed(api.LEAVE_GROUP, response.error_code)
        members = ((member.group_instance_id, member) for member in response.members)
        call.raise_if_failed(api.LEAVE_GROUP, call.entry_of(api.LEAVE_GROUP, members, instance_id).error_code)

    return call.Call(api.LEAVE_GROUP, build, read, is_write=True)


def describe_group(group_id: str) -> call.Call[Group]:
    """Describe a group with its members; a group that does not exist is `DEAD`."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.DESCRIBE_GROUPS.request(groups=[group_id], include_authorized_operations=False)

    def read(response: Message) -> Group:
        found = call.entry_of(api.DESCRIBE_GROUPS, ((one.group_id, one) for one in response.groups), group_id)
        if found.error_code == GROUP_ID_NOT_FOUND:
            return Group(group_id, DEAD, "", "")
        call.raise_if_failed(api.DESCRIBE_GROUPS, found.error_code, found.error_message)
        return Group(
            group_id, found.group_state, found.protocol_type, found.protocol_data, tuple(map(_member, found.members))
        )

    return call.Call(api.DESCRIBE_GROUPS, build, read)


def allowed_on_group(group_id: str) -> call.Call[frozenset[str] | None]:
    """The operations that this client is allowed on a group; None if unreported."""

    def build(_version: int, _timeout_ms: int) -> Message:
        return api.DESCRIBE_GROUPS.request(groups=[group_id], include_authorized_operations=True)

    def read(response: Message) -> frozenset[str] | None:
        found = call.entry_of(api.DESCRIBE_GROUPS, ((one.group_id, one) for one in response.groups), group_id)
        if found.error_code != GROUP_ID_NOT_FOUND:
            call.raise_if_failed(api.DESCRIBE_GROUPS, found.error_code, found.error_message)
        told = found.authorized_operations
        return None if told is None else operation_names(told)

    return call.Call(api.DESCRIBE_GROUPS, build, read)


def commit_offsets(
    membership: Membership, offsets: Mapping[TopicPartition, CommittedOffset]
) -> call.Call[Batch[TopicPartition, None]]:
    """Commit offsets as this member of this generation; a former member is refused, for each partition."""
    request = api.OFFSET_COMMIT.request
    entry = request.OffsetCommitRequestTopic

    def partition(key: TopicPartition) -> Message:
        return entry.OffsetCommitRequestPartition(
            partition_index=key.partition,
            committed_offset=offsets[key].offset,
            committed_leader_epoch=-1,
            committed_metadata=offsets[key].metadata,
        )

    def build(_version: int, _timeout_ms: int) -> Message:
        return request(
            group_id=membership.group_id,
            generation_id_or_member_epoch=membership.generation,
            member_id=membership.member_id,
            group_instance_id=membership.instance_id,
            topics=call.topic_entries(entry, offsets, partition),
        )

    def read(response: Message) -> Batch[TopicPartition, None]:
        return call.partition_outcomes(api.OFFSET_COMMIT, response.topics, offsets)

    return call.Call(api.OFFSET_COMMIT, build, read)


def fetch_offsets(
    group_id: str, partitions: Iterable[TopicPartition]
) -> call.Call[Batch[TopicPartition, CommittedOffset]]:
    """The committed offsets of a group for these partitions."""
    asked = call.by_topic(partitions)

    def build(_version: int, _timeout_ms: int) -> Message:
        request = api.OFFSET_FETCH.request
        entry = request.OffsetFetchRequestTopic
        topics = [entry(name=topic, partition_indexes=numbers) for topic, numbers in asked.items()]
        return request(group_id=group_id, topics=topics)

    def read(response: Message) -> Batch[TopicPartition, CommittedOffset]:
        call.raise_if_failed(api.OFFSET_FETCH, response.error_code)
        named = (TopicPartition(topic, number) for topic, numbers in asked.items() for number in numbers)
        return call.readings(api.OFFSET_FETCH, call.partition_entries(response.topics), _committed, named)

    return call.Call(api.OFFSET_FETCH, build, read)


def _as_member(membership: Membership) -> dict[str, object]:
    """The fields that identify a member in every request."""
    return {
        "group_id": membership.group_id,
        "generation_id": membership.generation,
        "member_id": membership.member_id,
        "group_instance_id": membership.instance_id,
    }


def _committed(_key: TopicPartition, entry: Message) -> CommittedOffset:
    return CommittedOffset(entry.committed_offset, entry.metadata or "")


def _member(entry: Message) -> GroupMember:
    return GroupMember(
        entry.member_id,
        entry.group_instance_id,
        entry.client_id,
        entry.client_host.removeprefix("/"),
        bytes(entry.member_metadata),
    )
