"""The leader of a partition is in its ISR, or it has none.

An unclean leader is no exception: it becomes the whole ISR in the same record (KIP-101, KIP-966).
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.checkers.changes import changes
from kreassign.twin.core import Step, TwinCore


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions of which this is not so."""
    for partition, _ in changes(twin, step):
        if partition.has_leader and partition.leader not in partition.isr:
            yield f"{partition.topic_partition} is led by {partition.leader}, and its ISR is {partition.isr}"
