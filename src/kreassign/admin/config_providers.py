"""References in client properties to values that are kept elsewhere (KIP-297): `${file:/path:key}` and its like.

Providers are declared as for Kafka, and those of Kafka itself are known: environment variables, property files and
directories of one file per value. Where Kafka leaves a reference as it stands because nothing was found, or its
provider is not declared, and would log in with that as the password, an error says what is missing. What was found is
not searched for references again, as in Kafka.

The values are secrets: no message shows one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import NamedTuple

from kreassign.admin.property_text import MalformedPropertiesError, parsed
from kreassign.errors import InputError
from kreassign.model.printable import shortened

# ConfigTransformer.DEFAULT_PATTERN
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE = "org.apache.kafka.common.config.provider."
CLASSES = {
    "env": f"{_PACKAGE}EnvVarConfigProvider",
    "file": f"{_PACKAGE}FileConfigProvider",
    "dir": f"{_PACKAGE}DirectoryConfigProvider",
}
"""Kafka's own providers by the names that its documentation gives them."""
KEYS = "config.providers"
_SHOWN = re.compile(r"^bootstrap\.|\.location$|\.url$")
# What is shorter is part of most words.
_SHORTEST_SECRET = 3

Provider = Callable[[str, str, str], str]
"""Finds a value by path and key; the text of the reference is for errors."""


class Resolved(NamedTuple):
    """Properties with their references replaced, and what was found for those that are no addresses and no paths."""

    properties: dict[str, str]
    secrets: frozenset[str]

    def without_secrets(self, text: str) -> str:
        """The text, fit to be shown."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "[hidden]")
        return text


def resolved(
    properties: Mapping[str, str], environment: Mapping[str, str] | None = None, keys: Container[str] | None = None
) -> Resolved:
    """Replace the references of all properties, or of some. InputError, which names the property, if one leads nowhere.

    `environment` defaults to that of this process.
    """
    variables = os.environ if environment is None else environment
    names = [name.strip() for name in properties.get(KEYS, "").split(",") if name.strip()]
    providers = {name: _provider(name, properties, variables) for name in names}
    found: set[str] = set()
    replaced = dict(properties)
    for key, value in properties.items():
        if not key.startswith(KEYS) and (keys is None or key in keys):
            replaced[key] = _replaced(key, value, providers, set() if _SHOWN.search(key) else found)
    return Resolved(replaced, frozenset(secret for secret in found if len(secret) >= _SHORTEST_SECRET))


def _replaced(key: str, value: str, providers: Mapping[str, Provider], found: set[str]) -> str:
    def replacement(reference: re.Match[str]) -> str:
        text = _found(key, reference, providers)
        found.add(text)
        return text

    return _REFERENCE.sub(replacement, value)


def _found(key: str, reference: re.Match[str], providers: Mapping[str, Provider]) -> str:
    name, path, variable = reference[1], reference[2] or "", reference[3]
    provider = providers.get(name)
    if provider is None:
        raise InputError(f"{key} has a reference, but {_how_to_declare(name, providers)}")
    # Only now is it known that this is a reference, and not a password that looks like one.
    return provider(path, variable, f"{key} refers to {shortened(reference[0])}")


def _how_to_declare(name: str, providers: Mapping[str, Provider]) -> str:
    if name in CLASSES:
        declared = ",".join([*providers, name])
        return f"{KEYS} does not declare {name!r}: add {KEYS}={declared} and {KEYS}.{name}.class={CLASSES[name]}"
    return (
        f"{KEYS} does not declare its provider. Declare it with one of the classes {', '.join(CLASSES.values())}; "
        "a value that is meant as it stands can be kept in a file and referred to"
    )


def _provider(name: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> Provider:
    prefix = f"{KEYS}.{name}"
    class_name = properties.get(f"{prefix}.class", "").strip()
    allowed = properties.get(f"{prefix}.param.allowed.paths", "")
    if class_name == CLASSES["env"]:
        return _environment(environment, properties.get(f"{prefix}.param.allowlist.pattern", ".*"), prefix)
    if class_name == CLASSES["file"]:
        return _files(_allowed(allowed, prefix))
    if class_name == CLASSES["dir"]:
        return _directories(_allowed(allowed, prefix))
    said = (
        f"{prefix}.class is {shortened(class_name)}, which is not supported"
        if class_name
        else f"{prefix}.class is missing"
    )
    raise InputError(f"{said}; use one of {', '.join(CLASSES.values())}")


def _environment(variables: Mapping[str, str], pattern: str, prefix: str) -> Provider:
    try:
        permitted = re.compile(pattern)
    except re.error:
        raise InputError(f"{prefix}.param.allowlist.pattern is no regular expression: {shortened(pattern)}") from None

    def find(path: str, variable: str, where: str) -> str:
        if path:
            raise InputError(f"{where}: a variable of the environment has no path; write ${{NAME:VARIABLE}}")
        if not permitted.fullmatch(variable):
            raise InputError(f"{where}, which {prefix}.param.allowlist.pattern does not allow")
        if variable not in variables:
            raise InputError(f"{where}, and the environment has no variable {shortened(variable)}: export it first")
        return variables[variable]

    return find


def _files(is_allowed: Callable[[Path, str], None]) -> Provider:
    def find(path: str, key: str, where: str) -> str:
        try:
            values = parsed(_read(path, is_allowed, where))
        except (MalformedPropertiesError, UnicodeDecodeError):
            raise InputError(f"{where}, which is not a properties file in UTF-8") from None
        if key not in values:
            raise InputError(f"{where}, and that file has no key {shortened(key)}")
        return str(values[key])

    return find


def _directories(is_allowed: Callable[[Path, str], None]) -> Provider:
    def find(path: str, key: str, where: str) -> str:
        if "/" in key:
            raise InputError(f"{where}: the last part is the name of a file in the directory, not a path")
        try:
            # As Kafka does, all of it: a line end belongs to the value.
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


def _allowed(paths: str, prefix: str) -> Callable[[Path, str], None]:
    """Checks a path against `allowed.paths`, which means all if empty; `..` is resolved before, as Kafka does."""
    folders = [Path(os.path.normpath(path)) for path in paths.split(",") if path]

    def check(path: Path, where: str) -> None:
        normal = Path(os.path.normpath(path))
        if folders and not any(normal.is_relative_to(folder) for folder in folders):
            raise InputError(f"{where}, which {prefix}.param.allowed.paths does not allow")

    return check
