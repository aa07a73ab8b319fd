"""No partition loses its last in-sync copy to a reassignment (KIP-455: data is never left without an in-sync replica).

Wherever a step changes what is being moved, somebody who was or has just come in sync remains, and the ISR still has
every record that all of its members had before. A topic that allows unclean elections has given that up.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.checkers.changes import changes
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata.state import PartitionState


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions that lost something."""
    for after, before in changes(twin, step):
        if before is None or not before.isr or _lists(after) == _lists(before):
            continue
        key = after.topic_partition
        if twin.context.allows_unclean_election(key.topic):
            continue
        held, had = twin.replication.readings.held_offset(key), step.was_held.get(key, 0)
        if not after.isr:
            yield f"{key} had ISR {before.isr} before its move changed, and has none now"
        elif held is None or held < had:
            yield f"{key} had {had} records in sync on {before.isr}, and has {held} on {after.isr}"


def _lists(partition: PartitionState) -> tuple[tuple[int, ...], ...]:
    return partition.replicas, partition.adding, partition.removing
