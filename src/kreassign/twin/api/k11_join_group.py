"""JoinGroup: become a member of a group by the classic protocol.

Versions: 0-9.
Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- Who has no member id is given one first from version 4 on (MEMBER_ID_REQUIRED), unless it has a `group.instance.id`.
- A candidate that shares no protocol with the members is INCONSISTENT_GROUP_PROTOCOL.
- Who joins again under its `group.instance.id` takes the place of its former self, in the same generation.
- A session timeout below 6 s or above 30 min is INVALID_SESSION_TIMEOUT.

Left out:
- Groups of several members: as with `group.max.size=1`, a second one is GROUP_MAX_SIZE_REACHED.
- Waiting for others: as with `group.initial.rebalance.delay.ms=0` the answer comes at once.
"""

from __future__ import annotations

from kreassign.model.error_codes import NONE
from kreassign.twin.api.coordination import refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.groups.coordinator import Candidate, Joined
from kreassign.twin.groups.group import Member
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.JOIN_GROUP.response
_FIRST_WITH_PROMISED_IDS = 4
_FIRST_WITHOUT_PROTOCOL = 7


def _handle(request: Request) -> Message:
    message = request.message
    code = refusal(request, message.group_id)
    if code != NONE:
        return _refused(request, Joined(code))
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
    return _refused(request, joined) if joined.group is None else _admitted(joined)


def _refused(request: Request, joined: Joined) -> Message:
    no_protocol = None if request.version >= _FIRST_WITHOUT_PROTOCOL else ""
    return _RESPONSE(
        error_code=joined.code,
        generation_id=-1,
        protocol_type=None,
        protocol_name=no_protocol,
        leader="",
        member_id=joined.member_id,
        members=[],
    )


def _admitted(joined: Joined) -> Message:
    group = joined.group
    assert group is not None
    return _RESPONSE(
        error_code=NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=joined.member_id,
        member_id=joined.member_id,
        members=[_member(group.protocol, one) for one in group.members.values()],
    )


def _member(protocol: str, member: Member) -> Message:
    return _RESPONSE.JoinGroupResponseMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        metadata=member.protocols[protocol],
    )


HANDLERS = (Handler(api.JOIN_GROUP, _handle),)
