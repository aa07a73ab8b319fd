"""How numbers and tables look on the command line, and how they are read from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from rich.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

# Decimal units, as Kafka's own throttles are spoken of; the binary ones are read too.
_FACTORS: dict[str, int] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtp", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtp", start=1)},
}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*?)\s*(/s)?\s*", re.IGNORECASE)


def parse_quantity(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. For `click.option(type=…)`."""
    match = _QUANTITY.fullmatch(text)
    factor = _FACTORS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise click.BadParameter(f"{text!r} is not an amount; write for example 20MB/s, 512KiB or 1000000")
    return int(float(match[1]) * factor)


def console(*, stderr: bool = False) -> Console:
    """A console for text that is not markup. Away from a terminal it is plain, and wide enough for our tables."""
    plain = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return plain if plain.is_terminal else Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=160)


def format_option(command: Command) -> Command:
    """Add `--format text|json`: parameter `output_format: str`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Words for people, or JSON for programs.",
    )(command)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document, keys in the order given."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
