"""Describe configuration: the effective values of a topic or a broker and their sources (DescribeConfigs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile

from kreassign.model import ConfigResource
from kreassign.model.cluster import ConfigSource, ResourceType
from kreassign.model.error_codes import INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION
from kreassign.twin.controller import config_keys
from kreassign.twin.controller.decision import (
    DEFAULT_BROKER,
    OF_OTHER_KIND,
    OTHER_KINDS,
    ControllerContext,
    Outcome,
    with_default_text,
)
from kreassign.twin.controller.topics import check_topic_name
from kreassign.twin.metadata import CORDONED_LOG_DIRS

_SECRETS = ("password", "keystore.key", "keystore.certificate.chain", "truststore.certificates", "jaas.config")
_FAMILIES = (".ssl.", ".sasl.")
# This answer has an empty text where others have none.
_FOUND = Outcome(message="")
_UNKNOWN_TOPIC = Outcome(UNKNOWN_TOPIC_OR_PARTITION, "")


@dataclass(frozen=True, slots=True)
class Synonym:
    """An effective value, or the next one if those before it are deleted."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One key of a resource: its effective value, and all values that are set for it, most specific first."""

    name: str
    value: str | None
    source: ConfigSource
    type: config_keys.ValueType
    synonyms: tuple[Synonym, ...] = ()
    is_sensitive: bool = False
    is_read_only: bool = False
    documentation: str = ""


@dataclass(frozen=True, slots=True)
class DescribedResource:
    """The answer about one resource; `type` is Kafka's number."""

    type: int
    name: str
    outcome: Outcome
    configs: tuple[DescribedConfig, ...] = ()


def describe_configs(
    context: ControllerContext, node_id: int, resource: tuple[int, str], keys: Iterable[str] | None = None
) -> DescribedResource:
    """Effective configuration of a resource from node `node_id`: all keys (None), or those of `keys` that it has."""
    resource_type, name = resource
    wanted = None if keys is None else frozenset(keys)
    if resource_type == ResourceType.TOPIC:
        outcome, configs = _describe_topic(context, node_id, name)
    elif resource_type == ResourceType.BROKER:
        outcome, configs = _describe_broker(context, node_id, name, wanted)
    elif resource_type in OTHER_KINDS:
        return DescribedResource(resource_type, name, OF_OTHER_KIND)
    else:
        # Kafka fails the whole request; the caller must do so, too.
        return DescribedResource(resource_type, name, with_default_text(INVALID_REQUEST))
    chosen = tuple(config for config in configs if wanted is None or config.name in wanted)
    return DescribedResource(resource_type, name, outcome, chosen)


def topic_configs(context: ControllerContext, node_id: int, own: Mapping[str, str]) -> tuple[DescribedConfig, ...]:
    """All keys of a topic with these settings of its own."""
    return tuple(_topic_config(context, node_id, key, own.get(key.name)) for key in config_keys.TOPIC_KEYS.values())


def _describe_topic(context: ControllerContext, node_id: int, name: str) -> tuple[Outcome, tuple[DescribedConfig, ...]]:
    refusal = check_topic_name(name)
    if refusal.is_failure:
        return refusal, ()
    if name not in context.metadata.topics:
        return _UNKNOWN_TOPIC, ()
    return _FOUND, topic_configs(context, node_id, context.metadata.configs.get(ConfigResource.topic(name), {}))


def _topic_config(context: ControllerContext, node_id: int, key: config_keys.Key, own: str | None) -> DescribedConfig:
    synonyms = list(_broker_synonyms(context, node_id, key.server_keys, key)) if key.server_keys else []
    if own is not None:
        synonyms.insert(0, Synonym(key.name, config_keys.shown_value(key, own), ConfigSource.DYNAMIC_TOPIC))
    first = synonyms[0] if synonyms else Synonym(key.name, key.default, ConfigSource.DEFAULT)
    data = config_keys.documented_keys("topics").get(key.name)
    documentation = "" if data is None else data.documentation
    return DescribedConfig(key.name, first.value, first.source, key.type, tuple(synonyms), documentation=documentation)


def _broker_synonyms(
    context: ControllerContext, node_id: int, names: tuple[str, ...], key: config_keys.Key
) -> Iterator[Synonym]:
    """The values of a broker's key under all of its names, starting at the first value of the most precise name."""
    found = [value for name in names for value in _server_values(context, node_id, name)]
    default = key.fallback or ((names[0], key.default) if key.default is not None else None)
    if default is not None:
        found.append(Synonym(default[0], default[1], ConfigSource.DEFAULT))
    return dropwhile(lambda synonym: synonym.name != names[0], found)


