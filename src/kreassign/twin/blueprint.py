"""The initial state of a twin: brokers, topics, placement of replicas, and their sizes.

A blueprint is written by hand, by a scenario, or made from the snapshot of a real cluster. A snapshot has the
replicas but not the speed of disks and networks; the caller gives those as `Speeds`, in bytes per second.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign import model
from kreassign.errors import InputError
from kreassign.model.cluster import without
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotPartition
from kreassign.model.text import agreeing, counted
from kreassign.twin import metadata
from kreassign.twin.access import HostPort
from kreassign.twin.replication.hardware import FAST_DISK, TEN_GIGABIT, TWO_TERABYTES, BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import EMPTY, Traffic, tiering_of

PORT = 9092
# Shared by all partitions that are not being moved, to save memory.
_NOTHING: Mapping[int, int] = {}
_NOWHERE: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """An initial broker. It registers as `broker-<id>:9092`, a name that resolves nowhere else.

    A broker that `is_down` is known to the controller and fenced; it can be started.
    """

    id: int
    hardware: BrokerHardware
    rack: str | None = None
    is_down: bool = False

    @property
    def registered_address(self) -> HostPort:
        """The address that the broker registers with."""
        return HostPort(f"broker-{self.id}", PORT)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """An initial partition. Without an ISR all replicas on running brokers are in sync.

    Without a leader the first running member of the ISR leads. `paths` names the log directory of each replica; where
    it is empty the brokers choose. A move in progress has its `adding` and `removing` replicas, both among
    `replicas`; the adding ones are then out of sync unless the ISR says otherwise, and `held_bytes` says how much they
    have already, by broker. `future_paths` are the directories to which brokers are moving their copies.
    """

    replicas: tuple[int, ...]
    traffic: Traffic = EMPTY
    isr: tuple[int, ...] | None = None
    paths: tuple[str | None, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    held_bytes: Mapping[int, int] = field(default_factory=lambda: _NOTHING)
    leader: int | None = None
    leader_epoch: int = 0
    future_paths: Mapping[int, str] = field(default_factory=lambda: _NOWHERE)

    def __post_init__(self) -> None:
        if not self.replicas or len(set(self.replicas)) != len(self.replicas):
            raise InputError(f"a partition needs replicas, each on a broker of its own; given: {list(self.replicas)}")
        if self.paths and len(self.paths) != len(self.replicas):
            copies, dirs = len(self.replicas), len(self.paths)
            raise InputError(
                f"{counted(copies, 'replica')} {agreeing(copies, 'have')} "
                f"{counted(dirs, 'log directory', 'log directories')}; give one for each"
            )

    def in_sync(self, down: Collection[int] = ()) -> tuple[int, ...]:
        """The initial ISR; if all of its brokers are `down`, the last one to go down."""
        if self.isr is not None:
            return self.isr
        if not self.adding and not down:
            return self.replicas
        complete = without(self.replicas, self.adding)
        return without(complete, down) or complete[:1]

    def first_leader(self, down: Collection[int] = ()) -> int:
        """The initial leader; `NO_LEADER` if there is none."""
        if self.leader is not None:
            return self.leader
        in_sync = self.in_sync(down)
        return next((broker for broker in in_sync if broker not in down), model.NO_LEADER)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """An initial topic: its partitions in the order of their numbers, and its configuration."""

    name: str
    partitions: tuple[PartitionPlan, ...]
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A whole cluster. `broker_configs` is by broker id; None is the default of all brokers."""

    brokers: tuple[BrokerPlan, ...]
    topics: tuple[TopicPlan, ...] = ()
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    cluster_id: str = "twin"

    def __post_init__(self) -> None:
        ids = [broker.id for broker in self.brokers]
        if not ids or min(ids) < 0 or len(set(ids)) != len(ids):
            raise InputError(f"a cluster needs brokers with different ids from 0 on; given: {sorted(ids)}")

    @property
    def hardware(self) -> dict[int, BrokerHardware]:
        """The hardware of every broker, by id."""
        return {broker.id: broker.hardware for broker in self.brokers}

    @property
    def has_tiered_topics(self) -> bool:
        """True if any topic has its older segments in remote storage (KIP-405)."""
        return any(tiering_of(topic.configs) is not None for topic in self.topics)

    @property
    def traffic(self) -> dict[model.TopicPartition, Traffic]:
        """Size and write rate of each partition; empty partitions are left out."""
        return {key: plan.traffic for key, plan in self._partitions() if plan.traffic != EMPTY}

    @property
    def down(self) -> frozenset[int]:
        """The brokers that are not running."""
        return frozenset(broker.id for broker in self.brokers if broker.is_down)

    @property
    def ongoing(self) -> dict[model.TopicPartition, model.OngoingReassignment]:
        """The partitions that are being moved, with their adding and removing replicas."""
        return {
            key: model.OngoingReassignment(plan.replicas, plan.adding, plan.removing)
            for key, plan in self._partitions()
            if plan.adding or plan.removing
        }

    @property
    def directory_moves(self) -> dict[model.TopicPartitionReplica, str]:
        """Target directory of each copy that moves between directories of its broker."""
        return {
            model.TopicPartitionReplica(broker, *key): path
            for key, plan in self._partitions()
            for broker, path in plan.future_paths.items()
        }

    @property
    def held_bytes(self) -> dict[tuple[model.TopicPartition, int], int]:
        """Bytes that copies out of sync hold already, by partition and broker."""
        return {(key, broker): held for key, plan in self._partitions() for broker, held in plan.held_bytes.items()}

    def records(self, rng: random.Random) -> Iterator[metadata.Record]:
        """The metadata log of this cluster; `rng` draws the ids of directories and topics."""
        directories = _Directories()
        for broker in self.brokers:
            log_dirs = tuple(metadata.LogDirInfo(log_dir.path, new_id(rng)) for log_dir in broker.hardware.log_dirs)
            directories.add(broker.id, log_dirs)
            host, port = broker.registered_address
            yield metadata.BrokerRegistered(broker.id, host, port, broker.rack, log_dirs, broker_epoch=broker.id + 1)
            if not broker.is_down:
                yield metadata.BrokerUnfenced(broker.id)
        for broker_id, configs in self.broker_configs.items():
            resource = model.ConfigResource.broker(broker_id) if broker_id is not None else ALL_BROKERS
            yield from (metadata.ConfigChanged(resource, name, value) for name, value in configs.items())
            if broker_id in self.down and metadata.CORDONED_LOG_DIRS in configs:
                # The controller learnt of the cordon while the broker was up.
                yield metadata.BrokerUnfenced(broker_id)
                yield metadata.BrokerFenced(broker_id)
        for topic in self.topics:
            yield from _topic_records(topic, new_id(rng), directories, self.down)

    def _partitions(self) -> Iterator[tuple[model.TopicPartition, PartitionPlan]]:
        for topic in self.topics:
            for number, plan in enumerate(topic.partitions):
                yield model.TopicPartition(topic.name, number), plan


