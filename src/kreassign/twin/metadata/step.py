"""What happened last, for those who watch a twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kreassign.model import TopicPartition
from kreassign.twin.metadata.records import Record
from kreassign.twin.metadata.state import PartitionState
from kreassign.twin.replication.events import ReplicaEvent


@dataclass(frozen=True, slots=True)
class Step:
    """Records that were just applied together, or events that brokers just told and nobody has answered yet.

    `before` has every partition that the records are about as it was, None where there was none. `was_held` says of
    those that existed up to which offset every member of the ISR had everything. `answer` is what whoever asked for
    the records is told.
    """

    records: tuple[Record, ...] = ()
    events: tuple[ReplicaEvent, ...] = ()
    before: Mapping[TopicPartition, PartitionState | None] = field(default_factory=dict)
    was_held: Mapping[TopicPartition, int] = field(default_factory=dict)
    answer: object = None
