"""Java-style client properties (`--command-config`) → `ClientSettings`.

The keys are those of Kafka's AdminClient (`CLIENT_KEYS` has all). A key that no Kafka client knows gets one warning
and is ignored, as in Kafka; a key that Kafka knows and we cannot honour is refused where ignoring it would weaken
security.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kreassign.admin.sasl_properties import credentials, whole_number
from kreassign.admin.settings import Address, ClientSettings, SecurityProtocol, Tls
from kreassign.admin.tls import tls_settings
from kreassign.errors import InputError
from kreassign.model.documents import is_half, other_kind
from kreassign.model.text import did_you_mean, likely, name_pattern, packaged_text, shortened

# Parse the text of a Java property file. The only module that imports javaproperties.


class MalformedPropertiesError(ValueError):
    """The text has a malformed escape; it is not shown, as it may be part of a password."""


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values, the last value of each key, as Java reads them. Raises MalformedPropertiesError."""
    import javaproperties

    try:
        return dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError:
        raise MalformedPropertiesError("a malformed \\u escape") from None


# References to values kept elsewhere (KIP-297): `${file:/path:key}` and its like.
#
# Providers are declared as for Kafka, and Kafka's own are supported: environment variables, property files and
# directories of one file per value. Kafka keeps a reference as text if the value is missing or its provider is not
# declared, and would log in with that as the password; here an error says what is missing. Values are not searched
# for references again, as in Kafka. The values are secrets: no message shows one.

# ConfigTransformer.DEFAULT_PATTERN
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDER_CLASSES = {
    "env": f"{_PACKAGE}EnvVarConfigProvider",
    "file": f"{_PACKAGE}FileConfigProvider",
    "dir": f"{_PACKAGE}DirectoryConfigProvider",
}
"""Kafka's own providers, by the names of its documentation."""
PROVIDERS_KEY = "config.providers"
_NO_SECRETS = re.compile(r"^bootstrap\.|\.location$|\.url$")
# Shorter values are part of most words, so hiding them would garble messages.
_SHORTEST_SECRET = 3
# Messages show the beginnings of long values: 40 characters, each of which may be escaped by ten.
_LONGEST_BEGINNING = 400
_HIDDEN = "[hidden]"

Provider = Callable[[str, str, str], str]
"""Returns a value by path and key; the text of the reference is for errors."""


class ResolvedProperties(NamedTuple):
    """Properties with references replaced, and the replaced values except addresses and paths."""

    properties: dict[str, str]
    secrets: frozenset[str]

    def without_secrets(self, text: str) -> str:
        """Return the text with the replaced values hidden, also where a message quotes one or shows its beginning."""
        whole = {form for secret in self.secrets for form in (secret, *_quoted(secret))}
        longest = _LONGEST_BEGINNING + 1
        cut = {f"{form[:end]}…" for form in whole for end in range(_SHORTEST_SECRET, min(len(form), longest))}
        for form in sorted(whole | cut, key=len, reverse=True):
            text = text.replace(form, f"{_HIDDEN}…" if form in cut else _HIDDEN)
        return text


def _quoted(text: str) -> tuple[str, str]:
    """The text as `repr` shows it within others, which decide whether its apostrophes are escaped."""
    escaped = repr(f'"{text}')[2:-1]
    return escaped, escaped.replace("\\'", "'")


def resolve_references(
    properties: Mapping[str, str], environment: Mapping[str, str] | None = None, keys: Container[str] | None = None
) -> ResolvedProperties:
    """Replace references in all properties, or in `keys`. Raises InputError, which names the property, if one fails.

    `environment` defaults to that of this process.
    """
    variables = os.environ if environment is None else environment
    names = [name.strip() for name in properties.get(PROVIDERS_KEY, "").split(",") if name.strip()]
    providers = {name: _provider(name, properties, variables) for name in names}
    found: set[str] = set()
    replaced = dict(properties)
    for key, value in properties.items():
        if not key.startswith(PROVIDERS_KEY) and (keys is None or key in keys):
            replaced[key] = _replaced(key, value, providers, set() if _NO_SECRETS.search(key) else found)
    return ResolvedProperties(replaced, frozenset(secret for secret in found if len(secret) >= _SHORTEST_SECRET))


