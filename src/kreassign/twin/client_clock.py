"""What clocks show on the machine of clients in the twin's own time, which may be wrong, or stand still."""

from __future__ import annotations


class ClientClock:
    """How that machine's clocks differ from the twin's time."""

    def __init__(self) -> None:
        self._stepped_ms = 0
        self._missed_ms = 0
        self._suspended_ms = 0

    def step(self, by_ms: int) -> None:
        """Let the wall clock jump."""
        self._stepped_ms += by_ms

    def suspend(self, for_ms: int) -> None:
        """Let the machine be suspended from the next moment on in which it waits or asks something."""
        self._suspended_ms += for_ms

    def take_suspension(self) -> int:
        """For how long the machine is to be suspended now; whoever asks lets so much time pass."""
        suspended_ms, self._suspended_ms = self._suspended_ms, 0
        self._missed_ms += suspended_ms
        return suspended_ms

    def wall_ms(self, twin_ms: int) -> int:
        """What the wall clock shows."""
        return twin_ms + self._stepped_ms

    def monotonic_s(self, twin_ms: int) -> float:
        """What the monotonic clock shows, which does not count the time of a suspension."""
        return (twin_ms - self._missed_ms) / 1000
