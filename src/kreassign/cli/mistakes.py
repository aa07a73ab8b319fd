"""Advice on command lines that click refuses: what was probably meant, and a line that works."""

from __future__ import annotations

import re

import click

from kreassign.model.text import likely

_MEANT = {"help": ["--help"], "version": ["--version"]}
_UNIT = re.compile(r"\(([kmgt]i?b(?:/s)?)\)", re.IGNORECASE)


def advise(error: click.UsageError) -> None:
    """Let the message say what was probably meant, or how the command is given."""
    context = error.ctx
    if context is None:
        return
    match error:
        case click.NoSuchOption():
            known = [name for parameter in context.command.params for name in parameter.opts]
            error.possibilities = likely(error.option_name, known)
            if error.option_name == "--yes":
                error.message += f" {context.command_path} asks nothing: leave it out."
        case click.exceptions.NoSuchCommand() if isinstance(context.command, click.Group):
            names = context.command.list_commands(context)
            found = _MEANT.get(error.command_name) or likely(error.command_name, names)
            error.possibilities = found or error.possibilities
            if not error.possibilities:
                error.message = error.message.rstrip(".") + _for_example(context)
        case click.MissingParameter():
            error.message = _for_example(context).removeprefix(". ")
        case click.BadParameter():
            has_out = any("--out" in parameter.opts for parameter in context.command.params)
            if error.param is not None and error.param.name == "output_format" and has_out:
                error.message = f"{error.message.rstrip('.')}; --out names a file"
        case _:
            unit = _UNIT.search(error.message)
            error.message += f". Write an amount without a blank, as in 50{unit[1]}" if unit else _for_example(context)


def _for_example(context: click.Context) -> str:
    """The first example of the command's help, as the end of a message."""
    lines = (context.command.epilog or "").splitlines()
    example = next((line.strip() for line in lines if line.startswith("  ")), None)
    return f". For example: {example}" if example else ""
