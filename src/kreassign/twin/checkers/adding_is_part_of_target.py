"""The lists of a move belong together: who comes and who goes are replicas, and a target remains (KIP-455).

The same broker may be in both lists: real controllers write that when an unfinished move is overridden by the list
from before it, and such a move never ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.checkers.changes import changes
from kreassign.twin.controller.completion import without
from kreassign.twin.core import Step, TwinCore


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions whose lists do not belong together."""
    for partition, _ in changes(twin, step):
        lists = f"replicas {partition.replicas}, adding {partition.adding}, removing {partition.removing}"
        if not {*partition.adding, *partition.removing} <= set(partition.replicas):
            yield f"{partition.topic_partition} moves what is no replica: {lists}"
        if not without(partition.replicas, partition.removing):
            yield f"{partition.topic_partition} has no target: {lists}"
        if len(partition.directories) != len(partition.replicas):
            yield f"{partition.topic_partition} has {len(partition.directories)} directories: {lists}"
