"""PURE. Properties of Kafka's clients as Spark's Kafka source gets them: secrets by reference to their file.

Options of a source are in Spark's plans, and so in its logs, event logs and pages; Spark hides those that look like
passwords, in some places. So what is about TLS and SASL is not given to Spark at all: Kafka's own clients read it from
the file, on the driver and on executors (KIP-297 and KIP-421).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kreassign.errors import InputError
from kreassign.model.printable import shortened

PROVIDER = "kreassign"
"""By this name the clients know the provider that reads the file; a file may name providers of its own."""
_READER = "org.apache.kafka.common.config.provider.FileConfigProvider"
_SECRET = ("ssl.", "sasl.")
_REFERENCE = "${"


def by_reference(properties: Mapping[str, str], file: Path) -> dict[str, str]:
    """The properties of a file, those of TLS and SASL as references to it. InputError for a path that cannot be one."""
    secret = {
        name for name, value in properties.items() if name.startswith(_SECRET) and value and _REFERENCE not in value
    }
    if not secret:
        return dict(properties)
    path = str(file.absolute())
    if any(sign in path for sign in ":}"):
        raise InputError(
            f"the path {shortened(path)!r} of the properties file has a colon or a brace, which Kafka's clients cannot "
            "read in it; put the file elsewhere"
        )
    providers = [name for name in properties.get("config.providers", "").split(",") if name]
    return {
        **{name: f"${{{PROVIDER}:{path}:{name}}}" if name in secret else value for name, value in properties.items()},
        "config.providers": ",".join([*providers, PROVIDER]),
        f"config.providers.{PROVIDER}.class": _READER,
    }
