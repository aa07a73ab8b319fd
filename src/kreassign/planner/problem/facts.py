"""Brokers and partitions one by one, as people and tables give them, and the problem made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.planner.arrays import NOWHERE, FloatArray, IntArray
from kreassign.planner.problem.cluster import Brokers, LogDirs, Partitions
from kreassign.planner.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """A log directory. `capacity_bytes` is what replicas may take of it, reserve taken off; None if unknown.

    One that is offline has failed: it receives nothing, and what was in it is lost.
    """

    path: str
    capacity_bytes: int | None = None
    may_receive: bool = True
    must_empty: bool = False
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker as the planner sees it.

    `capacity` limits what it may carry, by goal name (disk in bytes with the reserve taken off, net-in and net-out in
    bytes/s, CPU in the unit of the loads, replicas and leaders as counts); what is not named has no limit. `share`
    overrides which part of each resource's total the broker should carry, relative to the others; without it, shares
    follow the capacities, or are equal where not every broker names one. `must_empty` is a broker to be drained.
    `broker_set` confines partitions of the same set to it.
    """

    id: int
    rack: str | None = None
    capacity: Mapping[str, float] = field(default_factory=dict)
    share: float | None = None
    is_live: bool = True
    may_receive: bool = True
    may_lead: bool = True
    must_empty: bool = False
    broker_set: str | None = None
    log_dirs: tuple[LogDirFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition as it is now; loads are those of one copy on its broker.

    The first replica is the preferred leader: plans are made for the state in which it leads. `log_dirs` names the
    directory of each replica, in their order, or is empty. `read_bytes_per_s` is what its leader sends (consumers and
    followers). `wanted_factor` is the number of replicas to reach, None for the present one. `may_move` False keeps
    replicas, order and leader as they are; they count for the load of their brokers all the same.
    `lost_on` names brokers of the list that live but have lost their copy with a log directory: a broker that did
    cannot be given another one of the same partition before the directory is repaired.
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
    may_move: bool = True
    broker_set: str | None = None
    lost_on: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        loads = (self.size_bytes, self.write_bytes_per_s, self.read_bytes_per_s, self.leader_cpu, self.follower_cpu)
        if not all(load >= 0 for load in loads):
            raise InputError(f"partition {self.topic_partition} has a load that is negative or no number: {loads}")
        if not self.replicas or len(set(self.replicas)) != len(self.replicas):
            raise InputError(f"partition {self.topic_partition} has no legal replica list: {list(self.replicas)}")
        if self.log_dirs and len(self.log_dirs) != len(self.replicas):
            raise InputError(
                f"partition {self.topic_partition} names {len(self.log_dirs)} log directories for "
                f"{len(self.replicas)} replicas"
            )


def problem_of(brokers: Iterable[BrokerFacts], partitions: Iterable[PartitionFacts]) -> Problem:
    """A problem with the default policy; `dataclasses.replace` sets others.

    The same cluster makes the same problem whatever order it was read in. Raises InputError when a broker or
    partition is given twice, or a replica is on a broker or in a log directory that is not there.
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
        ids=_ints(host.id for host in hosts),
        racks=_ints(racks[host.rack] for host in hosts),
        rack_names=tuple(name for name in racks if name is not None),
        is_live=np.array([host.is_live for host in hosts], bool),
        may_receive=np.array([host.may_receive for host in hosts], bool),
        may_lead=np.array([host.may_lead for host in hosts], bool),
        must_empty=np.array([host.must_empty for host in hosts], bool),
        broker_sets=_ints(sets[host.broker_set] for host in hosts),
        capacity={name: np.array([host.capacity.get(name, np.inf) for host in hosts]) for name in resources},
        shares={} if shares is None else dict.fromkeys(names, shares),
    )


def _log_dirs(hosts: Sequence[BrokerFacts]) -> LogDirs:
    owned = [(index, one) for index, host in enumerate(hosts) for one in sorted(host.log_dirs, key=lambda d: d.path)]
    return LogDirs(
        brokers=_ints(index for index, _ in owned),
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
        topics=_ints(topics[load.topic_partition.topic] for load in loads),
        numbers=_ints(load.topic_partition.partition for load in loads),
        offsets=_ints(accumulate((len(load.replicas) for load in loads), initial=0)),
        replicas=_replicas(loads, hosts),
        log_dirs=_replica_dirs(loads, hosts),
        size_bytes=np.array([load.size_bytes for load in loads], np.int64),
        write_bytes_per_s=_floats(load.write_bytes_per_s for load in loads),
        read_bytes_per_s=_floats(load.read_bytes_per_s for load in loads),
        leader_cpu=_floats(load.leader_cpu for load in loads),
        follower_cpu=_floats(load.follower_cpu for load in loads),
        wanted_factors=_ints(load.wanted_factor or len(load.replicas) for load in loads),
        may_move=np.array([load.may_move for load in loads], bool),
        broker_sets=_ints(sets[load.broker_set] for load in loads),
        is_lost=np.array([broker in load.lost_on for load in loads for broker in load.replicas], bool),
    )


def _replicas(loads: Sequence[PartitionFacts], hosts: Sequence[BrokerFacts]) -> IntArray:
    known = {host.id: index for index, host in enumerate(hosts)}
    for load in loads:
        if strangers := sorted(set(load.replicas) - known.keys()):
            raise InputError(
                f"partition {load.topic_partition} has replicas on {strangers}, which are not among the brokers "
                f"{list(known)}; take a new snapshot with all brokers up"
            )
    return _ints(known[broker] for load in loads for broker in load.replicas)


def _replica_dirs(loads: Sequence[PartitionFacts], hosts: Sequence[BrokerFacts]) -> IntArray:
    paths = [(host.id, one.path) for host in hosts for one in sorted(host.log_dirs, key=lambda d: d.path)]
    known = {place: index for index, place in enumerate(paths)}
    places = [
        place
        for load in loads
        for place in zip(load.replicas, load.log_dirs or (None,) * len(load.replicas), strict=True)
    ]
    for place in places:
        if place[1] is not None and place not in known:
            raise InputError(f"broker {place[0]} has no log directory {place[1]}, but a replica is listed in it")
    return _ints(NOWHERE if path is None else known[broker, path] for broker, path in places)


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int32)


def _floats(values: Iterable[float]) -> FloatArray:
    return np.fromiter(values, np.float64)
