"""Find, list, describe and delete consumer groups: FindCoordinator, ListGroups, DescribeGroups, DeleteGroups.

`group_membership.py` has how members join and leave, `group_offsets.py` what they commit. The broker that leads a
group's partition of `__consumer_offsets` is its coordinator; other brokers answer NOT_COORDINATOR.
"""

from __future__ import annotations

from kreassign.model import error_codes
from kreassign.model.text import share_of, string_hash
from kreassign.twin.access import GROUP_OPERATIONS, Operation
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller.topics import CreateTopics, WantedTopic
from kreassign.twin.groups import Group, GroupState, Member, MemberClaim
from kreassign.wire import api
from kreassign.wire.api import Message

# Coordinator of a group, and whether this client may ask this broker about the group.

OFFSETS_TOPIC = "__consumer_offsets"
_OFFSETS_PARTITIONS_KEY = "offsets.topic.num.partitions"
_OFFSETS_FACTOR_KEY = "offsets.topic.replication.factor"
_OFFSETS_TOPIC_CONFIGS = (
    ("cleanup.policy", "compact"),
    ("compression.type", "producer"),
    ("segment.bytes", "104857600"),
)


def group_refusal(request: Request, group_id: str, operation: Operation = Operation.READ) -> int:
    """The error code if this node does not answer about a group; NONE if it does."""
    if not request.allows(operation, group=group_id):
        return error_codes.GROUP_AUTHORIZATION_FAILED
    return error_codes.NONE if coordinator_of(request, group_id) == request.node.id else error_codes.NOT_COORDINATOR


def coordinator_of(request: Request, group_id: str) -> int | None:
    """The broker that leads the group's partition of `__consumer_offsets`; None if there is none."""
    topic = request.metadata.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return None
    partition = topic.partitions[share_of(string_hash(group_id), len(topic.partitions))]
    broker = request.metadata.brokers.get(partition.leader)
    return None if broker is None or broker.fenced else partition.leader


def create_offsets_topic(request: Request) -> None:
    """Create `__consumer_offsets`, as brokers do on the first lookup of a coordinator."""
    static = request.context.server.static
    live = sum(not broker.fenced for broker in request.metadata.brokers.values())
    factor = int(static.get(_OFFSETS_FACTOR_KEY, min(3, live)))
    topic = WantedTopic(
        OFFSETS_TOPIC, int(static.get(_OFFSETS_PARTITIONS_KEY, "50")), factor, (), _OFFSETS_TOPIC_CONFIGS
    )
    request.cluster.controller.create_topics(CreateTopics((topic,)))


def claim_of(message: Message) -> MemberClaim:
    """The identity that a member claims in a message."""
    return MemberClaim(message.group_id, message.generation_id, message.member_id, message.group_instance_id)


_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY = range(3)
_FIRST_WITH_MANY_KEYS = 4


def _find_coordinator(request: Request) -> Message:
    """FindCoordinator: which broker looks after a group or a transaction.

    Permission: DESCRIBE on the group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - The coordinator of a group leads the partition of `__consumer_offsets` to which the group belongs.
    - Where that topic is missing it is created, and the answer is COORDINATOR_NOT_AVAILABLE; so it is while the
      partition has no leader.
    - An unknown type of key is INVALID_REQUEST.

    Left out:
    - Coordinators of transactions and share groups: always TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one error after
      which no client asks again.
    - `__consumer_offsets` has three replicas of 50 partitions, or as many as there are brokers; its default on a real
      cluster with fewer than three brokers cannot be met.
    """
    response = api.FIND_COORDINATOR.response
    if request.version < _FIRST_WITH_MANY_KEYS:
        code, node = _found_coordinator(request, request.message.key)
        return response(error_code=code, error_message=error_codes.error_code(code).text, **node)
    found = [(key, *_found_coordinator(request, key)) for key in request.message.coordinator_keys]
    return response(
        coordinators=[
            response.Coordinator(key=key, error_code=code, error_message="", **node) for key, code, node in found
        ]
    )


def _found_coordinator(request: Request, key: str) -> tuple[int, dict[str, object]]:
    """The error code, and the fields of the coordinator's node."""
    kind = request.message.key_type if request.version >= 1 else _GROUP_KEY
    nobody: dict[str, object] = {"node_id": -1, "host": "", "port": -1}
    if kind not in (_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY):
        return error_codes.INVALID_REQUEST, nobody
    if kind != _GROUP_KEY:
        return error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, nobody
    if not request.allows(Operation.DESCRIBE, group=key):
        return error_codes.GROUP_AUTHORIZATION_FAILED, nobody
    if OFFSETS_TOPIC not in request.metadata.topics:
        create_offsets_topic(request)
        return error_codes.COORDINATOR_NOT_AVAILABLE, nobody
    broker = coordinator_of(request, key)
    if broker is None:
        return error_codes.COORDINATOR_NOT_AVAILABLE, nobody
    address = request.address(broker)
    return error_codes.NONE, {"node_id": broker, "host": address.host, "port": address.port}


