"""Telling configuration: what holds for a topic or a broker, and where it comes from (DescribeConfigs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.model import ConfigResource
from kreassign.model.config import ConfigSource, ResourceType
from kreassign.twin.controller.config_keys import BROKER_KEYS, TOPIC_KEYS, Key, ValueType
from kreassign.twin.controller.config_values import shown_value
from kreassign.twin.controller.decision import Outcome
from kreassign.twin.controller.situation import DEFAULT_BROKER, Situation
from kreassign.twin.controller.topic_names import check_topic_name
from kreassign.wire.error_code import INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION

_SECRETS = ("password", "keystore.key", "keystore.certificate.chain", "truststore.certificates", "jaas.config")
# This answer has an empty text where others have none.
_FOUND = Outcome(message="")
_UNKNOWN_TOPIC = Outcome(UNKNOWN_TOPIC_OR_PARTITION, "")


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that holds, or would hold if those before it were taken back."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One key of a resource: the value that holds, and every place that has one, most particular first."""

    name: str
    value: str | None
    source: ConfigSource
    type: ValueType
    synonyms: tuple[Synonym, ...] = ()
    is_sensitive: bool = False
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class DescribedResource:
    """The answer about one resource; `type` is Kafka's number."""

    type: int
    name: str
    outcome: Outcome
    configs: tuple[DescribedConfig, ...] = ()


def describe_configs(
    situation: Situation, node_id: int, resource: tuple[int, str], keys: Iterable[str] | None = None
) -> DescribedResource:
    """What holds for a resource as the node `node_id` tells it: all keys (None), or those of `keys` that it has."""
    resource_type, name = resource
    if resource_type == ResourceType.TOPIC:
        outcome, configs = _describe_topic(situation, node_id, name)
    elif resource_type == ResourceType.BROKER:
        outcome, configs = _describe_broker(situation, node_id, name)
    else:
        return DescribedResource(
            resource_type, name, Outcome(INVALID_REQUEST, f"Unsupported resource type: {resource_type}")
        )
    wanted = None if keys is None else frozenset(keys)
    chosen = tuple(config for config in configs if wanted is None or config.name in wanted)
    return DescribedResource(resource_type, name, outcome, chosen)


def topic_configs(situation: Situation, node_id: int, own: Mapping[str, str]) -> tuple[DescribedConfig, ...]:
    """All keys of a topic that has these settings of its own."""
    return tuple(_topic_config(situation, node_id, key, own.get(key.name)) for key in TOPIC_KEYS.values())


def _describe_topic(situation: Situation, node_id: int, name: str) -> tuple[Outcome, tuple[DescribedConfig, ...]]:
    refusal = check_topic_name(name)
    if refusal.is_failure:
        return refusal, ()
    if name not in situation.metadata.topics:
        return _UNKNOWN_TOPIC, ()
    return _FOUND, topic_configs(situation, node_id, situation.metadata.configs.get(ConfigResource.topic(name), {}))


def _topic_config(situation: Situation, node_id: int, key: Key, own: str | None) -> DescribedConfig:
    synonyms = [Synonym(key.name, shown_value(key, own), ConfigSource.DYNAMIC_TOPIC)] if own is not None else []
    for server_key in key.server_keys:
        synonyms += _server_values(situation, node_id, server_key)
    if key.server_keys and key.default is not None:
        synonyms.append(Synonym(key.server_keys[0], key.default, ConfigSource.DEFAULT))
    first = synonyms[0] if synonyms else Synonym(key.name, key.default, ConfigSource.DEFAULT)
    return DescribedConfig(key.name, first.value, first.source, key.type, tuple(synonyms))


def _server_values(situation: Situation, node_id: int, name: str) -> Iterator[Synonym]:
    places = (
        (situation.metadata.config(ConfigResource.broker(node_id), name), ConfigSource.DYNAMIC_BROKER),
        (situation.metadata.config(DEFAULT_BROKER, name), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (situation.server.static.get(name), ConfigSource.STATIC_BROKER),
    )
    for value, source in places:
        if value is not None:
            yield Synonym(name, value, source)


def _describe_broker(situation: Situation, node_id: int, name: str) -> tuple[Outcome, tuple[DescribedConfig, ...]]:
    if not name:
        common = situation.metadata.configs.get(DEFAULT_BROKER, {})
        return _FOUND, tuple(_common_config(key, value) for key, value in sorted(common.items()))
    if name != str(node_id):
        text = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
        return Outcome(INVALID_REQUEST, text), ()
    own = situation.metadata.configs.get(ConfigResource.broker(node_id), {})
    common = situation.metadata.configs.get(DEFAULT_BROKER, {})
    always = (key.name for key in BROKER_KEYS.values() if not key.is_quota)
    changeable = sorted({*always, *own, *common})
    static = _static_configs(situation, node_id)
    return _FOUND, (*(_broker_config(situation, node_id, key) for key in changeable), *static)


def _broker_config(situation: Situation, node_id: int, name: str) -> DescribedConfig:
    key = BROKER_KEYS.get(name, Key(name, ValueType.STRING))
    synonyms = list(_server_values(situation, node_id, name))
    if key.default is not None:
        synonyms.append(Synonym(name, key.default, ConfigSource.DEFAULT))
    if _is_secret(name):
        synonyms = [Synonym(one.name, None, one.source) for one in synonyms]
    first = synonyms[0] if synonyms else Synonym(name, None, ConfigSource.DEFAULT)
    return DescribedConfig(name, first.value, first.source, key.type, tuple(synonyms), is_sensitive=_is_secret(name))


def _common_config(name: str, value: str) -> DescribedConfig:
    key = BROKER_KEYS.get(name, Key(name, ValueType.STRING))
    shown = None if _is_secret(name) else value
    synonym = Synonym(name, shown, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    return DescribedConfig(name, shown, synonym.source, key.type, (synonym,), is_sensitive=_is_secret(name))


def _static_configs(situation: Situation, node_id: int) -> Iterator[DescribedConfig]:
    """What a broker's own file says; a broker that is not registered (the controller) has only its id."""
    broker = situation.metadata.brokers.get(node_id)
    values = {"node.id": str(node_id)}
    if broker is not None:
        values |= {"broker.id": str(node_id), "log.dirs": ",".join(log_dir.path for log_dir in broker.log_dirs)}
        values |= {"broker.rack": broker.rack} if broker.rack is not None else {}
    for name, value in sorted(values.items()):
        synonym = Synonym(name, value, ConfigSource.STATIC_BROKER)
        yield DescribedConfig(name, value, synonym.source, ValueType.STRING, (synonym,), is_read_only=True)


def _is_secret(name: str) -> bool:
    return name.endswith(_SECRETS)
