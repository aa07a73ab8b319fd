"""ListPartitionReassignments lists what is in progress: neither more nor less, with the lists as they are."""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.model import OngoingReassignment, TopicPartition
from kreassign.twin.controller.reassignments import list_reassignments
from kreassign.twin.core import Step, TwinCore


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions of which this is not so."""
    del step
    listed = {
        TopicPartition(topic.topic, number): move
        for topic in list_reassignments(twin.metadata)
        for number, move in topic.partitions
    }
    moving = {
        one.topic_partition: OngoingReassignment(one.replicas, one.adding, one.removing)
        for topic in twin.metadata.topics.values()
        for one in topic.partitions.values()
        if one.is_reassigning
    }
    for key in sorted(listed.keys() | moving.keys()):
        if listed.get(key) != moving.get(key):
            yield f"{key} is listed as {listed.get(key)}, and is {moving.get(key)}"
