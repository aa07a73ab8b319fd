"""ListGroups: the consumer groups that a broker coordinates.

Versions: 0-4 on 3.7; 0-5 on 3.9, 4.2, 4.3.
Permission: none; a real broker leaves out the groups that the client may not see.

Behaviour:
- There are never any groups.

Left out:
- Groups: the twin has no coordinator, so that clients which look for groups find none.
"""

from __future__ import annotations

from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message


def _handle(request: Request) -> Message:
    del request
    return api.LIST_GROUPS.response(groups=[])


HANDLERS = (Handler(api.LIST_GROUPS, _handle),)
