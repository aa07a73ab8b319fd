"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def description() -> str:
    """One line: processors, memory, Python."""
    memory_kib = next(
        int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")
    )
    cores = len(os.sched_getaffinity(0))
    return (
        f"machine: {cores} cores, {memory_kib / 2**20:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    )
