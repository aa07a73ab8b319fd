"""Shared by all drop-in tools: parsing of command lines, failures, exit codes and streams.

Each kind of failure has its stream and its form; the exit code is always 1.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest
from pathlib import Path
from typing import TextIO, cast

from kreassign import errors
from kreassign.model.authorization import refused_permission
from kreassign.model.error_codes import error_code
from kreassign.model.plan_document import kind_of_no_plan
from kreassign.model.text import PrintableStream, packaged_text, signed_number

KAFKA_VERSION = "4.4.0"
"""The Kafka release whose tools are replaced, printed by `--version`."""

# Failures of a tool, and our errors in the words of Kafka's Java client.

_PACKAGE = "org.apache.kafka.common.errors"


class UsageError(errors.KreassignError):
    """Wrong usage: the message and the help go to stderr."""


class UncaughtError(errors.KreassignError):
    """An error that Kafka's tool does not catch: one line on stderr, in the form of an uncaught Java exception."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f'Exception in thread "main" {java_class}: {message}')
        self.message = message


class ParserError(UncaughtError):
    """The command line cannot be parsed."""

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f"joptsimple.{java_class}", message)


class TerseError(errors.KreassignError):
    """A failure that Kafka's tool prints without the word Error: the message alone on stdout."""


class ToolError(errors.KreassignError):
    """Any other failure: `Error: <message>` on stdout.

    Where Kafka's tool continues with a Java stack trace, we print one line with the `reason`, unless the message
    names it already.
    """

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason

    def __str__(self) -> str:
        return _with_reason(f"Error: {self.message}", self.reason)


class PlainError(errors.KreassignError):
    """A failure as most tools print it: the message alone on stderr, or as an uncaught Java exception.

    `java_class` is the class of that exception. `also_said` goes to stdout first. Where Kafka's tool continues with a
    Java stack trace, we print one line with the `reason`, unless the message names it already.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        also_said: str | None = None,
        java_class: str = "kafka.common.AdminCommandFailedException",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.also_said = also_said
        self.java_class = java_class

    def __str__(self) -> str:
        return _with_reason(self.message, self.reason)

    def uncaught(self) -> str:
        """The failure as an uncaught Java exception."""
        return _with_reason(f'Exception in thread "main" {self.java_class}: {self.message}', self.reason)


def _with_reason(message: str, reason: str | None) -> str:
    return f"{message}\nCaused by: {reason}" if reason else message


def java_failure(error: errors.ClusterError, call: str) -> ToolError:
    """Kafka's failure for this error of a call of its client; `call` is the Java name of that call."""
    if isinstance(error, errors.Unreachable):
        return ToolError(java_exception("TimeoutException", java_message(error, call)), reason=error.message)
    return ToolError(java_exception(_class_of(error), error.message))


def java_message(error: errors.ClusterError, call: str) -> str:
    """The message of `java_failure`, without the class of the exception."""
    if isinstance(error, errors.Unreachable):
        return f"Timed out waiting for a node assignment. Call: {call}"
    return error.message


def java_exception(name: str, message: str) -> str:
    """An exception of Kafka's client, as Java prints it."""
    return f"{_PACKAGE}.{name}: {message}"


def _class_of(error: errors.ClusterError) -> str:
    match error:
        case errors.Rejected():
            return error_code(error.code).java_exception
        case errors.Unauthenticated():  # of TLS or SASL; only the message says which
            return "SaslAuthenticationException" if "SASL" in error.message else "SslAuthenticationException"
        case errors.Unsupported():
            return "UnsupportedVersionException"
        case errors.OutcomeUnknown():
            return "TimeoutException"
        case _:
            return "UnknownServerException"


# Parse command lines like joptsimple, the option parser of Kafka's tools, and format its help.
#
# Only long options (one dash works like two), never abbreviated, value after a blank or an equals sign. Words that
# are no options are ignored, and so is everything after `--`. The help is a table of two columns, folded at blanks and
# hyphens.

_WIDTH = 39
_GAP = "  "
_INDENT = "  "

# Python represents undecodable bytes as half surrogates; Java reads each of them as this character.
_HALF = re.compile("[\ud800-\udfff]")

# A word with the blanks after it, or blanks at the start of a line; a hyphen or dot before a letter may end a
# line too.
_PIECE = re.compile(r"\s+|(?:(?![-.][A-Za-z])\S)*[-.](?=[A-Za-z])|(?:(?![-.][A-Za-z])\S)+\s*")


@dataclass(frozen=True, slots=True)
class Option:
    """One option; it takes a value if it has a `value_name`, described in the help with its type and default.

    `actions` are those that take it, where that is not said in code.
    """

    name: str
    description: str
    value_name: str = ""
    value_type: str = "String"
    default: int | str | None = None
    is_value_optional: bool = False
    actions: Sequence[str] = ()


