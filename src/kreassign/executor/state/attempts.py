"""How often a change of a move was sent, when it is due again, and when that is in vain. Pure.

The time between two attempts doubles, within bounds, and is spread a little, as Kafka's own clients do it (KIP-580:
`retry.backoff.ms`, `retry.backoff.max.ms`, jitter of 20 %). The spread follows from the run and the number of the
attempt, so that a journal read back gives the same times.

An attempt is unanswered until an answer says what became of it. What was sent and not answered may be carried out at
any later time, so one answer that refuses the next attempt does not tell that nothing is under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

FIRST_DELAY_MS = 1_000
LONGEST_DELAY_MS = 30_000
JITTER = 0.2
_DOUBLINGS = 5
"""After so many the longest pause is reached."""

LEAST_ATTEMPTS = 3
PATIENCE_MS = 120_000
"""What was sent at least so often, for so long, and still shows no effect is in vain."""

LAST_WORD_MS = 15_000
"""After the last attempt its effect may take so long to show."""


@dataclass(slots=True)
class Attempts:
    """The attempts at one change. Times are ms of the run's own clock."""

    count: int = 0
    first_ms: int = 0
    last_ms: int = 0
    due_ms: int = 0
    unanswered: int = 0
    answer: str = ""
    """What the cluster said last, if that was not yes."""

    def begin(self, at_ms: int, seed: str) -> None:
        """Note that the change is about to be sent (again)."""
        self.first_ms = at_ms if self.count == 0 else self.first_ms
        self.count += 1
        self.unanswered += 1
        self.last_ms, self.due_ms = at_ms, at_ms + delay_ms(self.count, seed)

    def restart(self, at_ms: int) -> None:
        """Let the time begin again: that of another process was not this one's."""
        self.first_ms = self.last_ms = self.due_ms = at_ms

    def answered(self, answer: str) -> None:
        """Note that an answer told that an attempt came to nothing."""
        self.unanswered, self.answer = max(0, self.unanswered - 1), answer

    def is_due(self, at_ms: int) -> bool:
        """Whether the next attempt may be made."""
        return at_ms >= self.due_ms

    def is_in_vain(self, at_ms: int) -> bool:
        """Whether another attempt makes no sense, given that the cluster shows no effect now."""
        return self.count >= LEAST_ATTEMPTS and at_ms - self.first_ms >= PATIENCE_MS and self.had_time(at_ms)

    def had_time(self, at_ms: int) -> bool:
        """Whether the last attempt would show by now."""
        return at_ms - self.last_ms >= LAST_WORD_MS


def delay_ms(attempt: int, seed: str) -> int:
    """How long to wait after this attempt, the first being 1."""
    whole = min(LONGEST_DELAY_MS, FIRST_DELAY_MS << min(attempt - 1, _DOUBLINGS))
    chance = crc32(f"{seed}:{attempt}".encode()) / 2**32
    return round(whole * (1 - JITTER + 2 * JITTER * chance))
