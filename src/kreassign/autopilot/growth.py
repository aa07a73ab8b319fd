"""Use of log directories, and their growth as it was measured each hour, with its error. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from kreassign.autopilot.events import DiskUse, Name
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.symptoms import Look
from kreassign.model import LogDir
from kreassign.model.text import HOUR_MS, format_amount

GROWN_OVER_MS = 6 * HOUR_MS
"""Growth is measured over so long at least."""

WITHIN = 2.0
"""Standard errors on both sides of a growth, within which it is with 95 %."""


LEAST_STEPS = 4
"""Hours of which each has a measurement, for an error: of fewer it is itself not known."""


class Growth(NamedTuple):
    """Bytes an hour by which a directory grows, and its standard error by what was added each hour; None if unknown."""

    bytes_per_hour: float = 0.0
    error: float | None = None

    def hours_for(self, room_bytes: float, errors: float = 0.0) -> float:
        """Hours until so much is added, with so many errors on top of the growth; infinite without growth."""
        rate = self.bytes_per_hour + errors * (self.error or 0.0)
        return room_bytes / rate if rate > 0 else math.inf

    def text_for(self, room_bytes: float) -> str:
        """When a directory with so much room is full, at what growth, both with their error."""
        rate, hours = format_amount(self.bytes_per_hour, "B"), f"{self.hours_for(room_bytes):.0f} h"
        if self.error is None:
            return f"full in {hours} by its growth of {rate}/h (measured too seldom for an error)"
        if not self.error:
            return f"full in {hours} by its growth of {rate}/h"
        early, late = (self.hours_for(room_bytes, errors) for errors in (WITHIN, -WITHIN))
        until = f"to {late:.0f} h" if math.isfinite(late) else "h or later"
        off = format_amount(WITHIN * self.error, "B")
        return f"full in {hours} ({early:.0f} {until}) by its growth of {rate}/h ± {off}/h"


NO_GROWTH = Growth()


def use_of(broker: int, log_dir: LogDir) -> DiskUse | None:
    """Use of a working directory that reports its size."""
    if log_dir.error is not None or not log_dir.total_bytes or log_dir.usable_bytes is None:
        return None
    return DiskUse(broker, log_dir.path, log_dir.total_bytes - log_dir.usable_bytes, log_dir.total_bytes)


def uses_of(look: Look, name: Name) -> list[DiskUse | None]:
    """Use of the directory that a finding is about, None where it is not reported; empty where no broker names it."""
    dirs = dict(look.now.directories()).get(name.broker, ())
    return [use_of(name.broker, one) for one in dirs if one.path == name.path]


def growths_of(look: Look) -> Mapping[tuple[int, str], Growth | None]:
    """Growth of each directory of a look that reports its use, by broker and path; None where it is not known."""
    past = past_uses(look.memory, since_ms=_moved_until(look))
    found: dict[tuple[int, str], Growth | None] = {}
    for broker, dirs in look.now.directories():
        for use in (use_of(broker, one) for one in dirs):
            if use is not None:
                found[broker, use.path] = growth_of(use, past[broker, use.path], look.now.at_ms)
    return found


def _moved_until(look: Look) -> float:
    """Time until which repairs or others copied, or may have in a break: what disks got by that is no growth."""
    copied = (one for one in look.memory.acts if one.copied_bytes)
    ends = [look.now.at_ms if one.ended_ms is None else one.ended_ms for one in copied]
    return max([*ends, look.memory.others_moved_ms or 0, look.memory.went_on_ms or 0])


def past_uses(memory: Memory, since_ms: float) -> Mapping[tuple[int, str], list[tuple[int, int]]]:
    """Times and used bytes of each directory, by broker and path, as they were measured since then.

    What a broker gets while it catches up is no growth: only later measurements count.
    """
    found: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for measured in (one for one in memory.disks if one.at_ms >= since_ms):
        for disk in measured.disks:
            if disk.broker in measured.catching_up:
                found[disk.broker, disk.path].clear()
            else:
                found[disk.broker, disk.path].append((measured.at_ms, disk.used_bytes))
    return found


def growth_of(use: DiskUse, past: Sequence[tuple[int, int]], at_ms: int) -> Growth | None:
    """Growth of a directory since the first measurement that counts; None where none is old enough.

    The median of what was added from measurement to measurement counts where it is less than the mean: what was moved
    there at once does not go on.
    """
    old = [index for index, (then_ms, _) in enumerate(past) if at_ms - then_ms >= GROWN_OVER_MS]
    if not old:
        return None
    points = [*past[old[-1] :], (at_ms, use.used_bytes)]
    steps = [
        (after - before) / (after_ms - before_ms) * HOUR_MS
        for (before_ms, before), (after_ms, after) in pairwise(points)
        if after_ms > before_ms
    ]
    mean = (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0]) * HOUR_MS
    hourly = steps[:-1]  # minutes since the last measurement would count for as much as an hour
    error = _error_of_mean(hourly) if len(hourly) >= LEAST_STEPS else None
    rate = min(mean, median(steps))
    return Growth(rate, error) if rate > 0 else NO_GROWTH


def _error_of_mean(steps: Sequence[float]) -> float:
    """Standard error of the mean of two numbers and more; in floats, for exact fractions take a tenth of a look."""
    mean = math.fsum(steps) / len(steps)
    return math.sqrt(math.fsum((one - mean) ** 2 for one in steps) / (len(steps) - 1) / len(steps))
