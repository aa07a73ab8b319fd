"""How much is in flight at each end, and whether one more move keeps to the limits. Pure but for its own counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kreassign.executor.scheduling.values import Candidate, Cap, Caps, Endpoint, LogDirKey

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