def _replaced(key: str, value: str, providers: Mapping[str, Provider], found: set[str]) -> str:
    def replacement(reference: re.Match[str]) -> str:
        text = _referenced_value(key, reference, providers)
        found.add(text.strip(_BLANKS))  # as the value is shown; a file of one value often ends with a line end
        return text

    return _REFERENCE.sub(replacement, value)


def _referenced_value(key: str, reference: re.Match[str], providers: Mapping[str, Provider]) -> str:
    name, path, variable = reference[1], reference[2] or "", reference[3]
    provider = providers.get(name)
    if provider is None:
        raise InputError(f"{key} has a reference, but {_how_to_declare(name, providers)}")
    # Only now is it certain that this is a reference, and not a password that looks like one.
    return provider(path, variable, f"{key} refers to {shortened(reference[0])}")


def _how_to_declare(name: str, providers: Mapping[str, Provider]) -> str:
    if name in PROVIDER_CLASSES:
        declared = ",".join([*providers, name])
        return (
            f"{PROVIDERS_KEY} does not declare {name!r}: add {PROVIDERS_KEY}={declared} and "
            f"{PROVIDERS_KEY}.{name}.class={PROVIDER_CLASSES[name]}"
        )
    return (
        f"{PROVIDERS_KEY} does not declare its provider. Declare it with one of the classes "
        f"{', '.join(PROVIDER_CLASSES.values())}; "
        "a value that is meant as it stands can be kept in a file and referred to"
    )


