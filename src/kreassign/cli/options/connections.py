"""Connect as the options of a cluster say: its properties, and the secrets in those of a profile.

Loads the Kafka client, so it is imported only where a cluster is asked.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from kreassign.admin.properties import PROVIDER_CLASSES, PROVIDERS_KEY, addresses_of, read_properties
from kreassign.admin.settings import Address
from kreassign.cli.profiles import Profile
from kreassign.errors import InputError, machine_reason
from kreassign.operations.connect import connect_controllers
from kreassign.operations.mirrors import seen_from_afar
from kreassign.operations.refusals import connect_explained
from kreassign.operations.text_files import naming

__all__ = ["connect_controllers", "connect_explained", "seen_from_afar"]

# Client properties of a profile, with the output of `${command:…}` inserted and Kafka's providers declared.
#
# Only the user's own configuration may name commands: a properties file may come from anywhere.

_COMMAND = re.compile(r"\$\{command:([^}]*)\}")
_PATIENCE_S = 60


def with_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with secrets inserted. Raises InputError, which names the property, if a command fails."""
    found = {key: _COMMAND.sub(partial(_printed, key), text) for key, text in properties.items()}
    if not found or PROVIDERS_KEY in found:
        return found
    classes = {f"{PROVIDERS_KEY}.{name}.class": kind for name, kind in PROVIDER_CLASSES.items()}
    return {PROVIDERS_KEY: ",".join(PROVIDER_CLASSES), **classes, **found}


def _printed(key: str, match: re.Match[str]) -> str:
    """The first line of a command's output; its stderr stays on the terminal, where it may also ask."""
    command = match[1]
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S, check=True)
        return done.stdout.splitlines()[0]
    except (OSError, ValueError, subprocess.SubprocessError, IndexError) as error:
        raise InputError(f"{key} refers to the command {command!r}, which {_failure(error)}") from None


def _failure(error: Exception) -> str:
    """Say how a command failed that printed no secret. Its output is never quoted."""
    match error:
        case IndexError():
            return "printed nothing"
        case subprocess.CalledProcessError():
            return f"failed with exit code {error.returncode}"
        case subprocess.TimeoutExpired():
            return f"did not end within {_PATIENCE_S:g} s"
        case OSError():
            return f"could not be started: {machine_reason(error)}"
        case _:
            return "cannot be read as a command line, or printed no text"


def named_addresses(key: str, config: Path | None, profile: Profile | None) -> str | None:
    """This property of the file, or of the profile where no file is named. Raises InputError."""
    if config is not None:
        with naming(config):
            return addresses_of(key, read_properties(config))
    return None if profile is None else addresses_of(key, with_secrets(profile.properties))


def checked_addresses(text: str) -> str:
    """The text itself. Raises InputError unless it has addresses."""
    Address.parse_list(text)
    return text
