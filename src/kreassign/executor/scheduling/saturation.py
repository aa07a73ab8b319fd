"""Brokers that have enough to do: another copy would only take from those that are there. Pure but for its counts.

With nothing more in flight than keeps every broker busy, all copies are as fast as can be, fewer replicas are out of
sync at a time, and less is lost when a run is cancelled; and the whole ends no later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.executor.scheduling.values import Candidate, Endpoint


@dataclass(frozen=True, slots=True)
class SaturationThreshold:
    """What keeps a broker busy: so many copies to send, or to receive, and so many bytes left of them."""

    copies: int
    left_bytes: int


@dataclass(slots=True)
class Saturation:
    """What is in flight at each end of the brokers; grows with each move that starts."""

    enough: SaturationThreshold
    _copies: Counter[Endpoint] = field(default_factory=Counter)
    _left: Counter[Endpoint] = field(default_factory=Counter)
    _others: dict[Endpoint, Counter[Endpoint]] = field(default_factory=dict)

    @classmethod
    def of(cls, enough: SaturationThreshold, moves: Iterable[Candidate]) -> Saturation:
        """What these moves take."""
        busy = cls(enough)
        for move in moves:
            busy.promise(move)
        return busy

    @property
    def depends_on_size(self) -> bool:
        """No: a broker that has enough takes nothing on, however small."""
        return False

    def promise(self, move: Candidate) -> None:
        """Count a move that starts."""
        source: Endpoint = ("source", move.source)
        left = move.total_bytes if move.left_bytes is None else move.left_bytes
        for broker in move.destinations:
            destination: Endpoint = ("destination", broker)
            for end, other in ((source, destination), (destination, source)):
                self._copies[end] += 1
                self._left[end] += left // len(move.destinations)
                self._others.setdefault(end, Counter())[other] += 1

    def refuses(self, move: Candidate) -> str | None:
        """Which broker of the move has enough to do, as a sentence, or None. What is urgent waits for nobody."""
        if move.is_urgent or not move.destinations:
            return None
        if self.is_busy(("source", move.source)):
            return f"broker {move.source} has enough to send"
        busy = next((broker for broker in move.destinations if self.is_busy(("destination", broker))), None)
        return None if busy is None else f"broker {busy} has enough to receive"

    def is_busy(self, end: Endpoint) -> bool:
        """Whether a broker has enough to send, or to receive: so that, at fair shares, all it can do is used.

        A copy gets at least its share of its other end. Where the shares add up to less than one, the broker takes on
        more copies, up to twice as many.
        """
        copies = self._copies[end]
        if copies < self.enough.copies or self._left[end] < self.enough.left_bytes:
            return False
        shares = sum(count / self._copies[other] for other, count in self._others[end].items())
        return shares >= 1 or copies >= 2 * self.enough.copies
