"""How fast a twin's time runs beside the machine's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeScale:
    """`speed` seconds of the twin pass in one second of the machine, from where both stood at the start."""

    speed: float
    real_start_s: float
    twin_start_ms: int

    def __post_init__(self) -> None:
        assert self.speed > 0, "time goes forward"

    def twin_ms(self, real_s: float) -> int:
        """What time it is in the twin."""
        return self.twin_start_ms + int((real_s - self.real_start_s) * self.speed * 1000)

    def real_s_until(self, twin_ms: int, real_s: float) -> float:
        """How many seconds of the machine it takes until this time of the twin has come."""
        due_s = self.real_start_s + (twin_ms - self.twin_start_ms) / 1000 / self.speed
        return max(0.0, due_s - real_s)
