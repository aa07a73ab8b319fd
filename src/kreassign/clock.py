"""Time, handed in rather than looked up, so that a rehearsal can run in virtual time.

Two kinds of it: what a person reads off the wall, which may jump, and what only differences mean anything of.
"""

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


def processor_s() -> float:
    """Seconds that processors have worked for this process; only differences mean anything."""
    return time.process_time()


HICCUP_S = 5.0
"""A process that slept so much longer than it wanted to was stopped, or its machine was."""


class SteadyTime:
    """The time of a process: it begins at the wall clock's and then goes on evenly, whatever the wall clock does.

    A wall clock is set by people and by NTP, so a duration between two of its readings may be anything. The time while
    the process was stopped in its sleep is left out: nobody looked then, so nothing follows from how long it was.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin_ms = clock.now_ms()
        self._begin_s = clock.monotonic_s()

    def now_ms(self) -> int:
        """Milliseconds since the epoch, had the wall clock gone evenly since the beginning."""
        return self._begin_ms + round((self._clock.monotonic_s() - self._begin_s) * 1000)

    def begin_after(self, at_ms: int) -> None:
        """Be no earlier than that: what was written down before has come before."""
        self._begin_ms += max(0, at_ms - self.now_ms())

    def ahead_ms(self) -> int:
        """By how much the wall clock is ahead of this time now."""
        return self._clock.now_ms() - self.now_ms()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        before_s = self._clock.monotonic_s()
        self._clock.sleep(seconds)
        excess_s = self._clock.monotonic_s() - before_s - seconds
        if excess_s > HICCUP_S:
            self._begin_s += excess_s


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