def read_options(tool: str) -> tuple[Option, ...]:
    """The options of a tool, with the texts of its help, from its table in the folder `options`."""
    table = tomllib.loads(packaged_text(__name__, f"options/{tool}.toml"))
    return tuple(Option(name, **fields) for name, fields in table.items())


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed command line: option names in their order, each with its value, if any.

    `word_count` counts all words, including those that are neither options nor values. `known` are all options.
    """

    found: tuple[tuple[str, str | None], ...]
    word_count: int
    known: Mapping[str, Option]

    @property
    def names(self) -> tuple[str, ...]:
        """The given options in their order; repeated ones are repeated."""
        return tuple(name for name, _value in self.found)

    def has(self, name: str) -> bool:
        """True if the option was given."""
        return name in self.names

    def text(self, name: str) -> str | None:
        """The value of an option, None without one; raises `ToolError` for several values."""
        values = [value for found, value in self.found if found == name and value is not None]
        if len(values) > 1:
            raise ToolError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else None

    def number(self, name: str, default: int | None = None, *, bits: int = 64) -> int:
        """The value of an option as a signed number of `bits` bits, or the default, which is that of the option.

        Java's `Long` has 64 bits, its `Integer` 32. Raises `ToolError` for any other text.
        """
        text = self.text(name)
        if text is None:
            found = self.known[name].default if default is None else default
            assert isinstance(found, int), f"{name} has no default"
            return found
        limit = 2 ** (bits - 1)
        number = signed_number(text)
        if number is None or not -limit <= number < limit:
            raise ToolError(f"Cannot parse argument '{text}' of option {name}")
        return number


def java_int(word: str) -> int:
    """Parse a number like Java's `Integer.parseInt`, with its message in a `ToolError`."""
    number = signed_number(word)
    if number is None or not -(2**31) <= number < 2**31:
        raise ToolError(f'For input string: "{word}"')
    return number


def java_split(text: str, separator: str) -> list[str]:
    """Split like Java's `String.split`: without empty words at the end, unless the whole text is empty."""
    words = text.split(separator)
    while words and not words[-1]:
        words.pop()
    return words or ([] if text else [""])


def parse(known: Iterable[Option], words: Sequence[str]) -> Options:
    """Parse a command line; raises `ParserError` for an unknown option or a missing value."""
    table = {option.name: option for option in known}
    words = [_HALF.sub("\N{REPLACEMENT CHARACTER}", word) for word in words]
    if broken := next((word for word in words if "\0" in word), None):
        raise ParserError("IllegalOptionSpecificationException", f"{broken} is not a legal option character")
    found: list[tuple[str, str | None]] = []
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        at += 1
        if not _is_option(word):
            continue
        option, value = _recognised(table, word)
        if not option.value_name:
            value = None
        elif value is None and at < len(words) and not (option.is_value_optional and _is_option(words[at])):
            value = words[at]
            at += 1
        if value is None and option.value_name and not option.is_value_optional:
            missing = f"Option {option.name} requires an argument"
            raise ParserError("OptionMissingRequiredArgumentException", missing)
        found.append((option.name, value))
    return Options(tuple(found), len(words), table)


def _recognised(table: dict[str, Option], word: str) -> tuple[Option, str | None]:
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    if name not in table:
        # After a single dash joptsimple takes each letter for an option, and refuses the first.
        shown = name if word.startswith("--") else name[:1]
        raise ParserError("UnrecognizedOptionException", f"{shown} is not a recognized option")
    return table[name], value if equals else None


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def help_table(options: Iterable[Option]) -> str:
    """Format the help table: options sorted by name, columns as wide as their widest line."""
    rows = [(_heading(option), _description(option)) for option in sorted(options, key=lambda option: option.name)]
    folded = [line for row in [("Option", "Description"), ("------", "-----------"), *rows] for line in _row(*row)]
    left, right = (max(map(len, column)) for column in zip(*folded, strict=True))
    return "\n".join(f"{option:<{left}}{_GAP}{text:<{right}}" for option, text in folded)


def _heading(option: Option) -> str:
    if not option.value_name:
        return f"--{option.name}"
    argument = f"{option.value_type}: {option.value_name}"
    return f"--{option.name} [{argument}]" if option.is_value_optional else f"--{option.name} <{argument}>"


def _description(option: Option) -> str:
    return option.description if option.default is None else f"{option.description} (default: {option.default})"


def _row(heading: str, description: str) -> Iterator[tuple[str, str]]:
    return zip_longest(_folded(heading), _folded(description), fillvalue="")


