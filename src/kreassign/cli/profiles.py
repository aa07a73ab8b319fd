"""Clusters by name, in one file: `~/.config/kreassign/config.toml`, or what KREASSIGN_CONFIG names.

    default = "test"

    [clusters.prod]
    bootstrap-server = "broker-1:9092"
    data = "/srv/kreassign/prod"

    [clusters.prod.properties]                     # of Kafka's clients
    "security.protocol" = "SASL_SSL"
    "sasl.jaas.config" = '… password="${command:pass show kafka/prod}";'

    [clusters.prod.run]                            # options of one command
    throttle = "50MB/s"

The command line wins over the environment, that over the profile, that over defaults. The cluster in force is that of
`--cluster`, else of KREASSIGN_CLUSTER, else the default; but the default is not in force if an address is
typed or in the environment, as its credentials are not meant for another cluster. Secrets are not in the file but
referenced: `${env:NAME}`, `${file:/path:key}` and `${dir:/path:name}` as in Kafka's clients, and `${command:…}`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from click.core import ParameterSource

from kreassign.errors import InputError
from kreassign.model.documents import decoded, read_toml, shown_value
from kreassign.model.text import shortened

OUR_ENVIRONMENT = "KREASSIGN_"
CONFIG_ENVIRONMENT = "KREASSIGN_CONFIG"
CLUSTER_ENVIRONMENT = "KREASSIGN_CLUSTER"
ADDRESS_ENVIRONMENT = "KREASSIGN_BOOTSTRAP_SERVER"
IN_FORCE = "kreassign.profile"
"""Key in click's context for the profile in force."""

SHARED = (
    "bootstrap-server", "bootstrap-controller", "command-config", "data", "state-dir", "cluster", "format", "lease",
    "poll-interval", "time-zone", "journal-to",
)  # fmt: skip
"""Options about the cluster with the same meaning in all commands that have them."""

_PROPERTIES = "properties"


@dataclass(frozen=True, slots=True)
class Profile:
    """One cluster: values of shared options, of options of single commands (nested by name), and client properties.

    `is_chosen` is False if it is in force as the default.
    """

    name: str
    shared: Mapping[str, Any] = field(default_factory=dict)
    commands: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    is_chosen: bool = True


def config_path() -> Path:
    """Path of the configuration file, which may not exist."""
    named = os.environ.get(CONFIG_ENVIRONMENT)
    home = os.environ.get("XDG_CONFIG_HOME")
    return Path(named) if named else (Path(home) if home else Path.home() / ".config") / "kreassign" / "config.toml"


def _has_file(path: Path) -> bool:
    """True if there is a file. Raises InputError for what cannot be one: no setting is passed over in silence."""
    if path.is_dir():
        raise InputError(f"{path} is a directory, where the configuration file should be: move it away")
    if path.is_symlink() and not path.exists():
        raise InputError(
            f"{path} is a link to {path.readlink()}, which is not there: write that file, or remove the link"
        )
    return path.is_file()


def profile_in_force(named: str | None, commands: tuple[str, ...], *, has_address: bool) -> Profile | None:
    """The profile of this name, else the default; None if there is none. Raises InputError, which names the file."""
    wanted = named or os.environ.get(CLUSTER_ENVIRONMENT)
    path = config_path()
    if os.environ.get(CONFIG_ENVIRONMENT) and not path.exists():
        raise InputError(
            f"{CONFIG_ENVIRONMENT} names {path}, which is not there: write that file, or unset the variable"
        )
    if not _has_file(path):
        if wanted is None:
            return None
        raise InputError(f"there is no cluster {shortened(wanted)!r}: {path} is not there")
    document = _document(path)
    clusters = document.get("clusters", {})
    is_chosen = wanted is not None
    if not is_chosen:
        wanted = document.get("default")
        if wanted is None or has_address or os.environ.get(ADDRESS_ENVIRONMENT):
            return None
    if wanted not in clusters:
        known = ", ".join(sorted(clusters)) or "none"
        named_by = "" if is_chosen else ", which its `default` names"
        raise InputError(f"there is no cluster {shortened(str(wanted))!r} in {path}{named_by}; it has: {known}")
    return _profile(f"{path}: clusters.{wanted}", str(wanted), clusters[wanted], commands, is_chosen=is_chosen)


def names_in(path: Path) -> frozenset[str]:
    """Names of the clusters of a file; empty if the file does not exist. Raises InputError."""
    return frozenset(_document(path).get("clusters", {})) if _has_file(path) else frozenset()


def shared_in(path: Path) -> dict[str, dict[str, str]]:
    """Shared options of each cluster of a file, by name, as they would be typed. Raises InputError."""
    clusters = _document(path).get("clusters", {}) if _has_file(path) else {}
    return {
        name: {key: str(_as_typed(value)) for key, value in table.items() if key in SHARED}
        for name, table in clusters.items()
    }


def around(variable: str, option: str) -> str | None:
    """Value of a shared option that the environment or the profile in force has, for commands without the option."""
    profile: Profile | None = click.get_current_context().meta.get(IN_FORCE)
    shared = {} if profile is None else profile.shared
    value = os.environ.get(variable) or shared.get(option)
    return None if value is None else str(_as_typed(value))


