"""`/config/topics/T`, `/config/brokers/N` and the notifications below `/config/changes`.

Brokers look at a configuration only when a notification names its owner, so whoever writes the one writes the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from kreassign.model.config import ConfigResource
from kreassign.model.znodes import paths, text

_CONFIG_VERSION = 1
_CHANGE_VERSION = 2


def parse_config(resource: ConfigResource, content: bytes) -> dict[str, str]:
    """The values of a topic or broker by key; raises `DamagedZnode`."""
    path = paths.config_path(resource)
    return text.strings(path, text.decode(path, content).get("config", {}))


def format_config(values: Mapping[str, str]) -> bytes:
    """Write a configuration; an empty one stays there, as Kafka leaves it."""
    return text.encode({"version": _CONFIG_VERSION, "config": dict(values)})


def parse_change(path: str, content: bytes) -> str:
    """Whose configuration changed, as `config_entity` names it; raises `DamagedZnode`."""
    return text.string(path, text.field(path, text.decode(path, content), "entity_path"))


def format_change(resource: ConfigResource) -> bytes:
    """Write the notification that a configuration changed."""
    return text.encode({"version": _CHANGE_VERSION, "entity_path": paths.config_entity(resource)})
