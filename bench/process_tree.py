"""A process with all that it starts: wall time and the most memory that they held together."""

from __future__ import annotations

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
    peak_mib: float


def run_kreassign(*arguments: str) -> TreeRun:
    """Run a command of `kreassign`."""
    return run_tree([sys.executable, *_PROGRAM, *arguments])


def run_tree(command: list[str]) -> TreeRun:
    """Run a command to its end; RuntimeError when it fails. Memory is looked at five times a second."""
    started, peak = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, _tree_mib(process.pid))
            time.sleep(_LOOK_EVERY_S)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {process.returncode}")
    return TreeRun(time.perf_counter() - started, peak)


def _tree_mib(root: int) -> float:
    parents, resident = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line)
        except OSError:
            continue  # it has ended meanwhile
        parents[int(fields["Pid"])] = int(fields["PPid"])
        resident[int(fields["Pid"])] = int(fields.get("VmRSS", "0 kB").split()[0]) / 1024
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(resident.get(pid, 0.0) for pid in tree)
