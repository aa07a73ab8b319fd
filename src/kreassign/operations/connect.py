"""Connect to a cluster's brokers and controllers, and warn about missing answers.

Addresses and Kafka's client properties become clients. Loads no tables and no plans.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from kreassign.admin import AdminClient, client_settings
from kreassign.admin.properties import read_properties
from kreassign.admin.settings import ClientSettings
from kreassign.errors import InputError
from kreassign.model.authorization import error_text
from kreassign.model.text import by_reason, some_of


def connect(bootstrap_servers: str | None = None, properties: Path | Mapping[str, str] | None = None) -> AdminClient:
    """A connected client, to be used in a `with` statement.

    `properties` are those of Kafka's clients (security, timeouts), or a file of them; without `bootstrap_servers`
    they name the servers. Raises InputError for bad ones, Unreachable.
    """
    named = {} if bootstrap_servers is None else {"bootstrap_servers": bootstrap_servers}
    return AdminClient.connect(_settings(properties, **named))


def connect_controllers(bootstrap_controllers: str, properties: Path | Mapping[str, str] | None = None) -> AdminClient:
    """A client of the controllers of a KRaft cluster. Nothing is sent yet. Raises InputError for bad properties."""
    return AdminClient.connect(_settings(properties, bootstrap_controllers=bootstrap_controllers))


def _settings(properties: Path | Mapping[str, str] | None, **addresses: str) -> ClientSettings:
    """Build settings from properties and addresses. Raises InputError, which names the file of the properties."""
    if not isinstance(properties, Path):
        return client_settings(properties or {}, **addresses)
    found = read_properties(properties)
    try:
        return client_settings(found, **addresses)
    except InputError as error:
        raise error if str(properties) in str(error) else InputError(f"{properties}: {error}") from error


# Warnings of a use case to its caller, as sentences.

Warn = Callable[[str], None]
"""Takes one warning; lines after the first are details."""

SHOWN_FAILURES = 3


Tell = Callable[[str], None]
"""Receives what is done, one sentence at a time."""


def tell_nobody(_: str) -> None:
    """Discard warnings, or what is said of the progress."""


class KreassignWarning(UserWarning):
    """A use case went on without something optional."""


def warn_program(text: str) -> None:
    """Pass a warning to Python's `warnings`: the default for programs that pass no `Warn`."""
    warnings.warn(text, KreassignWarning, stacklevel=2)


def warn_without_topic_ids(warn: Warn, what: str, topics: Iterable[str]) -> None:
    """Warn that `what` has no ids of these topics, so others of the same names look alike; silent without topics."""
    names = sorted(set(topics))
    if names:
        shown = ", ".join(names[:SHOWN_FAILURES]) + (", …" if len(names) > SHOWN_FAILURES else "")
        warn(
            f"{what} does not tell the ids of its topics ({shown}), which the cluster has by now: a topic that was "
            "deleted and recreated since then is not noticed"
        )


def warn_of_failures(warn: Warn, what: str, failed: Mapping[Any, Exception]) -> None:
    """Warn about failed reads: a few by name, the others counted, each reason once; silent without failures."""
    if not failed:
        return
    alike = by_reason((key, error_text(error)) for key, error in failed.items())
    shown = [f"  {some_of(keys, SHOWN_FAILURES)}: {reason}" for reason, keys in islice(alike.items(), SHOWN_FAILURES)]
    left = sum(map(len, islice(alike.values(), SHOWN_FAILURES, None)))
    warn("\n".join((f"{len(failed)} without {what}:", *shown, *([f"  and {left} more"] if left else []))))
