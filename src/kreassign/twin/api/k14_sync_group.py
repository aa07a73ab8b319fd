"""SyncGroup: the leader of a group gives assignments, each member gets its own.

Versions: 0-5.
Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- The group is stable from then on. A stable group answers with the assignment that it has.
- The same claims are refused as by Heartbeat.
- From version 5 on the protocol must be named (INCONSISTENT_GROUP_PROTOCOL).

Left out:
- Waiting for the leader's assignments: the only member is the leader.
"""

from __future__ import annotations

from kreassign.model.error_codes import INCONSISTENT_GROUP_PROTOCOL, NONE
from kreassign.twin.api.coordination import claim_of, refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.SYNC_GROUP.response
_FIRST_WITH_PROTOCOL = 5


def _handle(request: Request) -> Message:
    message = request.message
    code = refusal(request, message.group_id)
    if code != NONE:
        return _refused(code)
    if request.version >= _FIRST_WITH_PROTOCOL and not (message.protocol_type and message.protocol_name):
        return _refused(INCONSISTENT_GROUP_PROTOCOL)
    claim = claim_of(message)
    assignments = {one.member_id: bytes(one.assignment) for one in message.assignments}
    code, group = request.cluster.groups.sync(claim, assignments, request.cluster.now_ms)
    if group is None:
        return _refused(code)
    return _RESPONSE(
        error_code=NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=group.members[claim.member_id].assignment,
    )


def _refused(code: int) -> Message:
    return _RESPONSE(error_code=code, protocol_type=None, protocol_name=None, assignment=b"")


HANDLERS = (Handler(api.SYNC_GROUP, _handle),)
