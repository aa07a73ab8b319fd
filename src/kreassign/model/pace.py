"""Order, limits and hours of a run: what paces its moves, as options, journals and pages have it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kreassign.errors import InputError
from kreassign.model.text import counted, format_amount, shortened


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
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(f"unknown time zone {shortened(name)!r}; write for example Europe/Berlin") from error


@dataclass(frozen=True, slots=True)
class Schedule:
    """Hours in which moves may be started and in flight. Without windows: any time before the deadline.

    Raises InputError for a deadline that no clock shows in every time zone. A journal from elsewhere may name a zone
    that this machine does not know; `check_time_zone` is for hours that are chosen here.
    """

    windows: tuple[Window, ...] = ()
    time_zone: str = _UTC
    deadline_ms: int | None = None
    at_end: AtWindowEnd = AtWindowEnd.FINISH

    def __post_init__(self) -> None:
        if self.deadline_ms is not None and not 0 <= self.deadline_ms < _YEAR_9999_MS:
            raise InputError("a deadline must be in the years 1970 to 9998; leave it out where there is none")

    @property
    def are_limited(self) -> bool:
        """True if there is any time at which no move may be started."""
        return bool(self.windows) or self.deadline_ms is not None


def check_time_zone(hours: Schedule) -> None:
    """Raise InputError for hours of a time zone that this machine does not know."""
    if hours.time_zone != _UTC:  # a machine without any time zones can run without windows
        parse_time_zone(hours.time_zone)


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
