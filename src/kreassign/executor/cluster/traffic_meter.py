"""Measuring what producers write, and what traffic of brokers follows from it, between one reading and the next.

Kafka reports no traffic, but how far every partition is, and from that `write_rates.py` computes what is written. What
consumers read cannot be seen this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kreassign.executor.cluster.log_dirs import leader_sizes
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.write_rates import Offsets, mean_record_bytes, write_rate
from kreassign.executor.throttle.adaptive import BrokerTraffic, PartitionWrites, traffic_of
from kreassign.model import NO_LEADER, LogDir, OffsetSpec, Partition, TopicPartition

SIZES_EVERY_MS = 60_000
"""The mean size of records changes slowly, and asking for the sizes of all copies is costly."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How far each partition was at a time."""

    at_ms: int
    ends: Offsets


class TrafficMeter:
    """Remembers the last reading, so that the next one gives rates."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port
        self._last: Reading | None = None
        self._record_bytes: dict[TopicPartition, float] = {}
        self._sized_ms: int | None = None

    def measure(
        self, at_ms: int, names: Iterable[TopicPartition]
    ) -> tuple[tuple[BrokerTraffic, ...], tuple[PartitionWrites, ...]]:
        """The traffic of brokers since the last reading, and what is written to these partitions; nothing at first.

        Raises ClusterError.
        """
        brokers = self._port.describe_cluster().broker_ids
        topics = self._port.describe_topics(None)
        partitions = [partition for topic in topics.ok.values() for partition in topic.partitions]
        led = [one.topic_partition for one in partitions if one.leader != NO_LEADER]
        ends = self._port.list_offsets(led, OffsetSpec.LATEST).ok
        if self._sized_ms is None or at_ms - self._sized_ms >= SIZES_EVERY_MS:
            self._record_bytes, self._sized_ms = self._sizes(partitions, ends), at_ms
        before, self._last = self._last, Reading(at_ms, ends)
        if before is None or at_ms <= before.at_ms:
            return (), ()
        writes = written(before, self._last, self._record_bytes)
        known = (PartitionWrites(name, writes[name]) for name in names if name in writes)
        return traffic_of(partitions, writes, brokers), tuple(known)

    def _sizes(
        self, partitions: Iterable[Partition], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, float]:
        starts = self._port.list_offsets(list(ends), OffsetSpec.EARLIEST_LOCAL).ok
        leaders = {one.topic_partition: one.leader for one in partitions}
        return record_bytes(leaders, self._port.describe_log_dirs(None, partitions=None).ok, starts, ends)


def record_bytes(
    leaders: Mapping[TopicPartition, int],
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    starts: Offsets,
    ends: Offsets,
) -> dict[TopicPartition, float]:
    """The mean size of the records of each partition that has any, from the copy of its leader."""
    sizes = leader_sizes(log_dirs, leaders).items()
    known = {name: size_bytes for name, size_bytes in sizes if name in starts and name in ends}
    means = {name: mean_record_bytes(size_bytes, starts[name], ends[name]) for name, size_bytes in known.items()}
    return {name: mean for name, mean in means.items() if mean is not None}


def written(before: Reading, now: Reading, record_bytes: Mapping[TopicPartition, float]) -> dict[TopicPartition, float]:
    """Bytes per second written to each partition; without those that are new, or whose records have no known size."""
    seconds = (now.at_ms - before.at_ms) / 1000
    gains = {name: end - before.ends[name] for name, end in now.ends.items() if name in before.ends}
    rates = {name: write_rate(gain, seconds, record_bytes.get(name)) for name, gain in gains.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}