def _folded(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        folded = ""
        for piece in _PIECE.findall(line):
            if len(folded) + len(piece) > _WIDTH:
                yield folded.rstrip(" ")
                folded = _INDENT
            folded += piece
        yield folded.rstrip(" ")


# Entry points of the tools: exit codes, the stream for each output, and the check of addresses.

FAILED = 1
_INTERRUPTED = 130
_ADDRESS = re.compile(r".+:\d+", re.ASCII)


class ErrorStyle(Enum):
    """Style in which a tool reports failures, except wrong usage, which always goes to stderr with the help."""

    MESSAGE = auto()
    """The message alone on stderr."""
    EXCEPTION = auto()
    """An uncaught Java exception on stderr."""
    STDOUT = auto()
    """`Error: <message>` on stdout; for an unreadable command line an exception on stderr."""


def run_tool(
    run: Callable[[Options], None],
    options: Sequence[Option],
    argv: Sequence[str] | None,
    style: ErrorStyle = ErrorStyle.MESSAGE,
    version: str = KAFKA_VERSION,
) -> int:
    """Run a tool with these words (None: the command line), or print its version; return its exit code."""

    def job() -> None:
        given = parse(options, sys.argv[1:] if argv is None else list(argv))
        if given.has("version") and not given.has("help"):
            print(version)
        else:
            run(given)

    return exit_code(job, options, style)


def exit_code(job: Callable[[], None], options: Iterable[Option], style: ErrorStyle = ErrorStyle.MESSAGE) -> int:
    """Do the job, report a failure in the style of the tool, and return the exit code.

    Unlike Kafka's tools it prints no text of a cluster that could control the terminal.
    """
    out, err = (cast("TextIO", PrintableStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        return _exit_code(job, options, style)


def _exit_code(job: Callable[[], None], options: Iterable[Option], style: ErrorStyle) -> int:
    try:
        job()
        sys.stdout.flush()
    except UsageError as failure:
        print(failure, help_table(options), sep="\n", file=sys.stderr)
    except UncaughtError as failure:
        print(failure.message if style is ErrorStyle.MESSAGE else failure, *_notes(failure), sep="\n", file=sys.stderr)
    except errors.KreassignError as failure:
        if isinstance(failure, PlainError) and failure.also_said:
            print(failure.also_said, flush=True)
        if text := _text(failure, style):
            print(text, file=sys.stdout if style is ErrorStyle.STDOUT else sys.stderr, flush=True)
        if permission := _missing_permission(failure):
            print(permission, file=sys.stderr)
        for note in _notes(failure):
            print(note, file=sys.stderr)
    except BrokenPipeError:
        # The reader has gone, as in `--list | head`; keep Python from writing the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return _INTERRUPTED
    else:
        return 0
    return FAILED


def _text(failure: errors.KreassignError, style: ErrorStyle) -> str:
    match failure:
        case PlainError() if style is ErrorStyle.EXCEPTION:
            return failure.uncaught()
        case PlainError():
            return str(failure) if failure.message else ""
        case TerseError():
            return str(failure)
        case ToolError() if style is not ErrorStyle.STDOUT:
            return _with_reason(failure.message, failure.reason)
        case _ if style is ErrorStyle.STDOUT:
            return str(failure if isinstance(failure, ToolError) else ToolError(_own_words(failure)))
        case _:
            return _own_words(failure)


def _notes(failure: errors.KreassignError) -> tuple[str, ...]:
    return tuple(getattr(failure, "__notes__", ()))


@contextmanager
def naming_kind(path: str | None, *, is_plan: bool = True) -> Iterator[None]:
    """Add the kind of a file to a failure, on standard error: Kafka's message only has the first odd character."""
    try:
        yield
    except errors.KreassignError as failure:
        if path is not None and (kind := _kind_of(Path(path), is_plan=is_plan)) is not None:
            failure.add_note(f"{path}: {kind}")
        raise


def _kind_of(path: Path, *, is_plan: bool) -> str | None:
    try:  # of a pipe nothing is left to read
        return kind_of_no_plan(path.read_bytes(), is_plan=is_plan) if path.is_file() else None
    except (OSError, ValueError):  # text that cannot be a path
        return None


def _missing_permission(failure: BaseException | None) -> str | None:
    """The permission that the refusal behind a failure requires: Kafka's message does not name it."""
    while failure is not None:
        if (found := refused_permission(failure)) is not None:
            return found
        failure = failure.__cause__
    return None


def _own_words(failure: errors.KreassignError) -> str:
    return failure.message if isinstance(failure, errors.ClusterError) else str(failure)


def portless(addresses: str) -> str | None:
    """The first address of a list without a port, which Kafka's tools refuse; None if all have one."""
    found = filter(None, map(str.strip, addresses.split(",")))
    return next((address for address in found if not _ADDRESS.fullmatch(address)), None)