ALL_BROKERS = model.ConfigResource.broker(0)._replace(name="")
"""The config resource of the default of all brokers."""


def seeded_random(seed: str) -> random.Random:
    """The random number generator of a twin: equal seeds give equal numbers."""
    return random.Random(seed)  # noqa: S311 - nothing secret is drawn


def new_id(rng: random.Random) -> str:
    """A random UUID (version 4) in its usual text form."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def small_cluster(broker_count: int, *, racks: tuple[str, ...] = (), log_dirs: int = 2) -> Blueprint:
    """A cluster of equal brokers 0, 1, 2 … without topics, racks assigned in turn."""
    return Blueprint(
        tuple(
            BrokerPlan(
                number,
                BrokerHardware(tuple(LogDirHardware(f"/data/{number}/d{place}") for place in range(log_dirs))),
                racks[number % len(racks)] if racks else None,
            )
            for number in range(broker_count)
        )
    )


class _Directories:
    """Log directories of all brokers, with the number of replicas placed in each."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str], str] = {}
        self._counts: dict[int, dict[str, int]] = {}

    def add(self, broker: int, log_dirs: tuple[metadata.LogDirInfo, ...]) -> None:
        """Register the directories of a broker."""
        self._ids |= {(broker, log_dir.path): log_dir.directory_id for log_dir in log_dirs}
        self._counts[broker] = dict.fromkeys((log_dir.path for log_dir in log_dirs), 0)

    def place(self, broker: int, path: str | None) -> str:
        """Place another replica; return the id of its directory: of `path`, or the emptiest, as brokers choose it.

        A broker that is not in the cluster has no directories.
        """
        counts = self._counts.get(broker)
        if counts is None:
            return metadata.UNASSIGNED
        chosen = min(counts, key=counts.__getitem__) if path is None else path
        if chosen not in counts:
            raise InputError(f"broker {broker} has no log directory {chosen}; it has {sorted(counts)}")
        counts[chosen] += 1
        return self._ids[broker, chosen]


def _topic_records(
    topic: TopicPlan, topic_id: str, directories: _Directories, down: frozenset[int]
) -> Iterator[metadata.Record]:
    yield metadata.TopicCreated(topic.name, topic_id)
    for name, value in topic.configs.items():
        yield metadata.ConfigChanged(model.ConfigResource.topic(topic.name), name, value)
    for number, plan in enumerate(topic.partitions):
        paths = plan.paths or (None,) * len(plan.replicas)
        yield metadata.PartitionCreated(
            model.TopicPartition(topic.name, number),
            plan.replicas,
            plan.in_sync(down),
            plan.first_leader(down),
            plan.leader_epoch,
            partition_epoch=0,
            directories=tuple(map(directories.place, plan.replicas, paths)),
            adding=plan.adding,
            removing=plan.removing,
        )


