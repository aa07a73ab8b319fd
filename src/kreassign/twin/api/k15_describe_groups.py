"""DescribeGroups: state and members of groups of the classic protocol.

Versions: 0-5 on 3.7, 3.9; 0-6 on 4.2, 4.3.
Permission: DESCRIBE on each group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- A group that does not exist is dead: without an error up to version 5, GROUP_ID_NOT_FOUND from version 6 on.
- Protocol, metadata and assignments are shown of a stable group only.

Left out:
- Groups of other protocols (KIP-848, share and streams groups).
"""

from __future__ import annotations

from kreassign.model.error_codes import GROUP_ID_NOT_FOUND, NONE
from kreassign.twin.access.permissions import GROUP_OPERATIONS, Operation
from kreassign.twin.api.coordination import refusal
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.groups.group import Group, GroupState, Member
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_GROUPS.response
_ENTRY = _RESPONSE.DescribedGroup
_FIRST_WITH_NOT_FOUND = 6


def _handle(request: Request) -> Message:
    return _RESPONSE(groups=[_described(request, group_id) for group_id in request.message.groups])


def _described(request: Request, group_id: str) -> Message:
    code = refusal(request, group_id, Operation.DESCRIBE)
    if code != NONE:
        return _nothing(request, group_id, code, "", None)
    group = request.cluster.groups.describe(group_id, request.cluster.now_ms)
    if group is None:
        code = GROUP_ID_NOT_FOUND if request.version >= _FIRST_WITH_NOT_FOUND else NONE
        return _nothing(request, group_id, code, GroupState.DEAD, f"Group {group_id} not found.")
    is_stable = group.state is GroupState.STABLE
    return _ENTRY(
        error_code=NONE,
        error_message=None,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol if is_stable else "",
        members=[_member(group, one, is_stable=is_stable) for one in group.members.values()],
        authorized_operations=_operations(request, group_id),
    )


def _nothing(request: Request, group_id: str, code: int, state: str, text: str | None) -> Message:
    return _ENTRY(
        error_code=code,
        error_message=text,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=_operations(request, group_id) if state else None,
    )


def _member(group: Group, member: Member, *, is_stable: bool) -> Message:
    return _ENTRY.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.protocols[group.protocol] if is_stable else b"",
        member_assignment=member.assignment if is_stable else b"",
    )


def _operations(request: Request, group_id: str) -> set[int] | None:
    if not request.message.include_authorized_operations:
        return None
    return {int(operation) for operation in GROUP_OPERATIONS if request.allows_group(operation, group_id)}


HANDLERS = (Handler(api.DESCRIBE_GROUPS, _handle),)
