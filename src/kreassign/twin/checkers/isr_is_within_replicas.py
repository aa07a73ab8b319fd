"""The ISR is part of the replicas, and both name a broker once.

Kafka's controller refuses any other ISR (AlterPartition, INVALID_REQUEST). Eligible leaders are left out on purpose:
on real clusters one may remain that is no replica any more, after a move that ended below min.insync.replicas.
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.checkers.changes import changes
from kreassign.twin.core import Step, TwinCore


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions of which this is not so."""
    for partition, _ in changes(twin, step):
        replicas, isr = set(partition.replicas), set(partition.isr)
        if not isr <= replicas or (len(replicas), len(isr)) != (len(partition.replicas), len(partition.isr)):
            yield f"{partition.topic_partition} has ISR {partition.isr} of replicas {partition.replicas}"
