"""FindCoordinator: which broker looks after a group or a transaction.

Versions: 0-4 on 3.7; 0-6 on 3.9, 4.2, 4.3.
Permission: DESCRIBE on the group; without it GROUP_AUTHORIZATION_FAILED.

Behaviour:
- The coordinator of a group leads the partition of `__consumer_offsets` to which the group belongs.
- Where that topic is missing it is created, and the answer is COORDINATOR_NOT_AVAILABLE; so it is while the partition
  has no leader.
- An unknown type of key is INVALID_REQUEST.

Left out:
- Coordinators of transactions and share groups: always COORDINATOR_NOT_AVAILABLE, and their topics are not created.
- `__consumer_offsets` has three replicas of 50 partitions, or as many as there are brokers; its default on a real
  cluster with fewer than three brokers cannot be met.
"""

from __future__ import annotations

from kreassign.model.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NONE,
    error_code,
)
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.coordination import OFFSETS_TOPIC, coordinator_of, create_offsets_topic
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.wire import api
from kreassign.wire.api import Message

_GROUP, _TRANSACTION, _SHARE = range(3)
_FIRST_WITH_MANY_KEYS = 4


def _handle(request: Request) -> Message:
    response = api.FIND_COORDINATOR.response
    if request.version < _FIRST_WITH_MANY_KEYS:
        code, node = _found(request, request.message.key)
        return response(error_code=code, error_message=error_code(code).text, **node)
    found = [(key, *_found(request, key)) for key in request.message.coordinator_keys]
    return response(
        coordinators=[
            response.Coordinator(key=key, error_code=code, error_message="", **node) for key, code, node in found
        ]
    )


def _found(request: Request, key: str) -> tuple[int, dict[str, object]]:
    """The code, and the node."""
    kind = request.message.key_type if request.version >= 1 else _GROUP
    nobody: dict[str, object] = {"node_id": -1, "host": "", "port": -1}
    if kind not in (_GROUP, _TRANSACTION, _SHARE):
        return INVALID_REQUEST, nobody
    if kind != _GROUP:
        return COORDINATOR_NOT_AVAILABLE, nobody
    if not request.allows_group(Operation.DESCRIBE, key):
        return GROUP_AUTHORIZATION_FAILED, nobody
    if OFFSETS_TOPIC not in request.metadata.topics:
        create_offsets_topic(request)
        return COORDINATOR_NOT_AVAILABLE, nobody
    broker = coordinator_of(request, key)
    if broker is None:
        return COORDINATOR_NOT_AVAILABLE, nobody
    address = request.address(broker)
    return NONE, {"node_id": broker, "host": address.host, "port": address.port}


HANDLERS = (Handler(api.FIND_COORDINATOR, _handle),)
