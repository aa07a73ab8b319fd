"""A cluster at one time, as the autopilot sees it: each thing is known, absent, or unknown with the reason. Pure.

Unknown never permits: a detector that needs what was not read finds nothing new and closes nothing, and a gate that
needs it stays closed and says why. `operations/autopilot_looks.py` makes these values from a cluster's answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from kreassign.executor.maintenance.record import Entered
from kreassign.model import NO_LEADER, Broker, LogDir, Partition, TopicPartition
from kreassign.model.placement import usual_factors
from kreassign.model.text import some_of

NAMED = 5
"""Readings with one reason beyond this number are counted, not named."""
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Known(Generic[Value]):
    """An answer of the cluster."""

    value: Value


@dataclass(frozen=True, slots=True)
class Absent:
    """The cluster answered that there is none."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The cluster did not answer."""

    why: str


Asked = Known[Value] | Unknown
"""A thing that is always there."""

Perhaps = Known[Value] | Absent | Unknown
"""A thing that may be absent."""


class WriteTime(NamedTuple):
    """Seconds that writes of a broker take now, and the 90th percentile of its own week."""

    now_s: float
    usual_s: float


NO_TIMES: Mapping[int, WriteTime] = MappingProxyType({})
"""Where the policy has no metric of writes."""


US = "the autopilot"
"""Who pauses and ends runs of the autopilot, unless people do."""


class RunSeen(NamedTuple):
    """The run of a repair as its journal has it: who pauses it, and whether it ends.

    It `is_left` where no process executes it, and `is_at_rest` where that was on purpose, with its throttle restored.
    It `is_elsewhere` where people let another process go on with it, which hears requests only. It `is_unread` where
    its journal cannot be read.
    """

    held_by: str = ""
    is_ending: bool = False
    is_left: bool = False
    is_at_rest: bool = False
    is_elsewhere: bool = False
    is_unread: bool = False

    @property
    def people(self) -> str:
        """Who else than the autopilot pauses it."""
        return "" if self.held_by == US else self.held_by


NO_RUN = RunSeen()


