"""How numbers and tables look on the command line, and how they are read from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from rich.console import Console

from kreassign.errors import InputError
from kreassign.model.amount import parse_amount

Command = TypeVar("Command", bound=Callable[..., Any])

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*")


def parse_quantity(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. For `click.option(type=…)`."""
    try:
        return parse_amount(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def parse_duration(text: str) -> float:
    """Seconds: `5s`, `500ms`, `1.5m`, `2h` or a plain number of seconds. For `click.option(type=…)`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a duration; write for example 5s, 500ms or 1m")
    return float(match[1]) * _UNIT_SECONDS[match[2]]


def examples(*commands: str) -> str:
    """The examples at the end of a command's help. For `click.command(epilog=…)`."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


def console(*, stderr: bool = False) -> Console:
    """A console for text that is not markup. Away from a terminal it is plain, and wide enough for our tables."""
    plain = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return plain if plain.is_terminal else Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=160)


def warn(text: str) -> None:
    """Print a warning on stderr; what follows its first line are details. The `Warn` of use cases."""
    click.echo(f"warning: {text}", err=True)


def format_option(command: Command) -> Command:
    """Add `--format text|json`: parameter `output_format: str`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Output format.",
    )(command)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document, keys in the order given."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
