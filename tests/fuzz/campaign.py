"""Many examples of a target, one after the other: in this process, or in one of its own with a limit of its memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from tests.fuzz.target import BrokenError, HangError, Target, chance_of, deadline

MEMORY_BYTES = 6 << 30
"""What the process of a target may map: threads of pyarrow and numpy reserve much of it without using it."""
START_S, SLOWEST_S = 300.0, 60.0
MIB = 1 << 20
_FAST_FOLDER = Path("/dev/shm")
_SHOWN = 20
_HEAD = """| target | examples | refused | accepted | longest, s | peak memory, MiB | broken |
|---|---|---|---|---|---|---|"""


@dataclass(slots=True)
class Tally:
    """What came of the examples of a target. `broken` are sentences, each with the number of its example."""

    target: str
    tried: int = 0
    refused: int = 0
    accepted: int = 0
    longest_s: float = 0.0
    slowest: int = 0
    peak_mib: float = 0.0
    broken: tuple[str, ...] = ()


class _Caught:
    """Whatever is raised within, as a text: it is what is looked for."""

    told = ""

    def __enter__(self) -> None:
        self.told = ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, BrokenError):
            self.told = str(error)
        elif isinstance(error, Exception | HangError):
            self.told = "".join(traceback.format_exception(error))[-3_000:]
        return bool(self.told)


def tried(target: Target, first: int, count: int) -> Tally:
    """Try examples in this process."""
    found = Tally(target.name)
    with (
        TemporaryDirectory(dir=_FAST_FOLDER if _FAST_FOLDER.is_dir() else None) as folder,
        target.open(Path(folder)) as attempt,
    ):
        for seed in range(first, first + count):
            begun = time.perf_counter()
            caught = _Caught()
            with caught, deadline(target.deadline_s):
                is_accepted = attempt(chance_of(target.name, seed))
                found.accepted += is_accepted
                found.refused += not is_accepted
            if caught.told:
                found.broken += (f"example {seed}: {caught.told}",)
            found.tried += 1
            lasted_s = time.perf_counter() - begun
            if lasted_s > found.longest_s:
                found.longest_s, found.slowest = lasted_s, seed
            if len(found.broken) >= _SHOWN:
                break
    found.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
    return found


def tried_apart(target: Target, first: int, count: int) -> Tally:
    """Try them in a process of its own, which must come to its end and whose memory is bounded."""
    program = [sys.executable, "-m", "tests.fuzz.apart", target.name, str(first), str(count)]
    try:
        done = subprocess.run(
            program, capture_output=True, text=True, check=False, timeout=START_S + count * SLOWEST_S,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Tally(target.name, count, broken=("the process did not end",))
    *_, last = done.stdout.splitlines() or [""]
    try:
        fields = json.loads(last)
        return Tally(**{**fields, "broken": tuple(fields["broken"])})
    except (ValueError, TypeError):
        return Tally(target.name, count, broken=(f"the process ended with {done.returncode}: {done.stderr[-3_000:]}",))


def told(tally: Tally) -> str:
    """A tally as the process of a target hands it back."""
    return json.dumps(asdict(tally))


def table(tallies: list[Tally]) -> str:
    """The table of a campaign."""
    rows = [_row(one) for one in tallies]
    total = Tally("all")
    for one in tallies:
        total.tried, total.refused, total.accepted = (
            total.tried + one.tried, total.refused + one.refused, total.accepted + one.accepted,
        )  # fmt: skip
        total.longest_s, total.peak_mib = max(total.longest_s, one.longest_s), max(total.peak_mib, one.peak_mib)
        total.broken += one.broken
    return "\n".join([_HEAD, *rows, _row(total)])


def _row(one: Tally) -> str:
    counts = f"{one.tried:,} | {one.refused:,} | {one.accepted:,}"
    return f"| {one.target} | {counts} | {one.longest_s:.1f} | {one.peak_mib:.0f} | {len(one.broken)} |"
