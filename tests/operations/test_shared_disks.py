"""The disks of a broker as a plan counts them, by the directories of a snapshot and what is in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import Infeasible
from kreassign.model.cluster import Broker
from kreassign.model.snapshot import (
    ClusterSnapshot,
    SnapshotBroker,
    SnapshotLogDir,
    SnapshotPartition,
    SnapshotTopic,
)
from kreassign.operations.plan_inputs import inputs_of_snapshot
from kreassign.planner.problem.policy import PlanPolicy
from kreassign.planner.tasks import drain_log_dirs

GB = 1_000_000_000
TOTAL, USABLE = 1_000 * GB, 400 * GB
READ_LATER = USABLE - 10_000_000
PATHS = ("/a", "/b")


def snapshot(size_bytes: int, in_sync: tuple[int, ...]) -> ClusterSnapshot:
    """Two brokers of two directories each; others wrote while the second was read. A partition in each directory."""
    dirs = (SnapshotLogDir(PATHS[0], TOTAL, USABLE), SnapshotLogDir(PATHS[1], TOTAL, READ_LATER))
    brokers = tuple(SnapshotBroker(Broker(number, "host", 9092, None), log_dirs=dirs) for number in (1, 2))
    partitions = tuple(
        SnapshotPartition((1, 2), in_sync, 1, 0, (path, path), (size_bytes, size_bytes), write_bytes_per_s=0.0)
        for path in PATHS
    )
    return ClusterSnapshot(0, "c", brokers, (SnapshotTopic("t", partitions),))


@pytest.mark.parametrize(("size_bytes", "in_sync", "disks"), [
    (200 * GB, (1, 2), [1, 1]),
    (580 * GB, (1, 2), [2, 2]),
    # A copy that is not whole yet shows nothing of what is there.
    (580 * GB, (1,), [2, 1]),
])  # fmt: skip
def test_a_plan_counts_a_disk_once_by_what_must_be_on_it(
    size_bytes: int, in_sync: tuple[int, ...], disks: list[int]
) -> None:
    found = inputs_of_snapshot(snapshot(size_bytes, in_sync), PlanPolicy(disk_reserve=0.0), "s").problem
    assert found.brokers.capacity["disk"].tolist() == [count * TOTAL for count in disks]


def test_a_snapshot_says_where_a_broker_is_moving_its_copy() -> None:
    seen = snapshot(GB, (1, 2))
    first, second = seen.topics[0].partitions
    moving = replace(seen, topics=(SnapshotTopic("t", (first, replace(second, future_log_dirs={2: "/a"}))),))
    found = inputs_of_snapshot(moving, PlanPolicy(), "s").problem
    with pytest.raises(Infeasible, match="broker 2 is moving copies into /a: t-1; wait for that"):
        drain_log_dirs(found, [(2, "/a")])
