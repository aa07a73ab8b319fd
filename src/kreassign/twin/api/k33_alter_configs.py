"""AlterConfigs: replaces the whole dynamic configuration of topics and brokers (the older way).

Versions: 0-2.
Permission: ALTER_CONFIGS on the topic, or on the cluster for brokers; without it TOPIC_ or
CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- Keys that are not named are taken back.
- Otherwise as IncrementalAlterConfigs with nothing but the operation to set.

Left out:
- What IncrementalAlterConfigs leaves out.
- A request that names a resource twice is refused; a real broker never answers it.
"""

from __future__ import annotations

from kreassign.model import ConfigOperation
from kreassign.twin.api.altered_configs import alter, response_fields
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.configs import KeyChange, ResourceChanges
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.ALTER_CONFIGS.response


def _handle(request: Request) -> Message:
    outcomes = alter(request, map(_changes, request.message.resources), replaces=True)
    return _RESPONSE(responses=response_fields(outcomes, _RESPONSE.AlterConfigsResourceResponse))


def _changes(resource: Message) -> ResourceChanges:
    steps = tuple(KeyChange(ConfigOperation.SET, step.name, step.value) for step in resource.configs)
    return ResourceChanges(resource.resource_type, resource.resource_name, steps)


HANDLERS = (Handler(api.ALTER_CONFIGS, _handle),)
