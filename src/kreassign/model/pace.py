"""Order, limits and hours of a run: what paces its moves, as options, journals and pages have it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kreassign.errors import InputError
from kreassign.model.text import counted, format_amount, shortened
from kreassign.model.typed_json import UNSHOWN


class Order(StrEnum):
    """Order of the waiting moves. Urgent ones precede all others in every order."""

    MAKESPAN = "makespan"  # the longest on the broker with the most left to do
    RELIEF = "relief"  # moves that leave the broker with the most to send
    SMALL_FIRST = "small-first"
    LARGE_FIRST = "large-first"
    NAME = "name"  # KIP-1335: topic, then partition


class EndpointKind(StrEnum):
    """Kind of end where moves in flight can be limited; the names are those of the fields of `Caps`."""

    SOURCE = "source"
    DESTINATION = "destination"
    LOG_DIR = "log_dir"
    CLUSTER = "cluster"


class Measure(StrEnum):
    """Measure that is limited; the names are those of the fields of `Cap`."""

    MOVES = "moves"
    BYTES = "size_bytes"


def _check_limit(most: int | None) -> None:
    if most is not None and most < 1:
        raise InputError(f"with a limit of {most} nothing would ever start; give at least 1, or None for no limit")


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of moves in flight; None is no limit."""

    end: EndpointKind
    measure: Measure
    at_most: int | None

    def __post_init__(self) -> None:
        _check_limit(self.at_most)


@dataclass(frozen=True, slots=True)
class Cap:
    """Most moves and most bytes in flight at one end; None is no limit."""

    moves: int | None = None
    size_bytes: int | None = None

    def __post_init__(self) -> None:
        _check_limit(self.moves)
        _check_limit(self.size_bytes)

    def refuses(self, moves: int, size_bytes: int) -> str | None:
        """Describe the limit that these would exceed; None if they fit."""
        if self.moves is not None and moves > self.moves:
            return counted(self.moves, "move")
        if self.size_bytes is not None and size_bytes > self.size_bytes:
            return format_amount(self.size_bytes, "B")
        return None


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of moves in flight: per source broker, destination broker, log directory, and in the whole cluster.

    A move with several copies counts as one in the cluster and at each destination, and as one per copy at its source.
    """

    source: Cap = Cap()
    destination: Cap = Cap()
    log_dir: Cap = Cap()
    cluster: Cap = Cap()

    def of(self, kind: str) -> Cap:
        """Limit of a kind of end, as `PacedMove.ends` names it."""
        return {"source": self.source, "destination": self.destination, "log_dir": self.log_dir}[kind]

    def limited(self, limits: Iterable[Limit]) -> Caps:
        """Return a copy with these limits replaced."""
        caps = self
        for limit in limits:
            cap: Cap = getattr(caps, limit.end)
            caps = replace(caps, **{limit.end: replace(cap, **{limit.measure: limit.at_most})})
        return caps


class AtWindowEnd(StrEnum):
    """Treatment of moves in flight when a window closes or the deadline comes."""

    FINISH = "finish"  # they finish
    CANCEL = "cancel"  # they are cancelled (KIP-455); after a window they start again in the next one


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A daily time, in minutes after midnight; it ends on the next day if it ends before it begins."""

    begins_minute: int
    ends_minute: int

    def __str__(self) -> str:
        return f"{_clock(self.begins_minute)}-{_clock(self.ends_minute)}"


_TIME = r"([01]?\d|2[0-4]):([0-5]\d)"
_WINDOW = re.compile(f"{_TIME}-{_TIME}", re.ASCII)
_DAY_MINUTES = 24 * 60
_UTC = "UTC"
_EPOCH = datetime.fromtimestamp(0, UTC)
_YEAR_9999_MS = 253_370_764_800_000


