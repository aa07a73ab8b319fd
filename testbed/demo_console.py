"""What the demos print: a title per step, every command as it could be typed, and how long it took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BOOTSTRAP_VARIABLE = "KREASSIGN_BOOTSTRAP_SERVER"


@contextmanager
def step(title: str) -> Iterator[None]:
    """One step of the workflow."""
    print(f"\n── {title}", flush=True)
    started = time.monotonic()
    yield
    print(f"   ({time.monotonic() - started:.1f} s)", flush=True)


def export_bootstrap(servers: str) -> None:
    """Let all further commands talk to this cluster."""
    os.environ[BOOTSTRAP_VARIABLE] = servers
    print(f"\n$ export {BOOTSTRAP_VARIABLE}={servers}", flush=True)


def kreassign(*arguments: str | Path) -> list[str]:
    """The command line of a `kreassign` command, shown."""
    command = [str(Path(sys.executable).with_name("kreassign")), *map(str, arguments)]
    print(f"$ {words(command)}", flush=True)
    return command


def run_kreassign(*arguments: str | Path) -> None:
    """Run a `kreassign` command to its end; CalledProcessError if it fails."""
    subprocess.run(kreassign(*arguments), check=True)


def words(command: list[str]) -> str:
    """A command as one would type it."""
    return " ".join([Path(command[0]).name, *command[1:]])
