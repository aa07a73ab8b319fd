"""Client properties of a profile, with what commands print in place of `${command:…}`, and Kafka's providers declared.

Only the configuration of the user's own may name commands: a properties file may come from anybody.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping

from kreassign.admin.config_providers import CLASSES, KEYS
from kreassign.errors import InputError

_COMMAND = re.compile(r"\$\{command:([^}]*)\}")
_PATIENCE_S = 60


def with_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as a client takes them. InputError, which names the property, where a command fails."""
    found = {key: _resolved(key, text) for key, text in properties.items()}
    if not found or KEYS in found:
        return found
    classes = {f"{KEYS}.{name}.class": kind for name, kind in CLASSES.items()}
    return {KEYS: ",".join(CLASSES), **classes, **found}


def _resolved(key: str, text: str) -> str:
    def printed(match: re.Match[str]) -> str:
        return _printed(key, match[1])

    return _COMMAND.sub(printed, text)


def _printed(key: str, command: str) -> str:
    """The first line that a command prints; what it says of errors goes to the terminal, where it may ask, too."""
    try:
        done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S, check=True)
        return done.stdout.splitlines()[0]
    except (OSError, ValueError, subprocess.SubprocessError, IndexError) as error:
        what = "printed nothing" if isinstance(error, IndexError) else f"failed: {type(error).__name__}"
        raise InputError(f"{key} refers to the command {command!r}, which {what}") from None
