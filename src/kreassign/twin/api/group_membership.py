"""Join a consumer group, stay in it and leave it: JoinGroup, SyncGroup, Heartbeat, LeaveGroup of the classic protocol.

A group has at most one member, as on a broker with `group.max.size=1`, so that no member waits for others. The rules
are in `twin/groups.py`.
"""

from __future__ import annotations

from kreassign.model.error_codes import INCONSISTENT_GROUP_PROTOCOL, NONE
from kreassign.twin.api.groups import claim_of, group_refusal
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.groups import Candidate, Joined
from kreassign.wire import api
from kreassign.wire.api import Message

_JOIN_RESPONSE = api.JOIN_GROUP.response
_FIRST_WITH_PROMISED_IDS = 4
_FIRST_WITHOUT_PROTOCOL = 7


def _join_group(request: Request) -> Message:
    """JoinGroup: become a member of a group by the classic protocol.

    Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - Who has no member id is given one first from version 4 on (MEMBER_ID_REQUIRED), unless it has a
      `group.instance.id`.
    - A candidate that shares no protocol with the members is INCONSISTENT_GROUP_PROTOCOL.
    - Who joins again under its `group.instance.id` takes the place of its former self, in the same generation.
    - A session timeout below 6 s or above 30 min is INVALID_SESSION_TIMEOUT.

    Left out:
    - Groups of several members: as with `group.max.size=1`, a second one is GROUP_MAX_SIZE_REACHED.
    - Waiting for others: as with `group.initial.rebalance.delay.ms=0` the answer comes at once.
    """
    message = request.message
    code = group_refusal(request, message.group_id)
    if code != NONE:
        return _join_refused(request, Joined(code))
    candidate = Candidate(
        message.group_id,
        message.member_id,
        message.group_instance_id,
        request.client_id,
        f"/{request.client_host}",
        message.session_timeout_ms,
        message.protocol_type,
        {protocol.name: bytes(protocol.metadata) for protocol in message.protocols},
        may_be_unknown=request.version < _FIRST_WITH_PROMISED_IDS,
    )
    joined = request.cluster.groups.join(candidate, request.cluster.now_ms)
    return _join_refused(request, joined) if joined.group is None else _join_admitted(joined)


def _join_refused(request: Request, joined: Joined) -> Message:
    no_protocol = None if request.version >= _FIRST_WITHOUT_PROTOCOL else ""
    return _JOIN_RESPONSE(
        error_code=joined.code,
        generation_id=-1,
        protocol_type=None,
        protocol_name=no_protocol,
        leader="",
        member_id=joined.member_id,
        members=[],
    )


def _join_admitted(joined: Joined) -> Message:
    group = joined.group
    assert group is not None
    return _JOIN_RESPONSE(
        error_code=NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=joined.member_id,
        member_id=joined.member_id,
        members=[
            _JOIN_RESPONSE.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.candidate.instance_id,
                metadata=member.candidate.protocols[group.protocol],
            )
            for member in group.members.values()
        ],
    )


_SYNC_RESPONSE = api.SYNC_GROUP.response
_FIRST_WITH_PROTOCOL = 5


def _sync_group(request: Request) -> Message:
    """SyncGroup: the leader of a group gives assignments, each member gets its own.

    Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - The group is stable from then on. A stable group answers with the assignment that it has.
    - The same claims are refused as by Heartbeat.
    - From version 5 on the protocol must be named (INCONSISTENT_GROUP_PROTOCOL).

    Left out:
    - Waiting for the leader's assignments: the only member is the leader.
    """
    message = request.message
    code = group_refusal(request, message.group_id)
    if code != NONE:
        return _sync_refused(code)
    if request.version >= _FIRST_WITH_PROTOCOL and not (message.protocol_type and message.protocol_name):
        return _sync_refused(INCONSISTENT_GROUP_PROTOCOL)
    claim = claim_of(message)
    assignments = {one.member_id: bytes(one.assignment) for one in message.assignments}
    code, group = request.cluster.groups.sync(claim, assignments, request.cluster.now_ms)
    if group is None:
        return _sync_refused(code)
    return _SYNC_RESPONSE(
        error_code=NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=group.members[claim.member_id].assignment,
    )


def _sync_refused(code: int) -> Message:
    return _SYNC_RESPONSE(error_code=code, protocol_type=None, protocol_name=None, assignment=b"")


def _heartbeat(request: Request) -> Message:
    """Heartbeat: stay a member of a group.

    Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - Who is no member (any more) is UNKNOWN_MEMBER_ID, of another generation ILLEGAL_GENERATION; whose place was taken
      under the same `group.instance.id` FENCED_INSTANCE_ID.

    Left out:
    - REBALANCE_IN_PROGRESS: a group has one member, which waits for nobody.
    """
    code = group_refusal(request, request.message.group_id)
    if code == NONE:
        code = request.cluster.groups.heartbeat(claim_of(request.message), request.cluster.now_ms)
    return api.HEARTBEAT.response(error_code=code)


_LEAVE_RESPONSE = api.LEAVE_GROUP.response
_FIRST_WITH_MANY = 3


def _leave_group(request: Request) -> Message:
    """LeaveGroup: members go, by themselves or removed by an operator.

    Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

    Behaviour:
    - A member is named by its id, by its `group.instance.id`, or by both; each has its own outcome from version 3 on.

    Left out:
    - Nothing.
    """
    message = request.message
    code = group_refusal(request, message.group_id)
    if code != NONE:
        return _LEAVE_RESPONSE(error_code=code, members=[])
    if request.version < _FIRST_WITH_MANY:
        return _LEAVE_RESPONSE(error_code=_leave(request, message.member_id, None))
    members = [
        _LEAVE_RESPONSE.MemberResponse(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            error_code=_leave(request, one.member_id, one.group_instance_id),
        )
        for one in message.members
    ]
    return _LEAVE_RESPONSE(error_code=NONE, members=members)


def _leave(request: Request, member_id: str, instance_id: str | None) -> int:
    return request.cluster.groups.leave(request.message.group_id, member_id, instance_id, request.cluster.now_ms)


HANDLERS = (
    Handler(api.JOIN_GROUP, _join_group),
    Handler(api.SYNC_GROUP, _sync_group),
    Handler(api.HEARTBEAT, _heartbeat),
    Handler(api.LEAVE_GROUP, _leave_group),
)
