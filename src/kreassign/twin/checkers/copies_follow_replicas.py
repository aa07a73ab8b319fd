"""Brokers have the copies that the metadata gives them, and no others: the law by which replication follows records."""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.core import Step, TwinCore


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions of which this is not so."""
    for key in step.before:
        partition = twin.metadata.partition(key)
        # In ZooKeeper mode a replica can be wanted on a broker that does not exist.
        wanted = set() if partition is None else twin.metadata.brokers.keys() & set(partition.replicas)
        if (present := twin.replication.readings.brokers_with(key)) != wanted:
            yield f"{key} has copies on brokers {sorted(present)}, and should have them on {sorted(wanted)}"
