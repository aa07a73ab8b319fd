"""`plan repair` where one partition finds no room: it is left."""

from __future__ import annotations

import pytest

from kreassign.errors import Infeasible
from kreassign.model import Broker, TopicPartition
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_inputs import Inputs, inputs_of_snapshot
from kreassign.operations.plan_tasks import Repair
from kreassign.planner.problem.policy import PlanPolicy

GB = 1_000_000_000


def inputs_with(*sizes: int, excluded: tuple[str, ...] = ()) -> Inputs:
    """Partitions that share rack a; broker 3, alone in rack b, has room for 36 GB."""
    brokers = tuple(
        SnapshotBroker(Broker(number, "host", 9092, "aab"[number - 1]), (SnapshotLogDir("/d", total * GB, 30 * GB),))
        for number, total in ((1, 100), (2, 100), (3, 40))
    )
    partitions = tuple(
        SnapshotPartition((1, 2), (1, 2), 1, 0, ("/d", "/d"), (size * GB,) * 2, write_bytes_per_s=0.0) for size in sizes
    )
    seen = ClusterSnapshot(0, "c", brokers, (SnapshotTopic("t", partitions),))
    return inputs_of_snapshot(seen, PlanPolicy(excluded_topics=excluded), "s")


def test_a_repair_leaves_and_names_what_finds_no_room() -> None:
    inputs = inputs_with(50, 20)
    found = make_plan(inputs, Repair())
    assert [one.topic_partition for one in found.plan.assignments] == [TopicPartition("t", 1)]
    assert found.facts.remaining[0].startswith("t-0 still has too many replicas in one rack: no broker can take a copy")


def test_a_repair_of_which_nothing_is_possible_is_refused() -> None:
    with pytest.raises(
        Infeasible, match="nothing can be repaired:\n  - t-0 still has too many replicas in one rack: no "
    ):
        make_plan(inputs_with(50), Repair())
    assert make_plan(inputs_with(), Repair()).plan.assignments == ()


def test_an_excluded_topic_that_shares_a_rack_is_told_and_refuses_nothing() -> None:
    found = make_plan(inputs_with(20, excluded=("t",)), Repair())
    assert found.plan.assignments == ()
    (left,) = found.facts.remaining
    assert left.startswith("t-0 still has too many replicas in one rack: it must stay (of an excluded topic)")
