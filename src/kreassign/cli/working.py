"""What a command is working on, while its results are still to come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import click

from kreassign.cli.streams import unwrapped
from kreassign.clock import Clock, SystemClock

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