def _server_values(context: ControllerContext, node_id: int, name: str) -> Iterator[Synonym]:
    places = (
        (context.metadata.config(ConfigResource.broker(node_id), name), ConfigSource.DYNAMIC_BROKER),
        (context.metadata.config(DEFAULT_BROKER, name), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (context.server.static.get(name), ConfigSource.STATIC_BROKER),
    )
    for value, source in places:
        if value is not None:
            yield Synonym(name, value, source)


def _describe_broker(
    context: ControllerContext, node_id: int, name: str, wanted: frozenset[str] | None
) -> tuple[Outcome, tuple[DescribedConfig, ...]]:
    if not name:
        common = sorted(context.metadata.configs.get(DEFAULT_BROKER, {}).items())
        synonyms = (Synonym(key, value, ConfigSource.DYNAMIC_DEFAULT_BROKER) for key, value in common)
        return _FOUND, tuple(_shown(_broker_key(one.name), (one,)) for one in synonyms)
    if not name.removeprefix("-").isdigit():
        return Outcome(INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"), ()
    if int(name) != node_id:
        text = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
        return Outcome(INVALID_REQUEST, text), ()
    own = context.metadata.configs.get(ConfigResource.broker(node_id), {})
    of_all = context.metadata.configs.get(DEFAULT_BROKER, {})
    static = {config.name: config for config in _static_configs(context, node_id)}
    # Clients mostly want two or three of some hundred keys.
    always = (key for key in wanted or config_keys.documented_keys("brokers") if _is_always_told(context, key))
    names = sorted({*always, *own, *of_all, *static})
    return _FOUND, tuple(static.get(name) or _broker_config(context, node_id, name) for name in names)


def _is_always_told(context: ControllerContext, name: str) -> bool:
    """True if brokers list a key that is not set: they list neither quotas nor keys of later releases."""
    if name not in config_keys.documented_keys("brokers") or (
        name in config_keys.BROKER_KEYS and config_keys.BROKER_KEYS[name].is_quota
    ):
        return False
    return name != CORDONED_LOG_DIRS or context.rules.has_cordoning


def broker_setting(context: ControllerContext, node_id: int, name: str) -> str | None:
    """The effective value of a key at a broker; None if it has none."""
    return _broker_config(context, node_id, name).value


def _broker_config(context: ControllerContext, node_id: int, name: str) -> DescribedConfig:
    key = _broker_key(name)
    return _shown(key, tuple(_broker_synonyms(context, node_id, (name,), key)))


def _broker_key(name: str) -> config_keys.Key:
    if name in config_keys.BROKER_KEYS:
        return config_keys.BROKER_KEYS[name]
    data = config_keys.documented_keys("brokers").get(name)
    if data is not None:
        return config_keys.Key(name, data.type, data.default)
    if name.endswith(_SECRETS):
        return config_keys.Key(name, config_keys.ValueType.PASSWORD)
    is_known = any(family in f".{name}" for family in _FAMILIES)
    return config_keys.Key(name, config_keys.ValueType.STRING if is_known else config_keys.ValueType.UNKNOWN)


def _shown(key: config_keys.Key, synonyms: tuple[Synonym, ...]) -> DescribedConfig:
    """A broker key with its effective value; a key of unknown type may be secret, too."""
    is_sensitive = key.type in (config_keys.ValueType.PASSWORD, config_keys.ValueType.UNKNOWN)
    if is_sensitive:
        synonyms = tuple(Synonym(one.name, None, one.source) for one in synonyms)
    first = synonyms[0] if synonyms else Synonym(key.name, None, ConfigSource.DEFAULT)
    data = config_keys.documented_keys("brokers").get(key.name)
    is_changeable = key.name in config_keys.BROKER_KEYS or key.name.startswith(config_keys.PER_BROKER_FAMILIES)
    return DescribedConfig(
        key.name,
        first.value,
        first.source,
        key.type,
        synonyms,
        is_sensitive=is_sensitive,
        is_read_only=not is_changeable if data is None else data.is_read_only,
        documentation="" if data is None else data.documentation,
    )


def _static_configs(context: ControllerContext, node_id: int) -> Iterator[DescribedConfig]:
    """The settings in a broker's own file; a node that is no registered broker (the controller) has only its id."""
    yield _static("node.id", str(node_id), config_keys.ValueType.INT)
    broker = context.metadata.brokers.get(node_id)
    if broker is None:
        return
    yield _static(
        "broker.id", str(node_id), config_keys.ValueType.INT, Synonym("broker.id", "-1", ConfigSource.DEFAULT)
    )
    yield _static("process.roles", "broker", config_keys.ValueType.LIST)
    listeners = f"PLAINTEXT://{broker.host}:{broker.port}"
    default = Synonym("listeners", config_keys.documented_keys("brokers")["listeners"].default, ConfigSource.DEFAULT)
    yield replace(_static("listeners", listeners, config_keys.ValueType.LIST, default), is_read_only=False)
    yield _static("advertised.listeners", listeners, config_keys.ValueType.LIST)
    yield _static("log.dirs", ",".join(log_dir.path for log_dir in broker.log_dirs), config_keys.ValueType.LIST)
    if broker.rack is not None:
        yield _static("broker.rack", broker.rack, config_keys.ValueType.STRING)


def _static(name: str, value: str, value_type: config_keys.ValueType, *others: Synonym) -> DescribedConfig:
    first = Synonym(name, value, ConfigSource.STATIC_BROKER)
    return DescribedConfig(
        name, value, first.source, value_type, (first, *others), is_read_only=True,
        documentation=config_keys.documented_keys("brokers")[name].documentation,
    )  # fmt: skip