def _provider(name: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> Provider:
    prefix = f"{PROVIDERS_KEY}.{name}"
    class_name = properties.get(f"{prefix}.class", "").strip()
    allowed = properties.get(f"{prefix}.param.allowed.paths", "")
    if class_name == PROVIDER_CLASSES["env"]:
        return _environment_provider(environment, properties.get(f"{prefix}.param.allowlist.pattern", ".*"), prefix)
    if class_name == PROVIDER_CLASSES["file"]:
        return _file_provider(_path_check(allowed, prefix))
    if class_name == PROVIDER_CLASSES["dir"]:
        return _directory_provider(_path_check(allowed, prefix))
    said = (
        f"{prefix}.class is {shortened(class_name)}, which is not supported"
        if class_name
        else f"{prefix}.class is missing"
    )
    raise InputError(f"{said}; use one of {', '.join(PROVIDER_CLASSES.values())}")


def _environment_provider(variables: Mapping[str, str], pattern: str, prefix: str) -> Provider:
    try:
        permitted = name_pattern(pattern)
    except InputError as error:
        raise InputError(f"{prefix}.param.allowlist.pattern: {error}") from error

    def find(path: str, variable: str, where: str) -> str:
        if path:
            raise InputError(f"{where}: a variable of the environment has no path; write ${{NAME:VARIABLE}}")
        if not permitted.fullmatch(variable):
            raise InputError(f"{where}, which {prefix}.param.allowlist.pattern does not allow")
        if variable not in variables:
            raise InputError(f"{where}, and the environment has no variable {shortened(variable)}: export it first")
        return variables[variable]

    return find


def _file_provider(is_allowed: Callable[[Path, str], None]) -> Provider:
    def find(path: str, key: str, where: str) -> str:
        try:
            values = parse_properties(_read(path, is_allowed, where))
        except (MalformedPropertiesError, UnicodeDecodeError):
            raise InputError(f"{where}, which is not a properties file in UTF-8") from None
        if key not in values:
            raise InputError(f"{where}, and that file has no key {shortened(key)}")
        return str(values[key])

    return find


def _directory_provider(is_allowed: Callable[[Path, str], None]) -> Provider:
    def find(path: str, key: str, where: str) -> str:
        if "/" in key:
            raise InputError(f"{where}: the last part is the name of a file in the directory, not a path")
        try:
            # Like Kafka, take the whole content: a line end belongs to the value.
            return _read(f"{path}/{key}" if path else "", is_allowed, where)
        except UnicodeDecodeError:
            raise InputError(f"{where}, which is not text in UTF-8") from None

    return find


def _read(path: str, is_allowed: Callable[[Path, str], None], where: str) -> str:
    if not path:
        raise InputError(f"{where} without a path; write ${{NAME:/PATH:KEY}}")
    is_allowed(Path(path), where)
    try:
        return Path(path).read_bytes().decode()
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        reason = error.strerror if isinstance(error, OSError) else "the path cannot be one"
        raise InputError(f"{where}, which cannot be read: {reason}") from None


def _path_check(paths: str, prefix: str) -> Callable[[Path, str], None]:
    """Return a check of paths against `allowed.paths` (empty allows all); `..` is resolved first, as Kafka does."""
    folders = [Path(os.path.normpath(path)) for path in paths.split(",") if path]

    def check(path: Path, where: str) -> None:
        normal = Path(os.path.normpath(path))
        if folders and not any(normal.is_relative_to(folder) for folder in folders):
            raise InputError(f"{where}, which {prefix}.param.allowed.paths does not allow")

    return check


# How each property of Kafka's AdminClient is treated, by the table `client_keys.toml`.


class Use(Enum):
    """How a property is treated."""

    HEARD = "heard"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One property: its default in Kafka (empty for none), and what it does here or why it is not used."""

    name: str
    use: Use
    text: str
    default: str = ""


_TABLE = tomllib.loads(packaged_text(__name__, "client_keys.toml"))


def _client_keys() -> Iterator[ClientKey]:
    for use in Use:
        for name, said in _TABLE[use.value].items():
            yield ClientKey(name, use, **said) if isinstance(said, dict) else ClientKey(name, use, said)


CLIENT_KEYS = tuple(_client_keys())

# Properties → `ClientSettings`.

log = logging.getLogger(__name__)

_KEYS = {key.name: key for key in CLIENT_KEYS}
_HEARD = frozenset(key.name for key in CLIENT_KEYS if key.use is Use.HEARD)
_NAME = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*")


_BLANKS = "".join(map(chr, range(0x21)))

_JAVA_NAMES = _TABLE["librdkafka"]
"""Names of librdkafka's, with which clients in Python, Go and C are configured."""


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a `.properties` file (ISO-8859-1 with unicode escapes, as Java reads it).

    A byte order mark is refused: Java takes it for a part of the first name, so that `security.protocol` in the first
    line would have no effect.
    """
    try:
        content = Path(path).read_bytes()
        if (kind := other_kind(content)) is not None:
            raise InputError(f"{path} is not a properties file: it is {kind}")
        if content.lstrip().startswith(b"{"):  # each line would pass for a property, and nothing secure the client
            raise InputError(f"{path} is not a properties file: it is JSON. Write lines like security.protocol=SSL")
        if content.startswith(BOM_UTF8):
            raise InputError(
                f"{path} begins with a byte order mark, which Java takes for a part of the first name; save it without"
            )
        found = parse_properties(content.decode("iso-8859-1"))
    except OSError as error:
        raise InputError(f"cannot read the properties file {path}: {error.strerror}") from error
    except MalformedPropertiesError:
        raise InputError(f"{path} is not a properties file: it holds a malformed \\u escape") from None
    for key, value in found.items():
        # The message shows the key and not the value: that may be a password.
        if any(is_half(text) or "\0" in text for text in (key, value)):
            name = key if _NAME.fullmatch(key) else "a property"
            raise InputError(f"{path}: {name} has an escape that is no character: half of a surrogate pair, or \\u0000")
    return found


def addresses_of(key: str, properties: Mapping[str, str]) -> str | None:
    """`bootstrap.servers` or `bootstrap.controllers`, references replaced; None without it. Raises InputError."""
    addresses = resolve_references(properties, keys={key}).properties.get(key, "").strip(_BLANKS)
    if addresses:
        _check_addresses(key, addresses)
        return addresses
    for name in properties:
        if _JAVA_NAMES.get(name) == key:
            raise InputError(f"{name} is not used; Java's clients call it {key}")
    for name in likely(key, [name for name in properties if name not in _KEYS]):
        raise InputError(f"there is no property {name}; did you mean {key}?")
    return None


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
    resolved = resolve_references(properties, keys=_HEARD)
    try:
        return _settings(resolved.properties, bootstrap_servers, bootstrap_controllers, client_id)
    except InputError as error:
        # The error shows the wrong value, which may be a replaced secret.
        raise InputError(resolved.without_secrets(str(error))) from None


def _settings(
    properties: Mapping[str, str], bootstrap_servers: str | None, bootstrap_controllers: str | None, client_id: str
) -> ClientSettings:
    # Every type of Kafka's ConfigDef trims as Java's String.trim does, passwords too.
    properties = {key: value.strip(_BLANKS) for key, value in properties.items()}
    _warn_of_unknown(properties)
    if bootstrap_servers is None and bootstrap_controllers is None:
        bootstrap_servers = properties.get("bootstrap.servers")
        bootstrap_controllers = properties.get("bootstrap.controllers")
        for key in ("bootstrap.servers", "bootstrap.controllers"):
            _check_addresses(key, properties.get(key))
    protocol = _security_protocol(properties)
    request_timeout_ms = _milliseconds(properties, "request.timeout.ms", 30_000)
    return ClientSettings(
        bootstrap_servers=Address.parse_list(bootstrap_servers) if bootstrap_servers is not None else (),
        bootstrap_controllers=Address.parse_list(bootstrap_controllers) if bootstrap_controllers is not None else (),
        client_id=properties.get("client.id") or client_id,
        security_protocol=protocol,
        sasl=credentials(properties) if protocol.uses_sasl else None,
        tls=tls_settings(properties) if protocol.uses_tls else Tls(),
        request_timeout_ms=request_timeout_ms,
        api_timeout_ms=_milliseconds(properties, "default.api.timeout.ms", max(60_000, request_timeout_ms)),
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
        is_refused = key.startswith(("sasl.", "ssl.", "security.")) if known is None else known.use is Use.REFUSED
        if is_refused and not (known and known.default and properties[key].strip() == known.default):
            why = f" ({known.text})" if known else ""
            instead = _meant(key) if known is None or key in _JAVA_NAMES else "remove it"
            end = "" if instead.endswith("?") else "."
            raise InputError(
                f"the property {key} is not supported and ignoring it could weaken security{why}; "
                f"{instead or 'remove it'}{end} What is supported: the page of client properties"
            )
    unknown = sorted(key for key in properties if key not in _KEYS and not key.startswith(f"{PROVIDERS_KEY}."))
    if unknown:
        log.warning("ignored unknown client properties: %s", ", ".join(_shown(unknown, properties)))


def _shown(unknown: list[str], properties: Mapping[str, str]) -> list[str]:
    """Keys that are safe to show: lines of a PEM key or password without escapes look like keys too."""
    keys = [key for key in unknown if _NAME.fullmatch(key) and (properties[key] or "." in key)]
    names = [f"{key} ({meant})" if (meant := _meant(key)) and "." in key else key for key in keys]
    others = len(unknown) - len(names)
    return [*names, f"{others} whose names are not those of properties"] if others else names


def _meant(key: str) -> str:
    return f"Java's clients call it {_JAVA_NAMES[key]}" if key in _JAVA_NAMES else did_you_mean(key, _KEYS)


def _security_protocol(properties: Mapping[str, str]) -> SecurityProtocol:
    name = properties.get("security.protocol", "PLAINTEXT")
    try:
        return SecurityProtocol(name.upper())
    except ValueError:
        known = ", ".join(protocol.value for protocol in SecurityProtocol)
        raise InputError(f"security.protocol={name} is not one of {known}") from None


def _milliseconds(properties: Mapping[str, str], key: str, default: int) -> int:
    return whole_number(key, properties.get(key, str(default)).strip(), "milliseconds")
