"""Read brokers that are to be taken out of service; the cordon and the steps that decommission and maintenance share.

`decommission.py` and `maintenance.py` decide from `Readings`: the state of the brokers in the cluster, read through
the port. `Cordon`, `Await`, `Blocked` and `Finished` are steps of both. Only `read_brokers` queries the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kreassign.errors import Unsupported
from kreassign.executor.cluster.permissions import unseen_topics
from kreassign.model import (
    Batch,
    Cluster,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    LogDir,
    OngoingReassignment,
    Partition,
    Topic,
    TopicPartition,
)
from kreassign.model.authorization import error_text, missing_permission

# The cordon of a broker (KIP-1066): the value of `cordoned.log.dirs` that closes its log directories, and its removal.
#
#     not set            →  *                 →  not set
#     /d1, one of two    →  refused: we could not restore it, because Kafka 4.3.1 takes `*` only by itself
#     *, or all of them  →  left as it is     →  `*` is removed, other values stay: they are not ours
#
# So the value itself is enough to undo the cordon, for any operator. `*` also closes directories that are added later.

CORDONED_LOG_DIRS = "cordoned.log.dirs"
ALL_LOG_DIRS = "*"

CORDON = ConfigChange.set(CORDONED_LOG_DIRS, ALL_LOG_DIRS)
UNCORDON = ConfigChange.delete(CORDONED_LOG_DIRS)


def is_our_cordon(value: str | None) -> bool:
    """True for the value that `CORDON` sets."""
    return value == ALL_LOG_DIRS


def is_closed(value: str | None, log_dirs: Sequence[LogDir]) -> bool:
    """True if the broker takes no new replicas. Offline directories count as closed."""
    working = [one for one in log_dirs if one.error is None]
    return is_our_cordon(value) or (bool(working) and all(one.is_cordoned for one in working))


# Readings: the state of the brokers in the cluster.


class BrokerPort(Protocol):
    """Broker calls, with the meaning that `AdminClient` gives them. All raise ClusterError."""

    def describe_cluster(self, *, include_fenced: bool = False) -> Cluster:
        """The live brokers; with `include_fenced` all that are registered."""
        ...

    def describe_topics(self, names: Iterable[str] | None) -> Batch[str, Topic]:
        """Topics with their partitions."""
        ...

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, OngoingReassignment]:
        """Reassignments in progress."""
        ...

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, names: Iterable[str] | None
    ) -> Batch[ConfigResource, Mapping[str, ConfigEntry]]:
        """Values of these keys."""
        ...

    def describe_log_dirs(self, brokers: Iterable[int] | None) -> Batch[int, tuple[LogDir, ...]]:
        """Contents of the log directories of brokers."""
        ...


@dataclass(frozen=True, slots=True)
class CordonReading:
    """Cordon state of a live broker: its own value of `cordoned.log.dirs`, and its log directories.

    `is_known`: whether the broker has that setting (Kafka 4.3).
    """

    is_known: bool
    value: str | None
    log_dirs: tuple[LogDir, ...]

    @property
    def is_closed(self) -> bool:
        """True if the broker gets no new replicas from automatic placement."""
        return self.is_known and is_closed(self.value, self.log_dirs)


@dataclass(frozen=True, slots=True)
class BrokerReading:
    """State of one broker in the cluster.

    `replicas` are partitions whose list names the broker, `arriving` and `leaving` those being reassigned to it and
    away from it, with the reassignment. `copies` are partitions that its log directories hold data of. `cordon` is
    None if the broker is down or did not answer; `unread` has the reason. `is_registered` is None for a broker that is
    down where the cluster cannot tell (before Kafka 4.0).
    """

    broker: int
    is_live: bool
    is_registered: bool | None
    cordon: CordonReading | None = None
    replicas: tuple[TopicPartition, ...] = ()
    arriving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    leaving: Mapping[TopicPartition, OngoingReassignment] = field(default_factory=dict)
    copies: tuple[TopicPartition, ...] = ()
    unread: str = ""

    @property
    def is_closed(self) -> bool:
        """True if the broker gets new replicas only from requests that name it."""
        return self.cordon is not None and self.cordon.is_closed

    @property
    def offline_log_dirs(self) -> tuple[str, ...]:
        """Paths of its offline log directories, whose contents are unknown."""
        return () if self.cordon is None else tuple(one.path for one in self.cordon.log_dirs if one.error)


@dataclass(frozen=True, slots=True)
class Readings:
    """State of the brokers in question and of the cluster around them.

    `live` are all live brokers, `partitions` all partitions, and `moving` those being reassigned. `unseen` are topics
    that this client may not see and that have replicas on the brokers, or on any live broker if one in question is
    down; they are missing everywhere else.
    """

    live: frozenset[int]
    brokers: tuple[BrokerReading, ...]
    partitions: tuple[Partition, ...] = ()
    moving: frozenset[TopicPartition] = frozenset()
    unseen: tuple[str, ...] = ()


def read_brokers(port: BrokerPort, brokers: Sequence[int]) -> Readings:
    """Read the present state of these brokers. Raises ClusterError."""
    # Query the controller first: brokers show moves that it no longer lists as done now or a moment later.
    ongoing = port.list_partition_reassignments(None)
    topics = port.describe_topics(None).ok
    partitions = tuple(partition for topic in topics.values() for partition in topic.partitions)
    live = frozenset(one.id for one in port.describe_cluster().brokers)
    registered = _registered(port)
    configs, log_dirs = _read_own(port, brokers, live)
    unseen = unseen_topics(port, topics, (one for dirs in log_dirs.ok.values() for one in dirs))
    found = (
        BrokerReading(
            broker,
            broker in live,
            True if broker in live else None if registered is None else broker in registered,
            replicas=tuple(sorted(one.topic_partition for one in partitions if broker in one.replicas)),
            arriving={name: move for name, move in ongoing.items() if broker in move.adding},
            leaving={name: move for name, move in ongoing.items() if broker in move.removing},
        )
        for broker in brokers
    )
    with_own = tuple(_with_own(one, configs, log_dirs) for one in found)
    return Readings(live, with_own, partitions, frozenset(ongoing), unseen)


_Configs = Batch[ConfigResource, Mapping[str, ConfigEntry]]
_LogDirs = Batch[int, tuple[LogDir, ...]]


def _registered(port: BrokerPort) -> set[int] | None:
    try:
        return {one.id for one in port.describe_cluster(include_fenced=True).brokers}
    except Unsupported:
        return None


def _read_own(port: BrokerPort, brokers: Sequence[int], live: Collection[int]) -> tuple[_Configs, _LogDirs]:
    """Read configs and log directories of the live brokers. Of a broker that is down, other brokers know a part."""
    asked = [broker for broker in brokers if broker in live]
    resources = map(ConfigResource.broker, asked)
    configs = port.describe_configs(resources, names=(CORDONED_LOG_DIRS,)) if asked else Batch()
    return configs, port.describe_log_dirs(asked if len(asked) == len(brokers) else sorted(live))


def _with_own(found: BrokerReading, configs: _Configs, log_dirs: _LogDirs) -> BrokerReading:
    """Add configs and log directories, if the broker is live."""
    resource = ConfigResource.broker(found.broker)
    trouble = configs.failed.get(resource) or log_dirs.failed.get(found.broker)
    if trouble is not None or not found.is_live:
        return replace(found, unread="" if trouble is None else error_text(trouble))
    entry, dirs = configs.ok[resource].get(CORDONED_LOG_DIRS), log_dirs.ok[found.broker]
    own = entry.value if entry is not None and entry.source is ConfigSource.DYNAMIC_BROKER else None
    copies = tuple(sorted({copy.topic_partition for one in dirs for copy in one.replicas}))
    return replace(found, cordon=CordonReading(entry is not None, own, dirs), copies=copies)


# The shared steps, and the names of brokers and partitions in them.

NAMED = 5


@dataclass(frozen=True, slots=True)
class Cordon:
    """Close the log directories of these brokers."""

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"cordon the log directories of {listed_brokers(self.brokers)}"


@dataclass(frozen=True, slots=True)
class Await:
    """Read again later: work in progress ends by itself; brief waits end within minutes unless others interfere."""

    reason: str
    is_brief: bool = False

    def __str__(self) -> str:
        return f"wait: {self.reason}"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Only the operator can go on: the obstacle, and what to do."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do: one sentence per broker with what was checked."""

    proof: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.proof)


