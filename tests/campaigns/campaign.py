"""Numbered trials until a deadline, with what each broke and the command that repeats it.

All that a trial draws follows from its number. Trials are played one after the other, here or in several processes, or
in a process of their own whose memory is limited.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
import time
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, takewhile
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, TracebackType
from typing import Any, NoReturn, TypeVar

import click

MOST_TEXT = 3_000
"""Characters of a traceback that are shown, its last ones."""
MOST_LINES = 30
"""Lines of a trial that are shown where it broke a promise, its last ones."""
_MEMORY = Path("/dev/shm")
_FRESH = multiprocessing.get_context("spawn")
Answer = TypeVar("Answer")


class BrokenError(AssertionError):
    """A broken promise, in a sentence."""


class HangError(BaseException):
    """A trial that takes too long; no code under test catches it."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of trial `number` in a word; the promises it broke, in sentences; its counts, by kind.

    `lines` is what happened in it, or the least of it that still breaks a promise.
    """

    number: int
    end: str
    broken: tuple[str, ...] = ()
    seconds: float = 0.0
    about: str = ""
    lines: tuple[str, ...] = ()
    counts: Mapping[str, Counter[Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.number}: {self.end}{self.about}"


@dataclass(slots=True)
class Tally:
    """The results of many trials: how they ended, what `failed` ones broke; the number of the last and the slowest."""

    name: str = ""
    ends: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    counts: dict[str, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    failed: int = 0
    last: int = 0
    slowest: int = 0

    def add(self, result: Result) -> None:
        if result.seconds >= self.longest_s:
            self.slowest = result.number
        self.ends[result.end] += 1
        self.seconds.append(result.seconds)
        self.broken += result.broken
        self.failed += bool(result.broken)
        self.last = result.number
        for kind, counts in result.counts.items():
            self.counts[kind].update(counts)

    @property
    def count(self) -> int:
        return len(self.seconds)

    @property
    def longest_s(self) -> float:
        return max(self.seconds, default=0.0)


class Caught:
    """Note what a block raises among the broken promises, a sentence or the end of a traceback, and go on after it."""

    def __init__(self, broken: list[str]) -> None:
        self._broken = broken

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, BrokenError):
            self._broken.append(str(error))
        elif isinstance(error, Exception | HangError):
            self._broken.append("".join(traceback.format_exception(error))[-MOST_TEXT:].strip())
        return isinstance(error, Exception | HangError)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise HangError in a block that takes longer. Only in the main thread."""

    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise HangError(f"after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    others_s, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # pytest's own, too
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, others_s)


def fast_folder() -> TemporaryDirectory[str]:
    """A folder in memory, where there is one: journals are quicker there than on a disk."""
    return TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)


# --- one trial after the other -------------------------------------------------------------------------------------


def play(
    trial: Callable[[int], Answer], numbers: Iterable[int], minutes: float | None = None, jobs: int = 1
) -> Iterator[Answer]:
    """Play one number after the other and begin none after so many minutes; in that many processes, in their order."""
    until_s = time.monotonic() + 60 * minutes if minutes else math.inf
    in_time = takewhile(lambda _: time.monotonic() < until_s, numbers)
    return map(trial, in_time) if jobs == 1 else _shared(trial, in_time, jobs)


def _shared(trial: Callable[[int], Answer], numbers: Iterable[int], jobs: int) -> Iterator[Answer]:
    """Trials in several processes. Few wait at a time, so that all can end soon after the deadline."""
    todo, waiting = iter(numbers), deque[Future[Answer]]()
    with ProcessPoolExecutor(jobs) as pool:
        waiting.extend(pool.submit(trial, number) for number in islice(todo, 4 * jobs))
        while waiting:
            answer = waiting.popleft().result()
            waiting.extend(pool.submit(trial, number) for number in islice(todo, 1))
            yield answer


def print_results(results: Iterable[Result], again: str, *, is_verbose: bool = False) -> Tally:
    """Count results; print each as it comes, and what it broke with the command that repeats it."""
    tally = Tally()
    for result in results:
        tally.add(result)
        click.echo("\n".join([str(result), *(result.lines if is_verbose else ())]))
        if result.broken:
            lines = (*result.lines[-MOST_LINES:], *result.broken, f"reproduce with: {again.format(result.number)}")
            click.echo("\n".join(lines), err=True)
    return tally


def apart(work: Callable[..., Answer], *arguments: Any, memory_bytes: int, timeout_s: float) -> Answer:
    """The result of a function of a module, called in a new process that may map so much memory.

    BrokenError where the process does not end in time, or ends without a result.
    """
    ours, theirs = _FRESH.Pipe(duplex=False)
    process = _FRESH.Process(target=_bounded, args=(theirs, memory_bytes, work, arguments))
    process.start()
    theirs.close()
    try:
        if not ours.poll(timeout_s):
            raise BrokenError("the process did not end")
        answer: Answer = ours.recv()
    except EOFError:
        process.join()
        raise BrokenError(f"the process ended with {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    return answer


def _bounded(to: Connection, memory_bytes: int, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    to.send(work(*arguments))


# --- what commands share -------------------------------------------------------------------------------------------


def parse_seeds(text: str) -> Iterator[int]:
    """Seeds such as `7`, `1-100` or `1-100,7000`."""
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            yield from range(int(first), int(last if dash else first) + 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} are no seeds; write for example 7, or 1-100,7000") from None


MINUTES = click.option("--minutes", type=float, help="Begin nothing further after so long.")
JOBS = click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Use so many processes.")
WRITE = click.option("--write", "writes", is_flag=True, help="Write the table into docs/reference/torture.md.")
