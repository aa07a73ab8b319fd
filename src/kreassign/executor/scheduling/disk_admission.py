"""Whether there is free space for one more copy, per broker and per log directory. Pure but for its own counts.

Usable bytes are what a broker reports as free: what old copies occupy is not free until they are deleted, so it
is never counted on. What copies in flight still have to bring is taken off beforehand. Where Kafka chooses the
directory, the free space of a broker is that of all its directories together: no more can be known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import isfinite

from kreassign.executor.scheduling.candidate import Candidate, Endpoint

RESERVE = 0.05
"""Part of every log directory that stays free by default."""


@dataclass(slots=True)
class DiskBudget:
    """Bytes that may still be promised at each destination; shrinks with each move that starts.

    An end that is not known refuses nothing. `rate_bytes_per_s` is how fast copies come in, None where nobody limits
    it: meanwhile a partition goes on being written.
    """

    free: dict[Endpoint, float]
    rate_bytes_per_s: int | None = None

    @classmethod
    def after(
        cls, usable_bytes: Mapping[Endpoint, float], in_flight: Iterable[Candidate], rate_bytes_per_s: int | None = None
    ) -> DiskBudget:
        """What is left of `usable_bytes` once `in_flight` has arrived: the size of a move is what it still brings."""
        budget = cls(dict(usable_bytes), rate_bytes_per_s)
        for move in in_flight:
            budget.promise(move)
        return budget

    def copy(self) -> DiskBudget:
        """The same, to be used up by itself."""
        return DiskBudget(dict(self.free), self.rate_bytes_per_s)

    @property
    def depends_on_size(self) -> bool:
        """Yes: a smaller copy may still fit."""
        return True

    def promise(self, move: Candidate) -> None:
        """Take off what the copies of a move will need."""
        for end in _ends(move):
            if end in self.free:
                self.free[end] -= needed_bytes(move, self.rate_bytes_per_s)

    def refusing(self, move: Candidate) -> Endpoint | None:
        """The first end without enough free space for the move."""
        needed = needed_bytes(move, self.rate_bytes_per_s)
        return next((end for end in _ends(move) if needed > self.free.get(end, needed)), None)

    def refuses(self, move: Candidate) -> str | None:
        """Which end lacks free space for the move, as a sentence, or None."""
        end = self.refusing(move)
        if end is None:
            return None
        needed = needed_bytes(move, self.rate_bytes_per_s)
        much = f"needs {int(needed)}" if isfinite(needed) else "never catches up with what is written"
        return f"{_words(end)} has {max(0, int(self.free[end]))} bytes to promise, and a copy {much}"


def needed_bytes(move: Candidate, rate_bytes_per_s: float | None) -> float:
    """What one copy has become when it has caught up: s + w·s/(r-w); infinite where it never does."""
    if rate_bytes_per_s is None or move.size_bytes == 0:
        return float(move.size_bytes)
    gain = rate_bytes_per_s - move.write_bytes_per_s
    return move.size_bytes * rate_bytes_per_s / gain if gain > 0 else float("inf")


def find_cycle(waits: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """Brokers of which each waits for the next and the last for the first, from the lowest on; empty if there are none.

    `waits` says for each full broker where the replicas that shall leave it are to go.
    """
    try:
        TopologicalSorter({broker: sorted(set(to) & waits.keys()) for broker, to in sorted(waits.items())}).prepare()
    except CycleError as error:
        found = error.args[1][:0:-1]  # the first is named once more at the end, and each waits for the one before
        lowest = found.index(min(found))
        return (*found[lowest:], *found[:lowest])
    return ()


def _ends(move: Candidate) -> Iterator[Endpoint]:
    for broker in move.destinations:
        yield ("destination", broker)
    for place in move.log_dirs:
        yield ("log_dir", place)


def _words(end: Endpoint) -> str:
    which = end[1]
    return f"log directory {which[1]} of broker {which[0]}" if isinstance(which, tuple) else f"broker {which}"
