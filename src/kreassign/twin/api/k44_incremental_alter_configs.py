"""IncrementalAlterConfigs: changes single keys of topics and brokers (KIP-339).

Versions: 0-1.
Permission: ALTER_CONFIGS on the topic, or on the cluster for brokers; without it TOPIC_ or
CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- Each resource has its own outcome; one bad key leaves all keys of the resource as they are.
- A broker takes changes of its own settings and of those of all brokers, the controller those of any broker, so that a
  broker that is down can be configured there.
- The texts and codes of a refusal are those of the endpoint that was asked, as on a real cluster.
- A controller opens cordoned directories of a broker, and closes none.
- Throttles and cordoned directories take effect at once, other keys are stored and shown.

Left out:
- Broker loggers, client metrics and groups are INVALID_REQUEST.
- Names of keys are those of 4.3 whatever the release.
- Policies of the operator's own.
"""

from __future__ import annotations

from kreassign.twin.api.altered_configs import alter, response_fields
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.configs import KeyChange, ResourceChanges
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.INCREMENTAL_ALTER_CONFIGS.response


def _handle(request: Request) -> Message:
    outcomes = alter(request, map(_changes, request.message.resources), replaces=False)
    return _RESPONSE(responses=response_fields(outcomes, _RESPONSE.AlterConfigsResourceResponse))


def _changes(resource: Message) -> ResourceChanges:
    steps = tuple(KeyChange(step.config_operation, step.name, step.value) for step in resource.configs)
    return ResourceChanges(resource.resource_type, resource.resource_name, steps)


HANDLERS = (Handler(api.INCREMENTAL_ALTER_CONFIGS, _handle),)
