"""What is fuzzed, and how an example is judged: it is refused by an error of ours or accepted; else it is broken."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

Attempt = Callable[[Random], bool]
"""Makes an example by chance and tries it: whether it was accepted. Raises BrokenError, or whatever the code raises."""

DEADLINE_S = 120.0
"""The longest that an example may take, on a machine of two cores whose load is twenty."""


class BrokenError(AssertionError):
    """An example that is neither accepted nor refused as it should be."""


class HangError(BaseException):
    """An example that takes too long: nobody may catch it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of input. `open` gives what tries an example, in a folder of its own.

    `quick` is how many examples `make test` tries; `share` the part of the examples that it gets in a campaign, for
    those that cost much.
    """

    name: str
    open: Callable[[Path], AbstractContextManager[Attempt]]
    quick: int = 10
    share: float = 1.0
    deadline_s: float = DEADLINE_S


def chance_of(target: str, seed: int) -> Random:
    """What an example of a target is drawn by: the same one for the same number."""
    return Random(f"{target} {seed}")


@contextmanager
def deadline(seconds: float = DEADLINE_S) -> Iterator[None]:
    """End what takes longer. Only in the main thread."""

    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise HangError(f"after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    others_s, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # pytest's own, too
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, others_s)
