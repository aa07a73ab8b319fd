"""No process that a test starts outlives the pytest process, or the worker of pytest-xdist, that ran the test.

Fixtures end what tests start, but not when pytest itself is killed. So each pytest process marks the environment, which
everything that it starts inherits, and has a guard, which waits for its end and kills what bears the mark. The guard
reads from a pipe of which only the pytest process holds the other end: the kernel closes it, however that process ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

VARIABLE = "KREASSIGN_TESTS"
_GUARD = """
import os, pathlib, signal, sys
mark = sys.argv[1].encode()
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.stdin.buffer.read()
found = True
while found:
    found = False
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(bytes(1)):
                os.kill(int(process.name), signal.SIGKILL)
                found = True
        except OSError:
            pass
"""


class Guard:
    """Kills, once this process ends or `close` is called, all processes that were started meanwhile. Needs /proc."""

    def __init__(self) -> None:
        mark = uuid.uuid4().hex
        # Without the mark of this process, but with that of the process that started it, if that has one: the end of
        # xdist's controller ends the workers.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD, f"{VARIABLE}={mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != VARIABLE},
            process_group=0,
        )
        os.environ[VARIABLE] = mark

    def close(self) -> None:
        """Kill them now."""
        os.environ.pop(VARIABLE, None)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


_KEY = pytest.StashKey[Guard]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the guard before anything else is started, the workers too."""
    if Path("/proc/self/environ").exists():
        config.stash[_KEY] = Guard()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End what is left."""
    if guard := config.stash.get(_KEY, None):
        guard.close()
