"""A cluster at one time, as the autopilot sees it: each thing is known, absent, or unknown with the reason. Pure.

Unknown never permits: a detector that needs what was not read finds nothing new and closes nothing, and a gate that
needs it stays closed and says why. `operations/autopilot_looks.py` makes these values from a cluster's answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from kreassign.model import NO_LEADER, Broker, LogDir, Partition, TopicPartition
from kreassign.model.placement import usual_factors

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


@dataclass(frozen=True, slots=True)
class Brake:
    """The brake that somebody pulled with Kafka's own tools."""

    text: str


# A dictionary of cached values; the fields themselves never change.
@dataclass(frozen=True)
class Observation:
    """The cluster at `at_ms`.

    `brokers` are all registered ones where the cluster names those that are down, else the live ones. `log_dirs` has
    what each live broker answered. `moves_of_others` and `throttles_of_others` name what no run of ours does.
    `cordoned` are brokers that take no replicas by a cordon. `lease` names another holder of the lease.
    `unread_topics` are topics that did not answer, with the reason. `is_run_left` says that no process executes the run
    of ours, if there is one. `balancers` name what may move partitions there by itself.
    """

    at_ms: int
    cluster_id: str
    brokers: Asked[tuple[Broker, ...]]
    partitions: Asked[tuple[Partition, ...]]
    log_dirs: Mapping[int, Asked[tuple[LogDir, ...]]]
    moves_of_others: Asked[frozenset[TopicPartition]]
    throttles_of_others: Asked[tuple[str, ...]]
    maintenance: Asked[frozenset[int]]
    lease: Perhaps[str]
    brake: Perhaps[Brake]
    moves_of_ours: frozenset[TopicPartition] = frozenset()
    unread_topics: Mapping[str, str] = field(default_factory=dict)
    is_run_left: bool = False
    balancers: tuple[str, ...] = ()

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
    def whole_racks_down(self) -> tuple[str, ...]:
        """Racks of two brokers and more of which none is live."""
        sizes = Counter(self.racks.values())
        return tuple(sorted(rack for rack, size in sizes.items() if size > 1 and rack not in self.usable_racks))

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
    def sizes(self) -> Mapping[TopicPartition, int]:
        """Bytes of the largest copy of each partition that a live broker reported."""
        found: dict[TopicPartition, int] = {}
        for _, dirs in self.directories():
            for copy in (copy for one in dirs for copy in one.replicas):
                if not copy.is_future:
                    name = copy.topic_partition
                    found[name] = max(copy.size_bytes, found.get(name, 0))
        return found

    def unread(self, *, with_sizes: bool = True) -> Iterator[str]:
        """Readings of the cluster itself that failed, a sentence each; lease and brake have gates of their own.

        Sizes are those of log directories.
        """
        for name, asked in (
            ("brokers", self.brokers),
            ("partitions", self.partitions),
            ("moves", self.moves_of_others),
            ("throttles", self.throttles_of_others),
            ("maintenance", self.maintenance),
        ):
            if isinstance(asked, Unknown):
                yield f"{name}: {asked.why}"
        yield from (f"topic {name}: {why}" for name, why in sorted(self.unread_topics.items()))
        for broker, dirs in sorted(self.log_dirs.items()):
            if with_sizes and isinstance(dirs, Unknown):
                yield f"log directories of broker {broker}: {dirs.why}"


def last_copies(partitions: tuple[Partition, ...]) -> int:
    """Partitions with a leader and one replica in sync, or with no leader at all."""
    return sum(one.leader == NO_LEADER or len(one.isr) <= 1 for one in partitions)
