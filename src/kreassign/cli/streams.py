"""Standard output and error of a command, the line that says what it works on, and its garbage collection.

Only printable text is written. A run must not end because nobody reads it any more: `| head` has seen enough, the
disk of its log is full, the terminal is closed. So while a command executes a run, what cannot be written is dropped.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from threading import Lock
from typing import TextIO, cast

import click

from kreassign.clock import Clock, SystemClock
from kreassign.model.text import PrintableStream

_COMES_BACK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN})


class LossyStream:
    """A stream whose failures are nobody's concern. After a reader has gone it leads to /dev/null."""

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
        """Hand over what was written, or drop it."""
        self._try(self.inner.flush)

    def isatty(self) -> bool:
        """Whether a person may be looking."""
        return not self._is_lost and self.inner.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream below."""
        return self.inner.fileno()

    def give_up_rest(self) -> None:
        """Hand over what is left now, for Python ends with an error if it fails to when the process exits."""
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


@contextmanager
def printable_output() -> Iterator[None]:
    """While it lasts, text from a cluster or a file cannot control the terminal."""
    with _replaced(lambda stream: PrintableStream(unwrapped(stream))):
        yield


@contextmanager
def output_may_be_lost() -> Iterator[None]:
    """While it lasts, output that cannot be written is dropped, and nothing fails for it."""
    below: list[LossyStream] = []

    def lossy(stream: TextIO) -> PrintableStream:
        below.append(LossyStream(unwrapped(stream)))
        return PrintableStream(cast("TextIO", below[-1]))

    with _replaced(lossy):
        try:
            yield
        finally:
            for stream in below:
                stream.give_up_rest()


def unwrapped(stream: TextIO) -> TextIO:
    """The stream to draw on, for those who make their texts printable themselves."""
    return stream.inner if isinstance(stream, PrintableStream) else stream


@contextmanager
def _replaced(wrap: Callable[[TextIO], PrintableStream]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(cast("TextIO", wrap(sys.stdout))))
        stack.enter_context(redirect_stderr(cast("TextIO", wrap(sys.stderr))))
        yield


# What a command is working on, while its results are still to come.

PLAIN_EVERY_S = 60.0
_ERASE = "\r\x1b[2K"


@contextmanager
def working(first: str) -> Iterator[Callable[[str], None]]:
    """A line that says what goes on while the block runs: `first` this, then what it is called with."""
    line = WorkingLine()
    try:
        line.show(first)
        yield line.show
    finally:
        line.end()


class WorkingLine:
    """One line on the error stream, which the next one replaces; away from a terminal a plain one every minute.

    It may be shown from any thread. What else is printed meanwhile goes through `say`, or the two would mix.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = Lock()
        self._stream = unwrapped(sys.stderr)
        self._is_shown = False
        self._told_s = self._clock.monotonic_s()

    def show(self, text: str) -> None:
        """Say what goes on now."""
        with self._lock:
            if self._stream.isatty():
                self._stream.write(f"{_ERASE}{text}")
                self._stream.flush()
                self._is_shown = True
            elif self._clock.monotonic_s() - self._told_s >= PLAIN_EVERY_S:
                self._told_s = self._clock.monotonic_s()
                click.echo(f"working: {text}", err=True)

    def say(self, line: str) -> None:
        """Print a line of the results, in place of what went on."""
        with self._lock:
            self._erase()
            click.echo(line)

    def end(self) -> None:
        """Nothing goes on any more."""
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._is_shown:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._is_shown = False


# The search for garbage, which a process that does one thing and ends does not need.
#
# All that it holds is in use until then, and looking through a million replicas takes a third of the time of
# `snapshot`.


@contextmanager
def uncollected() -> Iterator[None]:
    """Search for no garbage within the block, unless somebody has turned that off already."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