def parse_window(text: str) -> Window:
    """Parse a window such as `22:00-06:00`. Raises InputError."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{shortened(text)!r} is not a window; write for example 22:00-06:00")
    begins, ends = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if begins in {ends, _DAY_MINUTES} or max(begins, ends) > _DAY_MINUTES:
        raise InputError(f"{text!r} is not a window of a day; the whole day is 00:00-24:00")
    return Window(begins, ends)


def parse_time_zone(name: str) -> str:
    """The name of a time zone that this machine knows. Raises InputError."""
    return _zone(name).key


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"unknown time zone {shortened(name)!r}; write for example Europe/Berlin") from error


class UtcOffset(NamedTuple):
    """Seconds by which a local clock is ahead of UTC, from a time in ms since the epoch on."""

    from_ms: int
    seconds: int


_DAY_S = 24 * 60 * 60
_DAYS_BEFORE = 2
"""A window that is open now may have opened on the day before."""
_DAYS_AHEAD = 3_653
"""Ten years: far longer than any run. After that the last offset stays."""


@lru_cache(maxsize=64)
def _utc_offsets(zone: ZoneInfo, day: int) -> tuple[UtcOffset, ...]:
    """Offsets of a time zone from shortly before a day, counted from the epoch, for ten years."""

    def offset_s(at_s: int) -> int:
        offset = datetime.fromtimestamp(at_s, zone).utcoffset()
        return 0 if offset is None else round(offset.total_seconds())

    first_s = (day - _DAYS_BEFORE) * _DAY_S
    offsets = [UtcOffset(first_s * 1000, offset_s(first_s))]
    for begins_s in range(first_s, first_s + _DAYS_AHEAD * _DAY_S, _DAY_S):
        if (after := offset_s(begins_s + _DAY_S)) != offsets[-1].seconds:
            seconds = range(begins_s, begins_s + _DAY_S)
            change_s = begins_s + bisect_left(seconds, x=True, key=lambda at_s: offset_s(at_s) == after)
            offsets.append(UtcOffset(change_s * 1000, after))
    return tuple(offsets)


class LocalClock(tzinfo):
    """A local clock by its offsets from UTC, which tells the same time on machines that do not know its time zone.

    The first offset holds before, and the last one after those that are known.
    """

    def __init__(self, offsets: tuple[UtcOffset, ...]) -> None:
        self._offsets = offsets

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Offset at a local time; of a time that is skipped or shown twice, `fold` chooses (PEP 495)."""
        if moment is None:
            return None
        local_ms = (moment.replace(tzinfo=UTC) - _EPOCH) / timedelta(milliseconds=1)
        choose = min if moment.fold else max
        seconds = self._offsets[0].seconds
        for before, after in pairwise(self._offsets):
            if local_ms >= after.from_ms + 1000 * choose(before.seconds, after.seconds):
                seconds = after.seconds
        return timedelta(seconds=seconds)

    def dst(self, _: datetime | None) -> timedelta | None:
        """Not known; Python asks for it."""
        return None

    def tzname(self, _: datetime | None) -> str | None:
        """Not known."""
        return None

    def fromutc(self, moment: datetime) -> datetime:
        """Local time of a moment in UTC."""
        at_ms = (moment.replace(tzinfo=UTC) - _EPOCH) / timedelta(milliseconds=1)
        passed = [one for one in self._offsets if one.from_ms <= at_ms]
        local = moment + timedelta(seconds=(passed or self._offsets)[-1 if passed else 0].seconds)
        is_second = local.utcoffset() != local - moment
        return local.replace(fold=is_second)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Hours in which moves may be started and in flight. Without windows: any time before the deadline.

    `offsets` are those of the time zone, as of when the hours were chosen (`dated`): with them a journal tells the same
    hours on a machine that does not know the zone, or knows other rules for it. Raises InputError for a deadline that
    no clock shows in every time zone, and for offsets that no clock has.
    """

    windows: tuple[Window, ...] = ()
    time_zone: str = _UTC
    deadline_ms: int | None = None
    at_end: AtWindowEnd = AtWindowEnd.FINISH
    offsets: tuple[UtcOffset, ...] = field(default=(), compare=False, metadata=UNSHOWN)

    def __post_init__(self) -> None:
        if self.deadline_ms is not None and not 0 <= self.deadline_ms < _YEAR_9999_MS:
            raise InputError("a deadline must be in the years 1970 to 9998; leave it out where there is none")
        if any(abs(one.seconds) >= _DAY_S for one in self.offsets):
            raise InputError("a local clock is less than a day ahead of UTC, or behind it")

    @property
    def are_limited(self) -> bool:
        """True if there is any time at which no move may be started."""
        return bool(self.windows) or self.deadline_ms is not None

    @property
    def clock(self) -> tzinfo:
        """The local clock of these hours. Raises InputError for an unknown time zone without offsets."""
        if self.time_zone == _UTC:  # a machine without any time zones can run without windows
            return UTC
        return LocalClock(self.offsets) if self.offsets else _zone(self.time_zone)

    def in_zone(self, name: str) -> Schedule:
        """Return a copy by the clock of another time zone. Raises InputError for an unknown one."""
        return replace(self, time_zone=parse_time_zone(name), offsets=())

    def dated(self, at_ms: int) -> Schedule:
        """Return a copy with the offsets of its time zone around this time, unless it has them.

        Raises InputError for a time zone that this machine does not know.
        """
        if self.time_zone == _UTC or self.offsets:
            return self
        zone = _zone(self.time_zone)
        try:
            return replace(self, offsets=_utc_offsets(zone, at_ms // 1000 // _DAY_S))
        except (ValueError, OverflowError, OSError) as error:
            raise InputError(f"no clock shows the time {at_ms}, in ms since 1970") from error


def _clock(minute: int) -> str:
    return "{:02}:{:02}".format(*divmod(minute, 60))


RESERVE = 0.05
"""Share of every log directory that stays free by default."""

ELECTIONS_PER_STEP = 100
"""Leaders that change between two waits: their clients look for the new leader at the same time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Order, limits and hours of a run; journaled, so that a resumed run keeps them.

    An eager run starts all that the limits allow; others start only what keeps brokers busy.
    A stepwise one gives each partition one new replica at a time. `disk_reserve` is the share of every log directory
    that stays free, from 0 to below 1. Raises InputError.
    """

    order: Order = Order.MAKESPAN
    caps: Caps = field(default_factory=Caps)
    elections_per_step: int = ELECTIONS_PER_STEP
    hours: Schedule = field(default_factory=Schedule)
    disk_reserve: float = RESERVE
    is_eager: bool = False
    is_stepwise: bool = False

    def __post_init__(self) -> None:
        _check_reserve(self.disk_reserve)

    def changed(self, change: PaceChange) -> Pace:
        """Return a copy with this change."""
        return replace(
            self,
            order=change.order or self.order,
            caps=self.caps.limited(change.limits),
            elections_per_step=change.elections_per_step or self.elections_per_step,
            is_eager=self.is_eager if change.is_eager is None else change.is_eager,
            hours=change.hours or self.hours,
            disk_reserve=self.disk_reserve if change.disk_reserve is None else change.disk_reserve,
        )


@dataclass(frozen=True, slots=True)
class PaceChange:
    """Changes from now on; None and an empty tuple leave a field as it is."""

    order: Order | None = None
    limits: tuple[Limit, ...] = ()
    elections_per_step: int | None = None
    hours: Schedule | None = None
    disk_reserve: float | None = None
    is_eager: bool | None = None

    def __post_init__(self) -> None:
        if self.disk_reserve is not None:
            _check_reserve(self.disk_reserve)


def _check_reserve(part: float) -> None:
    if not 0 <= part < 1:
        raise InputError(
            f"{part} is no disk reserve: it is a part of each log directory, from 0 to below 1, such as 0.05"
        )


NO_LIMITS = Pace()
