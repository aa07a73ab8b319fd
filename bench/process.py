"""Whole processes, timed from outside: wall time and peak memory as the operating system accounts for them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TIMED = Path(__file__).with_name("timed.py")
# As installed: Python keeps compiled bytecode unless this variable, common in build environments, forbids it.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class Run:
    """One finished process: seconds of wall and processor time, its largest resident memory, and what it printed."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    output: str


def run(command: Sequence[str]) -> Run:
    """Run a command to its end; RuntimeError with its output when it fails."""
    with tempfile.NamedTemporaryFile() as taken:
        finished = subprocess.run(
            [sys.executable, "-I", "-S", str(_TIMED), taken.name, *command],
            capture_output=True,
            text=True,
            check=False,
            env=_ENVIRONMENT,
        )
        if finished.returncode != 0:
            output = (finished.stdout + finished.stderr)[-2000:]
            raise RuntimeError(f"{' '.join(command)[:200]} ended with {finished.returncode}:\n{output}")
        return Run(**json.loads(taken.read()), output=finished.stdout)


@dataclass(frozen=True, slots=True)
class Spread:
    """Several measurements of one thing."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value to quote."""
        return statistics.median(self.values)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({min(self.values):.2f}–{max(self.values):.2f})"
