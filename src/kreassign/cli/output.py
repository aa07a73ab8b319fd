"""How results look on the command line: text for people, plain and printable, or one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO, TypeVar

import click
from rich.console import Console
from rich.text import Text

from kreassign.cli.streams import unwrapped
from kreassign.model.printable import printable

Command = TypeVar("Command", bound=Callable[..., Any])


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


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 finding", "2 findings"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


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
