"""Running tests against mutants: each in a copy of the sources, in processes that end with this one."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from testbed.processes import ProcessGroup
from tests.mutants.table import Mutant

TIMEOUT_S = 240.0
NO_TESTS = 5  # the exit code of pytest where all are deselected
QUICK = "not kafka and not spark and not thorough"
THOROUGH = "not kafka and not spark and thorough"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: the test that failed, `timeout` where the tests did not end, None if it survived."""

    mutant: Mutant
    killer: str | None
    seconds: float


def verdicts(mutants: Sequence[Mutant], checkout: Path, python: str, jobs: int) -> Iterator[Verdict]:
    """A verdict per mutant, in their order; `jobs` at a time, each with a copy of the sources of its own."""
    with TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            # With what is compiled: a changed source is newer, and the loops of the search take long to compile.
            copies.put(Path(shutil.copytree(checkout / "src", Path(folder) / str(number))))

        def judge(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return _judged(mutant, copy, checkout, python)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(judge, mutants)


def _judged(mutant: Mutant, copy: Path, checkout: Path, python: str) -> Verdict:
    began_s = time.monotonic()
    module = copy / "kreassign" / mutant.module
    original = module.read_text(encoding="utf-8")
    module.write_text(mutant.applied(original), encoding="utf-8")
    try:
        killer = _killer(mutant, copy, checkout, python)
    finally:
        module.write_text(original, encoding="utf-8")
    return Verdict(mutant, killer, time.monotonic() - began_s)


def _killer(mutant: Mutant, copy: Path, checkout: Path, python: str) -> str | None:
    """The first test that fails, of the quick ones, then of the thorough ones."""
    return _failing(mutant, copy, checkout, (python, QUICK)) or _failing(mutant, copy, checkout, (python, THOROUGH))


def _failing(mutant: Mutant, copy: Path, checkout: Path, how: tuple[str, str]) -> str | None:
    python, marks = how
    command = [
        "env", "-C", str(checkout), f"PYTHONPATH={copy}", "PYTHONDONTWRITEBYTECODE=1",
        python, "-m", "pytest", "-x", "-q", "-n", "0", "-m", marks, *mutant.tests,
    ]  # fmt: skip
    with closing(ProcessGroup()) as processes:
        try:
            finished = processes.run(command, timeout_s=TIMEOUT_S)
        except TimeoutError:
            return "timeout"
    if finished.exit_code in {0, NO_TESTS}:
        return None
    found = _FAILED.search(finished.stdout)
    return found[1] if found else f"exit code {finished.exit_code}: {(finished.stdout + finished.stderr)[-300:]}"
