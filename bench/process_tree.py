"""A process with all that it starts: wall time, time of processors, and the most memory that they held together.

Memory that several of them share is counted once (the proportional set size of each, summed).

The time of processors says what a run costs on a machine where others run, too, and wall time says little.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = ("-c", "from kreassign.cli.main import main; main()")
_LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class TreeRun:
    """What a finished process and its descendants took."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def run_kreassign(*arguments: str) -> TreeRun:
    """Run a command of `kreassign`."""
    return run_tree([sys.executable, *_PROGRAM, *arguments])


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
    """What a process holds, of shared pages its share; nothing when it has ended."""
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
