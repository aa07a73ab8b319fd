"""Count how often a change of a move was sent, when it is due again, and when it is given up.

The time between two attempts doubles, within bounds, and is spread a little, as Kafka's own clients do it (KIP-580:
`retry.backoff.ms`, `retry.backoff.max.ms`, jitter of 20 %). The spread follows from the run and the number of the
attempt, so that a journal read back gives the same times.

An attempt is unanswered until an answer gives its outcome. A request without an answer may take effect at any later
time, so a refusal of the next attempt does not prove that nothing is under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

FIRST_DELAY_MS = 1_000
LONGEST_DELAY_MS = 30_000
JITTER = 0.2
_DOUBLINGS = 5
"""Doublings until the longest pause is reached."""

LEAST_ATTEMPTS = 3
PATIENCE_MS = 120_000
"""A change sent repeatedly for this long without effect is given up."""

LAST_WORD_MS = 15_000
"""Time for the last attempt to show its effect."""


@dataclass(slots=True)
class Attempts:
    """Attempts at one change. Times are ms of the run's own clock."""

    count: int = 0
    first_ms: int = 0
    last_ms: int = 0
    due_ms: int = 0
    unanswered: int = 0
    answer: str = ""
    """The last answer of the cluster, if it was an error."""
    was_lost: bool = False
    """True if one had no answer when the next began: it may take effect at any later time."""
    was_accepted: bool = False
    """True if the cluster ever made the change: what a later attempt was answered says nothing about that."""

    def begin(self, at_ms: int, seed: str) -> None:
        """Record that the change is about to be sent (again)."""
        self.first_ms = at_ms - self.tried_ms(at_ms) if self.count else at_ms
        self.was_lost = self.was_lost or self.unanswered > 0
        self.count += 1
        self.unanswered += 1
        self.last_ms, self.due_ms = at_ms, at_ms + delay_ms(self.count, seed)

    def restart(self, at_ms: int) -> None:
        """Restart the time: another process counted it."""
        self.first_ms = self.last_ms = self.due_ms = at_ms

    def tried_ms(self, at_ms: int) -> int:
        """Time spent on the attempts so far, without that in which the next one was due and not made.

        One without an answer may still take effect, so that time goes on for it.
        """
        return (at_ms if self.unanswered else min(at_ms, self.due_ms)) - self.first_ms

    def answered(self, answer: str) -> None:
        """Record a refusal."""
        self.unanswered, self.answer = max(0, self.unanswered - 1), answer

    def accepted(self) -> None:
        """Record that the change was made: earlier attempts change nothing more, unless it is cancelled."""
        self.unanswered, self.answer, self.was_accepted = 0, "", True

    def may_take_effect_later(self, at_ms: int) -> bool:
        """True if an attempt had no answer, also where a later one was accepted a moment ago."""
        return self.unanswered > 0 or (self.was_lost and not self.had_time(at_ms))

    @property
    def was_refused(self) -> bool:
        """True if the cluster refused every attempt, so that none had an effect."""
        return bool(self.answer) and not (self.unanswered or self.was_accepted)

    def is_due(self, at_ms: int) -> bool:
        """True if the next attempt may be made."""
        return at_ms >= self.due_ms

    def is_in_vain(self, at_ms: int) -> bool:
        """True if further attempts are pointless, given that the cluster shows no effect now."""
        return self.count >= LEAST_ATTEMPTS and self.tried_ms(at_ms) >= PATIENCE_MS and self.had_time(at_ms)

    def had_time(self, at_ms: int) -> bool:
        """True if the effect of the last attempt would show by now."""
        return at_ms - self.last_ms >= LAST_WORD_MS


def delay_ms(attempt: int, seed: str) -> int:
    """Pause after this attempt in ms, the first being 1."""
    whole = min(LONGEST_DELAY_MS, FIRST_DELAY_MS << min(attempt - 1, _DOUBLINGS))
    chance = crc32(f"{seed}:{attempt}".encode()) / 2**32
    return round(whole * (1 - JITTER + 2 * JITTER * chance))
