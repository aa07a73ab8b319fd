"""Describe, change and list configuration: DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources.

Validation of values, and the choice among sources of a value, are in `twin/controller/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kreassign.model import ConfigOperation, ConfigSource, ResourceType, error_codes
from kreassign.twin.access import Operation
from kreassign.twin.api.metadata import live_brokers
from kreassign.twin.api.request import Handler, Request
from kreassign.twin.controller.configs import AlterConfigs, KeyChange, ResourceChanges
from kreassign.twin.controller.decision import BROKER_LOGGER, CLIENT_METRICS, OTHER_KINDS, Outcome, with_default_text
from kreassign.twin.controller.described_configs import DescribedConfig, DescribedResource, describe_configs
from kreassign.wire import api
from kreassign.wire.api import Message

# Shared by AlterConfigs and IncrementalAlterConfigs: the command to the controller and its response.


def _altered(request: Request, *, replaces: bool) -> Message:
    """Send the changes that the client may make to the controller; the response has the outcome of each resource."""
    command = AlterConfigs(
        tuple(_wanted_changes(resource, replaces=replaces) for resource in request.message.resources),
        None if request.at_controller else request.node.id,
        replaces,
        request.message.validate_only,
    )
    denials = ((one.owner, _denial(request, Operation.ALTER_CONFIGS, *one.owner)) for one in command.resources)
    denied = {owner: denial for owner, denial in denials if denial is not None}
    response = request.called.response
    return response(
        responses=[
            response.AlterConfigsResourceResponse(
                error_code=one.outcome.code,
                error_message=one.outcome.message,
                resource_type=one.type,
                resource_name=one.name,
            )
            for one in request.cluster.controller.alter_configs(replace(command, denied=denied))
        ]
    )


def _wanted_changes(resource: Message, *, replaces: bool) -> ResourceChanges:
    steps = tuple(
        KeyChange(ConfigOperation.SET if replaces else step.config_operation, step.name, step.value)
        for step in resource.configs
    )
    return ResourceChanges(resource.resource_type, resource.resource_name, steps)


def _denial(request: Request, operation: Operation, kind: int, name: str) -> Outcome | None:
    is_topic = kind == ResourceType.TOPIC
    if request.allows(operation, name if is_topic else None):
        return None
    return with_default_text(
        error_codes.TOPIC_AUTHORIZATION_FAILED if is_topic else error_codes.CLUSTER_AUTHORIZATION_FAILED
    )


_DESCRIBE_CONFIGS_RESPONSE = api.DESCRIBE_CONFIGS.response
_DESCRIBED_RESOURCE = _DESCRIBE_CONFIGS_RESPONSE.DescribeConfigsResult
_DESCRIBED_CONFIG = _DESCRIBED_RESOURCE.DescribeConfigsResourceResult
_KINDS = {*map(int, ResourceType), *OTHER_KINDS}


def _describe_configs(request: Request) -> Message:
    """DescribeConfigs: configuration of topics and of the asked broker, with where each value comes from.

    Permission: DESCRIBE_CONFIGS on the topic, or on the cluster for brokers; without it TOPIC_ or
    CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - Topics and brokers show all of their keys, with what would hold otherwise, and with documentation, if the client
      asks for that.
    - A kind of resource that no release knows makes the whole request fail.
    - A broker describes only itself; another broker's id is INVALID_REQUEST. An empty name asks for the settings of
      all.
    - The throttle rates of a broker are not listed until they are set.
    - With eligible leader replicas the cluster has min.insync.replicas=1 for all brokers, which shows on every topic.

    Left out:
    - Keys that were added or removed between releases: they are those of 4.4.
    - Broker loggers, client metrics and groups are POLICY_VIOLATION.
    - Server settings in another unit than the topic's (log.retention.hours) are not converted.
    """
    if any(resource.resource_type not in _KINDS for resource in request.message.resources):
        unexpected = with_default_text(error_codes.INVALID_REQUEST)
        everything = ((resource.resource_type, resource.resource_name) for resource in request.message.resources)
        return _DESCRIBE_CONFIGS_RESPONSE(
            results=[_described_resource(request, DescribedResource(*one, unexpected)) for one in everything]
        )
    refusals = [
        (one, _denial(request, Operation.DESCRIBE_CONFIGS, one.resource_type, one.resource_name))
        for one in request.message.resources
    ]
    allowed = [_describe(request, resource) for resource, refusal in refusals if refusal is None]
    refused = [
        DescribedResource(resource.resource_type, resource.resource_name, refusal)
        for resource, refusal in refusals
        if refusal is not None
    ]
    return _DESCRIBE_CONFIGS_RESPONSE(
        results=[_described_resource(request, resource) for resource in (*allowed, *refused)]
    )


def _describe(request: Request, resource: Message) -> DescribedResource:
    # An empty list of keys means all of them, as no list does.
    keys = resource.configuration_keys or None
    return describe_configs(request.context, request.node.id, (resource.resource_type, resource.resource_name), keys)


def _described_resource(request: Request, resource: DescribedResource) -> Message:
    return _DESCRIBED_RESOURCE(
        error_code=resource.outcome.code,
        error_message=resource.outcome.message,
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[_described_config(request, config) for config in resource.configs],
    )


def _described_config(request: Request, config: DescribedConfig) -> Message:
    synonyms = config.synonyms if request.message.include_synonyms else ()
    return _DESCRIBED_CONFIG(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_default=config.source is ConfigSource.DEFAULT,
        is_sensitive=config.is_sensitive,
        synonyms=[
            _DESCRIBED_CONFIG.DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in synonyms
        ],
        config_type=config.type,
        documentation=config.documentation if request.message.include_documentation else None,
    )


def _incremental_alter_configs(request: Request) -> Message:
    """IncrementalAlterConfigs: changes single keys of topics and brokers (KIP-339).

    Permission: ALTER_CONFIGS on the topic, or on the cluster for brokers; without it TOPIC_ or
    CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - Each resource has its own outcome; one bad key leaves all keys of the resource as they are.
    - A broker takes changes of its own settings and of those of all brokers, the controller those of any broker, so
      that a broker that is down can be configured there.
    - The texts and codes of a refusal are those of the endpoint that was asked, as on a real cluster.
    - A controller opens cordoned directories of a broker, and closes none.
    - Throttles and cordoned directories take effect at once, a cordon that is deleted for a broker that is down when it
      is back; other keys are stored and shown.

    Left out:
    - Broker loggers, client metrics and groups are POLICY_VIOLATION.
    - Names of keys are those of 4.4 whatever the release.
    - Policies of the operator's own.
    """
    return _altered(request, replaces=False)


def _alter_configs(request: Request) -> Message:
    """AlterConfigs: replaces the whole dynamic configuration of topics and brokers (the older way).

    Permission: ALTER_CONFIGS on the topic, or on the cluster for brokers; without it TOPIC_ or
    CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - Keys that are not named are taken back.
    - Otherwise as IncrementalAlterConfigs with nothing but the operation to set.

    Left out:
    - What IncrementalAlterConfigs leaves out.
    - A request that names a resource twice is refused; a real broker never answers it.
    """
    return _altered(request, replaces=True)


_CONFIG_RESOURCES_RESPONSE = api.LIST_CONFIG_RESOURCES.response


def _list_config_resources(request: Request) -> Message:
    """ListConfigResources: what can be configured (KIP-1142); in version 0 client metrics alone.

    Permission: DESCRIBE_CONFIGS on the cluster; without it CLUSTER_AUTHORIZATION_FAILED.

    Behaviour:
    - Topics, brokers and brokers' loggers, of the kinds asked for or (none named) of all.
    - A kind that cannot be listed is UNSUPPORTED_VERSION.

    Left out:
    - Client metrics and groups: there are none.
    """
    if not request.allows(Operation.DESCRIBE_CONFIGS):
        return _CONFIG_RESOURCES_RESPONSE(error_code=error_codes.CLUSTER_AUTHORIZATION_FAILED, config_resources=[])
    asked = set(request.message.resource_types) if request.version > 0 else {CLIENT_METRICS}
    if asked - _KINDS:
        return _CONFIG_RESOURCES_RESPONSE(error_code=error_codes.UNSUPPORTED_VERSION, config_resources=[])
    found = ((kind, name) for kind, name in _all_resources(request) if kind in (asked or _KINDS))
    entry = _CONFIG_RESOURCES_RESPONSE.ConfigResource
    return _CONFIG_RESOURCES_RESPONSE(
        error_code=error_codes.NONE,
        config_resources=[entry(resource_type=kind, resource_name=name) for kind, name in found],
    )


def _all_resources(request: Request) -> Iterator[tuple[int, str]]:
    brokers = [str(broker.broker_id) for broker in live_brokers(request.metadata)]
    yield from ((kind, name) for kind in (BROKER_LOGGER, int(ResourceType.BROKER)) for name in brokers)
    yield from ((int(ResourceType.TOPIC), name) for name in request.metadata.topics)


HANDLERS = (
    Handler(api.DESCRIBE_CONFIGS, _describe_configs),
    Handler(api.INCREMENTAL_ALTER_CONFIGS, _incremental_alter_configs),
    Handler(api.ALTER_CONFIGS, _alter_configs),
    Handler(api.LIST_CONFIG_RESOURCES, _list_config_resources),
)
