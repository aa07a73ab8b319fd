"""How numbers and tables look on the command line, and how they are read from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from rich.console import Console

from kreassign.errors import InputError
from kreassign.model.amount import parse_amount

Command = TypeVar("Command", bound=Callable[..., Any])


def parse_quantity(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. For `click.option(type=…)`."""
    try:
        return parse_amount(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


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
