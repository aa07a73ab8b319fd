"""PURE. The copies that brokers report → which replica of a partition's list each of them is.

In columns: of a million replicas every object of Python would take more than all that is known of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kreassign.model import Batch, LogDir, Topic
from kreassign.model.log_dir_replicas import LogDirReplicas
from kreassign.pipeline.tables.snapshot_columns import UNKNOWN, Amounts, Ids, Lists, ends_of


@dataclass(frozen=True, slots=True, eq=False)
class PlacedCopies:
    """Where S replicas are, as the values of the lists that they were placed in.

    `log_dirs` and `sizes_bytes` (S,) are UNKNOWN where no broker told them. `futures` (F,) are those replicas, in
    order, of which another copy is being built, in the directories `future_log_dirs` and with `future_sizes_bytes` so
    far. Directories are indices into `paths`.
    """

    paths: tuple[str, ...]
    log_dirs: Ids
    sizes_bytes: Amounts
    futures: Amounts
    future_log_dirs: Ids
    future_sizes_bytes: Amounts


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """Copies as brokers report them: id, row of the partition, directory as an index into `paths`, and size; (C,)."""

    paths: tuple[str, ...]
    brokers: Amounts
    rows: Amounts
    log_dirs: Amounts
    sizes_bytes: Amounts
    is_future: npt.NDArray[np.bool_]


def placed_copies(topics: Sequence[Topic], replicas: Lists, log_dirs: Batch[int, tuple[LogDir, ...]]) -> PlacedCopies:
    """What the brokers that answered have; `replicas` are the lists of all partitions of these topics, in order."""
    counts = np.array([len(topic.partitions) for topic in topics], np.int32)
    firsts = dict(zip((topic.name for topic in topics), ends_of(counts).tolist(), strict=False))
    copies = _copies(log_dirs, firsts, dict(zip(firsts, counts.tolist(), strict=True)))
    places = _places(replicas, copies)
    found_dirs = np.full(len(replicas.values), UNKNOWN, np.int32)
    sizes = np.full(len(replicas.values), UNKNOWN, np.int64)
    current, future = (np.flatnonzero((places != UNKNOWN) & (copies.is_future == one)) for one in (False, True))
    found_dirs[places[current]] = copies.log_dirs[current]
    sizes[places[current]] = copies.sizes_bytes[current]
    future = future[np.argsort(places[future])]
    return PlacedCopies(
        copies.paths,
        found_dirs,
        sizes,
        places[future],
        copies.log_dirs[future].astype(np.int32),
        copies.sizes_bytes[future],
    )


def _copies(log_dirs: Batch[int, tuple[LogDir, ...]], firsts: Mapping[str, int], counts: Mapping[str, int]) -> _Copies:
    """All copies of partitions that are known."""
    paths: dict[str, int] = {}
    parts = [
        _of_log_dir(broker, paths.setdefault(log_dir.path, len(paths)), log_dir, firsts, counts)
        for broker, dirs in log_dirs.ok.items()
        for log_dir in dirs
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 5
    brokers, rows, dirs, sizes, is_future = columns
    return _Copies(tuple(paths), brokers, rows, dirs, sizes, is_future.astype(bool))


def _of_log_dir(
    broker: int, place: int, log_dir: LogDir, firsts: Mapping[str, int], counts: Mapping[str, int]
) -> tuple[Amounts, ...]:
    held = log_dir.replicas
    copies = held if isinstance(held, LogDirReplicas) else LogDirReplicas.of(held)
    lengths = np.diff(np.array(copies.ends))
    first = np.repeat(np.fromiter((firsts.get(topic, 0) for topic in copies.topics), np.int64), lengths)
    # What came since the topics were described, or went, has no row.
    most = np.repeat(np.fromiter((counts.get(topic, 0) for topic in copies.topics), np.int64), lengths)
    numbers = np.array(copies.partitions)
    known = numbers < most
    count = int(known.sum())
    return (
        np.full(count, broker),
        (first + numbers)[known],
        np.full(count, place),
        np.array(copies.sizes_bytes)[known],
        np.array(copies.is_future)[known],
    )


def _places(replicas: Lists, copies: _Copies) -> Amounts:
    """Which replica each copy is, as an index; UNKNOWN for what its partition's list does not name, (C,)."""
    width = int(max(replicas.values.max(initial=0), copies.brokers.max(initial=0))) + 1
    keys = replicas.owners.astype(np.int64) * width + replicas.values
    order = np.argsort(keys)
    wanted = copies.rows * width + copies.brokers
    nearest = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.full(len(wanted), UNKNOWN, np.int64)
    return np.where(keys[order][nearest] == wanted, order[nearest], UNKNOWN)
