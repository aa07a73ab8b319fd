"""Standard output and error of a command, the line about its present work, and its garbage collection.

Only printable text is written. A run must not end because its output has no reader any more: `| head` has exited, the
disk of its log is full, the terminal is closed. So while a command executes a run, failed output is dropped.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from threading import Lock
from typing import TextIO, cast

import click

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.model.text import PrintableStream

_COMES_BACK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN})


class LossyStream:
    """A stream that ignores failures. After the reader has gone it writes to /dev/null."""

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self.encoding = inner.encoding
        self.errors = inner.errors
        self._is_lost = False

    def write(self, text: str) -> int:
        """Write the text, or drop it."""
        self._try(lambda: self.inner.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, or drop what cannot be written."""
        self._try(self.inner.flush)

    def isatty(self) -> bool:
        """True on a terminal."""
        return not self._is_lost and self.inner.isatty()

    def fileno(self) -> int:
        """The file descriptor of the wrapped stream."""
        return self.inner.fileno()

    def give_up_rest(self) -> None:
        """Flush what is left now: Python exits with an error if it fails to do so at the end."""
        self.flush()
        if not self._is_lost:
            try:
                self.inner.flush()
            except OSError:
                self._lose()

    def _try(self, deed: Callable[[], object]) -> None:
        if self._is_lost:
            return
        try:
            deed()
        except OSError as error:
            if error.errno not in _COMES_BACK:
                self._lose()
        except ValueError:  # closed
            self._is_lost = True

    def _lose(self) -> None:
        self._is_lost = True
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.inner.fileno())
            os.close(nowhere)


# Break sentences at words, where a terminal would break them anywhere. Elsewhere a sentence stays one line, for `grep`.

_LEAST_WIDTH = 40
_WHOLE = re.compile(r"(?:next|  or): |\$ |\s*(?:kreassign|kafka-)\S* ")
"""Beginning of a line that is a command to copy."""
_PART = re.compile(r"`[^`]*`\S*|(?<=: )(?:kreassign|kafka-\S+) .*|[\d.]+ [kMGTPE]?B\b\S*|\S+")
"""Parts that stay whole: a command in backticks or after a colon, a figure with its unit, a word."""


def folded(text: str, width: int) -> str:
    """Break the lines of a text at words, commands excepted; lines that go on are indented by two columns more."""
    return "\n".join(_folded_line(line, max(width, _LEAST_WIDTH)) for line in text.split("\n"))


def _folded_line(line: str, width: int) -> str:
    if len(line) <= width or _WHOLE.match(line):
        return line
    body = line.lstrip()
    indent = line[: len(line) - len(body)]
    lines, current = [], ""
    end = 0
    for part in _PART.finditer(body):
        gap, end = body[end : part.start()], part.end()
        if current and len(current) + len(gap) + len(part[0]) > width:
            lines.append(current)
            current = f"{indent}  {part[0]}"
        else:
            current = f"{current}{gap}{part[0]}" if current else f"{indent}{part[0]}"
    return "\n".join((*lines, current + body[end:]))


class TerminalStream(PrintableStream):
    """A printable stream that breaks sentences at words if it is a terminal."""

    def write(self, text: str | bytes) -> int:
        """Write the text; return the number of characters given."""
        if self.isatty():
            whole = text.decode(errors="replace") if isinstance(text, bytes) else text
            super().write(folded(whole, shutil.get_terminal_size().columns))
            return len(text)
        return super().write(text)


@contextmanager
def printable_output() -> Iterator[None]:
    """Within the block, text from a cluster or file cannot control the terminal."""
    with _replaced(lambda stream: TerminalStream(unwrapped(stream))):
        yield


@contextmanager
def output_may_be_lost() -> Iterator[None]:
    """Within the block, output that cannot be written is dropped without an error."""
    below: list[LossyStream] = []

    def lossy(stream: TextIO) -> PrintableStream:
        below.append(LossyStream(unwrapped(stream)))
        return TerminalStream(cast("TextIO", below[-1]))

    with _replaced(lossy):
        try:
            yield
        finally:
            for stream in below:
                stream.give_up_rest()


def unwrapped(stream: TextIO) -> TextIO:
    """The wrapped stream, for callers that make their own text printable."""
    return stream.inner if isinstance(stream, PrintableStream) else stream


@contextmanager
def _replaced(wrap: Callable[[TextIO], PrintableStream]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(cast("TextIO", wrap(sys.stdout))))
        stack.enter_context(redirect_stderr(cast("TextIO", wrap(sys.stderr))))
        yield


# Show what a command is working on before its results.

PLAIN_EVERY_S = 60.0
_ERASE = "\r\x1b[2K"


@contextmanager
def working(first: str) -> Iterator[Callable[[str], None]]:
    """Show a line about the present work during the block: `first`, then each text passed to the yielded function."""
    line = WorkingLine()
    try:
        line.show(first)
        yield line.show
    finally:
        line.end()


class WorkingLine:
    """One line on stderr, replaced by the next; without a terminal a plain line every minute.

    Any thread may call it. Other output during that time must go through `say`, or both would mix.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SYSTEM_CLOCK
        self._lock = Lock()
        self._stream = unwrapped(sys.stderr)
        self._is_shown = False
        self._told_s = self._clock.monotonic_s()

    def show(self, text: str) -> None:
        """Show the present work."""
        with self._lock:
            if self._stream.isatty():
                self._stream.write(f"{_ERASE}{text}")
                self._stream.flush()
                self._is_shown = True
            elif self._clock.monotonic_s() - self._told_s >= PLAIN_EVERY_S:
                self._told_s = self._clock.monotonic_s()
                click.echo(f"working: {text}", err=True)

    def say(self, line: str) -> None:
        """Print a line of results in place of the present one."""
        with self._lock:
            self._erase()
            click.echo(line)

    def end(self) -> None:
        """Remove the line."""
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._is_shown:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._is_shown = False


# Disable garbage collection in a process that does one thing and ends.
#
# All its objects are in use until then, and traversing a million replicas takes a third of the time of `snapshot`.


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the collector within the block, unless it is disabled already."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
