"""Parse values of options, build groups of options as one value, and add the directory of tables.

Amounts, durations, bounded numbers, and anything else that a function parses. If a type of this module refuses a value,
click reports it with the name of the option. Needs neither journals nor a client: the twin imports it, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from shlex import join
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from kreassign.errors import InputError
from kreassign.model.load import LAST_LOAD, AsOf, LoadNumber
from kreassign.model.text import (
    LARGEST_ID,
    did_you_mean,
    name_pattern,
    parse_amount,
    parse_seconds,
    shortened,
    signed_number,
)
from kreassign.operations.plan_files import BESIDE


def parse_quantity(text: str) -> int:
    """Bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. For `click.option(type=…)`."""
    try:
        return parse_amount(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def parse_speed(text: str) -> int:
    """A quantity above 0, for values that a command needs to end. For `click.option(type=…)`."""
    found = parse_quantity(text)
    if not found:
        raise click.BadParameter(f"{text!r} is no speed; specify more than 0, for example 20MB/s")
    return found


def parse_duration(text: str) -> float:
    """Seconds: `5s`, `500ms`, `1.5m`, `2h`, `7d` or a plain number of seconds. For `click.option(type=…)`."""
    try:
        return parse_seconds(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def parse_age(text: str) -> float | None:
    """A duration, or None for `none`: any age."""
    return None if text == "none" else parse_interval(text)


def parse_moment(text: str) -> int:
    """A date and time in ISO 8601, UTC by default, in ms since the epoch."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(f"{shortened(text)!r} is not a time; write for example 2027-01-31T06:00") from error
    if not 1 < found.year < 9999:  # in other time zones it would be of a year that no clock shows
        raise click.BadParameter(f"{shortened(text)!r} is not in the years 2 to 9998")
    utc = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return round(utc.timestamp() * 1000)


def parse_date(text: str) -> date:
    """A day in ISO 8601. For `click.option(type=…)`."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        raise click.BadParameter(f"{shortened(text)!r} is not a date; write for example 2027-01-31") from error


def parse_as_of(text: str) -> AsOf:
    """`last`, the number of a load, or a date and time as `parse_moment` reads it. For `click.option(type=…)`."""
    if text.strip() == "last":
        return LAST_LOAD
    # A date without dashes has eight digits.
    if re.fullmatch(r"[1-9][0-9]{0,6}", text.strip()):
        return LoadNumber(int(text))
    try:
        return parse_moment(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error}, or the number of a load, for example 12, or `last`") from error


def parse_interval(text: str) -> float:
    """A duration above 0, for the time between two events. For `click.option(type=…)`."""
    seconds = parse_duration(text)
    if not seconds:
        raise click.BadParameter(f"{text!r} is no interval; specify more than 0, for example 60s")
    return seconds


class FiniteRange(click.FloatRange):
    """A bounded number. Unlike click's own type it refuses `nan`, which passes any bounds, and `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter, which names the bounds."""
        number, shown = math.nan, repr(shortened(str(value)))
        with suppress(ValueError):
            number = float(value)
        if not math.isfinite(number):
            self.fail(f"{shown} is not a finite number{self._bounds()}", param, ctx)
        try:
            found: float = super().convert(number, param, ctx)
        except click.BadParameter:
            self.fail(f"{shown} is not a number{self._bounds()}", param, ctx)
        return found

    def _bounds(self) -> str:
        least = None if self.min is None else f"{'above' if self.min_open else 'of at least'} {self.min:g}"
        most = None if self.max is None else f"{'below' if self.max_open else 'at most'} {self.max:g}"
        bounds = [bound for bound in (least, most) if bound is not None]
        return f" {' and '.join(bounds)}" if bounds else ""


