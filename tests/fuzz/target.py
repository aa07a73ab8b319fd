"""Targets of fuzzing and the verdict: an example is accepted, or refused by an error of ours; else it is broken."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.campaigns.campaign import Caught, Result, Tally, deadline, fast_folder

Attempt = Callable[[Random], bool]
"""Makes an example at random and tries it: whether it was accepted. Raises BrokenError, or whatever the code raises."""

DEADLINE_S = 120.0
"""The longest that an example may take, on a machine of two cores whose load is twenty."""
MOST_BROKEN = 20
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of input. `open` gives what tries an example, in a folder of its own; the stack closes what it needs.

    `quick` is how many examples the tests try; `share` the part of the examples that it gets in a campaign, for those
    that cost much.
    """

    name: str
    open: Callable[[Path, ExitStack], Attempt]
    quick: int = 10
    share: float = 1.0
    deadline_s: float = DEADLINE_S


def chance_of(target: str, number: int) -> Random:
    """Random source of an example: the same one for the same number."""
    return Random(f"{target} {number}")


def try_examples(target: Target, numbers: Iterable[int]) -> Tally:
    """Try examples in this process, until too many are broken; the tally counts its memory in MiB, too."""
    tally = Tally(target.name)
    with fast_folder() as folder, ExitStack() as stack:
        attempt = target.open(Path(folder), stack)
        for number in numbers:
            end, broken, begun_s = "broken", list[str](), time.perf_counter()
            with Caught(broken), deadline(target.deadline_s):
                end = "accepted" if attempt(chance_of(target.name, number)) else "refused"
            sentences = tuple(f"example {number}: {each}" for each in broken)
            tally.add(Result(number, end, sentences, time.perf_counter() - begun_s))
            if tally.failed >= MOST_BROKEN:
                break
    tally.counts["memory"]["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // MIB
    return tally