# The blueprint of a real cluster, from its snapshot.

_Directory = tuple[int, str]
_RECORD_BYTES = 1000.0


@dataclass(frozen=True, slots=True)
class Speeds:
    """Bytes per second that each disk reads or writes, and that each broker sends or receives."""

    disk_bytes_per_s: float = FAST_DISK
    network_bytes_per_s: float = TEN_GIGABIT


TYPICAL = Speeds()
"""Fast disks and a network of ten gigabits per second."""


def blueprint_of(snapshot: ClusterSnapshot, speeds: Speeds) -> Blueprint:
    """The twin of a cluster as its snapshot shows it, with its moves in progress.

    Every log directory has a disk of its own, as large as its used plus its free bytes. Offline directories are left
    out, so their copies, which are out of sync, are restored to other directories. A broker known only from replica
    lists is down. Raises InputError if the snapshot contradicts itself.
    """
    held = _held(snapshot)
    known = {seen.broker.id for seen in snapshot.brokers}
    absent = {broker for _, partition in snapshot.partitions for broker in partition.replicas} - known
    seen = (
        *snapshot.brokers,
        *(SnapshotBroker(model.Broker(broker, "", 0, is_fenced=True)) for broker in sorted(absent)),
    )
    brokers = tuple(_broker_plan(one, held, speeds) for one in seen)
    paths = {(broker.id, log_dir.path) for broker in brokers for log_dir in broker.hardware.log_dirs}
    topics = tuple(
        TopicPlan(topic.name, tuple(_partition_plan(partition, paths) for partition in topic.partitions), topic.configs)
        for topic in snapshot.topics
    )
    configs: dict[int | None, Mapping[str, str]] = {
        one.broker.id: found for one in seen if (found := {**_cordon(one), **one.configs})
    }
    configs |= {None: snapshot.broker_defaults} if snapshot.broker_defaults else {}
    return Blueprint(brokers, topics, configs, snapshot.cluster_id)


def _cordon(seen: SnapshotBroker) -> dict[str, str]:
    """The cordon that the directories of a broker show, which its server.properties may have set."""
    cordoned = [one.path for one in seen.log_dirs if one.is_cordoned and not one.is_offline]
    return {metadata.CORDONED_LOG_DIRS: ",".join(cordoned)} if cordoned else {}


def _held(snapshot: ClusterSnapshot) -> Counter[_Directory]:
    """Bytes of all copies by directory."""
    held: Counter[_Directory] = Counter()
    for _, partition in snapshot.partitions:
        for broker, path, size in zip(partition.replicas, partition.log_dirs, partition.sizes_bytes, strict=True):
            if path is not None:
                held[broker, path] += size or 0
    return held


def _broker_plan(seen: SnapshotBroker, held: Counter[_Directory], speeds: Speeds) -> BrokerPlan:
    broker, disk, network = seen.broker, speeds.disk_bytes_per_s, speeds.network_bytes_per_s
    log_dirs = tuple(
        LogDirHardware(log_dir.path, _capacity(log_dir.usable_bytes, held[broker.id, log_dir.path]), disk, disk)
        for log_dir in seen.log_dirs
        if not log_dir.is_offline
    )
    hardware = BrokerHardware(log_dirs or (LogDirHardware("/data/d0"),), network, network)
    return BrokerPlan(broker.id, hardware, broker.rack, is_down=broker.is_fenced)


def _capacity(usable: int | None, held: int) -> int:
    return max(TWO_TERABYTES, 2 * held) if usable is None else max(1, usable + held)


def _partition_plan(seen: SnapshotPartition, paths: set[_Directory]) -> PartitionPlan:
    places = zip(seen.replicas, seen.log_dirs, strict=True)
    sizes = zip(seen.replicas, seen.sizes_bytes, strict=True)
    futures = seen.future_log_dirs.items()
    return PartitionPlan(
        seen.replicas,
        _traffic(seen),
        seen.isr,
        tuple(path if path is not None and (broker, path) in paths else None for broker, path in places),
        seen.adding,
        seen.removing,
        {broker: size for broker, size in sizes if broker not in seen.isr and size is not None},
        seen.leader,
        max(0, seen.leader_epoch),
        {broker: path for broker, path in futures if (broker, path) in paths},
    )


def _traffic(seen: SnapshotPartition) -> Traffic:
    size, start, end = seen.size_bytes or 0, seen.start_offset or 0, seen.end_offset or 0
    record_bytes = size / (end - start) if size and end > start else _RECORD_BYTES
    return Traffic(size, seen.write_bytes_per_s or 0.0, record_bytes, start)
