"""Standard output and error of a command: only printable text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO, cast

from kreassign.model.printable import PrintableStream


@contextmanager
def printable_output() -> Iterator[None]:
    """While it lasts, text from a cluster or a file cannot control the terminal."""
    with _replaced(lambda stream: PrintableStream(unwrapped(stream))):
        yield


def unwrapped(stream: TextIO) -> TextIO:
    """The stream to draw on, for those who make their texts printable themselves."""
    return stream.inner if isinstance(stream, PrintableStream) else stream


@contextmanager
def _replaced(wrap: Callable[[TextIO], PrintableStream]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(cast("TextIO", wrap(sys.stdout))))
        stack.enter_context(redirect_stderr(cast("TextIO", wrap(sys.stderr))))
        yield
