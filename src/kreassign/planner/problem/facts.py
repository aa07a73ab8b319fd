"""Brokers and partitions one by one, as people and tables give them; `problem.py` turns them into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.errors import InputError
from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """A log directory. `capacity_bytes` is what replicas may take of it, reserve taken off; None: nobody knows.

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
    bytes/s, cpu in the unit of the loads, replicas and leaders as counts); what is not named has no limit. `share`
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
    followers). `wanted_factor` is the number of replicas it shall have, None for what it has. `may_move` False keeps
    replicas, order and leader as they are; they count for the load of their brokers all the same.
    `lost_on` names brokers of the list that live but have lost their copy with a log directory: a broker that did
    cannot be given another one of the same partition before the directory is mended.
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
