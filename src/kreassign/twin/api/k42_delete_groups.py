"""DeleteGroups: forget groups that have no members, with the offsets that they committed.

Versions: 0-2.
Permission: DELETE on each group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- A group with members is NON_EMPTY_GROUP, one that does not exist GROUP_ID_NOT_FOUND.

Left out:
- Nothing.
"""

from __future__ import annotations

from kreassign.model.error_codes import NONE
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.coordination import refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DELETE_GROUPS.response


def _handle(request: Request) -> Message:
    return _RESPONSE(
        results=[
            _RESPONSE.DeletableGroupResult(group_id=group_id, error_code=_delete(request, group_id))
            for group_id in request.message.groups_names
        ]
    )


def _delete(request: Request, group_id: str) -> int:
    code = refusal(request, group_id, Operation.DELETE)
    return request.cluster.groups.delete(group_id, request.cluster.now_ms) if code == NONE else code


HANDLERS = (Handler(api.DELETE_GROUPS, _handle),)
