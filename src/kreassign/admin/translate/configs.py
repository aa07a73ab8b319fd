"""DescribeConfigs and IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kreassign.admin.call import Call
from kreassign.admin.translate.outcomes import outcomes, readings
from kreassign.errors import ProtocolViolation
from kreassign.model import Batch, ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from kreassign.wire import api
from kreassign.wire.api import Message

Entries = Mapping[str, ConfigEntry]


def describe_configs(
    resources: Iterable[ConfigResource], names: Iterable[str] | None
) -> Call[Batch[ConfigResource, Entries]]:
    """The configuration of each resource, all keys or only those of these names that it has."""
    keys = None if names is None else list(names)
    wanted = list(resources)

    def build(_version: int, _timeout_ms: int) -> Message:
        entry = api.DESCRIBE_CONFIGS.request.DescribeConfigsResource
        return api.DESCRIBE_CONFIGS.request(
            resources=[
                entry(resource_type=int(resource.type), resource_name=resource.name, configuration_keys=keys)
                for resource in wanted
            ]
        )

    def read(response: Message) -> Batch[ConfigResource, Entries]:
        answered = ((_resource_of(result), result) for result in response.results)
        return readings(api.DESCRIBE_CONFIGS, answered, _entries, wanted)

    return Call(api.DESCRIBE_CONFIGS, build, read)


def _resource_of(entry: Message) -> ConfigResource:
    if entry.resource_type not in ResourceType.__members__.values():
        raise ProtocolViolation(f"the answer is about resource type {entry.resource_type}, which nobody asked about")
    return ConfigResource(ResourceType(entry.resource_type), entry.resource_name)


def _entries(_resource: ConfigResource, result: Message) -> Entries:
    return {entry.name: _entry(entry) for entry in result.configs}


def _entry(entry: Message) -> ConfigEntry:
    known = entry.config_source in ConfigSource.__members__.values()
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=ConfigSource(entry.config_source) if known else ConfigSource.UNKNOWN,
        is_sensitive=bool(entry.is_sensitive),
        is_read_only=bool(entry.read_only),
    )


def incremental_alter_configs(
    changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool
) -> Call[Batch[ConfigResource, None]]:
    """Change configurations, an outcome per resource."""

    def build(_version: int, _timeout_ms: int) -> Message:
        entries = [_resource(resource, steps) for resource, steps in changes.items()]
        return api.INCREMENTAL_ALTER_CONFIGS.request(resources=entries, validate_only=validate_only)

    def read(response: Message) -> Batch[ConfigResource, None]:
        answered = ((_resource_of(entry), entry.error_code, entry.error_message) for entry in response.responses)
        return outcomes(api.INCREMENTAL_ALTER_CONFIGS, answered, changes)

    return Call(
        api.INCREMENTAL_ALTER_CONFIGS,
        build,
        read,
        is_write=True,
        routing_codes=lambda response: [entry.error_code for entry in response.responses],
    )


def _resource(resource: ConfigResource, steps: Sequence[ConfigChange]) -> Message:
    entry = api.INCREMENTAL_ALTER_CONFIGS.request.AlterConfigsResource
    return entry(
        resource_type=int(resource.type),
        resource_name=resource.name,
        configs=[
            entry.AlterableConfig(name=step.name, config_operation=int(step.operation), value=step.value)
            for step in steps
        ],
    )
