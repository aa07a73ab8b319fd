"""How numbers and tables look on the command line, and how they are read from it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypeVar

import click
from rich.console import Console
from rich.text import Text

from kreassign.cli.streams import unwrapped
from kreassign.errors import InputError
from kreassign.model.amount import parse_amount
from kreassign.model.printable import printable

Command = TypeVar("Command", bound=Callable[..., Any])

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
LONGEST_S = 366 * 86_400
"""A year: no interval or measurement is longer, and waiting for much more is beyond the system's clock."""

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
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > LONGEST_S:
        raise click.BadParameter(f"{text[:40]!r} is too long; the longest duration is {LONGEST_S / 3600:.0f}h")
    return seconds


def examples(*commands: str) -> str:
    """The examples at the end of a command's help. For `click.command(epilog=…)`."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


class PlainConsole(Console):
    """A console for text that is not markup, and that may come from a cluster: only the console itself draws."""

    def __init__(self, file: TextIO, width: int | None = None) -> None:
        super().__init__(file=file, width=width, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text, printable. Every string goes through here: lines, cells of tables, titles."""
        return super().render_str(printable(text), **options)


def console(*, stderr: bool = False) -> Console:
    """A console. Away from a terminal it is plain, and wide enough for our tables."""
    stream = unwrapped(sys.stderr if stderr else sys.stdout)
    plain = PlainConsole(stream)
    return plain if plain.is_terminal else PlainConsole(stream, width=160)


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
