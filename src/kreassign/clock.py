"""Time as an argument, so that a rehearsal can run in virtual time.

Wall-clock milliseconds may jump; monotonic seconds do not, but only their differences mean anything. They run on while
the machine sleeps: a lease, a token or a deadline ends elsewhere meanwhile, by clocks that do not sleep.
"""

from __future__ import annotations

import time
from typing import Protocol

# CLOCK_MONOTONIC stands still while Linux sleeps, CLOCK_BOOTTIME (Linux 2.6.39) does not. On macOS, which has only the
# former, it counts sleep.
_THROUGH_SLEEP = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Source of the time, and a way to wait."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go back, and run on while the machine sleeps; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds of this clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that never go back, and run on while the machine sleeps."""
        return time.clock_gettime(_THROUGH_SLEEP)

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds; not at all if negative."""
        time.sleep(max(0.0, seconds))


SYSTEM_CLOCK = SystemClock()


def processor_s() -> float:
    """CPU seconds of this process; only differences mean anything."""
    return time.process_time()


HICCUP_S = 5.0
"""A sleep this much longer than asked for means that the process or its machine was suspended."""


class SteadyTime:
    """Wall-clock time of the start plus monotonic time since: steady, even if the wall clock is set.

    People and NTP set wall clocks, so a duration between two readings may be anything. Time during which the process
    was suspended in its sleep is left out: the cluster was not observed, so nothing follows from its length.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin_ms = clock.now_ms()
        self._begin_s = clock.monotonic_s()

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as if the wall clock had run evenly since the start."""
        return self._begin_ms + round((self._clock.monotonic_s() - self._begin_s) * 1000)

    def begin_after(self, at_ms: int) -> None:
        """Advance to at least `at_ms`, so that new events sort after recorded ones."""
        self._begin_ms += max(0, at_ms - self.now_ms())

    def ahead_ms(self) -> int:
        """Milliseconds by which the wall clock is ahead of this time; negative if behind."""
        return self._clock.now_ms() - self.now_ms()

    def sleep(self, seconds: float) -> None:
        """Wait this many seconds; leave out the excess if the process was suspended meanwhile."""
        before_s = self._clock.monotonic_s()
        self._clock.sleep(seconds)
        excess_s = self._clock.monotonic_s() - before_s - seconds
        if excess_s > HICCUP_S:
            self._begin_s += excess_s


class VirtualClock:
    """A clock that only `sleep` advances, without waiting."""

    def __init__(self, start_ms: int = 0) -> None:
        self._elapsed_s = 0.0
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Virtual milliseconds since the epoch."""
        return self._start_ms + round(self._elapsed_s * 1000)

    def monotonic_s(self) -> float:
        """Virtual seconds since the clock was created."""
        return self._elapsed_s

    def sleep(self, seconds: float) -> None:
        """Advance the clock by this many seconds, without waiting."""
        self._elapsed_s += max(0.0, seconds)
