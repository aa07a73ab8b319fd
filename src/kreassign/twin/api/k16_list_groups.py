"""ListGroups: the groups that a broker coordinates.

Versions: 0-4 on 3.7; 0-5 on 3.9, 4.2, 4.3.
Permission: DESCRIBE on the cluster shows all groups, DESCRIBE on a group that one.

Behaviour:
- Each broker lists those that it coordinates, from version 4 on with their states and from version 5 on with their
  type, and by these only those that are asked for.

Left out:
- Groups of other protocols (KIP-848, share and streams groups).
"""

from __future__ import annotations

from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.coordination import coordinator_of
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.groups.group import Group
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.LIST_GROUPS.response
_CLASSIC = "classic"
_FIRST_WITH_STATES, _FIRST_WITH_TYPES = 4, 5


def _handle(request: Request) -> Message:
    everything = request.cluster.groups.list(request.cluster.now_ms)
    return _RESPONSE(groups=[_listed(one) for one in everything if _is_shown(request, one)])


def _is_shown(request: Request, group: Group) -> bool:
    states = request.message.states_filter if request.version >= _FIRST_WITH_STATES else ()
    types = request.message.types_filter if request.version >= _FIRST_WITH_TYPES else ()
    is_wanted = not states or group.state.lower() in {state.lower() for state in states}
    is_of_type = not types or _CLASSIC in {one.lower() for one in types}
    may_see = request.allows(Operation.DESCRIBE) or request.allows_group(Operation.DESCRIBE, group.group_id)
    return is_wanted and is_of_type and may_see and coordinator_of(request, group.group_id) == request.node.id


def _listed(group: Group) -> Message:
    return _RESPONSE.ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.state,
        group_type=_CLASSIC,
    )


HANDLERS = (Handler(api.LIST_GROUPS, _handle),)
