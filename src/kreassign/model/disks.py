"""The disks of a broker behind its log directories. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

NEARLY_EMPTY = 0.1
"""Used share below which equal figures are no sign: new disks of one model are alike to the byte."""


class _Sized(Protocol):
    @property
    def total_bytes(self) -> int | None: ...

    @property
    def usable_bytes(self) -> int | None: ...


class _OfBroker(_Sized, Protocol):
    @property
    def broker(self) -> int: ...


_Dir = TypeVar("_Dir", bound=_Sized)
_Placed = TypeVar("_Placed", bound=_OfBroker)


def disks(dirs: Iterable[_Dir]) -> tuple[tuple[_Dir, ...], ...]:
    """Directories of one broker by disk: each reports the size and free bytes of its file system.

    Those that report the same seem to share a disk. If they do not after all, less space is promised than there is.
    """
    found: dict[tuple[object, ...], list[_Dir]] = {}
    for number, one in enumerate(dirs):
        total, usable = one.total_bytes, one.usable_bytes
        is_telling = total is not None and usable is not None and usable <= (1 - NEARLY_EMPTY) * total
        found.setdefault((total, usable) if is_telling else (number,), []).append(one)
    return tuple(tuple(each) for each in found.values())


def disks_of_brokers(dirs: Iterable[_Placed]) -> Iterator[tuple[_Placed, ...]]:
    """Directories of many brokers by disk."""
    by_broker: dict[int, list[_Placed]] = defaultdict(list)
    for one in dirs:
        by_broker[one.broker].append(one)
    return (each for of_broker in by_broker.values() for each in disks(of_broker))


def sum_of_disks(dirs: Iterable[_Dir]) -> tuple[int | None, int | None]:
    """Total and usable bytes of a broker's disks; None unless those of each directory are known."""
    each = [one for one, *_ in disks(dirs)]
    return _sum(one.total_bytes for one in each), _sum(one.usable_bytes for one in each)


def _sum(sizes: Iterable[int | None]) -> int | None:
    found = list(sizes)
    known = [size for size in found if size is not None]
    return sum(known) if known and len(known) == len(found) else None
