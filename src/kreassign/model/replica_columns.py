"""Replicas of a cluster in columns, from snapshots and tables to the search: a million without a million objects. Pure.

A value of its own beside the rest of the model, because it alone needs numpy, which a command that plans nothing does
not load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kreassign.model import TopicPartition

Ints = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaColumns:
    """One entry per replica, in any order.

    `topics` are indices into the sorted `topic_names`. `size_bytes` and `write_bytes_per_s` are those of the
    partition, NaN where unknown. `log_dirs` are indices into `paths`, negative where unknown; `future_log_dirs`
    likewise those to which brokers are moving their copies, negative for none. `read_bytes_per_s` is the read rate of
    consumers, NaN where not measured; None if never measured. `leader_cpu` and `follower_cpu` are
    likewise the part of a broker's CPU that a replica takes in each role. `in_sync` marks replicas in sync,
    `is_leaderless` those of partitions that nobody leads; None if that is not known.
    """

    topic_names: Sequence[str]
    topics: Ints
    partitions: Ints
    brokers: Ints
    positions: Ints
    is_reassigning: npt.NDArray[np.bool_]
    size_bytes: Floats
    write_bytes_per_s: Floats
    paths: Sequence[str] = ()
    log_dirs: Ints | None = None
    read_bytes_per_s: Floats | None = None
    leader_cpu: Floats | None = None
    follower_cpu: Floats | None = None
    in_sync: npt.NDArray[np.bool_] | None = None
    future_log_dirs: Ints | None = None
    is_leaderless: npt.NDArray[np.bool_] | None = None

    @classmethod
    def of_lists(
        cls, lists: Mapping[TopicPartition, Sequence[int]], sizes: Mapping[TopicPartition, int]
    ) -> ReplicaColumns:
        """Columns of partitions with these replicas and sizes; what is written to them is unknown."""
        names = [name for name in sorted(lists) for _ in lists[name]]
        topics = {topic: place for place, topic in enumerate(dict.fromkeys(name.topic for name in names))}
        return cls(
            topic_names=tuple(topics),
            topics=np.array([topics[name.topic] for name in names], np.int32),
            partitions=np.array([name.partition for name in names], np.int32),
            brokers=np.array([broker for name in sorted(lists) for broker in lists[name]], np.int32),
            positions=np.array([place for name in sorted(lists) for place in range(len(lists[name]))], np.int32),
            is_reassigning=np.zeros(len(names), bool),
            size_bytes=np.array([sizes[name] for name in names], np.float64),
            write_bytes_per_s=np.full(len(names), np.nan),
        )

    @property
    def held_bytes(self) -> dict[tuple[int, str], float]:
        """Bytes of the replicas in each log directory, by broker and path, as far as they are known and in sync."""
        if self.log_dirs is None:
            return {}
        known = (self.log_dirs >= 0) & np.isfinite(self.size_bytes)
        if self.in_sync is not None:
            known &= self.in_sync
        places = np.stack((self.brokers[known], self.log_dirs[known]), axis=1)
        found, numbers = np.unique(places, axis=0, return_inverse=True)
        sums = np.bincount(numbers.ravel(), self.size_bytes[known], len(found)).tolist()
        return {(broker, self.paths[path]): size for (broker, path), size in zip(found.tolist(), sums, strict=True)}

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """Partition of each replica: the index of its topic and its number, as one integer."""
        return self.topics.astype(np.int64) << 32 | self.partitions.astype(np.int64)

    @property
    def partition_count(self) -> int:
        """Number of partitions."""
        return len(np.unique(self.keys))

    @property
    def assumed_reads(self) -> int:
        """Number of partitions without a measured read rate."""
        unknown = np.ones(len(self.topics), bool) if self.read_bytes_per_s is None else np.isnan(self.read_bytes_per_s)
        return len(np.unique(self.keys[unknown]))

    @property
    def is_cpu_measured(self) -> bool:
        """True if any broker measured its CPU."""
        return self.leader_cpu is not None and not bool(np.isnan(self.leader_cpu).all())
