"""The disks of a broker behind its log directories. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Protocol, TypeVar

from kreassign.model.cluster import LogDir

NEARLY_EMPTY = 0.1
"""Used share below which equal figures are no sign: new disks of one model are alike to the byte."""
WHILE_READ_BYTES, WHILE_READ_SHARE = 64 << 20, 0.001
"""Others may write or delete so much, and this share of a disk, while a broker looks at one directory after another."""
MORE = 1.1
"""Replicas that need so many times what is used are on two disks; those of the leader may be a little larger."""


class _Sized(Protocol):
    @property
    def total_bytes(self) -> int | None: ...

    @property
    def usable_bytes(self) -> int | None: ...


class _OfBroker(_Sized, Protocol):
    @property
    def broker(self) -> int: ...

    @property
    def held_bytes(self) -> int | None: ...


_Dir = TypeVar("_Dir", bound=_Sized)
_Placed = TypeVar("_Placed", bound=_OfBroker)
Held = Callable[[_Dir], float | None]
"""Bytes of the replicas in a directory; None if unknown."""
HELD: Held[LogDir] = attrgetter("size_bytes")


def disks(dirs: Iterable[_Dir], held: Held[_Dir] | None = None) -> tuple[tuple[_Dir, ...], ...]:
    """Directories of one broker by disk: each reports the size and free bytes of its file system.

    Those that report the same seem to share a disk; about the same is enough where the bytes of the replicas `held` in
    each are known and could all be on one. If they do not share one after all, less space is promised than there is.
    """
    found: list[list[_Dir]] = []
    for one in dirs:
        alike = (each for each in found if _is_one_disk([*each, one], held))
        if (disk := next(alike, None)) is None:
            found.append([one])
        else:
            disk.append(one)
    return tuple(tuple(each) for each in found)


def _is_one_disk(dirs: list[_Dir], held: Held[_Dir] | None) -> bool:
    totals, free = {one.total_bytes for one in dirs}, [one.usable_bytes for one in dirs if one.usable_bytes is not None]
    total = totals.pop()
    if total is None or totals or len(free) < len(dirs):
        return False
    if total - max(free) < NEARLY_EMPTY * total:
        return False
    if max(free) == min(free):
        return True
    sizes = [] if held is None else [size for size in map(held, dirs) if size is not None]
    if len(sizes) < len(dirs):
        return False
    is_near = max(free) - min(free) <= min(WHILE_READ_BYTES, WHILE_READ_SHARE * total)
    return is_near and sum(sizes) <= MORE * (total - min(free))


def disks_of_brokers(dirs: Iterable[_Placed]) -> Iterator[tuple[_Placed, ...]]:
    """Directories of many brokers by disk."""
    by_broker: dict[int, list[_Placed]] = defaultdict(list)
    for one in dirs:
        by_broker[one.broker].append(one)
    held: Held[_Placed] = attrgetter("held_bytes")
    return (each for of_broker in by_broker.values() for each in disks(of_broker, held))


def sum_of_disks(dirs: Iterable[_Dir], held: Held[_Dir] | None = None) -> tuple[int | None, int | None]:
    """Total and usable bytes of a broker's disks, as `disks` finds them; None unless each directory's are known."""
    each = [one for one, *_ in disks(dirs, held)]
    return _sum(one.total_bytes for one in each), _sum(one.usable_bytes for one in each)


def told_sizes(dirs: Iterable[LogDir]) -> list[bool]:
    """For each working directory: True if the size and the free bytes of its file system are told."""
    return [one.total_bytes is not None and one.usable_bytes is not None for one in dirs if one.error is None]


def unsized(answers: Mapping[int, Iterable[LogDir]]) -> tuple[int, ...]:
    """Brokers that do not tell that of each directory though others tell it; none before Kafka 3.3, where none does."""
    told = {broker: told_sizes(dirs) for broker, dirs in answers.items()}
    does_any = any(map(any, told.values()))
    return tuple(sorted(broker for broker, each in told.items() if does_any and not all(each)))


def _sum(sizes: Iterable[int | None]) -> int | None:
    found = list(sizes)
    known = [size for size in found if size is not None]
    return sum(known) if known and len(known) == len(found) else None
