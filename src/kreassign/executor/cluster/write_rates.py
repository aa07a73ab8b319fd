"""What producers write, by sampling: how far each log is at two times. All who need a write rate compute it here.

Kafka reports no rates but offsets. Where the end of a log goes from e to e' in t seconds, producers write

    (e' - e) / t · size / (e - start)    bytes per second:

the records, times the mean size of those in the log. Size and start are of what the leader has on its own disks: of a
tiered topic (KIP-405) most records are in remote storage, and are in no size. So a rate above nothing is known only of
a log that has records and a known size; compaction and a change of what producers send make it wrong by as much as they
change that mean.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from kreassign.clock import Clock
from kreassign.errors import ClusterError
from kreassign.model import Batch, OffsetSpec, Partition, TopicPartition

Offsets = Mapping[TopicPartition, int]
NONE_KNOWN: Mapping[TopicPartition, Partition] = MappingProxyType({})


class OffsetPort(Protocol):
    """What sampling needs of a cluster, with the meaning that `AdminClient` gives it."""

    def list_offsets(
        self,
        partitions: Collection[TopicPartition],
        spec: OffsetSpec,
        *,
        known: Mapping[TopicPartition, Partition] = ...,
    ) -> Batch[TopicPartition, int]:
        """This offset of each partition at its leader, not looked up if known. Raises ClusterError."""
        ...


@dataclass(frozen=True, slots=True)
class OffsetSamples:
    """Where logs began and ended, and where they ended some `seconds` later, as far as their leaders answered.

    They begin with the first offset that the leader has itself.
    """

    starts: Offsets
    ends: Offsets
    later_ends: Offsets
    seconds: float
    failed: Mapping[TopicPartition, ClusterError] = field(default_factory=dict)

    def write_rate(self, partition: TopicPartition, size_bytes: int | None) -> float | None:
        """Bytes per second that producers added, given the size of one copy; None where that is unknown."""
        start, end, later = (offsets.get(partition) for offsets in (self.starts, self.ends, self.later_ends))
        if start is None or end is None or later is None:
            return None
        return write_rate(later - end, self.seconds, mean_record_bytes(size_bytes, start, end))


def sample_offsets(
    port: OffsetPort,
    clock: Clock,
    partitions: Collection[TopicPartition],
    seconds: float,
    known: Mapping[TopicPartition, Partition] = NONE_KNOWN,
) -> OffsetSamples:
    """Ask for the offsets of these partitions twice, so many seconds apart. Raises ClusterError when nobody answers.

    Whoever has just described some of them gives them as `known`: describing a million takes longer than asking them.
    """
    begun_s = clock.monotonic_s()
    ends = port.list_offsets(partitions, OffsetSpec.LATEST, known=known)
    starts = port.list_offsets(partitions, OffsetSpec.EARLIEST_LOCAL, known=known)
    clock.sleep(max(0.0, begun_s + seconds - clock.monotonic_s()))
    ended_s = clock.monotonic_s()
    later = port.list_offsets(partitions, OffsetSpec.LATEST, known=known)
    failed = {**starts.failed, **ends.failed, **later.failed}
    return OffsetSamples(starts.ok, ends.ok, later.ok, ended_s - begun_s, failed)


def mean_record_bytes(size_bytes: int | None, start: int, end: int) -> float | None:
    """The mean size of the records between two offsets; None without records, or where their size is unknown."""
    return None if size_bytes is None or end <= start else size_bytes / (end - start)


def write_rate(records: int, seconds: float, record_bytes: float | None) -> float | None:
    """Bytes per second, given the records of so many seconds. A log that has become shorter counts as not written."""
    if seconds <= 0:
        return None
    if records <= 0:
        return 0.0
    return None if record_bytes is None else records / seconds * record_bytes
