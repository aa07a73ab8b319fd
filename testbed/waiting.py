"""Waiting for a condition, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""How long to wait for what comes within seconds on a quiet machine. It decides only how long a failure takes."""
_STEP_S = 0.05


def wait_until(
    condition: Callable[[], bool], *, what: str, timeout_s: float = PATIENCE_S, every_s: float = _STEP_S
) -> None:
    """Ask again, every `every_s` seconds, until the condition holds.

    TimeoutError, naming `what`, when it does not in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not so within {timeout_s:g} s")
        time.sleep(every_s)
