"""PURE. What a cluster reports about itself → a whole snapshot, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kreassign.model import OngoingReassignment, Partition, TopicPartition
from kreassign.model.snapshot import ClusterSnapshot
from kreassign.pipeline.ingest.placed_copies import placed_copies
from kreassign.pipeline.ingest.snapshots import Observation
from kreassign.pipeline.tables.snapshot_columns import (
    UNKNOWN,
    Amounts,
    Lists,
    SnapshotColumns,
    ends_of,
    partition_sizes,
)

_NOT_MOVING = OngoingReassignment((), (), ())


@dataclass(frozen=True, slots=True)
class ObservedOffsets:
    """Where logs begin and end, as far as leaders answered, and what producers write, given the size of one copy."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    write_rate: Callable[[TopicPartition, int | None], float | None]


def whole_columns(head: ClusterSnapshot, seen: Observation, offsets: ObservedOffsets) -> SnapshotColumns:
    """The columns of a snapshot; `head` has what is no column, with the topics in the order of what was seen."""
    found = [partition for topic in seen.topics for partition in topic.partitions]
    moving = [seen.reassignments.get(one.topic_partition, _NOT_MOVING) for one in found]
    replicas = Lists.of([one.replicas for one in found])
    leaders = np.fromiter((one.leader for one in found), np.int32, len(found))
    copies = placed_copies(seen.topics, replicas, seen.log_dirs)
    futures = copies.futures
    return SnapshotColumns(
        head=head,
        counts=np.array([len(topic.partitions) for topic in seen.topics], np.int32),
        leaders=leaders,
        leader_epochs=np.fromiter((one.leader_epoch for one in found), np.int32, len(found)),
        replicas=replicas,
        isr=Lists.of([one.isr for one in found]),
        adding=Lists.of([one.adding for one in moving]),
        removing=Lists.of([one.removing for one in moving]),
        paths=copies.paths,
        log_dirs=copies.log_dirs,
        sizes_bytes=copies.sizes_bytes,
        future_brokers=Lists(
            ends_of(np.bincount(replicas.owners[futures], minlength=len(found))), replicas.values[futures]
        ),
        future_log_dirs=copies.future_log_dirs,
        start_offsets=_offsets(found, offsets.starts),
        end_offsets=_offsets(found, offsets.ends),
        write_bytes_per_s=np.fromiter(
            _rates(found, partition_sizes(replicas, copies.sizes_bytes, leaders), offsets), np.float64, len(found)
        ),
    )


def _offsets(found: list[Partition], offsets: Mapping[TopicPartition, int]) -> Amounts:
    return np.fromiter((offsets.get(one.topic_partition, UNKNOWN) for one in found), np.int64, len(found))


def _rates(found: list[Partition], sizes: Amounts, offsets: ObservedOffsets) -> Iterator[float]:
    for one, size in zip(found, sizes.tolist(), strict=True):
        rate = offsets.write_rate(one.topic_partition, None if size == UNKNOWN else size)
        yield float("nan") if rate is None else rate
