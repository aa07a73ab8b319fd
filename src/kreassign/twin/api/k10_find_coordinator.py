"""FindCoordinator: which broker looks after a group or a transaction.

Versions: 0-4 on 3.7; 0-6 on 3.9, 4.2, 4.3.
Permission: none is checked.

Behaviour:
- Every key gets COORDINATOR_NOT_AVAILABLE and no node, as on a cluster whose coordinators are still starting.

Left out:
- Coordinators: there are no groups, transactions or share groups. The internal topics are not created either.
"""

from __future__ import annotations

from kreassign.model.error_codes import COORDINATOR_NOT_AVAILABLE, error_code
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_NOBODY = {"node_id": -1, "host": "", "port": -1, "error_code": COORDINATOR_NOT_AVAILABLE}
_FIRST_WITH_MANY_KEYS = 4


def _handle(request: Request) -> Message:
    response = api.FIND_COORDINATOR.response
    if request.version < _FIRST_WITH_MANY_KEYS:
        return response(error_message=error_code(COORDINATOR_NOT_AVAILABLE).text, **_NOBODY)
    return response(
        coordinators=[
            response.Coordinator(key=key, error_message=None, **_NOBODY) for key in request.message.coordinator_keys
        ]
    )


HANDLERS = (Handler(api.FIND_COORDINATOR, _handle),)