def defaults_of(profile: Profile, name: str, command: click.Command) -> dict[str, Any]:
    """Values of a profile for a command and its sub-commands, as a `default_map` of click. Raises InputError."""
    return {name: _of(profile, command, (name,), profile.commands.get(name, {}))}


def _of(
    profile: Profile,
    command: click.Command,
    path: tuple[str, ...],
    own: Mapping[str, Any],
    above: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Build the `default_map`; values of a group apply to those of its commands that have the option."""
    options = _options(command)
    below = command.commands if isinstance(command, click.Group) else {}
    own_of_all = {key: value for key, value in own.items() if not isinstance(value, dict)}
    found: dict[str, Any] = {}
    known = _options_below(command)
    for key, value in {**profile.shared, **above, **own_of_all}.items():
        if key in options:
            _refuse_kind(f"{config_path()}: clusters.{profile.name}.{'.'.join(path)}: {key!r}", value, options[key])
            found[str(options[key].name)] = _as_typed(value)
        elif key in own_of_all and key not in known:
            where = f"clusters.{profile.name}.{'.'.join(path)}"
            raise InputError(f"{config_path()}: {where} has no option {key!r}{_near(key, known)}")
    for name, sub in below.items():
        found[name] = _of(profile, sub, (*path, name), own.get(name, {}), {**above, **own_of_all})
    return found


def _options(command: click.Command) -> dict[str, click.Parameter]:
    return {option.removeprefix("--"): one for one in command.params for option in one.opts if option[:2] == "--"}


def _options_below(command: click.Command) -> dict[str, click.Parameter]:
    """The options of a command and of all its sub-commands, by name."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return {name: one for sub in below for name, one in _options_below(sub).items()} | _options(command)


def _as_typed(value: Any) -> Any:
    """The value as typed: options parse text."""
    if isinstance(value, list):
        return [_as_typed(one) for one in value]
    if isinstance(value, bool):
        return value
    return str(Path(value).expanduser()) if str(value).startswith("~/") else str(value)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = read_toml(decoded(path.read_bytes()))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (InputError, ValueError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    unknown = sorted(document.keys() - {"default", "clusters"})
    clusters = document.get("clusters", {})
    if unknown or not isinstance(clusters, dict) or not all(isinstance(one, dict) for one in clusters.values()):
        known = ("default", "clusters")
        what = f"{unknown[0]!r}{_near(unknown[0], known)}" if unknown else "clusters that are no tables"
        raise InputError(f"{path} has {what}; it may have `default`, and a table [clusters.NAME] for each cluster")
    if not isinstance(document.get("default", ""), str):
        raise InputError(f"{path}: `default` is {shown_value(document['default'])}; it must be the name of a cluster")
    return document


def _profile(where: str, name: str, table: Mapping[str, Any], commands: tuple[str, ...], *, is_chosen: bool) -> Profile:
    properties = table.get(_PROPERTIES, {})
    own = {key: value for key, value in table.items() if isinstance(value, dict) and key != _PROPERTIES}
    shared = {key: value for key, value in table.items() if not isinstance(value, dict)}
    for key in shared.keys() - set(SHARED):
        raise InputError(f"{where} has {key!r}{_near(key, SHARED)}; options of one command go into a table of its name")
    for key, value in shared.items():
        _refuse_kind(f"{where}: {key!r}", value)
    for key in own.keys() - set(commands):
        raise InputError(f"{where} has a table {key!r}, and there is no such command{_near(key, commands)}")
    if not isinstance(properties, dict) or not all(isinstance(one, str) for one in properties.values()):
        raise InputError(f'{where}: properties are texts by name, such as "security.protocol" = "SSL"')
    return Profile(name, shared, own, properties, is_chosen)


def _refuse_kind(where: str, value: Any, option: click.Parameter | None = None) -> None:
    """Raise InputError for a list where an option takes one value, and for true or false where it takes any."""
    if isinstance(value, list) and not getattr(option, "multiple", False):
        raise InputError(f"{where} is a list; it must be one text, with commas where the option takes several")
    if isinstance(value, bool) and not getattr(option, "is_flag", False):
        raise InputError(f"{where} is {str(value).lower()}; it must be a text or a number, as on the command line")


def _near(word: str, known: Any) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


# The typed command line: its words, and the options that were given there.

WORDS = "kreassign.typed"
"""Key in click's context for the words of the command line."""


def typed_words() -> tuple[str, ...]:
    """The present command line, starting with the name of the command."""
    found: tuple[str, ...] = click.get_current_context().meta[WORDS]
    return found


def was_typed(name: str) -> bool:
    """True if an option of the present command was given on the command line, not by the environment."""
    context = click.get_current_context(silent=True)
    if context is None:
        return False
    keys = (one.name for one in context.command.params if name in one.opts and one.name is not None)
    return any(context.get_parameter_source(key) is ParameterSource.COMMANDLINE for key in keys)