# A dictionary of cached values; the fields themselves never change.
@dataclass(frozen=True)
class Observation:
    """The cluster at `at_ms`.

    `brokers` are all registered ones where the cluster names those that are down, else the live ones. `log_dirs` has
    what each live broker answered. `moves_of_others` and `throttles_of_others` name what no run of ours does.
    `lease` names another holder of the lease, `brake` how to release the brake that is pulled.
    `unread_topics` are topics that did not answer, with the reason. `run` is the state of the run of ours, if there is
    one. `watcher` names another autopilot that looks after the cluster. `balancers` name what may move partitions there
    by itself, `sure_balancer` what does for sure. `write_times` has those of brokers by the metric of the policy, and
    none without a metric.
    """

    at_ms: int
    cluster_id: str
    brokers: Asked[tuple[Broker, ...]]
    partitions: Asked[tuple[Partition, ...]]
    log_dirs: Mapping[int, Asked[tuple[LogDir, ...]]]
    moves_of_others: Asked[frozenset[TopicPartition]]
    throttles_of_others: Asked[tuple[str, ...]]
    maintenance: Asked[Mapping[int, Entered]]
    lease: Perhaps[str]
    brake: Perhaps[str]
    moves_of_ours: frozenset[TopicPartition] = frozenset()
    unread_topics: Mapping[str, str] = field(default_factory=dict)
    balancers: tuple[str, ...] = ()
    sure_balancer: str = ""
    run: RunSeen = NO_RUN
    watcher: Perhaps[str] = field(default_factory=Absent)
    write_times: Asked[Mapping[int, WriteTime]] = Known(NO_TIMES)

    @cached_property
    def live(self) -> frozenset[int]:
        """Ids of the live brokers; empty where they are unknown."""
        return frozenset(one.id for one in self._brokers if not one.is_fenced)

    @cached_property
    def racks(self) -> Mapping[int, str]:
        """Racks of the brokers that have one, and are registered."""
        return {one.id: one.rack for one in self._brokers if one.rack is not None}

    @cached_property
    def down(self) -> frozenset[int]:
        """Brokers that are registered or hold replicas, and are not live; empty where brokers are unknown."""
        if isinstance(self.brokers, Unknown):
            return frozenset()
        return (frozenset(one.id for one in self._brokers) | self.replica_counts.keys()) - self.live

    @cached_property
    def missing(self) -> frozenset[int]:
        """Brokers that are down and hold replicas; an empty one is missed by nobody."""
        return self.down & self.replica_counts.keys()

    @property
    def are_brokers_read(self) -> bool:
        """True if the look shows which brokers are live, and which are missing."""
        return isinstance(self.brokers, Known) and isinstance(self.partitions, Known)

    @property
    def entered(self) -> Mapping[int, Entered]:
        """Brokers in maintenance, with since when; none where that is unknown, which closes a gate by itself."""
        return self.maintenance.value if isinstance(self.maintenance, Known) else {}

    @property
    def in_maintenance(self) -> frozenset[int]:
        """Brokers in maintenance; none where that is unknown."""
        return frozenset(self.entered)

    @property
    def _brokers(self) -> tuple[Broker, ...]:
        return self.brokers.value if isinstance(self.brokers, Known) else ()

    @property
    def placed(self) -> tuple[Partition, ...]:
        """Partitions that were read."""
        return self.partitions.value if isinstance(self.partitions, Known) else ()

    @cached_property
    def at_rest(self) -> tuple[Partition, ...]:
        """Partitions that were read and that nobody moves; none where moves are unknown."""
        if isinstance(self.moves_of_others, Unknown):
            return ()
        moving = self.moves_of_others.value | self.moves_of_ours
        return tuple(one for one in self.placed if one.topic_partition not in moving)

    @cached_property
    def replica_counts(self) -> Mapping[int, int]:
        """Replicas by broker, adding ones included."""
        return Counter(broker for one in self.placed for broker in one.replicas)

    @cached_property
    def usual_factors(self) -> Mapping[str, int]:
        """The replication factor that most partitions of each topic have."""
        rest = {one.topic_partition for one in self.at_rest}
        rows = ((one.topic_partition, len(one.replicas)) for one in self.placed)
        return usual_factors(Counter((name.topic, factor, int(name not in rest)) for name, factor in rows))

    @cached_property
    def usable_racks(self) -> frozenset[str]:
        """Racks with a live broker."""
        return frozenset(rack for broker, rack in self.racks.items() if broker in self.live)

    @cached_property
    def future_copies(self) -> frozenset[TopicPartition]:
        """Partitions that are copied from one directory of a broker to another."""
        copies = (copy for _, dirs in self.directories() for one in dirs for copy in one.replicas)
        return frozenset(copy.topic_partition for copy in copies if copy.is_future)

    def cordoned(self) -> frozenset[int]:
        """Live brokers all of whose working directories are cordoned."""
        return frozenset(
            broker
            for broker, dirs in self.directories()
            if (working := [one for one in dirs if one.error is None]) and all(one.is_cordoned for one in working)
        )

    def directories(self) -> Iterator[tuple[int, tuple[LogDir, ...]]]:
        """Log directories of each broker that answered."""
        for broker, dirs in sorted(self.log_dirs.items()):
            if isinstance(dirs, Known):
                yield broker, dirs.value

    def holding(self, broker: int) -> tuple[Partition, ...]:
        """Partitions with a replica on the broker."""
        return tuple(one for one in self.placed if broker in one.replicas)

    @cached_property
    def lost(self) -> Mapping[int, frozenset[TopicPartition]]:
        """Partitions at rest of which the directories of a live broker that holds them have no copy, by broker."""
        lagging: dict[int, set[TopicPartition]] = defaultdict(set)
        for one in self.at_rest:
            for broker in set(one.replicas).difference(one.isr):
                lagging[broker].add(one.topic_partition)
        return {
            broker: frozenset(lagging[broker]).difference(copy.topic_partition for one in dirs for copy in one.replicas)
            for broker, dirs in self.directories()
            if broker in lagging
        }

    def caught_up(self, broker: int, names: Collection[TopicPartition]) -> float | None:
        """Share of the bytes of its replicas of these partitions that a broker has.

        None where it, or any broker with a copy of them, did not say.
        """
        dirs = self.log_dirs.get(broker)
        held = [one for one in self.holding(broker) if one.topic_partition in names]
        others = (self.log_dirs.get(other) for one in held for other in one.replicas)
        if not isinstance(dirs, Known) or any(isinstance(one, Unknown) for one in others):
            return None
        copies = (copy for one in dirs.value for copy in one.replicas if not copy.is_future)
        there = {copy.topic_partition: copy.size_bytes for copy in copies}
        wanted = {one.topic_partition: self.sizes.get(one.topic_partition, 0) for one in held}
        size = sum(wanted.values())
        return sum(min(there.get(name, 0), most) for name, most in wanted.items()) / size if size else 1.0

    @cached_property
    def sizes(self) -> Mapping[TopicPartition, int]:
        """Bytes of the largest copy of each partition that a live broker reported."""
        found: dict[TopicPartition, int] = {}
        for _, dirs in self.directories():
            for copy in (copy for one in dirs for copy in one.replicas):
                if not copy.is_future:
                    name = copy.topic_partition
                    found[name] = max(copy.size_bytes, found.get(name, 0))
        return found

    def held_by(self, broker: int) -> int | None:
        """Bytes of the replicas of a broker, as large as the largest ones of their partitions; None if unknown."""
        sizes = [self.sizes.get(one.topic_partition) for one in self.holding(broker)]
        return None if None in sizes else sum(filter(None, sizes))

    @property
    def held_bytes(self) -> int:
        """Bytes of all replicas, each as large as the largest one of its partition; 0 for those of unknown size."""
        return sum(len(one.replicas) * self.sizes.get(one.topic_partition, 0) for one in self.placed)

    def unread(self, *, with_sizes: bool = True) -> str:
        """Readings of the cluster itself that failed, by their reasons; lease and brake have gates of their own.

        Sizes are those of log directories. Empty if all was read.
        """
        by_reason: dict[str, list[str]] = defaultdict(list)
        readings: dict[str, Asked[Any]] = {
            "brokers": self.brokers,
            "partitions": self.partitions,
            "moves": self.moves_of_others,
            "throttles": self.throttles_of_others,
            "maintenance": self.maintenance,
            **{f"topic {name}": Unknown(why) for name, why in sorted(self.unread_topics.items())},
            **{f"log directories of broker {one}": self.log_dirs[one] for one in sorted(self.log_dirs) if with_sizes},
        }
        for name, reading in readings.items():
            if isinstance(reading, Unknown):
                by_reason[reading.why].append(name)
        return "; ".join(f"{some_of(names, NAMED)}: {why}" for why, names in by_reason.items())


def last_copies(partitions: tuple[Partition, ...]) -> int:
    """Partitions with a leader and one replica in sync, or with no leader at all."""
    return sum(one.leader == NO_LEADER or len(one.isr) <= 1 for one in partitions)
