"""Decide when a run may move data, and which moves end in that time: windows, a deadline, and the pace of a run.

Windows are times of a local clock, so a night on which the clock changes is an hour shorter or longer. Where the
clock shows a time twice, a window begins at the second and ends at the first; a time that it skips counts as an
hour later where a window begins, and as an hour earlier where it ends. So no data moves outside a window, by either
reading of the clock.

A broker shares one rate among all that it sends, and one among all that it receives: all copies at one end are over
when their sum is. A partition that is written meanwhile grows, as for the free space on its disk. `Pace` joins the
hours with the order and the limits of a run. Pure except for the counts of `TimeLeft`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from math import ceil, inf
from typing import ClassVar

from kreassign.executor.scheduling.limits import PacedMove, needed_bytes
from kreassign.executor.scheduling.queue import add_left, ranking
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, EndpointKind, Order, Pace, Schedule, UtcOffset, Window
from kreassign.model.text import counted, format_amount

DAYS = 8
"""Number of days considered ahead; windows recur every day."""

DAY_MINUTES = 24 * 60

REACHED = 11 / 12
"""Share of its throttle that a broker reaches; see docs/concepts/throttles.md."""

Side = tuple[EndpointKind, int]
"""A broker as a source, as a destination, or copying among its own directories."""


@dataclass(frozen=True, slots=True)
class OpenInterval:
    """A continuous time in which moves may be in flight, in ms since the epoch."""

    begins_ms: float
    ends_ms: float

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return (self.ends_ms - self.begins_ms) / 1000


def open_interval(hours: Schedule, at_ms: float) -> OpenInterval | None:
    """The open interval of now, or the next one; None when there is none before the deadline."""
    deadline = inf if hours.deadline_ms is None else float(hours.deadline_ms)
    found = next(one for one in _open_intervals(hours, at_ms) if one.ends_ms > at_ms)
    return (
        OpenInterval(found.begins_ms, min(found.ends_ms, deadline)) if max(found.begins_ms, at_ms) < deadline else None
    )


def open_intervals(hours: Schedule, at_ms: float) -> Iterator[OpenInterval]:
    """The rest of the present open interval, then the next ones; endless without a deadline."""
    while (found := open_interval(hours, at_ms)) is not None:
        yield OpenInterval(max(found.begins_ms, at_ms), found.ends_ms)
        at_ms = found.ends_ms
        if at_ms == inf:
            return


def longest_s(hours: Schedule, at_ms: float) -> float:
    """Seconds of the longest open interval to come, including the rest of the present one."""
    horizon_ms = at_ms + DAYS * DAY_MINUTES * 60_000
    longest = 0.0
    for one in open_intervals(hours, at_ms):
        longest = max(longest, one.seconds)
        if one.ends_ms >= horizon_ms:
            break
    return longest


def local_time(hours: Schedule, at_ms: float) -> str:
    """Format a time by the local clock of these hours."""
    return f"{datetime.fromtimestamp(at_ms / 1000, hours.clock):%Y-%m-%d %H:%M} {hours.time_zone}"


def opening(hours: Schedule, at_ms: float) -> str | None:
    """Sentence on when moves may be in flight, seen from `at_ms`; None at any time."""
    if not hours.are_limited:
        return None
    if (found := open_interval(hours, at_ms)) is None:
        return "no window opens before the deadline"
    if found.ends_ms == inf:
        return "open at any time"
    minutes = ceil((found.begins_ms - at_ms) / 60_000) if found.begins_ms > at_ms else 0
    until = f"until {local_time(hours, found.ends_ms)}"
    if not minutes:
        return f"open now, {until}"
    return f"opens in {minutes // 60} h {minutes % 60} min, from {local_time(hours, found.begins_ms)} {until}"


def pace_text(pace: Pace) -> str:
    """Order and limits of a run, in one line."""
    caps = pace.caps
    ends = (
        ("in flight", caps.cluster),
        ("per source", caps.source),
        ("per destination", caps.destination),
        ("per log directory", caps.log_dir),
    )
    limits = [f"{limit} {words}" for words, cap in ends for limit in _limits(cap)]
    steps = ", a replica at a time" if pace.is_stepwise else ""
    at_most = f"at most {', '.join(limits)}" if limits else "no limit on moves in flight"
    return (
        f"order {pace.order}, {at_most}, {counted(pace.elections_per_step, 'election')} per step{steps}"
        f"{_hours_text(pace.hours)}"
    )


def _hours_text(hours: Schedule) -> str:
    windows = f", {' and '.join(map(str, hours.windows))} {hours.time_zone}" if hours.windows else ""
    return windows if hours.deadline_ms is None else f"{windows}, by {local_time(hours, hours.deadline_ms)}"


def _limits(cap: Cap) -> list[str]:
    moves = [] if cap.moves is None else [counted(cap.moves, "move")]
    return moves if cap.size_bytes is None else [*moves, format_amount(cap.size_bytes, "B")]


def _open_intervals(hours: Schedule, at_ms: float) -> tuple[OpenInterval, ...]:
    if not hours.windows:
        return (OpenInterval(-inf, inf),)
    today = datetime.fromtimestamp(at_ms / 1000, hours.clock).date()
    return _around(hours.windows, hours.time_zone, hours.offsets, today)


@lru_cache(maxsize=64)
def _around(
    windows: tuple[Window, ...], time_zone: str, offsets: tuple[UtcOffset, ...], today: date
) -> tuple[OpenInterval, ...]:
    """Open intervals from yesterday on, merged where windows meet; endless if there is no gap."""
    zone = Schedule(time_zone=time_zone, offsets=offsets).clock
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


def _instant(day: date, window: Window, zone: tzinfo) -> OpenInterval:
    last = day if window.ends_minute > window.begins_minute else day + timedelta(days=1)
    return OpenInterval(
        _at(day, window.begins_minute, zone, is_second=True), _at(last, window.ends_minute, zone, is_second=False)
    )


def _at(day: date, minute: int, zone: tzinfo, *, is_second: bool) -> float:
    if minute == DAY_MINUTES:
        day, minute = day + timedelta(days=1), 0
    local = datetime.combine(day, time(*divmod(minute, 60)), tzinfo=zone)
    # PEP 495: if the clock shows a time twice, fold selects one; if it skips a time, fold selects the
    # offset before or after. Either way one of the two is the later in UTC.
    first, second = (local.replace(fold=fold).timestamp() * 1000 for fold in (0, 1))
    return max(first, second) if is_second else min(first, second)


@dataclass(slots=True)
class TimeLeft:
    """Seconds for which moves may be in flight, and bytes that keep each end busy; grows with each start.

    `rate_bytes_per_s` is what a broker sends, or receives; None while unknown. Then one move at a time is
    started, to measure it.
    """

    depends_on_size: ClassVar = True
    seconds: float
    rate_bytes_per_s: float | None
    _busy: dict[Side, float] = field(default_factory=dict)
    _is_anything: bool = False

    @classmethod
    def after(cls, seconds: float, rate_bytes_per_s: float | None, in_flight: Iterable[PacedMove]) -> TimeLeft:
        """Time left once `in_flight` has arrived; its sizes are the remaining bytes."""
        left = cls(seconds, rate_bytes_per_s)
        for move in in_flight:
            left.promise(move)
        return left

    def promise(self, move: PacedMove) -> None:
        """Count a move that starts."""
        self._is_anything = self._is_anything or bool(move.ends)
        for side, size_bytes in sides(move, self.rate_bytes_per_s):
            self._busy[side] = self._busy.get(side, 0.0) + size_bytes

    def refuses(self, move: PacedMove) -> str | None:
        """Reason why the move may not start now, or None."""
        if self.seconds <= 0:
            return "moves may not be in flight now"
        if self.rate_bytes_per_s is None:
            waits = self._is_anything and bool(move.ends)
            return "the copy rate is not known yet: one move goes first" if waits else None
        for side, size_bytes in sides(move, self.rate_bytes_per_s):
            if self._busy.get(side, 0.0) + size_bytes > self.seconds * self.rate_bytes_per_s:
                return f"it would not end in the {int(self.seconds)} s that are left for what broker {side[1]} copies"
        return None


def sides(move: PacedMove, rate_bytes_per_s: float | None) -> tuple[tuple[Side, float], ...]:
    """Brokers that copy, and the bytes that each has to send, to receive or to rearrange in all."""
    needed = needed_bytes(move, rate_bytes_per_s)
    into = (((EndpointKind.DESTINATION, broker), needed) for broker in move.destinations)
    local = (((EndpointKind.LOG_DIR, broker), needed) for broker in move.rearranging)
    out = (((EndpointKind.SOURCE, move.source), needed * len(move.destinations)),) if move.destinations else ()
    return (*out, *into, *local)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Moves that fit into the hours of a run.

    At most `in_time` of `count` moves end before the deadline; `required_bytes_per_s` per broker would let all of them,
    as far as their sums go, 0 if no rate would. `too_long` are moves for which no coming interval is long enough.
    """

    count: int
    in_time: int
    in_time_bytes: int
    required_bytes_per_s: int
    too_long: tuple[TopicPartition, ...]


