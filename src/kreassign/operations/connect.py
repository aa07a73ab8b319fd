"""Clients of a cluster's brokers and controllers, from addresses and Kafka's client properties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kreassign.admin import AdminClient, client_settings
from kreassign.admin.properties import read_properties
from kreassign.admin.settings import ClientSettings
from kreassign.errors import InputError


def connect(bootstrap_servers: str, properties: Path | Mapping[str, str] | None = None) -> AdminClient:
    """A connected client, to be used in a `with` statement.

    `properties` are those of Kafka's clients (security, timeouts), or a file of them. Raises InputError for bad ones,
    Unreachable.
    """
    return AdminClient.connect(_settings(properties, bootstrap_servers=bootstrap_servers))


def connect_controllers(bootstrap_controllers: str, properties: Path | Mapping[str, str] | None = None) -> AdminClient:
    """A client of the controllers of a KRaft cluster. Nothing is sent yet. Raises InputError for bad properties."""
    return AdminClient.connect(_settings(properties, bootstrap_controllers=bootstrap_controllers))


def _settings(properties: Path | Mapping[str, str] | None, **addresses: str) -> ClientSettings:
    """What properties and addresses say. Raises InputError, which names the file that the properties are from."""
    if not isinstance(properties, Path):
        return client_settings(properties or {}, **addresses)
    found = read_properties(properties)
    try:
        return client_settings(found, **addresses)
    except InputError as error:
        raise error if str(properties) in str(error) else InputError(f"{properties}: {error}") from error
