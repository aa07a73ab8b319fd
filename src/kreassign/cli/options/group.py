"""Groups of options that reach a command as one typed value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]


def option_group(keyword: str, options: Sequence[Decorator], build: Callable[..., Any]) -> Decorator:
    """Add options to a command, which gets what `build` makes of their parameters as this keyword.

    `build` may raise click.UsageError or click.BadParameter, for what only several options together show.
    """
    own = _parameter_names(options)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_group(*arguments: Any, **given: Any) -> Any:
            value = build(**{name: given[name] for name in own})
            others = {name: each for name, each in given.items() if name not in own}
            return command(*arguments, **others, **{keyword: value})

        return cast("Command", _with_options(options, with_group))  # click keeps options in attributes of the function

    return decorate


def _with_options(options: Sequence[Decorator], command: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def _parameter_names(options: Sequence[Decorator]) -> frozenset[str]:
    def probe() -> None: ...

    parameters: list[click.Parameter] = _with_options(options, probe).__click_params__
    return frozenset(str(parameter.name) for parameter in parameters)