class WholeRange(click.IntRange):
    """A bounded whole number, also within the bounds of Kafka's ids and counts. Help shows an option's as N."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """N for an option; an argument has its name."""
        del ctx
        return "N" if isinstance(param, click.Option) else None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number. Raises click.BadParameter, which names the bounds."""
        number = signed_number(str(value).strip())
        least = -LARGEST_ID if self.min is None else int(self.min)
        most = LARGEST_ID if self.max is None else min(int(self.max), LARGEST_ID)
        if number is None or not least <= number <= most:
            self.fail(f"{shortened(str(value))!r} is not a whole number from {least} to {most}", param, ctx)
        return number


BROKER_ID = WholeRange(min=0)
"""The id of a broker."""


class ReadBy(click.ParamType[Any]):
    """Text parsed by a function of ours; its InputError or ValueError becomes a usage error."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The function's result; a default that is no text is kept. Raises click.BadParameter."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (InputError, ValueError) as error:
            self.fail(str(error), param, ctx)


def checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """Wrap a check for `ReadBy`: returns the text itself if the check passes."""

    def read(text: str) -> str:
        check(text)
        return text

    return read


REGEX = ReadBy("regular expression", checked(name_pattern))


class Place(click.Path):
    """A path that can be written: the directory of a file, or the parents of a directory, must exist.

    Otherwise results of a long computation, or of reading a cluster, would be lost when they are written.
    """

    def __init__(self, *, is_file: bool, needs_directory: bool = True, takes_both: bool = False) -> None:
        super().__init__(dir_okay=takes_both or not is_file, file_okay=is_file, path_type=Path)
        self._needs_directory = is_file and needs_directory

    @staticmethod
    def check_directory(path: Path, option: str) -> None:
        """Raise click.BadParameter if the directory of a file does not exist."""
        if not path.parent.is_dir():
            raise click.BadParameter(_no_directory(path), param_hint=option)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter."""
        path = Path(value)
        try:
            is_there = not self._needs_directory or path.parent.is_dir()
            with suppress(FileNotFoundError):
                path.stat()
        except OSError as error:
            self.fail(f"{shortened(str(value))!r} cannot be a path: {error.strerror}", param, ctx)
        if not is_there:
            self.fail(_no_directory(path), param, ctx)
        if kind := _of_other_kind(path, self):
            self.fail(kind, param, ctx)
        return super().convert(value, param, ctx)


OF_SHELLS = (Path("/dev"), Path("/dev/fd"))


