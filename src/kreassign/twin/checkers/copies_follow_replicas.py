"""Brokers have the copies that the metadata gives them, and no others: the law by which replication follows records."""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.core import Step, TwinCore


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions of which this is not so."""
    for key in step.before:
        partition = twin.metadata.partition(key)
        # A broker that was unregistered keeps its copies. In ZooKeeper mode a replica can be on one that never was.
        wanted = set() if partition is None else set(twin.processes.ids) & set(partition.replicas)
        if (present := twin.replication.readings.brokers_with(key)) != wanted:
            yield f"{key} has copies on brokers {sorted(present)}, and should have them on {sorted(wanted)}"
