"""Standard output and error of a command: only printable text, and during a run they may be lost.

A run must not end because nobody reads it any more: `| head` has seen enough, the disk of its log is full, the
terminal is closed. So while a command executes a run, what cannot be written is dropped.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO, cast

from kreassign.model.printable import PrintableStream

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
