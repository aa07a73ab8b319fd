"""From the columns of the snapshot and load tables to a problem, without an object per replica."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.amount import format_amount
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray
from kreassign.planner.problem.cluster import Brokers, LogDirs, Partitions
from kreassign.planner.problem.cpu import replica_cpu
from kreassign.planner.problem.facts import BrokerFacts, problem_of
from kreassign.planner.problem.problem import Problem

MOST_BYTES = 10**18
"""No cluster holds an exabyte."""

Ints = npt.NDArray[np.int64] | IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaColumns:
    """One entry per replica, in any order.

    `topics` are indices into the sorted `topic_names`. `size_bytes` and `write_bytes_per_s` are those of the
    partition, NaN where unknown. `log_dirs` are indices into `paths`, negative where unknown. `read_bytes_per_s` is
    what consumers read of it, NaN where nobody measured it; None where that is so of all. `leader_cpu` and
    `follower_cpu` are likewise which part of a broker's CPU a replica takes in each role.
    """

    topic_names: Sequence[str]
    topics: Ints
    partitions: Ints
    brokers: Ints
    positions: Ints
    is_reassigning: BoolArray
    size_bytes: FloatArray
    write_bytes_per_s: FloatArray
    paths: Sequence[str] = ()
    log_dirs: Ints | None = None
    read_bytes_per_s: FloatArray | None = None
    leader_cpu: FloatArray | None = None
    follower_cpu: FloatArray | None = None

    @property
    def assumed_reads(self) -> int:
        """Of how many partitions nobody measured what consumers read."""
        unknown = np.ones(len(self.topics), bool) if self.read_bytes_per_s is None else np.isnan(self.read_bytes_per_s)
        return len(np.unique(self.topics[unknown].astype(np.int64) << 32 | self.partitions[unknown]))


class ReplicaRow(NamedTuple):
    """One replica, where columns are not at hand; None where something is unknown."""

    topic: str
    partition: int
    broker: int
    position: int
    is_reassigning: bool
    size_bytes: int | None
    write_bytes_per_s: float | None
    log_dir: str | None


def columns_of(rows: Iterable[ReplicaRow]) -> ReplicaColumns:
    """Rows as columns."""
    found = list(rows)
    topics = _numbers({row.topic for row in found})
    paths = _numbers({row.log_dir for row in found if row.log_dir is not None})
    return ReplicaColumns(
        topic_names=tuple(topics),
        topics=np.array([topics[row.topic] for row in found], np.int32),
        partitions=np.array([row.partition for row in found], np.int32),
        brokers=np.array([row.broker for row in found], np.int32),
        positions=np.array([row.position for row in found], np.int32),
        is_reassigning=np.array([row.is_reassigning for row in found], bool),
        size_bytes=np.array([row.size_bytes for row in found], np.float64),
        write_bytes_per_s=np.array([row.write_bytes_per_s for row in found], np.float64),
        paths=tuple(paths),
        log_dirs=np.array([-1 if row.log_dir is None else paths[row.log_dir] for row in found], np.int32),
    )


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(names))}


def problem_from(hosts: Sequence[BrokerFacts], columns: ReplicaColumns, *, reads_per_write: float = 1.0) -> Problem:
    """A problem with the default policy.

    What is being reassigned, or has no known size, may not move. A broker that holds replicas but is not among the
    hosts is dead. A leader sends each byte written once to each follower, and to consumers what was measured, or where
    nothing was, each byte `reads_per_write` times; CPU is as measured, or where it was not, estimated from the bytes in
    and out (`cpu.py`). Raises InputError when a broker is named twice in a list.
    """
    missing = sorted(set(np.unique(columns.brokers).tolist()) - {host.id for host in hosts})
    everyone = [*hosts, *(BrokerFacts(broker, is_live=False) for broker in missing)]
    empty = problem_of(everyone, ())
    order = np.lexsort((columns.positions, columns.partitions, columns.topics))
    found = _partitions(columns, order, empty, reads_per_write)
    return Problem(empty.brokers, _settled(found, empty.brokers, everyone), empty.log_dirs)


def _settled(found: Partitions, brokers: Brokers, hosts: Sequence[BrokerFacts]) -> Partitions:
    """With what is lost: a copy in no directory that its broker knows, where one of the broker's has failed.

    Partitions without a live replica cannot be repaired: they stay until a replica comes back.
    """
    failed = {host.id for host in hosts if any(one.is_offline for one in host.log_dirs)}
    is_lost = np.isin(brokers.ids, sorted(failed))[found.replicas] & (found.log_dirs == NOWHERE)
    known = replace(found, is_lost=is_lost)
    return replace(known, may_move=known.may_move & known.within_reach(brokers.is_live))


def _partitions(columns: ReplicaColumns, order: npt.NDArray[np.int64], empty: Problem, reads: float) -> Partitions:
    topics, numbers = columns.topics[order], columns.partitions[order]
    begins = (np.diff(topics, prepend=-1) != 0) | (np.diff(numbers, prepend=-1) != 0)
    starts = np.flatnonzero(begins)
    first, count = order[starts], len(starts)
    factors = np.diff(np.append(starts, len(order))).astype(np.int32)
    replicas = np.searchsorted(empty.brokers.ids, columns.brokers[order].astype(np.int32)).astype(np.int32)
    size, write = columns.size_bytes[first], np.nan_to_num(columns.write_bytes_per_s[first])
    _refuse_absurd_sizes(np.nan_to_num(size), factors, columns, first)
    consumed = write * reads
    if columns.read_bytes_per_s is not None:
        measured = columns.read_bytes_per_s[first]
        consumed = np.where(np.isnan(measured), consumed, measured)
    sent = write * (factors - 1) + consumed
    leader_cpu, follower_cpu = (
        None if one is None else one[first] for one in (columns.leader_cpu, columns.follower_cpu)
    )
    leader_cpu, follower_cpu = replica_cpu(write, sent, leader_cpu, follower_cpu)
    found = Partitions(
        topic_names=tuple(columns.topic_names),
        topics=topics[starts].astype(np.int32),
        numbers=numbers[starts].astype(np.int32),
        offsets=np.append(starts, len(order)).astype(np.int32),
        replicas=replicas,
        log_dirs=_log_dirs(columns, order, replicas, empty.log_dirs),
        size_bytes=np.nan_to_num(size).astype(np.int64),
        write_bytes_per_s=write,
        read_bytes_per_s=sent,
        leader_cpu=leader_cpu,
        follower_cpu=follower_cpu,
        wanted_factors=factors,
        may_move=~columns.is_reassigning[first] & ~np.isnan(size),
        broker_sets=np.full(count, NOWHERE, np.int32),
        is_lost=np.zeros(len(order), bool),
    )
    _refuse_doubles(found, empty.brokers)
    return found


def _log_dirs(
    columns: ReplicaColumns, order: npt.NDArray[np.int64], replicas: IntArray, dirs: LogDirs | None
) -> IntArray:
    """The directory of each replica among those of its broker; NOWHERE where its path is unknown there."""
    if dirs is None or columns.log_dirs is None:
        return np.full(len(order), NOWHERE, np.int32)
    paths = {path: number for number, path in enumerate(columns.paths)}
    table = np.full((int(replicas.max(initial=0)) + 1, len(paths) + 1), NOWHERE, np.int32)
    for index, (broker, path) in enumerate(zip(dirs.brokers.tolist(), dirs.paths, strict=True)):
        if path in paths and broker < len(table):
            table[broker, paths[path]] = index
    return table[replicas, np.where(columns.log_dirs[order] < 0, len(paths), columns.log_dirs[order])]


def _refuse_doubles(partitions: Partitions, brokers: Brokers) -> None:
    key = np.sort(partitions.owners.astype(np.int64) * len(brokers) + partitions.replicas)
    if len(double := key[1:][key[1:] == key[:-1]]):
        name = partitions.name(int(double[0]) // len(brokers))
        raise InputError(f"partition {name} has a broker more than once; run `kreassign load` again")


def _refuse_absurd_sizes(
    size: FloatArray, factors: IntArray, columns: ReplicaColumns, first: npt.NDArray[np.int64]
) -> None:
    """All bytes of a cluster are counted in 64 bits, and more than once: held, copied, free before and after."""
    total = float(size @ factors)
    if total > MOST_BYTES:
        largest = first[np.argmax(size)]
        name = TopicPartition(columns.topic_names[columns.topics[largest]], int(columns.partitions[largest]))
        raise InputError(
            f"the replicas are said to hold {format_amount(total, 'B')} in all, the largest {name} with "
            f"{format_amount(float(size.max()), 'B')} each; no cluster has that: correct the size, or take it again"
        )