class InputPath(click.Path):
    """A file that is there. A named pipe is refused: reading one waits for its writer, maybe for ever.

    What a shell puts in place of `<(command)` is in /dev/fd or below /proc, and has its writer, as /dev/stdin has.
    """

    def __init__(self, *, takes_directory: bool = False) -> None:
        super().__init__(exists=True, dir_okay=takes_directory, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter."""
        if kind := _of_other_kind(Path(str(value)), self):
            self.fail(kind, param, ctx)
        try:
            path = Path(str(super().convert(value, param, ctx)))
        except click.BadParameter as error:
            meant = Path(str(value))
            raise click.BadParameter(f"{error.message}{_similar_file(meant)}{_tilde(meant)}", ctx, param) from error
        if path.is_fifo() and path.parent not in OF_SHELLS and path.parts[:2] != ("/", "proc"):
            self.fail(f"{str(path)!r} is a pipe; write its content to a file first", param, ctx)
        return path


def _of_other_kind(path: Path, wanted: click.Path) -> str:
    """The error of a directory in place of a file, or the other way round; "" if it is neither."""
    try:
        if path.is_dir() and not wanted.dir_okay:
            return f"{str(path)!r} is a directory, and a file is wanted"
        if path.is_file() and not wanted.file_okay:
            return f"{str(path)!r} is a file, and a directory is wanted: name another"
    except (OSError, ValueError):
        pass  # click says what is wrong
    return ""


def _similar_file(path: Path) -> str:
    """A question about the files beside the path that were probably meant."""
    try:
        names = [] if path.exists() or not path.name else [one.name for one in path.parent.iterdir()]
    except (OSError, ValueError):
        return ""
    question = did_you_mean(path.name, names)
    return f" {question.capitalize()[0]}{question[1:]}" if question else ""


def _no_directory(path: Path) -> str:
    """Say that the directory of a file does not exist, and how to make it."""
    place = str(path.parent)
    advice = _tilde(path) or f"; make it with `{join(('mkdir', '-p', place))}`"
    return f"there is no directory {shortened(place)!r}{advice}"


def _tilde(path: Path) -> str:
    """Advice on a path in which the shell left `~` as it is, as it does in quotes and after `=`."""
    return "; ~ is no directory here: write $HOME, without quotes around it" if path.parts[:1] == ("~",) else ""


INPUT_FILE = InputPath()
OUTPUT_FILE = Place(is_file=True)
DIRECTORY = Place(is_file=False)
FILE_OR_DIRECTORY = Place(is_file=True, takes_both=True)


# A plan.

Command = TypeVar("Command", bound=Callable[..., Any])


def _plans(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Plans that begin so, without the facts and approvals beside them; where there are none, any file."""
    prefix = incomplete[: incomplete.rfind("/") + 1]
    names = sorted(path.name for path in Path(prefix).glob("*.json") if not path.name.endswith(BESIDE))
    plans = [CompletionItem(prefix + name) for name in names if (prefix + name).startswith(incomplete)]
    return plans or [CompletionItem(incomplete, type="file")]


plan_argument = click.argument("plan", type=INPUT_FILE, shell_complete=_plans)
"""Add `PLAN`: parameter `plan: Path`, a file that exists."""


# Pass groups of options to a command as one typed value.

Decorator = Callable[[Any], Any]


def option_group(keyword: str, options: Sequence[Decorator], build: Callable[..., Any]) -> Decorator:
    """Add options to a command, which gets the result of `build` on their parameters as this keyword.

    `build` may raise click.UsageError or click.BadParameter for errors in the combination of options.
    """
    own = _parameter_names(options)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_group(*arguments: Any, **given: Any) -> Any:
            value = build(**{name: given[name] for name in own})
            others = {name: each for name, each in given.items() if name not in own}
            return command(*arguments, **others, **{keyword: value})

        return cast("Command", _with_options(options, with_group))  # click stores options in attributes of the function

    return decorate


def _with_options(options: Sequence[Decorator], command: Any) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def _parameter_names(options: Sequence[Decorator]) -> frozenset[str]:
    def probe() -> None: ...

    parameters: list[click.Parameter] = _with_options(options, probe).__click_params__
    return frozenset(str(parameter.name) for parameter in parameters)


# Options shared by commands that read or write tables: the name of their directory.

DATA_ENVIRONMENT = "KREASSIGN_DATA"


_STORES = ("s3a", "s3", "s3n", "file", "gs", "abfss", "abfs", "az", "hdfs")
"""Schemes supported by both `deltalake` and Spark. Only S3 and files were tested."""


class _DirectoryOrAddress(Place):
    """An address such as `s3a://bucket/data` stays text: as a path it would lose a slash."""

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


data_option = _data_option(is_required=True)
"""Add `--data DIR`: parameter `data: Path`, or `str` for an address. It need not exist yet."""
optional_data_option = _data_option(is_required=False)
"""Add `--data DIR` to a command that does not need it: parameter `data: Path | str | None`."""
data_or_load_option = _data_option("--from-load", is_required=False)
"""Add `--data DIR` to a command that reads the output of `load`; `--from-load DIR` is an alias."""
data_or_out_option = _data_option("--out", is_required=True)
"""Add `--data DIR` to a command that only writes; `--out DIR` is an alias."""


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


yes_option = click.option("--yes", "is_agreed", is_flag=True, help="Begin without asking; needed without a terminal.")
"""Add `--yes`: parameter `is_agreed: bool`."""
