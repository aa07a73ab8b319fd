"""What the commands share that read and write tables: the option that names their directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kreassign.cli.options.values import DIRECTORY, Place

Command = TypeVar("Command", bound=Callable[..., Any])

DATA_ENVIRONMENT = "KREASSIGN_DATA"


def data_option(command: Command) -> Command:
    """Add `--data DIR`: parameter `data: Path`. The directory need not exist yet."""
    return _data_option(is_required=True)(command)


def optional_data_option(command: Command) -> Command:
    """Add `--data DIR` to a command that can do without: parameter `data: Path | None`."""
    return _data_option(is_required=False)(command)


def data_or_load_option(command: Command) -> Command:
    """Add `--data DIR` to a command that reads what `load` wrote: `--from-load DIR` says the same."""
    return _data_option("--from-load", is_required=False)(command)


def data_or_out_option(command: Command) -> Command:
    """Add `--data DIR` to a command that only writes: `--out DIR` says the same."""
    return _data_option("--out", is_required=True)(command)


def data_or_address_option(command: Command) -> Command:
    """Add `--data DIR` to a command that leaves reading and writing to Spark: `data: Path`, or `str` for an address."""
    return _data_option(is_required=True, kind=_DirectoryOrAddress(is_file=False))(command)


class _DirectoryOrAddress(Place):
    """An address such as `s3a://bucket/data` stays text: a path would lose one of its slashes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if "://" in str(value) else super().convert(value, param, ctx)


def _data_option(*names: str, is_required: bool, kind: click.Path = DIRECTORY) -> Callable[[Command], Command]:
    default = "" if is_required else "  [default: no tables]"
    return click.option(
        "--data",
        *names,
        "data",
        required=is_required,
        envvar=DATA_ENVIRONMENT,
        metavar="DIR",
        type=kind,
        help=f"Directory of the tables (or the environment variable {DATA_ENVIRONMENT}).{default}",
    )


def master_option(command: Command) -> Command:
    """Add `--master URL` to a command that uses Spark: parameter `master: str | None`."""
    text = "Spark master.  [default: local[*], or what spark-submit decides]"
    return click.option("--master", metavar="URL", help=text)(command)
