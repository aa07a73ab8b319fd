"""The disks of a broker as a plan counts them, by the directories of a snapshot and what is in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import Infeasible
from kreassign.model.cluster import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_snapshot
from kreassign.operations.plan_tasks import DrainBrokers
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


def sized(*totals: int | None, capacity: float | None = None) -> Inputs:
    """Brokers from 1 on with file systems of these sizes, and 80 GB on each of the first two."""
    brokers = tuple(
        SnapshotBroker(Broker(number, "host", 9092, None), (SnapshotLogDir("/a", total, total, is_cordoned=False),))
        for number, total in enumerate(totals, 1)
    )
    partitions = tuple(
        SnapshotPartition((1, 2), (1, 2), 1, 0, ("/a", "/a"), (40 * GB, 40 * GB), write_bytes_per_s=0.0)
        for _ in range(2)
    )
    policy = PlanPolicy(disk_reserve=0.0, broker_capacity={} if capacity is None else {3: {"disk": capacity}})
    return inputs_of_snapshot(ClusterSnapshot(0, "c", brokers, (SnapshotTopic("t", partitions),)), policy, "s")


def test_a_broker_of_unknown_size_gets_nothing_and_lifts_no_limit() -> None:
    with pytest.raises(Infeasible, match="broker 3 takes none: it did not report the size of its file systems"):
        make_plan(sized(100 * GB, 100 * GB, None, 70 * GB), DrainBrokers((2,)))
    found = make_plan(sized(100 * GB, 100 * GB, None, 90 * GB), DrainBrokers((2,)))
    assert {one.replicas for one in found.plan.assignments} == {(1, 4)}
    (left,) = (one for one in found.facts.remaining if one.startswith("broker 3 gets nothing: "))
    assert "it did not report the size of its file systems" in left
    assert left.endswith("or make a plan with a goals file that has its limit for disk ([broker-capacity])")


@pytest.mark.parametrize(("total", "capacity"), [(None, None), (100 * GB, 90 * GB)])
def test_a_disk_is_filled_where_none_is_reported_or_goals_limit_it(total: int | None, capacity: int | None) -> None:
    found = make_plan(sized(total, total, None, capacity=capacity), DrainBrokers((2,)))
    assert {one.replicas for one in found.plan.assignments} == {(1, 3)}
