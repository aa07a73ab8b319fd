"""What the entry points of the tools share: exit codes, which stream gets what, and how addresses are checked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from enum import Enum, auto
from typing import TextIO, cast

from kreassign.errors import ClusterError, KreassignError
from kreassign.kafka_tools.failures import PlainError, TerseError, ToolError, UncaughtError, UsageError
from kreassign.kafka_tools.options import Option, help_table
from kreassign.model.authorization import refused_permission
from kreassign.model.printable import PrintableStream

FAILED = 1
_INTERRUPTED = 130
_ADDRESS = re.compile(r".+:\d+", re.ASCII)


class ErrorStyle(Enum):
    """How a tool reports its failures, apart from a wrong usage, which always goes to stderr with the help."""

    MESSAGE = auto()
    """The message alone on stderr."""
    EXCEPTION = auto()
    """On stderr, as an uncaught Java exception."""
    STDOUT = auto()
    """`Error: <message>` on stdout; an unreadable command line as an exception on stderr."""


def exit_code(job: Callable[[], None], options: Iterable[Option], style: ErrorStyle = ErrorStyle.MESSAGE) -> int:
    """Do the job, report a failure in the style of the tool, and return the exit code.

    Unlike Kafka's own tools it prints nothing of a cluster's that could control the terminal.
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
        print(failure.message if style is ErrorStyle.MESSAGE else failure, file=sys.stderr)
    except KreassignError as failure:
        if isinstance(failure, PlainError) and failure.also_said:
            print(failure.also_said, flush=True)
        if text := _text(failure, style):
            print(text, file=sys.stdout if style is ErrorStyle.STDOUT else sys.stderr, flush=True)
        if permission := _missing_permission(failure):
            print(permission, file=sys.stderr)
    except BrokenPipeError:
        # The reader is gone, as in `--list | head`; keep Python from writing the rest when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return _INTERRUPTED
    else:
        return 0
    return FAILED


def _text(failure: KreassignError, style: ErrorStyle) -> str:
    match failure:
        case PlainError() if style is ErrorStyle.EXCEPTION:
            return failure.uncaught()
        case PlainError():
            return str(failure) if failure.message else ""
        case TerseError():
            return str(failure)
        case ToolError() if style is not ErrorStyle.STDOUT:
            return "\n".join([failure.message, *([f"Caused by: {failure.reason}"] if failure.reason else [])])
        case _ if style is ErrorStyle.STDOUT:
            return str(failure if isinstance(failure, ToolError) else ToolError(_own_words(failure)))
        case _:
            return _own_words(failure)


def _missing_permission(failure: BaseException | None) -> str | None:
    """The permission that the refusal behind a failure asks for: Kafka's own words do not name it."""
    while failure is not None:
        if (found := refused_permission(failure)) is not None:
            return found
        failure = failure.__cause__
    return None


def _own_words(failure: KreassignError) -> str:
    return failure.message if isinstance(failure, ClusterError) else str(failure)


def portless(addresses: str) -> str | None:
    """The first address of a list that has no port, on which Kafka's tools insist; None if all have one."""
    found = filter(None, map(str.strip, addresses.split(",")))
    return next((address for address in found if not _ADDRESS.fullmatch(address)), None)