def cordon_open(found: Readings, uncordoned: Collection[int]) -> Cordon | Blocked | None:
    """Cordon the open brokers, except those whose cordon Kafka refused."""
    open_ones = [
        one
        for one in found.brokers
        if one.cordon is not None and one.cordon.is_known and not one.is_closed
        if one.broker not in uncordoned
    ]
    in_part = [f"of broker {one.broker} is {one.cordon.value}" for one in open_ones if one.cordon and one.cordon.value]
    if in_part:
        return Blocked(
            f"{CORDONED_LOG_DIRS} {', '.join(in_part)}: some directories are cordoned already, and closing the "
            "others could not be undone. Set it to * or delete it (kafka-configs), then give the command again"
        )
    return Cordon(tuple(one.broker for one in open_ones)) if open_ones else None


def unseen_on(found: Readings) -> Blocked | None:
    """Block if topics are hidden: a broker's contents are unknown to a client that does not see all topics."""
    if not found.unseen:
        return None
    return Blocked(
        f"what is on {listed_brokers(one.broker for one in found.brokers)} cannot be told, for there are replicas "
        "of topics "
        f"that this client may not see: {missing_permission('Describe', found.unseen)}, then give the command again"
    )


def listed_brokers(brokers: Iterable[int]) -> str:
    """Brokers as text: "broker 3", "brokers 3, 4"."""
    ids = sorted(brokers)
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def some_partitions(names: Collection[TopicPartition]) -> str:
    """The first partitions by name, and how many more there are."""
    shown = ", ".join(map(str, list(names)[:NAMED]))
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
