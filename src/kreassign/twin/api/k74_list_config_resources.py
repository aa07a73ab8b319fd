"""ListConfigResources: what can be configured (KIP-1142); in version 0 client metrics alone.

Versions: 0 on 3.7, 3.9; 0-1 on 4.2, 4.3.
Permission: DESCRIBE_CONFIGS on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- Topics, brokers and brokers' loggers, of the kinds asked for or (none named) of all.
- A kind that cannot be listed is UNSUPPORTED_VERSION.

Left out:
- Client metrics and groups: there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.model.config import ResourceType
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, NONE, UNSUPPORTED_VERSION
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.api.shown import live_brokers
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.LIST_CONFIG_RESOURCES.response
_BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 8, 16, 32
_KINDS = {int(ResourceType.TOPIC), int(ResourceType.BROKER), _BROKER_LOGGER, _CLIENT_METRICS, _GROUP}


def _handle(request: Request) -> Message:
    if not request.allows(Operation.DESCRIBE_CONFIGS):
        return _RESPONSE(error_code=CLUSTER_AUTHORIZATION_FAILED, config_resources=[])
    asked = set(request.message.resource_types) if request.version > 0 else {_CLIENT_METRICS}
    if asked - _KINDS:
        return _RESPONSE(error_code=UNSUPPORTED_VERSION, config_resources=[])
    found = ((kind, name) for kind, name in _all(request) if kind in (asked or _KINDS))
    entry = _RESPONSE.ConfigResource
    return _RESPONSE(
        error_code=NONE, config_resources=[entry(resource_type=kind, resource_name=name) for kind, name in found]
    )


def _all(request: Request) -> Iterator[tuple[int, str]]:
    brokers = [str(broker.broker_id) for broker in live_brokers(request.metadata)]
    yield from ((kind, name) for kind in (_BROKER_LOGGER, int(ResourceType.BROKER)) for name in brokers)
    yield from ((int(ResourceType.TOPIC), name) for name in request.metadata.topics)


HANDLERS = (Handler(api.LIST_CONFIG_RESOURCES, _handle),)
