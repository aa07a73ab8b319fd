"""Which log directories are full, or will be soon. Pure.

Two readings of the free bytes of a directory, some seconds apart, tell how fast it fills now, deletion included. That
is little to go by, so the time until it is full is said with what it was measured over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kreassign.executor.history.issue import Issue, plan
from kreassign.model import LogDir
from kreassign.model.amount import format_amount

FULL = 0.90
"""Part of a directory from which on it is an issue."""

SOON_S = 86_400.0
"""So is one that is full within a day, if it is half full already: seconds tell little of what a day brings."""

HALF = 0.5

_DirsByBroker = Mapping[int, Iterable[LogDir]]


@dataclass(frozen=True, slots=True)
class Filling:
    """A log directory: its size, what is free, and how fast that shrinks, in bytes per second (None: not measured)."""

    broker: int
    path: str
    total_bytes: int
    usable_bytes: int
    fills_bytes_per_s: float | None

    @property
    def used_share(self) -> float:
        """The part that is used."""
        return 1 - self.usable_bytes / self.total_bytes

    @property
    def full_in_s(self) -> float | None:
        """When it is full if that goes on; None where it does not fill, or nobody knows."""
        return self.usable_bytes / self.fills_bytes_per_s if self.fills_bytes_per_s else None


def fillings(now: _DirsByBroker, before: _DirsByBroker, seconds: float) -> tuple[Filling, ...]:
    """Every directory that works and whose size is known."""
    free = {(broker, one.path): one.usable_bytes for broker, dirs in before.items() for one in dirs}
    return tuple(
        Filling(broker, one.path, one.total_bytes, one.usable_bytes, _rate(free.get((broker, one.path)), one, seconds))
        for broker, dirs in sorted(now.items())
        for one in dirs
        if not one.error and one.total_bytes and one.usable_bytes is not None
    )


def _rate(before: int | None, now: LogDir, seconds: float) -> float | None:
    if before is None or now.usable_bytes is None or seconds <= 0:
        return None
    return max(0.0, (before - now.usable_bytes) / seconds)


def disk_issues(found: Iterable[Filling], seconds: float) -> Iterator[Issue]:
    """Directories that are full or will be within a day, the fullest first."""
    found = tuple(found)
    for one in sorted(found, key=lambda each: -each.used_share):
        soon = one.full_in_s is not None and one.full_in_s < SOON_S and one.used_share >= HALF
        if one.used_share < FULL and not soon:
            continue
        free = format_amount(one.usable_bytes, "B")
        seen = f"log directory {one.path} is {one.used_share:.0%} full, {free} free{_until(one, seconds)}"
        is_roomy = any(other.broker == one.broker and other.used_share < FULL - 0.1 for other in found)
        task = ("disks",) if is_roomy else ("rebalance",)
        what = "to other directories of the broker" if is_roomy else "to other brokers"
        yield Issue("disk", f"broker {one.broker}", seen, f"Move replicas {what}, or shorten retention", (plan(*task),))


def _until(one: Filling, seconds: float) -> str:
    if one.fills_bytes_per_s is None:
        return ""
    if one.full_in_s is None:
        return f"; it did not fill in the last {seconds:.0f} s"
    hours = one.full_in_s / 3600
    when = f"{hours:.0f} hours" if hours >= 2 else f"{one.full_in_s / 60:.0f} minutes"
    rate = format_amount(one.fills_bytes_per_s, "B/s")
    return f"; full in {when} at the {rate} of the last {seconds:.0f} s"
