"""Java-style client properties (`--command-config`) → `ClientSettings`.

The keys are those of Kafka's AdminClient (`client_keys` has a table of them). One that no Kafka client knows is warned
of once and otherwise ignored, as Kafka does; one that Kafka knows and we cannot honour is refused where ignoring it
would weaken security.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kreassign.admin import config_providers
from kreassign.admin.client_keys import CLIENT_KEYS, Use
from kreassign.admin.property_text import MalformedPropertiesError, parsed
from kreassign.admin.sasl_properties import credentials
from kreassign.admin.settings import Address, ClientSettings, SecurityProtocol, Tls
from kreassign.admin.tls_properties import tls
from kreassign.errors import InputError
from kreassign.model.printable import shortened
from kreassign.model.strict_json import is_half
from kreassign.model.whole_number import parse_whole

log = logging.getLogger(__name__)

_KEYS = {key.name: key for key in CLIENT_KEYS}
_HEARD = frozenset(key.name for key in CLIENT_KEYS if key.use is Use.HEARD)
_NAME = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*")


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a `.properties` file (ISO-8859-1 with unicode escapes, as Java reads it)."""
    try:
        found = parsed(Path(path).read_text(encoding="iso-8859-1"))
    except OSError as error:
        raise InputError(f"cannot read the properties file {path}: {error.strerror}") from error
    except MalformedPropertiesError:
        raise InputError(f"{path} is not a properties file: it holds a malformed \\u escape") from None
    for key, value in found.items():
        # Its name is shown, its value is not: it may be a password.
        if any(is_half(text) or "\0" in text for text in (key, value)):
            name = key if _NAME.fullmatch(key) else "a property"
            raise InputError(f"{path}: {name} has an escape that is no character: half of a surrogate pair, or \\u0000")
    return found


def client_settings(
    properties: Mapping[str, str] = MappingProxyType({}),
    *,
    bootstrap_servers: str | None = None,
    bootstrap_controllers: str | None = None,
    client_id: str = "kreassign",
) -> ClientSettings:
    """Settings from client properties, as `read_properties` reads them from a file, or from addresses alone.

    An address that is passed wins over `bootstrap.servers` and `bootstrap.controllers` of the properties; their
    `client.id` wins over `client_id`. References to values that are kept elsewhere are replaced. Raises InputError,
    which names the property, for what is wrong or not supported.
    """
    resolved = config_providers.resolved(properties, keys=_HEARD)
    try:
        return _settings(resolved.properties, bootstrap_servers, bootstrap_controllers, client_id)
    except InputError as error:
        # It shows the value that is wrong, which may be one that was kept elsewhere for a reason.
        raise InputError(resolved.without_secrets(str(error))) from None


def _settings(
    properties: Mapping[str, str], bootstrap_servers: str | None, bootstrap_controllers: str | None, client_id: str
) -> ClientSettings:
    _warn_of_unknown(properties)
    if bootstrap_servers is None and bootstrap_controllers is None:
        bootstrap_servers = properties.get("bootstrap.servers")
        bootstrap_controllers = properties.get("bootstrap.controllers")
        for key in ("bootstrap.servers", "bootstrap.controllers"):
            _check_addresses(key, properties.get(key))
    protocol = _security_protocol(properties)
    return ClientSettings(
        bootstrap_servers=Address.parse_list(bootstrap_servers) if bootstrap_servers is not None else (),
        bootstrap_controllers=Address.parse_list(bootstrap_controllers) if bootstrap_controllers is not None else (),
        client_id=properties.get("client.id") or client_id,
        security_protocol=protocol,
        sasl=credentials(properties) if protocol.uses_sasl else None,
        tls=tls(properties) if protocol.uses_tls else Tls(),
        request_timeout_ms=_milliseconds(properties, "request.timeout.ms", 30_000),
        api_timeout_ms=_milliseconds(properties, "default.api.timeout.ms", 60_000),
        connect_timeout_ms=_milliseconds(properties, "socket.connection.setup.timeout.ms", 10_000),
        retry_backoff_ms=_milliseconds(properties, "retry.backoff.ms", 100),
    )


def _check_addresses(key: str, text: str | None) -> None:
    try:
        Address.parse_list(text or "-")
    except InputError as error:
        raise InputError(f"{key}: {error}") from error


def _warn_of_unknown(properties: Mapping[str, str]) -> None:
    for key in sorted(properties):
        known = _KEYS.get(key)
        is_refused = key.startswith(("sasl.", "ssl.")) if known is None else known.use is Use.REFUSED
        if is_refused and not (known and known.default and properties[key].strip() == known.default):
            why = f" ({known.text})" if known else ""
            raise InputError(
                f"the property {key} is not supported and ignoring it could weaken security{why}; remove it. What is "
                "supported: the page of client properties"
            )
    unknown = sorted(key for key in properties if key not in _KEYS and not key.startswith(f"{config_providers.KEYS}."))
    if unknown:
        log.warning("ignored unknown client properties: %s", ", ".join(_shown(unknown, properties)))


def _shown(unknown: list[str], properties: Mapping[str, str]) -> list[str]:
    """Names fit to be shown: the lines of a key or a password that was broken up without escapes look like keys too."""
    names = [key for key in unknown if _NAME.fullmatch(key) and (properties[key] or "." in key)]
    others = len(unknown) - len(names)
    return [*names, f"{others} whose names are not those of properties"] if others else names


def _security_protocol(properties: Mapping[str, str]) -> SecurityProtocol:
    name = properties.get("security.protocol", "PLAINTEXT")
    try:
        return SecurityProtocol(name.upper())
    except ValueError:
        known = ", ".join(protocol.value for protocol in SecurityProtocol)
        raise InputError(f"security.protocol={name} is not one of {known}") from None


def _milliseconds(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default)).strip()
    try:
        return parse_whole(text)
    except ValueError as error:
        raise InputError(f"{key}={shortened(text)} is not a number of milliseconds: {error}") from None
