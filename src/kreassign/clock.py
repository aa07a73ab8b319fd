"""Time, handed in rather than looked up, so that a rehearsal can run in virtual time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from and how to wait."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(max(0.0, seconds))


class VirtualClock:
    """A clock that moves only when told to; waiting moves it at once."""

    def __init__(self, start_ms: int = 0) -> None:
        self._elapsed_s = 0.0
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Virtual milliseconds since the epoch."""
        return self._start_ms + round(self._elapsed_s * 1000)

    def monotonic_s(self) -> float:
        """Virtual seconds since the clock was made."""
        return self._elapsed_s

    def sleep(self, seconds: float) -> None:
        """Move on by so many seconds, taking no time."""
        self._elapsed_s += max(0.0, seconds)
