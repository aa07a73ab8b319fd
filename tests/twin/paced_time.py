"""Time in which a test sees what lasts seconds on any machine: slow until it has seen it, and quick from then on."""

from __future__ import annotations

from kreassign.clock import SystemClock


class PacedTime(SystemClock):
    """The machine's time, of which so much passes in a second; for a served twin."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._passed_s, self._since_s = 0.0, super().monotonic_s()

    def monotonic_s(self) -> float:
        """Seconds that have passed at the paces until now."""
        return self._passed_s + (super().monotonic_s() - self._since_s) * self._pace

    def go_on(self, pace: float) -> None:
        """Let time pass at another pace from now on."""
        self._passed_s, self._since_s = self.monotonic_s(), super().monotonic_s()
        self._pace = pace
