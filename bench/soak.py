"""Shared parts of the soaks: resources of a process, promises, broken promises, and the places of their tables.

A soak loads something for long, or with many at once, and looks at what it holds meanwhile. Its table is written into
docs/reference/torture.md; what is promised there and was broken is said, and ends the command with code 1.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns import page

FOLDER = Path(__file__).parents[1] / "build" / "soak"
"""Where figures and logs of a soak are kept."""


@dataclass(frozen=True, slots=True)
class Held:
    """Resources of a process at one moment: resident memory, open descriptors, threads; processor time so far."""

    memory_mib: float
    descriptors: int
    threads: int
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.memory_mib:.0f} MiB, {self.descriptors} descriptors, {self.threads} threads"


def held(process_id: int) -> Held:
    """Resources of a process of this machine now. OSError when it has ended."""
    place = Path(f"/proc/{process_id}")
    lines = (place / "status").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    used = (place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    cpu_s = (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
    descriptors = sum(1 for _ in (place / "fd").iterdir())
    return Held(int(fields["VmRSS"].split()[0]) / 1024, descriptors, int(fields["Threads"]), cpu_s)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Promises:
    """Promises of a soak, and the broken ones, in sentences."""

    kept: int = 0
    broken: list[str] = field(default_factory=list)

    def expect(self, sentence: str, *, that: bool) -> None:
        """Note whether a promise was kept; `sentence` says it, with what was found."""
        if that:
            self.kept += 1
        else:
            self.broken.append(sentence)

    def __str__(self) -> str:
        if not self.broken:
            return f"All {self.kept} promises were kept."
        heading = f"{len(self.broken)} of {self.kept + len(self.broken)} promises were broken:"
        return "\n".join([heading, "", *(f"- {each}" for each in self.broken)])


def report(name: str, table: str, promises: Promises) -> None:
    """Print a table and write it into its part of the page. SystemExit with code 1 where a promise was broken."""
    text = f"{table}\n\n{promises}"
    page.report(f"soak: {name}", f"python -m bench soak-{name}", text, is_broken=bool(promises.broken))
