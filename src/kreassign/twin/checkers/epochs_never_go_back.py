"""Epochs never go back, and every change raises one: so brokers and clients recognise what is outdated.

Every change of a partition raises its partition epoch. Another leader raises the leader epoch, and so does a replica
that leaves, so that it is informed. A broker registers under a higher epoch than any that the cluster knows (KIP-320,
KIP-497, KIP-631).
"""

from __future__ import annotations

from collections.abc import Iterator

from kreassign.twin.checkers.changes import Change, changes
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata.records import BrokerRegistered


def check(twin: TwinCore, step: Step) -> Iterator[str]:
    """Partitions and brokers of which this is not so."""
    for change in changes(twin, step):
        if change.before is not None and not _rises(change):
            yield str(change)
    for record in step.records:
        if isinstance(record, BrokerRegistered):
            others = (one.broker_epoch for one in twin.metadata.brokers.values() if one.broker_id != record.broker_id)
            if record.broker_epoch <= max(others, default=-1):
                yield f"broker {record.broker_id} registered under epoch {record.broker_epoch}, not the highest"


def _rises(change: Change) -> bool:
    after, before = change
    assert before is not None
    leads_newly = after.leader != before.leader or not set(before.replicas) <= set(after.replicas)
    return (
        after.partition_epoch >= before.partition_epoch + (after != before)
        and after.leader_epoch >= before.leader_epoch + leads_newly
    )
