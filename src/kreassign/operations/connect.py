"""Clients of a cluster's brokers and controllers, from addresses and Kafka's client properties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kreassign.admin import AdminClient, client_settings
from kreassign.admin.properties import read_properties


def connect(bootstrap_servers: str, properties: Path | Mapping[str, str] | None = None) -> AdminClient:
    """A connected client, to be used in a `with` statement.

    `properties` are those of Kafka's clients (security, timeouts), or a file of them. Raises InputError for bad ones,
    Unreachable.
    """
    return AdminClient.connect(client_settings(_read(properties), bootstrap_servers=bootstrap_servers))


def connect_controllers(bootstrap_controllers: str, properties: Path | Mapping[str, str] | None = None) -> AdminClient:
    """A client of the controllers of a KRaft cluster. Nothing is sent yet. Raises InputError for bad properties."""
    return AdminClient.connect(client_settings(_read(properties), bootstrap_controllers=bootstrap_controllers))


def _read(properties: Path | Mapping[str, str] | None) -> Mapping[str, str]:
    return read_properties(properties) if isinstance(properties, Path) else properties or {}