def forecast(
    moves: Iterable[PacedMove], hours: Schedule, at_ms: float, rate_bytes_per_s: float, order: Order = Order.MAKESPAN
) -> Forecast:
    """Forecast what fits if brokers send and receive at this rate from now on. The sizes are the remaining bytes."""
    moves = tuple(moves)
    every = sorted(moves, key=ranking(order, add_left(Counter(), moves)))
    seconds = inf if hours.deadline_ms is None else sum(one.seconds for one in open_intervals(hours, at_ms))
    longest = longest_s(hours, at_ms)
    time = TimeLeft(seconds, rate_bytes_per_s)
    too_long, in_time, in_time_bytes = [], 0, 0
    for move in every:
        if any(size_bytes > longest * rate_bytes_per_s for _, size_bytes in sides(move, rate_bytes_per_s)):
            too_long.append(move.topic_partition)
        elif time.refuses(move) is None:
            time.promise(move)
            in_time, in_time_bytes = in_time + 1, in_time_bytes + move.total_bytes
    return Forecast(len(every), in_time, in_time_bytes, _required_rate(every, seconds), tuple(too_long))


def shortfalls(found: Forecast, hours: Schedule, rate_bytes_per_s: float) -> tuple[str, ...]:
    """Problems with the hours, a sentence each; none when everything fits."""
    rate = format_amount(rate_bytes_per_s, "B/s")
    sentences = []
    if found.too_long:
        names = ", ".join(map(str, found.too_long[:10])) + (", …" if len(found.too_long) > 10 else "")
        sentences.append(
            f"at {rate} per broker no time to come is long enough for {counted(len(found.too_long), 'move')} "
            f"({names}): give a higher rate or longer windows"
        )
    if hours.deadline_ms is not None and found.in_time < found.count:
        least = format_amount(found.required_bytes_per_s, "B/s") if found.required_bytes_per_s else "no rate"
        sentences.append(
            f"at {rate} per broker at most {found.in_time} of {counted(found.count, 'move')} "
            f"({format_amount(found.in_time_bytes, 'B')}) end by {local_time(hours, hours.deadline_ms)}; all need "
            "at least "
            f"{least}, or more time"
        )
    return tuple(sentences)


def _required_rate(moves: Iterable[PacedMove], seconds: float) -> int:
    """Rate that the busiest end needs in the available time; 0 without time."""
    busy: Counter[Side] = Counter()
    for move in moves:
        for side, size_bytes in sides(move, None):
            busy[side] += ceil(size_bytes)
    return ceil(max(busy.values(), default=0) / seconds) if seconds else 0
