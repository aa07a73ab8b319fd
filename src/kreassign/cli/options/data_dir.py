"""What the commands share that read and write tables: the option that names their directory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from kreassign.cli.options.values import Place
from kreassign.model.printable import shortened

Command = TypeVar("Command", bound=Callable[..., Any])

DATA_ENVIRONMENT = "KREASSIGN_DATA"


def data_option(command: Command) -> Command:
    """Add `--data DIR`: parameter `data: Path`, or `str` for an address. It need not exist yet."""
    return _data_option(is_required=True)(command)


def optional_data_option(command: Command) -> Command:
    """Add `--data DIR` to a command that can do without: parameter `data: Path | str | None`."""
    return _data_option(is_required=False)(command)


def data_or_load_option(command: Command) -> Command:
    """Add `--data DIR` to a command that reads what `load` wrote: `--from-load DIR` says the same."""
    return _data_option("--from-load", is_required=False)(command)


def data_or_out_option(command: Command) -> Command:
    """Add `--data DIR` to a command that only writes: `--out DIR` says the same."""
    return _data_option("--out", is_required=True)(command)


_STORES = ("s3a", "s3", "s3n", "file", "gs", "abfss", "abfs", "az", "hdfs")
"""What `deltalake` and Spark both have a file system for. Of those that are not S3 or files none was tried."""


class _DirectoryOrAddress(Place):
    """An address such as `s3a://bucket/data` stays text: a path would lose one of its slashes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if "://" not in text:
            return super().convert(value, param, ctx)
        if not re.match(r"file:///|(?!file:)[a-z][a-z0-9+.-]*://[^/\s]", text):
            self.fail(f"{shortened(text)!r} is no address; write for example s3a://bucket/data", param, ctx)
        if (store := text.partition(":")[0]) not in _STORES:
            known = ", ".join(f"{one}://" for one in _STORES)
            self.fail(f"{shortened(text)!r}: tables cannot be kept in {store}://, only in {known}", param, ctx)
        return text


def _data_option(*names: str, is_required: bool) -> Callable[[Command], Command]:
    default = "" if is_required else "  [default: no tables]"
    return click.option(
        "--data",
        *names,
        "data",
        required=is_required,
        envvar=DATA_ENVIRONMENT,
        metavar="DIR",
        type=_DirectoryOrAddress(is_file=False),
        help="Directory of the tables, or an address such as s3a://bucket/data (or the environment variable "
        f"{DATA_ENVIRONMENT}).{default}",
    )


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark.") or key != key.strip():
        raise click.BadParameter(f"{shortened(text)!r} is no setting of Spark; write for example spark.cores.max=4")
    return key, value


def master_option(command: Command) -> Command:
    """Add `--master URL` and `--conf KEY=VALUE` to a command that uses Spark.

    Parameters `master: str | None` and `conf: tuple[tuple[str, str], ...]`, for `SparkOptions`.
    """
    text = "Spark master.  [default: local[*], or what spark-submit decides]"
    conf = click.option(
        "--conf",
        type=_setting,
        multiple=True,
        metavar="KEY=VALUE",
        help="Setting of Spark, such as spark.driver.memory=8g; may be repeated.  [default: none]",
    )
    return click.option("--master", metavar="URL", help=text)(conf(command))
