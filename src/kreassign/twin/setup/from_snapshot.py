"""A real cluster in a box: from a snapshot to what a twin begins with.

A snapshot says which replicas are where, not how fast disks and networks are; the caller says that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotPartition
from kreassign.twin.blueprint import Blueprint, BrokerPlan, PartitionPlan, TopicPlan
from kreassign.twin.replication.hardware import FAST_DISK, TEN_GIGABIT, TWO_TERABYTES, BrokerHardware, LogDirHardware
from kreassign.twin.replication.partition_logs import Traffic

_Directory = tuple[int, str]
_RECORD_BYTES = 1000.0


@dataclass(frozen=True, slots=True)
class Speeds:
    """Bytes per second that each disk reads or writes, and that each broker sends or receives."""

    disk_bytes_per_s: float = FAST_DISK
    network_bytes_per_s: float = TEN_GIGABIT


TYPICAL = Speeds()
"""Those of fast disks and of ten gigabits per second."""


def blueprint_of(snapshot: ClusterSnapshot, speeds: Speeds) -> Blueprint:
    """The twin of a cluster as it was found, with its moves under way.

    Every log directory has a disk of its own, as large as what it holds and what was free. One that was offline is
    left out; so its copies, which are out of sync, are brought back to other directories. A broker that is only known
    from replica lists is down. Raises InputError if the snapshot contradicts itself.
    """
    held = _held(snapshot)
    known = {seen.broker.id for seen in snapshot.brokers}
    absent = {broker for _, partition in snapshot.partitions for broker in partition.replicas} - known
    seen = (*snapshot.brokers, *(SnapshotBroker(Broker(broker, "", 0, is_fenced=True)) for broker in sorted(absent)))
    brokers = tuple(_broker(one, held, speeds) for one in seen)
    paths = {(broker.id, log_dir.path) for broker in brokers for log_dir in broker.hardware.log_dirs}
    topics = tuple(
        TopicPlan(topic.name, tuple(_partition(partition, paths) for partition in topic.partitions), topic.configs)
        for topic in snapshot.topics
    )
    configs: dict[int | None, Mapping[str, str]] = {one.broker.id: one.configs for one in seen if one.configs}
    configs |= {None: snapshot.broker_defaults} if snapshot.broker_defaults else {}
    return Blueprint(brokers, topics, configs, snapshot.cluster_id)


def _held(snapshot: ClusterSnapshot) -> Counter[_Directory]:
    """Bytes of all copies by directory."""
    held: Counter[_Directory] = Counter()
    for _, partition in snapshot.partitions:
        for broker, path, size in zip(partition.replicas, partition.log_dirs, partition.sizes_bytes, strict=True):
            if path is not None:
                held[broker, path] += size or 0
    return held


def _broker(seen: SnapshotBroker, held: Counter[_Directory], speeds: Speeds) -> BrokerPlan:
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


def _partition(seen: SnapshotPartition, paths: set[_Directory]) -> PartitionPlan:
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
