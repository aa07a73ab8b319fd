"""Heartbeat: stay a member of a group.

Versions: 0-4.
Permission: READ on the group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- Who is no member (any more) is UNKNOWN_MEMBER_ID, of another generation ILLEGAL_GENERATION; whose place was taken
  under the same `group.instance.id` FENCED_INSTANCE_ID.

Left out:
- REBALANCE_IN_PROGRESS: a group has one member, which waits for nobody.
"""

from __future__ import annotations

from kreassign.model.error_codes import NONE
from kreassign.twin.api.coordination import claim_of, refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message


def _handle(request: Request) -> Message:
    code = refusal(request, request.message.group_id)
    if code == NONE:
        code = request.cluster.groups.heartbeat(claim_of(request.message), request.cluster.now_ms)
    return api.HEARTBEAT.response(error_code=code)


HANDLERS = (Handler(api.HEARTBEAT, _handle),)
