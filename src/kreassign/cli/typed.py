"""What was typed: the present command line as words, and which of its options were given there."""

from __future__ import annotations

import click
from click.core import ParameterSource

WORDS = "kreassign.typed"
"""Where the context of click has the words of the command line."""


def typed_words() -> tuple[str, ...]:
    """The present command line, from the name of the command on."""
    found: tuple[str, ...] = click.get_current_context().meta[WORDS]
    return found


def was_typed(name: str) -> bool:
    """Whether an option of the present command was given on the command line, and not by the environment."""
    context = click.get_current_context(silent=True)
    key = name.removeprefix("--").replace("-", "_")
    return context is not None and context.get_parameter_source(key) is ParameterSource.COMMANDLINE
