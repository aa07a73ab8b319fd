"""The live view in a terminal that somebody makes narrower and lower: a real one, with a run on a served twin."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed.waiting import wait_until
from tests.cli.commands.test_lost_terminal import command
from tests.cli.commands.test_steering import HELD, Terminal

pytestmark = pytest.mark.thorough

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDE, NARROW = (120, 40), (70, 14)
"""Columns and lines. On so few lines only the whole and its moves are shown."""


class Screen:
    """The other end of a pseudo-terminal, read by a thread so that nobody who writes there waits."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.written = ""
        self.is_over = threading.Event()

    def read(self) -> None:
        """Read until nobody has the terminal any more, or it is over."""
        while not self.is_over.is_set():
            readable, _, _ = select.select([self.descriptor], [], [], 0.2)
            try:
                self.written += os.read(self.descriptor, 10_000).decode(errors="replace") if readable else ""
            except OSError:
                return

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def frames(self) -> list[list[str]]:
        """Frames as drawn: each begins at the line of the whole run. The last may be half drawn."""
        frames: list[list[str]] = []
        for line in re.split(r"[\r\n]+", CONTROL.sub("", self.written)):
            if re.match(r"moving +\d/2", line):
                frames.append([])
            if frames and line.strip():
                frames[-1].append(line.rstrip())
        return frames[:-1]

    def last_frame(self) -> list[str]:
        return (self.frames() or [[]])[-1]


@contextmanager
def at_screen(words: list[str]) -> Iterator[Screen]:
    """A command at a terminal of its own; it is killed at the end."""
    ours, theirs = pty.openpty()
    screen = Screen(ours)
    screen.resize(*WIDE)
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}, start_new_session=True
    )
    os.close(theirs)
    thread = threading.Thread(target=screen.read)
    thread.start()
    try:
        yield screen
    finally:
        process.kill()
        process.wait()
        screen.is_over.set()
        thread.join()
        os.close(ours)


def test_the_view_fits_a_resized_terminal(terminal: Terminal) -> None:
    with at_screen(command(terminal, "--throttle", HELD)) as screen:

        def is_whole() -> bool:
            """With brokers and events, as wide as there is room for, and not wider."""
            frame = screen.last_frame()
            return any(line.startswith("  broker ") for line in frame) and NARROW[0] < longest(frame) <= WIDE[0]

        def is_small() -> bool:
            """Only the run and its moves."""
            frame = screen.last_frame()
            return len(frame) == 3 and longest(frame) <= NARROW[0]

        wait_until(is_whole, what="the whole view")
        screen.resize(*NARROW)
        wait_until(is_small, what="a view for a small terminal")
        screen.resize(*WIDE)
        wait_until(is_whole, what="the whole view again")


def longest(lines: list[str]) -> int:
    return max(map(len, lines), default=0)
