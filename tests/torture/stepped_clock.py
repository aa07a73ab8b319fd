"""`kreassign` on a machine whose wall clock is set: SIGUSR1 sets it an hour ahead, SIGUSR2 an hour back.

All of kreassign reads the wall clock through `SYSTEM_CLOCK`; so it is replaced before anything else is imported.
"""

from __future__ import annotations

import importlib
import signal

from kreassign import clock

STEP_MS = 3_600_000


class SteppedClock(clock.SystemClock):
    """The machine's clock and what it was set by."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + SteppedClock.ahead_ms


def _step(number: int, _: object) -> None:
    SteppedClock.ahead_ms += STEP_MS if number == signal.SIGUSR1 else -STEP_MS


def main() -> None:
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, _step)
    vars(clock)["SYSTEM_CLOCK"] = SteppedClock()
    importlib.import_module("kreassign.cli.main").main()


if __name__ == "__main__":
    main()
