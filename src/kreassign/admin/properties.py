"""Java-style client properties (`--command-config`) → `ClientSettings`.

The keys are those of Kafka's AdminClient. A key that no Kafka client knows is warned of once and otherwise ignored,
as Kafka does; a key that Kafka knows and we cannot honour is refused where ignoring it would weaken security.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kreassign.admin import pem
from kreassign.admin.settings import TLS_VERSIONS, Address, ClientSettings, Sasl, Secret, SecurityProtocol, Tls
from kreassign.errors import InputError
from kreassign.model.printable import shortened
from kreassign.model.strict_json import is_half
from kreassign.model.whole_number import parse_whole

log = logging.getLogger(__name__)

SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN_MODULES = ("PlainLoginModule", "ScramLoginModule")
_NAME = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*")
# JAAS as Java reads it: words are quoted by either quote, and a backslash takes its sign literally.
_WORD = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'=;]+)"""
_OPTION = rf"{_WORD}\s*=\s*{_WORD}"
_LOGIN = re.compile(rf"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>(?:\s+{_OPTION})*)\s*;?\s*", re.DOTALL)

_HONOURED = frozenset(
    {
        "bootstrap.servers",
        "bootstrap.controllers",
        "client.id",
        "default.api.timeout.ms",
        "request.timeout.ms",
        "retry.backoff.ms",
        "sasl.jaas.config",
        "sasl.mechanism",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# Tuning of the Java client that has no counterpart here and changes no answer.
_WITHOUT_EFFECT = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "ssl.protocol",
    }
)


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a `.properties` file (ISO-8859-1 with unicode escapes, as Java reads it)."""
    import javaproperties  # noqa: PLC0415 - slow to load, and most commands have no such file

    try:
        with Path(path).open(encoding="iso-8859-1") as file:
            found = dict(javaproperties.load(file))
    except OSError as error:
        raise InputError(f"cannot read the properties file {path}: {error.strerror}") from error
    except javaproperties.InvalidUEscapeError:
        # The broken escape may be part of a password: name the fault, not the text.
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
    `client.id` wins over `client_id`. Raises InputError, which names the property, for what is wrong or not supported.
    """
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
        sasl=_sasl(properties) if protocol.uses_sasl else None,
        tls=_tls(properties) if protocol.uses_tls else Tls(),
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
    unknown = sorted(properties.keys() - _HONOURED - _WITHOUT_EFFECT)
    for key in [key for key in unknown if key.startswith(("sasl.", "ssl."))]:
        raise InputError(
            f"the property {key} is not supported and ignoring it could weaken security; remove it. "
            f"Supported: SASL {', '.join(SASL_MECHANISMS)} and TLS with PEM stores"
        )
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


# --- SASL -------------------------------------------------------------------------------------------------------


def _sasl(properties: Mapping[str, str]) -> Sasl:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in SASL_MECHANISMS:
        raise InputError(f"sasl.mechanism={mechanism} is not supported; use one of {', '.join(SASL_MECHANISMS)}")
    options = _jaas_options(properties.get("sasl.jaas.config", ""))
    if "username" not in options or "password" not in options:
        # The text may hold a password: show how it should look, not how it does.
        raise InputError(
            "sasl.jaas.config must be one login module with username and password, for example "
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="...";'
        )
    return Sasl(mechanism, options["username"], Secret(options["password"]))


def _jaas_options(text: str) -> dict[str, str]:
    """Options of the one login module in a JAAS configuration: `module control-flag key="value" ...;`."""
    login = _LOGIN.fullmatch(text)
    if login is None:
        return {}
    if login["module"].rpartition(".")[2] not in _LOGIN_MODULES:
        raise InputError(f"the login module {login['module']} of sasl.jaas.config is not supported; use PLAIN or SCRAM")
    pairs = re.findall(rf"({_WORD})\s*=\s*({_WORD})", login["options"], re.DOTALL)
    return {_unquoted(key): _unquoted(value) for key, value in pairs}


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word[0] in "\"'" else word


# --- TLS --------------------------------------------------------------------------------------------------------


def _tls(properties: Mapping[str, str]) -> Tls:
    chain, key = _key_store(properties)
    password = properties.get("ssl.key.password")
    return Tls(
        trusted_certificates=_trust_store(properties),
        certificate_chain=chain,
        private_key=key,
        key_password=Secret(password) if password is not None else None,
        verifies_host_name=properties.get("ssl.endpoint.identification.algorithm", "https").strip() != "",
        versions=_tls_versions(properties.get("ssl.enabled.protocols", ",".join(TLS_VERSIONS))),
    )


def _tls_versions(text: str) -> tuple[str, ...]:
    enabled = {name.strip() for name in text.split(",")}
    versions = tuple(version for version in TLS_VERSIONS if version in enabled)
    if not versions:
        raise InputError(f"ssl.enabled.protocols={text} names none of {', '.join(TLS_VERSIONS)}")
    return versions


def _trust_store(properties: Mapping[str, str]) -> str | None:
    inline = properties.get("ssl.truststore.certificates")
    if inline is not None:
        return _holding("certificate", "ssl.truststore.certificates", pem.certificates(inline))
    text = _pem_file(properties, "truststore")
    return None if text is None else _holding("certificate", "the trust store", pem.certificates(text))


def _key_store(properties: Mapping[str, str]) -> tuple[str | None, Secret | None]:
    chain, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if (chain is None) != (key is None):
        raise InputError("ssl.keystore.certificate.chain and ssl.keystore.key go together; one of them is missing")
    if chain is None or key is None:
        chain = key = _pem_file(properties, "keystore")
    if chain is None or key is None:
        return None, None
    # Split, so that the key is kept as a secret and the certificates alone are shown.
    return (
        _holding("certificate", "the key store", pem.certificates(chain)),
        Secret(_holding("private key", "the key store", pem.private_keys(key))),
    )


def _holding(what: str, where: str, blocks: str) -> str:
    if not blocks:
        raise InputError(f"{where} holds no {what} in PEM form")
    return blocks


def _pem_file(properties: Mapping[str, str], store: str) -> str | None:
    location = properties.get(f"ssl.{store}.location")
    if location is None:
        return None
    kind = properties.get(f"ssl.{store}.type", "JKS").upper()
    if kind != "PEM":
        raise InputError(_how_to_convert(store, location, kind))
    try:
        # What stands around the blocks may be in any encoding.
        return Path(location).read_text(encoding="iso-8859-1")
    except OSError as error:
        raise InputError(f"cannot read ssl.{store}.location {location}: {error.strerror}") from None


def _how_to_convert(store: str, location: str, kind: str) -> str:
    to_pem = f"openssl pkcs12 -in {store}.p12 -out {store}.pem" + (" -nodes" if store == "keystore" else " -nokeys")
    to_pkcs12 = f"keytool -importkeystore -srckeystore {location} -destkeystore {store}.p12 -deststoretype PKCS12"
    steps = to_pem.replace(f"{store}.p12", location) if kind == "PKCS12" else f"{to_pkcs12} && {to_pem}"
    return (
        f"ssl.{store}.location {location} is of type {kind}, which only Java reads. Convert it: {steps}, then set "
        f"ssl.{store}.location={store}.pem and ssl.{store}.type=PEM"
    )
