"""A move that ends by itself ends with exactly its target, in its order (KIP-455).

One that a client ends goes back to what was there before, or forward to another list that is there already.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.checkers.changes import changes
from kreassign.twin.controller.completion import without
from kreassign.twin.controller.reassignments import ReassignmentsAltered
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata.state import PartitionState


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose moves ended otherwise."""
    by_a_client = isinstance(step.answer, ReassignmentsAltered)
    for after, before in changes(twin, step):
        if before is None or not before.is_reassigning or after.is_reassigning:
            continue
        if not (_is_within(after, before) if by_a_client else after.replicas == _target(before)):
            yield (
                f"{after.topic_partition} was to go to {_target(before)} (replicas {before.replicas}, "
                f"adding {before.adding}, removing {before.removing}) and ended with {after.replicas}"
            )


def _target(partition: PartitionState) -> tuple[int, ...]:
    return without(partition.replicas, partition.removing)


def _is_within(after: PartitionState, before: PartitionState) -> bool:
    return set(after.replicas) <= set(before.replicas)
