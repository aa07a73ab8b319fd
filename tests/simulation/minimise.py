"""The smallest part of a trial that still goes wrong: incidents and moves are left out one by one. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.trial import Trial

MOST_ATTEMPTS = 200


def minimised(trial: Trial, goes_wrong: Callable[[Trial], bool], *, attempts: int = MOST_ATTEMPTS) -> Trial:
    """A trial of which nothing can be left out without its going right, or what was reached after so many attempts.

    Big parts are left out first, then smaller ones, as in delta debugging.
    """
    left = attempts
    for field, least in (("incidents", 0), ("moves", 1)):
        size = max(1, len(getattr(trial, field)) // 2)
        while size and left > 0:
            kept = getattr(trial, field)
            for begin in range(0, len(kept), size):
                fewer = kept[:begin] + kept[begin + size :]
                if len(fewer) < least or left <= 0:
                    continue
                left -= 1
                smaller = replace(trial, **{field: fewer})
                if goes_wrong(smaller):
                    trial = smaller
                    break
            else:
                size //= 2
            size = min(size, max(1, len(getattr(trial, field)) // 2)) if size else 0
    return trial
