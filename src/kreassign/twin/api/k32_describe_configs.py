"""DescribeConfigs: configuration of topics and of the asked broker, with where each value comes from.

Versions: 0-4 on 3.7, 3.9; 1-4 on 4.2, 4.3.
Permission: DESCRIBE_CONFIGS on the topic, or on the cluster for brokers; without it TOPIC_ or
CLUSTER_AUTHORIZATION_FAILED.

Behaviour:
- Topics and brokers show all of their keys, with what would hold otherwise, and with documentation, if the client asks
  for that.
- A kind of resource that no release knows makes the whole request fail.
- A broker describes only itself; another broker's id is INVALID_REQUEST. An empty name asks for the settings of all.
- The throttle rates of a broker are not listed until they are set.
- With eligible leader replicas the cluster has min.insync.replicas=1 for all brokers, which shows on every topic.

Left out:
- Keys that were added or removed between releases: they are those of 4.3.
- Broker loggers, client metrics and groups are INVALID_REQUEST.
- Server settings in another unit than the topic's (log.retention.hours) are not converted.
"""

from __future__ import annotations

from kreassign.model import ConfigSource, ResourceType
from kreassign.model.error_codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED
from kreassign.twin.access.permissions import Operation
from kreassign.twin.api.handler import Handler
from kreassign.twin.api.request import Request
from kreassign.twin.controller.decision import Outcome, with_default_text
from kreassign.twin.controller.described_configs import DescribedConfig, DescribedResource, describe_configs
from kreassign.wire import api
from kreassign.wire.api import Message

_RESPONSE = api.DESCRIBE_CONFIGS.response
_RESULT = _RESPONSE.DescribeConfigsResult
_CONFIG = _RESULT.DescribeConfigsResourceResult
_BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 8, 16, 32
_KINDS = {*ResourceType, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP}


def _handle(request: Request) -> Message:
    if any(resource.resource_type not in _KINDS for resource in request.message.resources):
        unexpected = with_default_text(INVALID_REQUEST)
        everything = ((resource.resource_type, resource.resource_name) for resource in request.message.resources)
        return _RESPONSE(results=[_result(request, DescribedResource(*one, unexpected)) for one in everything])
    refusals = [(resource, _refusal(request, resource)) for resource in request.message.resources]
    allowed = [_described(request, resource) for resource, refusal in refusals if refusal is None]
    refused = [
        DescribedResource(resource.resource_type, resource.resource_name, refusal)
        for resource, refusal in refusals
        if refusal is not None
    ]
    return _RESPONSE(results=[_result(request, resource) for resource in (*allowed, *refused)])


def _refusal(request: Request, resource: Message) -> Outcome | None:
    if resource.resource_type == ResourceType.TOPIC:
        is_allowed = request.allows(Operation.DESCRIBE_CONFIGS, resource.resource_name)
        return None if is_allowed else with_default_text(TOPIC_AUTHORIZATION_FAILED)
    return None if request.allows(Operation.DESCRIBE_CONFIGS) else with_default_text(CLUSTER_AUTHORIZATION_FAILED)


def _described(request: Request, resource: Message) -> DescribedResource:
    # An empty list of keys means all of them, as no list does.
    keys = resource.configuration_keys or None
    return describe_configs(request.context, request.node.id, (resource.resource_type, resource.resource_name), keys)


def _result(request: Request, resource: DescribedResource) -> Message:
    return _RESULT(
        error_code=resource.outcome.code,
        error_message=resource.outcome.message,
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[_config(request, config) for config in resource.configs],
    )


def _config(request: Request, config: DescribedConfig) -> Message:
    synonyms = config.synonyms if request.message.include_synonyms else ()
    return _CONFIG(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_default=config.source is ConfigSource.DEFAULT,
        is_sensitive=config.is_sensitive,
        synonyms=[
            _CONFIG.DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source) for one in synonyms
        ],
        config_type=config.type,
        documentation=config.documentation if request.message.include_documentation else None,
    )


HANDLERS = (Handler(api.DESCRIBE_CONFIGS, _handle),)
