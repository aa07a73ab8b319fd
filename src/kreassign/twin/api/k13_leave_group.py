"""LeaveGroup: members go, by themselves or removed by an operator.

Versions: 0-5.
Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- A member is named by its id, by its `group.instance.id`, or by both; each has its own outcome from version 3 on.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model.error_codes import NONE
from kreassign.twin.api.coordination import refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.LEAVE_GROUP.response
_FIRST_WITH_MANY = 3


def _handle(request: Request) -> Message:
    message = request.message
    code = refusal(request, message.group_id)
    if code != NONE:
        return _RESPONSE(error_code=code, members=[])
    if request.version < _FIRST_WITH_MANY:
        return _RESPONSE(error_code=_leave(request, message.member_id, None))
    members = [
        _RESPONSE.MemberResponse(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            error_code=_leave(request, one.member_id, one.group_instance_id),
        )
        for one in message.members
    ]
    return _RESPONSE(error_code=NONE, members=members)


def _leave(request: Request, member_id: str, instance_id: str | None) -> int:
    return request.cluster.groups.leave(request.message.group_id, member_id, instance_id, request.cluster.now_ms)


HANDLERS = (Handler(api.LEAVE_GROUP, _handle),)
