"""`kreassign` on one cluster and one state directory, as the soaks use it; and how soon `resume` goes on."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.process import KREASSIGN, Run, run
from bench.soak import Promises, held
from kreassign.executor.events import MovesObserved
from kreassign.executor.journal import JournalReader, find_journals

MOST_RESUME_S = 3.0
RESUMES = 5
LOOK_EVERY_S = 0.02
LONGEST_S = 120.0


@dataclass(frozen=True, slots=True)
class Resumed:
    """Seconds from the start of `resume` to its first row in the journal, and to its first look at the moves there.

    `cpu_s` is the processor time that the process took until then.
    """

    first_row_s: float
    first_look_s: float
    cpu_s: float


def judge_resumes(resumed: Sequence[Resumed], promises: Promises) -> str:
    """True if a run goes on soon enough, and a sentence about it."""
    looks, rows, cpu = ([getattr(one, name) for one in resumed] for name in ("first_look_s", "first_row_s", "cpu_s"))
    promises.expect(
        f"`resume` goes on within {MOST_RESUME_S:g} s: {median(looks):.2f} s, of which {median(cpu):.2f} s are its own "
        "work, and the rest other processes'",
        that=median(looks) < MOST_RESUME_S,
    )
    return (
        f"It was killed, and resumed {len(resumed)} times: `resume` wrote its first row after {median(rows):.2f} s, "
        f"and had looked at the moves after {median(looks):.2f} s ({min(looks):.2f} to {max(looks):.2f}), with "
        f"{median(cpu):.2f} s of processor time."
    )


class Commands:
    """`kreassign` on one cluster and one state directory; what is started says what it has to say to a file."""

    def __init__(self, folder: Path, bootstrap_servers: str, state_dir: str = "state") -> None:
        self.folder = folder
        self.state_dir = folder / state_dir
        self._where = ("--bootstrap-server", bootstrap_servers)

    @property
    def journal(self) -> Path:
        """The journal of the only run."""
        (found,) = find_journals(self.state_dir)
        return found

    @contextmanager
    def started(self, *words: str, asks_cluster: bool = True) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on, killed at the end of the block if it has not ended."""
        command = [*KREASSIGN, *words, "--state-dir", str(self.state_dir), *(self._where if asks_cluster else ())]
        with (self.folder / f"{words[0]}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def ended(self, *words: str) -> Run:
        """A command that asks no cluster, measured to its end."""
        return run([*KREASSIGN, *words, "--state-dir", str(self.state_dir)])

    def status(self) -> tuple[dict[str, Any], float]:
        """Output of `kreassign status`, and its duration."""
        asked = self.ended("status", "--format", "json")
        return json.loads(asked.output), asked.wall_s

    def said(self, command: str) -> str:
        """The end of what a command said, to be shown when it failed."""
        return (self.folder / f"{command}.log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def killed_again(self) -> list[Resumed]:
        """Resume the run and kill it as soon as it has gone on, some times."""
        found = []
        for _ in range(RESUMES):
            with self.resumed() as (_, one):
                found.append(one)
        return found

    @contextmanager
    def resumed(self) -> Iterator[tuple[subprocess.Popen[bytes], Resumed]]:
        """A `kreassign resume` of the only run, from the moment at which it has gone on; killed with the block."""
        reader = JournalReader(self.journal)
        reader.new_events()
        begun_s, row_s = time.monotonic(), 0.0
        with self.started("resume") as process:
            while True:
                new, now_s = reader.new_events(), time.monotonic() - begun_s
                row_s = row_s or (now_s if new else 0.0)
                if any(isinstance(event, MovesObserved) for event in new):
                    yield process, Resumed(row_s, now_s, held(process.pid).cpu_s)
                    return
                if process.poll() is not None or now_s > LONGEST_S:
                    raise RuntimeError(f"the run did not go on:\n{self.said('resume')}")
                time.sleep(LOOK_EVERY_S)
