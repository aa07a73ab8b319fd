"""What a step did to partitions, as most checkers want to see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata.state import PartitionState


class Change(NamedTuple):
    """A partition after a step, and before it unless it is new."""

    after: PartitionState
    before: PartitionState | None

    def __str__(self) -> str:
        return f"{self.after.topic_partition} was {self.before} and is {self.after}"


def changes(twin: TwinCore, step: Step) -> Iterator[Change]:
    """The partitions that a step was about and that are still there."""
    for topic_partition, before in step.before.items():
        after = twin.metadata.partition(topic_partition)
        if after is not None:
            yield Change(after, before)
