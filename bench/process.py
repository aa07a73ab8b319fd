"""Whole processes, measured from outside: wall time, time of processors and peak memory.

The time of processors says what a run costs on a machine where others run, too, and wall time says little. `run` takes
what the operating system accounts for; `run_tree` adds what a process starts, and counts memory that several of them
share once (the proportional set size of each, summed).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KREASSIGN = (sys.executable, "-c", "from kreassign.cli.main import main; main()")
"""The command as the installed script starts it, wherever that is."""
_LOOK_EVERY_S = 0.2
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


# --- a process with all that it starts ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TreeRun:
    """Resources of a finished process and its descendants."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def run_kreassign(*arguments: str) -> TreeRun:
    """Run a command of `kreassign`."""
    return run_tree([*KREASSIGN, *arguments])


def run_tree(command: list[str]) -> TreeRun:
    """Run a command to its end; RuntimeError when it fails. Memory and processors are looked at five times a second."""
    started, peak = time.perf_counter(), 0.0
    cpu_s: dict[int, float] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            tree = _tree(process.pid)
            peak = max(peak, sum(tree.values()))
            cpu_s |= {pid: used for pid in tree if (used := _cpu_s(pid)) is not None}
            time.sleep(_LOOK_EVERY_S)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {process.returncode}")
    return TreeRun(time.perf_counter() - started, sum(cpu_s.values()), peak)


def _tree(root: int) -> dict[int, float]:
    """The process and its descendants, with the MiB that each holds."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line)
        except OSError:
            continue  # it has ended meanwhile
        parents[int(fields["Pid"])] = int(fields["PPid"])
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return {pid: _mib(pid) for pid in tree}


def _mib(pid: int) -> float:
    """Memory of a process, of shared pages its share; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _cpu_s(pid: int) -> float | None:
    """Seconds of processors that a process has used itself; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
