"""When a run may move data: windows of the day in a time zone, and a deadline. Pure.

Windows are times of a local clock, so a night on which the clock changes is an hour shorter or longer. Where the clock
shows a time twice, a window begins at the second and ends at the first; a time that it leaves out counts as an hour
later where a window begins, and as an hour earlier where it ends. So nothing is moved outside a window, however one
reads the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from math import inf
from zoneinfo import ZoneInfo

DAYS = 8
"""So many days are looked ahead; windows come back every day."""

DAY_MINUTES = 24 * 60


class AtWindowEnd(StrEnum):
    """What becomes of moves that are in flight when a window closes or the deadline comes."""

    FINISH = "finish"  # they go on to their end
    CANCEL = "cancel"  # they are cancelled (KIP-455); after a window they start anew in the next one


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A time of every day, in minutes after midnight; it ends on the day after if it ends before it begins."""

    begins_minute: int
    ends_minute: int

    def __str__(self) -> str:
        return f"{_clock(self.begins_minute)}-{_clock(self.ends_minute)}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When moves may be started and in flight. Without windows: at any time before the deadline."""

    windows: tuple[Window, ...] = ()
    time_zone: str = "UTC"
    deadline_ms: int | None = None
    at_end: AtWindowEnd = AtWindowEnd.FINISH

    @property
    def are_limited(self) -> bool:
        """Whether there is any time at which nothing may be started."""
        return bool(self.windows) or self.deadline_ms is not None


@dataclass(frozen=True, slots=True)
class OpenInterval:
    """A time without a break in which moves may be in flight, in ms since the epoch."""

    begins_ms: float
    ends_ms: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.ends_ms - self.begins_ms) / 1000


def open_interval(hours: Schedule, at_ms: float) -> OpenInterval | None:
    """The opening of now, or the next one; None when there is none before the deadline."""
    deadline = inf if hours.deadline_ms is None else float(hours.deadline_ms)
    found = next(one for one in _open_intervals(hours, at_ms) if one.ends_ms > at_ms)
    return (
        OpenInterval(found.begins_ms, min(found.ends_ms, deadline)) if max(found.begins_ms, at_ms) < deadline else None
    )


def open_intervals(hours: Schedule, at_ms: float) -> Iterator[OpenInterval]:
    """What is left of the opening of now, then the next ones; without a deadline there is no last one."""
    while (found := open_interval(hours, at_ms)) is not None:
        yield OpenInterval(max(found.begins_ms, at_ms), found.ends_ms)
        at_ms = found.ends_ms
        if at_ms == inf:
            return


def longest_s(hours: Schedule, at_ms: float) -> float:
    """Seconds of the longest opening to come, what is left of the present one included."""
    horizon_ms = at_ms + DAYS * DAY_MINUTES * 60_000
    longest = 0.0
    for one in open_intervals(hours, at_ms):
        longest = max(longest, one.seconds)
        if one.ends_ms >= horizon_ms:
            break
    return longest


def moment(hours: Schedule, at_ms: float) -> str:
    """A time as the clock of these hours shows it."""
    return f"{datetime.fromtimestamp(at_ms / 1000, ZoneInfo(hours.time_zone)):%Y-%m-%d %H:%M} {hours.time_zone}"


def _open_intervals(hours: Schedule, at_ms: float) -> tuple[OpenInterval, ...]:
    if not hours.windows:
        return (OpenInterval(-inf, inf),)
    today = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(hours.time_zone)).date()
    return _around(hours.windows, hours.time_zone, today)


@lru_cache(maxsize=64)
def _around(windows: tuple[Window, ...], time_zone: str, today: date) -> tuple[OpenInterval, ...]:
    """The openings from yesterday on, merged where windows meet; one that never ends where they leave no gap."""
    zone = ZoneInfo(time_zone)
    days = (today + timedelta(days=number) for number in range(-1, DAYS + 1))
    spans = sorted((_instant(day, window, zone) for day in days for window in windows), key=lambda one: one.begins_ms)
    merged: list[OpenInterval] = []
    for span in spans:
        if span.ends_ms <= span.begins_ms:
            continue
        if merged and span.begins_ms <= merged[-1].ends_ms:
            merged[-1] = OpenInterval(merged[-1].begins_ms, max(merged[-1].ends_ms, span.ends_ms))
        else:
            merged.append(span)
    return (OpenInterval(-inf, inf),) if len(merged) == 1 else tuple(merged)


def _instant(day: date, window: Window, zone: ZoneInfo) -> OpenInterval:
    last = day if window.ends_minute > window.begins_minute else day + timedelta(days=1)
    return OpenInterval(
        _at(day, window.begins_minute, zone, is_second=True), _at(last, window.ends_minute, zone, is_second=False)
    )


def _at(day: date, minute: int, zone: ZoneInfo, *, is_second: bool) -> float:
    if minute == DAY_MINUTES:
        day, minute = day + timedelta(days=1), 0
    local = datetime.combine(day, time(*divmod(minute, 60)), tzinfo=zone)
    # PEP 495: where the clock shows a time twice, fold says which; where it leaves it out, whether to reckon with the
    # offset before or after. Either way one of the two is the later in UTC.
    first, second = (local.replace(fold=fold).timestamp() * 1000 for fold in (0, 1))
    return max(first, second) if is_second else min(first, second)


def _clock(minute: int) -> str:
    return "{:02}:{:02}".format(*divmod(minute, 60))