_LIST_GROUPS_RESPONSE = api.LIST_GROUPS.response
_CLASSIC = "classic"
_FIRST_WITH_STATES, _FIRST_WITH_TYPES = 4, 5


def _list_groups(request: Request) -> Message:
    """ListGroups: the groups that a broker coordinates.

    Permission: DESCRIBE on the cluster shows all groups, DESCRIBE on a group that one.

    Behaviour:
    - Each broker lists those that it coordinates, from version 4 on with their states and from version 5 on with their
      type, and by these only those that are asked for.

    Left out:
    - Groups of other protocols (KIP-848, share and streams groups).
    """
    groups = [
        _LIST_GROUPS_RESPONSE.ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=_CLASSIC,
        )
        for group in request.cluster.groups.list(request.cluster.now_ms)
        if _is_listed(request, group)
    ]
    return _LIST_GROUPS_RESPONSE(groups=groups)


def _is_listed(request: Request, group: Group) -> bool:
    states = request.message.states_filter if request.version >= _FIRST_WITH_STATES else ()
    types = request.message.types_filter if request.version >= _FIRST_WITH_TYPES else ()
    is_wanted = not states or group.state.lower() in {state.lower() for state in states}
    is_of_type = not types or _CLASSIC in {one.lower() for one in types}
    may_see = request.allows(Operation.DESCRIBE) or request.allows(Operation.DESCRIBE, group=group.group_id)
    return is_wanted and is_of_type and may_see and coordinator_of(request, group.group_id) == request.node.id


_DESCRIBE_GROUPS_RESPONSE = api.DESCRIBE_GROUPS.response
_DESCRIBED_GROUP = _DESCRIBE_GROUPS_RESPONSE.DescribedGroup
_FIRST_WITH_NOT_FOUND = 6


def _describe_groups(request: Request) -> Message:
    """DescribeGroups: state and members of groups of the classic protocol.

    Permission: DESCRIBE on each group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - A group that does not exist is dead: without an error up to version 5, GROUP_ID_NOT_FOUND from version 6 on.
    - Protocol, metadata and assignments are shown of a stable group only.

    Left out:
    - Groups of other protocols (KIP-848, share and streams groups).
    """
    return _DESCRIBE_GROUPS_RESPONSE(
        groups=[_described_group(request, group_id) for group_id in request.message.groups]
    )


def _described_group(request: Request, group_id: str) -> Message:
    code = group_refusal(request, group_id, Operation.DESCRIBE)
    if code != error_codes.NONE:
        return _dead_group(request, group_id, code, "", None)
    group = request.cluster.groups.describe(group_id, request.cluster.now_ms)
    if group is None:
        code = error_codes.GROUP_ID_NOT_FOUND if request.version >= _FIRST_WITH_NOT_FOUND else error_codes.NONE
        return _dead_group(request, group_id, code, GroupState.DEAD, f"Group {group_id} not found.")
    is_stable = group.state is GroupState.STABLE
    return _DESCRIBED_GROUP(
        error_code=error_codes.NONE,
        error_message=None,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol if is_stable else "",
        members=[_described_member(group, one, is_stable=is_stable) for one in group.members.values()],
        authorized_operations=_group_operations(request, group_id),
    )


def _dead_group(request: Request, group_id: str, code: int, state: str, text: str | None) -> Message:
    return _DESCRIBED_GROUP(
        error_code=code,
        error_message=text,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=_group_operations(request, group_id) if state else None,
    )


def _described_member(group: Group, member: Member, *, is_stable: bool) -> Message:
    return _DESCRIBED_GROUP.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.candidate.instance_id,
        client_id=member.candidate.client_id,
        client_host=member.candidate.client_host,
        member_metadata=member.candidate.protocols[group.protocol] if is_stable else b"",
        member_assignment=member.assignment if is_stable else b"",
    )


def _group_operations(request: Request, group_id: str) -> set[int] | None:
    if not request.message.include_authorized_operations:
        return None
    return {int(operation) for operation in GROUP_OPERATIONS if request.allows(operation, group=group_id)}


_DELETE_GROUPS_RESPONSE = api.DELETE_GROUPS.response


def _delete_groups(request: Request) -> Message:
    """DeleteGroups: forget groups that have no members, with the offsets that they committed.

    Permission: DELETE on each group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - A group with members is NON_EMPTY_GROUP, one that does not exist GROUP_ID_NOT_FOUND.

    Left out:
    - Nothing.
    """
    return _DELETE_GROUPS_RESPONSE(
        results=[
            _DELETE_GROUPS_RESPONSE.DeletableGroupResult(group_id=group_id, error_code=_delete_group(request, group_id))
            for group_id in request.message.groups_names
        ]
    )


def _delete_group(request: Request, group_id: str) -> int:
    code = group_refusal(request, group_id, Operation.DELETE)
    return request.cluster.groups.delete(group_id, request.cluster.now_ms) if code == error_codes.NONE else code


HANDLERS = (
    Handler(api.FIND_COORDINATOR, _find_coordinator),
    Handler(api.LIST_GROUPS, _list_groups),
    Handler(api.DESCRIBE_GROUPS, _describe_groups),
    Handler(api.DELETE_GROUPS, _delete_groups),
)
