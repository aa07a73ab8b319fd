"""From answers of a cluster to its health."""

from __future__ import annotations

from kreassign.executor.guards import offline, under_min_isr, under_replicated
from kreassign.model import NO_LEADER, OngoingReassignment, Partition, TopicPartition

T0 = TopicPartition("t", 0)


def partition(isr: tuple[int, ...], *, replicas: tuple[int, ...] = (0, 1, 2), leader: int = 0) -> Partition:
    return Partition(T0, replicas, isr, leader)


def test_a_replica_that_a_reassignment_adds_may_be_out_of_sync() -> None:
    ongoing = {T0: OngoingReassignment((0, 1, 2), (2,), ())}
    assert under_replicated([partition((0, 1))], ongoing) == ()
    assert under_replicated([partition((0, 2))], ongoing) == (partition((0, 2)),)
    assert under_replicated([partition((0, 1))], {}) == (partition((0, 1)),)


def test_too_few_in_sync_needs_a_leader_and_enough_replicas() -> None:
    assert under_min_isr([partition((0,))], {"t": 2}) == (T0,)
    assert under_min_isr([partition((0, 1))], {"t": 2}) == ()
    assert under_min_isr([partition((0,))], {}) == ()
    assert under_min_isr([partition((0,), replicas=(0,))], {"t": 2}) == ()
    assert under_min_isr([partition((0,), leader=NO_LEADER)], {"t": 2}) == ()


def test_without_a_leader_a_partition_is_offline() -> None:
    assert offline([partition((0,), leader=NO_LEADER), partition((0,))]) == (T0,)
