"""Build a problem from single brokers and partitions, or from columns of the snapshot and load tables.

`problem_of` takes objects, for small inputs. `problem_from` takes columns, without an object per replica. Both use the
default policy; `with_policy` and `dataclasses.replace` set others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.closures import Closure
from kreassign.model.cluster import listed_ids, named_brokers
from kreassign.model.load import CPU_PER_COPY, CPU_PER_READ, CPU_PER_WRITE
from kreassign.model.replica_columns import Ints, ReplicaColumns
from kreassign.model.text import counted, format_amount
from kreassign.planner.arrays import NOWHERE, BoolArray, FloatArray, IntArray, ints
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.problem import Brokers, LogDirs, Partitions, Problem

# Build from facts about single brokers and partitions.


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """A log directory. `capacity_bytes` is the space for replicas, without the reserve; None if unknown.

    An offline directory receives nothing, and its replicas are lost.
    """

    path: str
    capacity_bytes: int | None = None
    may_receive: bool = True
    must_empty: bool = False
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker as the planner sees it.

    `capacity` limits its load by goal name (disk in bytes without the reserve, net-in and net-out in bytes/s, CPU in
    the unit of the loads, replicas and leaders as counts); other goals have no limit. `share` overrides the broker's
    part of each resource's total, relative to the others; without it, shares follow the capacities, or are equal if not
    every open broker has one. `must_empty` drains the broker. `closure` says why it receives nothing, and whether lists
    may name it. `broker_set` confines partitions of the same set to it.
    """

    id: int
    rack: str | None = None
    capacity: Mapping[str, float] = field(default_factory=dict)
    share: float | None = None
    is_live: bool = True
    may_receive: bool = True
    may_lead: bool = True
    must_empty: bool = False
    closure: Closure = Closure.NONE
    broker_set: str | None = None
    log_dirs: tuple[LogDirFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition as it is now; loads are per copy on its broker.

    The first replica is the preferred leader: plans assume that it leads. `log_dirs` names the directory of each
    replica, in their order, or is empty; `future_log_dirs` by broker those to which copies are being moved.
    `read_bytes_per_s` is what its leader sends to consumers and followers.
    `wanted_factor` is the target replication factor, None for the present one. With a `hold` it keeps replicas, order
    and leader; they still count as load of their brokers. `lost_on` names live brokers of the list whose copy was lost
    with a log directory: such a broker cannot get another replica of the partition before the directory is repaired.
    `isr` are the replicas in sync; None if that is not known, here or of any other partition.
    """

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int = 0
    write_bytes_per_s: float = 0.0
    read_bytes_per_s: float = 0.0
    leader_cpu: float = 0.0
    follower_cpu: float = 0.0
    log_dirs: tuple[str, ...] = ()
    wanted_factor: int | None = None
    hold: Hold = Hold.NONE
    broker_set: str | None = None
    lost_on: tuple[int, ...] = ()
    isr: tuple[int, ...] | None = None
    future_log_dirs: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        loads = (self.size_bytes, self.write_bytes_per_s, self.read_bytes_per_s, self.leader_cpu, self.follower_cpu)
        if not all(load >= 0 for load in loads):
            raise InputError(f"partition {self.topic_partition} has a load that is negative or no number: {loads}")
        if not self.replicas or len(set(self.replicas)) != len(self.replicas):
            raise InputError(f"partition {self.topic_partition} has no legal replica list: {list(self.replicas)}")
        if self.log_dirs and len(self.log_dirs) != len(self.replicas):
            raise InputError(
                f"partition {self.topic_partition} names "
                f"{counted(len(self.log_dirs), 'log directory', 'log directories')} for "
                f"{counted(len(self.replicas), 'replica')}"
            )


def problem_of(brokers: Iterable[BrokerFacts], partitions: Iterable[PartitionFacts]) -> Problem:
    """Build a problem with the default policy; `dataclasses.replace` sets others.

    The order of the input does not matter. Raises InputError for a broker or partition given twice, or a replica on an
    unknown broker or log directory.
    """
    hosts = sorted(brokers, key=lambda broker: broker.id)
    loads = sorted(partitions, key=lambda load: load.topic_partition)
    for before, after in pairwise(loads):
        if before.topic_partition == after.topic_partition:
            raise InputError(f"given more than once: partition {after.topic_partition}")
    sets = _numbered([*(host.broker_set for host in hosts), *(load.broker_set for load in loads)])
    log_dirs = _log_dirs(hosts)
    return Problem(_brokers(hosts, sets), _partitions(loads, hosts, sets), log_dirs if len(log_dirs) else None)


def _numbered(names: Iterable[str | None]) -> dict[str | None, int]:
    known = sorted({name for name in names if name is not None})
    return {name: number for number, name in enumerate(known)} | {None: NOWHERE}


def _brokers(hosts: Sequence[BrokerFacts], sets: Mapping[str | None, int]) -> Brokers:
    racks = _numbered(host.rack for host in hosts)
    resources = sorted({name for host in hosts for name in host.capacity})
    shared = all(host.share is not None for host in hosts)
    shares = np.array([host.share for host in hosts], float) if shared else None
    names = ("disk", "net-in", "net-out", "cpu", "replicas", "leaders", "potential-net-out", "coordinators")
    return Brokers(
        ids=ints(host.id for host in hosts),
        racks=ints(racks[host.rack] for host in hosts),
        rack_names=tuple(name for name in racks if name is not None),
        is_live=np.array([host.is_live for host in hosts], bool),
        may_receive=np.array([host.may_receive for host in hosts], bool),
        may_lead=np.array([host.may_lead for host in hosts], bool),
        must_empty=np.array([host.must_empty for host in hosts], bool),
        closures=ints(host.closure for host in hosts),
        broker_sets=ints(sets[host.broker_set] for host in hosts),
        capacity={name: np.array([host.capacity.get(name, np.inf) for host in hosts]) for name in resources},
        shares={} if shares is None else dict.fromkeys(names, shares),
    )


def _log_dirs(hosts: Sequence[BrokerFacts]) -> LogDirs:
    owned = [(index, one) for index, host in enumerate(hosts) for one in sorted(host.log_dirs, key=lambda d: d.path)]
    return LogDirs(
        brokers=ints(index for index, _ in owned),
        paths=tuple(one.path for _, one in owned),
        capacity_bytes=np.array([np.inf if one.capacity_bytes is None else one.capacity_bytes for _, one in owned]),
        may_receive=np.array([one.may_receive and not one.is_offline for _, one in owned], bool),
        must_empty=np.array([one.must_empty for _, one in owned], bool),
    )


def _partitions(
    loads: Sequence[PartitionFacts], hosts: Sequence[BrokerFacts], sets: Mapping[str | None, int]
) -> Partitions:
    topics = _numbered(load.topic_partition.topic for load in loads)
    return Partitions(
        topic_names=tuple(name for name in topics if name is not None),
        topics=ints(topics[load.topic_partition.topic] for load in loads),
        numbers=ints(load.topic_partition.partition for load in loads),
        offsets=ints(accumulate((len(load.replicas) for load in loads), initial=0)),
        replicas=_replicas(loads, hosts),
        log_dirs=_replica_dirs(loads, hosts, [load.log_dirs or (None,) * len(load.replicas) for load in loads]),
        future_log_dirs=_replica_dirs(
            loads, hosts, [tuple(map(load.future_log_dirs.get, load.replicas)) for load in loads]
        )
        if any(load.future_log_dirs for load in loads)
        else None,
        size_bytes=np.array([load.size_bytes for load in loads], np.int64),
        write_bytes_per_s=_floats(load.write_bytes_per_s for load in loads),
        read_bytes_per_s=_floats(load.read_bytes_per_s for load in loads),
        leader_cpu=_floats(load.leader_cpu for load in loads),
        follower_cpu=_floats(load.follower_cpu for load in loads),
        wanted_factors=ints(load.wanted_factor or len(load.replicas) for load in loads),
        holds=ints(load.hold for load in loads),
        broker_sets=ints(sets[load.broker_set] for load in loads),
        is_lost=np.array([broker in load.lost_on for load in loads for broker in load.replicas], bool),
        in_sync=_in_sync(loads),
    )


def _in_sync(loads: Sequence[PartitionFacts]) -> BoolArray | None:
    known = [(load.replicas, load.isr) for load in loads if load.isr is not None]
    if len(known) < len(loads):
        return None
    return np.array([broker in isr for replicas, isr in known for broker in replicas], bool)


def _replicas(loads: Sequence[PartitionFacts], hosts: Sequence[BrokerFacts]) -> IntArray:
    known = {host.id: index for index, host in enumerate(hosts)}
    for load in loads:
        if strangers := sorted(set(load.replicas) - known.keys()):
            raise InputError(
                f"partition {load.topic_partition} has replicas on {named_brokers(strangers)}, not among the brokers "
                f"{listed_ids(known)}; take a new snapshot with all brokers up"
            )
    return ints(known[broker] for load in loads for broker in load.replicas)


def _replica_dirs(
    loads: Sequence[PartitionFacts], hosts: Sequence[BrokerFacts], lists: Sequence[Sequence[str | None]]
) -> IntArray:
    paths = [(host.id, one.path) for host in hosts for one in sorted(host.log_dirs, key=lambda d: d.path)]
    known = {place: index for index, place in enumerate(paths)}
    places = [
        place for load, listed in zip(loads, lists, strict=True) for place in zip(load.replicas, listed, strict=True)
    ]
    for place in places:
        if place[1] is not None and place not in known:
            raise InputError(f"broker {place[0]} has no log directory {place[1]}, but a replica is listed in it")
    return ints(NOWHERE if path is None else known[broker, path] for broker, path in places)


def _floats(values: Iterable[float]) -> FloatArray:
    return np.fromiter(values, np.float64)


# CPU of replicas: measured, else estimated from bytes.
#
# Kafka measures the CPU of a broker, not of a partition. `kreassign load` splits it among the replicas of the broker,
# as parts of its CPU: 1 is all of it. If no broker measured any, only proportions are known (`model/load.py`): enough
# to even CPU out, but not comparable with a limit.


def replica_cpu(
    write: FloatArray, sent: FloatArray, leader: FloatArray | None, follower: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """CPU of each partition's leader and of each follower, (P,) each; estimated where NaN or None.

    Estimates are proportional to the bytes. If some CPU is known, they are scaled to the CPU per byte of all measured
    partitions.
    """
    estimates = leader_cost(write, sent), CPU_PER_COPY * write
    measured = [np.full(len(write), np.nan) if one is None else one for one in (leader, follower)]
    known = [~np.isnan(one) for one in measured]
    cost, cpu = (
        sum(float(values[which].sum()) for values, which in zip(of, known, strict=True)) for of in (estimates, measured)
    )
    scale = cpu / cost if cost else 1.0
    found = [np.where(which, one, scale * each) for one, which, each in zip(measured, known, estimates, strict=True)]
    return found[0], found[1]


def leader_cost(write: FloatArray, sent: FloatArray) -> FloatArray:
    """Estimated CPU of leading, (P,), in relative units."""
    return CPU_PER_WRITE * write + CPU_PER_READ * sent


def cpu_per_cost(partitions: Partitions) -> float:
    """CPU per unit of estimated cost, over all leaders: the scale for partitions that do not exist yet."""
    cost = float(leader_cost(partitions.write_bytes_per_s, partitions.read_bytes_per_s).sum())
    return float(partitions.leader_cpu.sum()) / cost if cost else 1.0


# From columns of tables.

MOST_BYTES = 10**18
"""Largest plausible size of a cluster: an exabyte."""


def problem_from(hosts: Sequence[BrokerFacts], columns: ReplicaColumns, *, reads_per_write: float = 1.0) -> Problem:
    """Build a problem with the default policy.

    Partitions that are being reassigned, have no known size or no leader may not move. A broker with replicas that is
    not among the hosts is dead. A leader sends each byte written once to each follower, and to consumers the measured
    rate, or if there is none each byte `reads_per_write` times; CPU is measured, or else estimated from the bytes in
    and out (`build.py`). Raises InputError for a broker named twice in a list.
    """
    missing = sorted(set(np.unique(columns.brokers).tolist()) - {host.id for host in hosts})
    everyone = [*hosts, *(BrokerFacts(broker, is_live=False) for broker in missing)]
    empty = problem_of(everyone, ())
    order = np.lexsort((columns.positions, columns.partitions, columns.topics))
    found = _partitions_of_columns(columns, order, empty, reads_per_write)
    return Problem(empty.brokers, _with_lost_copies(found, empty.brokers, everyone), empty.log_dirs)


def _with_lost_copies(found: Partitions, brokers: Brokers, hosts: Sequence[BrokerFacts]) -> Partitions:
    """Mark lost copies: in no known directory of a broker of which a directory has failed.

    Partitions without a live replica cannot be repaired: they stay until a replica comes back.
    """
    failed = {host.id for host in hosts if any(one.is_offline for one in host.log_dirs)}
    is_lost = np.isin(brokers.ids, sorted(failed))[found.replicas] & (found.log_dirs == NOWHERE)
    known = replace(found, is_lost=is_lost)
    return known.held(~known.within_reach(brokers.is_live), Hold.OUT_OF_REACH)


def _partitions_of_columns(
    columns: ReplicaColumns, order: npt.NDArray[np.int64], empty: Problem, reads: float
) -> Partitions:
    topics, numbers = columns.topics[order], columns.partitions[order]
    begins = (np.diff(topics, prepend=-1) != 0) | (np.diff(numbers, prepend=-1) != 0)
    starts = np.flatnonzero(begins)
    first, count = order[starts], len(starts)
    factors = np.diff(np.append(starts, len(order))).astype(np.int32)
    replicas = np.searchsorted(empty.brokers.ids, columns.brokers[order].astype(np.int32)).astype(np.int32)
    size, write = columns.size_bytes[first], np.nan_to_num(columns.write_bytes_per_s[first])

    def name_of(partition: int) -> TopicPartition:
        place = starts[partition]
        return TopicPartition(columns.topic_names[topics[place]], int(numbers[place]))

    refuse_absurd_sizes(np.nan_to_num(size), factors, name_of, "correct the size, or take it again")
    consumed = write * reads
    if columns.read_bytes_per_s is not None:
        measured = columns.read_bytes_per_s[first]
        consumed = np.where(np.isnan(measured), consumed, measured)
    sent = write * (factors - 1) + consumed
    leader_cpu, follower_cpu = (
        None if one is None else one[first] for one in (columns.leader_cpu, columns.follower_cpu)
    )
    leader_cpu, follower_cpu = replica_cpu(write, sent, leader_cpu, follower_cpu)
    leaderless = np.zeros(count, bool) if columns.is_leaderless is None else columns.is_leaderless[first]
    holds = columns.is_reassigning[first] * Hold.MOVING | np.isnan(size) * Hold.UNSIZED | leaderless * Hold.LEADERLESS
    found = Partitions(
        topic_names=tuple(columns.topic_names),
        topics=topics[starts].astype(np.int32),
        numbers=numbers[starts].astype(np.int32),
        offsets=np.append(starts, len(order)).astype(np.int32),
        replicas=replicas,
        log_dirs=_dirs_of_columns(columns, columns.log_dirs, order, replicas, empty.log_dirs),
        future_log_dirs=None
        if columns.future_log_dirs is None
        else _dirs_of_columns(columns, columns.future_log_dirs, order, replicas, empty.log_dirs),
        size_bytes=np.nan_to_num(size).astype(np.int64),
        write_bytes_per_s=write,
        read_bytes_per_s=sent,
        leader_cpu=leader_cpu,
        follower_cpu=follower_cpu,
        wanted_factors=factors,
        holds=holds.astype(np.int32),
        broker_sets=np.full(count, NOWHERE, np.int32),
        is_lost=np.zeros(len(order), bool),
        in_sync=None if columns.in_sync is None else columns.in_sync[order],
    )
    _refuse_doubles(found, empty.brokers)
    return found


def _dirs_of_columns(
    columns: ReplicaColumns, places: Ints | None, order: npt.NDArray[np.int64], replicas: IntArray, dirs: LogDirs | None
) -> IntArray:
    """Index of each replica's log directory at these places of the paths; NOWHERE if it is unknown on the broker."""
    if dirs is None or places is None:
        return np.full(len(order), NOWHERE, np.int32)
    paths = {path: number for number, path in enumerate(columns.paths)}
    table = np.full((int(replicas.max(initial=0)) + 1, len(paths) + 1), NOWHERE, np.int32)
    for index, (broker, path) in enumerate(zip(dirs.brokers.tolist(), dirs.paths, strict=True)):
        if path in paths and broker < len(table):
            table[broker, paths[path]] = index
    return table[replicas, np.where(places[order] < 0, len(paths), places[order])]


def _refuse_doubles(partitions: Partitions, brokers: Brokers) -> None:
    key = np.sort(partitions.owners.astype(np.int64) * len(brokers) + partitions.replicas)
    if len(double := key[1:][key[1:] == key[:-1]]):
        name = partitions.name(int(double[0]) // len(brokers))
        raise InputError(f"partition {name} has a broker more than once; run `kreassign load` again")


def refuse_absurd_sizes(
    size: FloatArray, factors: IntArray, name_of: Callable[[int], TopicPartition], remedy: str
) -> None:
    """Refuse sizes (P,) above `MOST_BYTES`: bytes are summed in 64 bits, more than once (held, copied, free)."""
    total = float(size @ factors)
    if total > MOST_BYTES:
        largest = name_of(int(np.argmax(size)))
        raise InputError(
            f"the replicas would hold {format_amount(total, 'B')} in all, the largest {largest} with "
            f"{format_amount(float(size.max()), 'B')} each; no cluster has that: {remedy}"
        )


# Convert CPU measured as a part of a broker's into cores: comparable between brokers of any size.

CoresOf = Callable[[Iterable[int]], Mapping[int, float]]
"""Function from broker ids to their cores, without brokers whose cores are unknown."""


def with_cores(columns: ReplicaColumns, is_leader: BoolArray, cores_of: CoresOf) -> ReplicaColumns:
    """Convert CPU columns to cores; unchanged if no cores are known.

    `is_leader` marks replicas that lead. The cost of leading was measured on the leader. The cost of following is the
    mean of the parts of the followers' brokers, and the same work is a part of 1 / cores of each: hence the harmonic
    mean. NaN, so not measured, if the cores of these brokers are unknown.
    """
    if columns.leader_cpu is None or columns.follower_cpu is None:
        return columns
    brokers, places = np.unique(columns.brokers, return_inverse=True)
    cores = cores_of(brokers.tolist())
    if not cores:
        return columns
    keys = columns.topics.astype(np.int64) << 32 | columns.partitions
    _, owners = np.unique(keys, return_inverse=True)
    each = np.array([cores.get(broker, np.nan) for broker in brokers.tolist()])[places]

    def harmonic_mean(which: BoolArray) -> FloatArray:
        known = which & ~np.isnan(each)
        parts = np.bincount(owners, np.where(known, 1.0 / each, 0.0))
        with np.errstate(invalid="ignore"):
            return (np.bincount(owners, known) / parts)[owners]

    return replace(
        columns,
        leader_cpu=columns.leader_cpu * harmonic_mean(is_leader),
        follower_cpu=columns.follower_cpu * harmonic_mean(~is_leader),
    )
