"""What may be in flight at a time: the limits set by the operator, and what keeps a broker busy.

`InFlight` counts against the limits. `Saturation` keeps what is in flight down to what keeps every broker busy: then
all copies are as fast as can be, fewer replicas are out of sync at a time, less is lost when a run is cancelled, and
the whole ends no later. Pure but for their own counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kreassign.executor.scheduling.candidate import Candidate, Endpoint, EndpointKind, LogDirKey


class Measure(StrEnum):
    """What is limited there; the names are those of the fields of `Cap`."""

    MOVES = "moves"
    BYTES = "size_bytes"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of what is in flight; None is no limit."""

    end: EndpointKind
    measure: Measure
    at_most: int | None


@dataclass(frozen=True, slots=True)
class Cap:
    """At most so many moves and so many bytes in flight at one end; None is no limit."""

    moves: int | None = None
    size_bytes: int | None = None

    def refuses(self, moves: int, size_bytes: int) -> str | None:
        """Which limit these would break, in words, or None."""
        if self.moves is not None and moves > self.moves:
            return f"{self.moves} moves"
        if self.size_bytes is not None and size_bytes > self.size_bytes:
            return f"{self.size_bytes} bytes"
        return None


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of what is in flight: per source broker, destination broker, log directory, and in the whole cluster.

    A move with several copies counts as one in the cluster and at each destination, and as one per copy at its source.
    """

    source: Cap = Cap()
    destination: Cap = Cap()
    log_dir: Cap = Cap()
    cluster: Cap = Cap()

    def of(self, kind: str) -> Cap:
        """The limit of a kind of end, as `Candidate.ends` names it."""
        return {"source": self.source, "destination": self.destination, "log_dir": self.log_dir}[kind]

    def limited(self, limits: Iterable[Limit]) -> Caps:
        """The same with these limits in place of those that it had there."""
        caps = self
        for limit in limits:
            cap: Cap = getattr(caps, limit.end)
            caps = replace(caps, **{limit.end: replace(cap, **{limit.measure: limit.at_most})})
        return caps


_NONE = Caps()


@dataclass(slots=True)
class InFlight:
    """Counts of copies and bytes per end; grows with each move that starts."""

    caps: Caps
    _moves: Counter[Endpoint] = field(default_factory=Counter)
    _bytes: Counter[Endpoint] = field(default_factory=Counter)
    _cluster_moves: int = 0
    _cluster_bytes: int = 0

    @classmethod
    def of(cls, caps: Caps, moves: Iterable[Candidate]) -> InFlight:
        """What these moves take."""
        counts = cls(caps)
        for move in moves:
            counts.add(move)
        return counts

    def add(self, move: Candidate) -> None:
        """Count a move that starts."""
        self._cluster_moves += 1
        self._cluster_bytes += move.total_bytes
        for kind, which, moves, size_bytes in move.ends:
            self._moves[kind, which] += moves
            self._bytes[kind, which] += size_bytes

    @property
    def is_cluster_full(self) -> bool:
        """Whether the cluster takes no copy more, however small."""
        return _is_full(self.caps.cluster, self._cluster_moves, self._cluster_bytes)

    def is_full(self, end: Endpoint) -> bool:
        """Whether an end takes no copy more, however small."""
        return _is_full(self.caps.of(end[0]), self._moves[end], self._bytes[end])

    def is_closed_to(self, move: Candidate) -> bool:
        """Whether no move between these ends, however small, can start any more."""
        ends = move.ends
        return bool(ends) and (self.is_cluster_full or any(self.is_full((kind, which)) for kind, which, _, _ in ends))

    def refuses(self, move: Candidate) -> str | None:
        """Which limit the move would break now, as a sentence, or None.

        Where nothing is in flight at an end, one move may start there even if it alone exceeds the limit: else it
        would wait for ever.
        """
        if self.caps == _NONE or not move.ends:
            return None
        broken = self.caps.cluster.refuses(self._cluster_moves + 1, self._cluster_bytes + move.total_bytes)
        if broken is not None and self._cluster_moves:
            return f"the cluster has its {broken} in flight"
        for kind, which, moves, size_bytes in move.ends:
            end = (kind, which)
            broken = self.caps.of(kind).refuses(self._moves[end] + moves, self._bytes[end] + size_bytes)
            if broken is not None and self._moves[end]:
                return f"{_words(kind, which)} has its {broken} in flight"
        return None


def _is_full(cap: Cap, moves: int, size_bytes: int) -> bool:
    return moves > 0 and cap.refuses(moves + 1, size_bytes) is not None


def _words(kind: str, which: int | LogDirKey) -> str:
    if isinstance(which, tuple):
        return f"log directory {which[1]} of broker {which[0]}"
    return f"broker {which} as a {kind}"


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
