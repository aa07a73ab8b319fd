"""Targets for partitions that are being reassigned: which of them are risky, and the way that never is.

To cancel, wait until the controller lists the partition no longer, and then submit has none of the surprises of
`kreassign.model.override`. Nobody guards the time in between: who submits a target for the same partition then is
overridden as ever.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from kreassign.clock import Clock
from kreassign.errors import ClusterError, OutcomeUnknown
from kreassign.model import Batch, OngoingReassignment, TopicPartition
from kreassign.model.error_codes import NO_REASSIGNMENT_IN_PROGRESS, has_code
from kreassign.model.override import Override

_SHOWN = 3


class OverrideWarning(UserWarning):
    """Targets were submitted for partitions that are being reassigned, and Kafka will not do just what they say."""


class ReassignmentCalls(Protocol):
    """The calls of `AdminClient` of which this is made."""

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is being reassigned."""
        ...

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = True,
        warns_of_overrides: bool = True,
        timeout_ms: int | None = None,
    ) -> Batch[TopicPartition, None]:
        """Start, override or cancel."""
        ...


def risky(
    targets: Mapping[TopicPartition, tuple[int, ...] | None], ongoing: Mapping[TopicPartition, OngoingReassignment]
) -> dict[TopicPartition, Override]:
    """The targets that override a move and are risky."""
    overrides = {
        key: Override(ongoing[key], target)
        for key, target in sorted(targets.items())
        if target is not None and key in ongoing
    }
    return {key: override for key, override in overrides.items() if override.is_risky}


def warn(found: Mapping[TopicPartition, Override]) -> None:
    """Warn Python's way of these overrides, if there are any: a few by name, the others counted."""
    if found:
        shown = "; ".join(f"{key}: {override}" for key, override in list(found.items())[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        way_out = "replace_reassignments cancels, waits and submits in one call"
        warnings.warn(f"partitions that are being reassigned get new targets: {shown}{more}. {way_out}",
                      OverrideWarning, stacklevel=3)  # fmt: skip


def cancel_and_wait(
    client: ReassignmentCalls, clock: Clock, partitions: Collection[TopicPartition], deadline_s: float, poll_s: float
) -> dict[TopicPartition, ClusterError]:
    """Cancel what moves among these partitions and wait until none is listed; the errors of those that did not end."""

    def left_ms() -> int:
        return max(1, round(1000 * (deadline_s - clock.monotonic_s())))

    ongoing = client.list_partition_reassignments(partitions, timeout_ms=left_ms())
    if not ongoing:
        return {}
    outcome = client.alter_partition_reassignments(dict.fromkeys(ongoing), timeout_ms=left_ms())
    # One that ended by itself in between needs no cancel.
    failed = {key: error for key, error in outcome.failed.items() if not has_code(error, NO_REASSIGNMENT_IN_PROGRESS)}
    waiting = ongoing.keys() - failed.keys()
    while waiting := waiting & client.list_partition_reassignments(waiting, timeout_ms=left_ms()).keys():
        if clock.monotonic_s() + poll_s >= deadline_s:
            late = {key: OutcomeUnknown("it was cancelled, and is still listed; nothing was submitted for it", item=key)
                    for key in waiting}  # fmt: skip
            return {**failed, **late}
        clock.sleep(poll_s)
    return failed
