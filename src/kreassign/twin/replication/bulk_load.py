"""Filling replication with a whole cluster at once: arrays instead of a million single changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kreassign.errors import InputError
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.config import ResourceType
from kreassign.twin.metadata.state import ClusterMetadata, PartitionState
from kreassign.twin.replication.apply_records import RecordApplier
from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.partition_logs import EMPTY, NOWHERE, Traffic
from kreassign.twin.replication.replicas import Replicas
from kreassign.twin.replication.retention import LOG_SETTINGS, RETENTION_BYTES, kept_bytes, tiering_of


def load(
    applier: RecordApplier,
    metadata: ClusterMetadata,
    traffic: Mapping[TopicPartition, Traffic],
    held_bytes: Mapping[tuple[TopicPartition, int], int],
) -> None:
    """Take over a whole cluster. Nothing may have been loaded before.

    Members of the ISR have everything. The others have the first `held_bytes`, by partition and broker, of what the
    leader has; where that is not said, adding replicas have nothing and all others everything. A partition without
    `traffic` is empty.
    """
    replicas = applier.replicas
    if len(replicas.state.logs):
        raise InputError("the twin has partitions already; load a cluster into a new one")
    for broker in metadata.brokers.values():
        applier.register(broker.broker_id, broker.log_dirs)
        applier.set_eligible(broker.broker_id, is_eligible=broker.is_active)
    behind = list(_take_all(applier, metadata, traffic))
    _sum_up(replicas)
    for row, broker_id in behind:
        _set_back(replicas, row, broker_id, metadata, held_bytes)
    for resource, values in metadata.configs.items():
        for name, value in values.items():
            if resource.type is not ResourceType.TOPIC or name not in LOG_SETTINGS:
                applier.configure(resource, name, value)


def _take_all(
    applier: RecordApplier, metadata: ClusterMetadata, traffic: Mapping[TopicPartition, Traffic]
) -> Iterator[tuple[int, int]]:
    for topic in metadata.topics.values():
        applier.replicas.state.logs.reserve(len(topic.partitions))
        settings = metadata.configs.get(ConfigResource.topic(topic.name), {})
        tiering = tiering_of(settings)
        for partition in topic.partitions.values():
            found = traffic.get(partition.topic_partition, EMPTY)
            if RETENTION_BYTES in settings or tiering is not None:
                found = replace(found, retention_bytes=kept_bytes(settings), tiering=tiering)
            yield from _take(applier, partition, found)


def _take(applier: RecordApplier, partition: PartitionState, traffic: Traffic) -> Iterator[tuple[int, int]]:
    """Add one partition as if all of it were in sync; row and broker id of the replicas that are not."""
    replicas = applier.replicas
    row = replicas.state.logs.add(partition.topic_partition, traffic, replicas.state.now_ms)
    dirs = []
    for broker_id, directory_id in zip(partition.replicas, partition.directories, strict=True):
        broker = replicas.state.fleet.broker(broker_id)
        log_dir = applier.find_dir(broker, directory_id)
        if log_dir is None:
            log_dir = replicas.log_dirs.choose(broker)
        replicas.log_dirs.log_counts[log_dir] += 1
        dirs.append(log_dir)
        if broker_id == partition.leader:
            replicas.state.logs.set_leader(row, broker, log_dir)
        elif broker_id not in partition.isr:
            yield row, broker_id
    replicas.state.logs.place_all(row, dirs)


def _sum_up(replicas: Replicas) -> None:
    """What all partitions use, every replica being in sync and no topic throttled."""
    logs, fleet, in_sync_traffic = replicas.state.logs, replicas.state.fleet, replicas.state.in_sync_traffic
    table, brokers, log_dirs = logs.table, len(fleet.broker_ids), len(fleet.paths)
    leaders = np.where(logs.dirs[:, 0] == NOWHERE, NOWHERE, table["leader"])
    rates = np.where(table["flows"], table["write_rate"], 0.0)
    growths = np.where(table["full_length"], 0.0, rates)
    sizes = table["end"] - table["start"]
    led = leaders != NOWHERE
    in_sync_traffic.net_in += np.bincount(leaders[led], rates[led], brokers)
    for dirs in logs.dirs.T:
        there = dirs != NOWHERE
        in_sync_traffic.size += np.bincount(dirs[there], sizes[there], log_dirs)
        in_sync_traffic.write += np.bincount(dirs[there], rates[there], log_dirs)
        in_sync_traffic.growth += np.bincount(dirs[there], growths[there], log_dirs)
        owners = fleet.owner[dirs]
        follows = there & led & (owners != leaders)
        _sum_up_followers(replicas, leaders[follows], owners[follows], rates[follows])
    for row in np.flatnonzero(np.isfinite(table["retention"]) & (rates > 0) & ~table["full_length"]).tolist():
        replicas.expect_retention(row)
    replicas.state.must_share = True


def _sum_up_followers(
    replicas: Replicas, leaders: NDArray[np.int32], followers: NDArray[np.int32], rates: NDArray[np.float64]
) -> None:
    in_sync_traffic, brokers = replicas.state.in_sync_traffic, len(replicas.state.fleet.broker_ids)
    in_sync_traffic.net_out += np.bincount(leaders, rates, brokers)
    in_sync_traffic.net_in += np.bincount(followers, rates, brokers)
    pairs = leaders.astype(np.int64) * brokers + followers
    in_sync_traffic.followed += np.bincount(pairs, minlength=brokers**2).reshape(brokers, brokers).astype(np.int32)
    in_sync_traffic.sent += np.bincount(pairs, rates, brokers**2).reshape(brokers, brokers)


def _set_back(
    replicas: Replicas,
    row: int,
    broker_id: int,
    metadata: ClusterMetadata,
    held_bytes: Mapping[tuple[TopicPartition, int], int],
) -> None:
    topic_partition, broker = replicas.state.logs.topic_partition(row), replicas.state.fleet.broker(broker_id)
    key = CopyKey(row, broker)
    partition = metadata.partition(topic_partition)
    is_new = partition is not None and broker_id in partition.adding
    with replicas.changing(row):
        replicas.isr.outside.add((row, broker))
        replicas.mark_behind(row, broker, replicas.state.dir_of(row, broker))
        entry = replicas.state.copies.entry(key)
        held = held_bytes.get((topic_partition, broker_id), 0 if is_new else float(entry["position"] - entry["begin"]))
        entry["position"] = min(float(entry["begin"]) + held, float(entry["position"]))
        entry["started"] = False
    replicas.start_later(key, int(replicas.state.copies.entry(key)["serial"]))
