"""Plans with their facts, as the pages get them: a small one in which all occurs, and one of the largest clusters."""

from __future__ import annotations

from kreassign.model import TopicPartition
from kreassign.model.load import LoadBasis
from kreassign.model.plan_facts import GoalMean, PlanFacts, PlannedBroker, PlannedPartition, Prediction, Reason, Totals
from tests.report.runs import MB, STARTED_MS

GB = 1_000 * MB


def partition(number: int, replicas: tuple[int, ...], *reasons: Reason, size_bytes: int = GB) -> PlannedPartition:
    return PlannedPartition(TopicPartition("orders", number), replicas, size_bytes, reasons=reasons)


def broker(number: int, before: float, after: float, came: int = 0, went: int = 0) -> PlannedBroker:
    loads = [{"disk": disk * GB, "leaders": leaders} for disk, leaders in ((before, 4.0), (after, 4.0))]
    return PlannedBroker(number, loads[0], loads[1], came * GB, went * GB, round(max(before, after) * GB))


FACTS = PlanFacts(
    plan_id="0123456789abcdef",
    input_hash="fe",
    task="rebalance",
    totals=Totals(moved_bytes=3 * GB, moves=3, leader_changes=1, least_bytes=2 * GB, binding="excess"),
    cluster_id="c-1",
    snapshot_id="s-1",
    partitions=(
        partition(0, (1, 2), Reason("disk", 1, 3, 2.0 * GB, "B")),
        partition(
            1, (1, 3), Reason("disk", 1, 2, 1.0 * GB, "B"), Reason("leaders", 1, 3, 1.0, "leaders", leading=True)
        ),
        partition(2, (2, 1), Reason("drain", 1, 3)),
    ),
    brokers=(broker(1, 7.05, 3.3, went=3), broker(2, 1.95, 3.0, came=1), broker(3, 0.0, 2.7, came=2)),
    means=(GoalMean("disk", "B", 3.0 * GB, 3.0 * GB), GoalMean("leaders", "", 4.0, 4.0)),
    prediction=Prediction(50.0 * MB, seconds=60.0, longest_move_s=20.0, least_s=40.0),
    remaining=("broker 3: disk is 300 MB below its band",),
    loads=LoadBasis("snapshot", STARTED_MS, 12),
)
TARGETS = {
    TopicPartition("orders", 0): (3, 2),
    TopicPartition("orders", 1): (3, 2),
    TopicPartition("orders", 2): (2, 3),
}


def huge(brokers: int = 1_000, partitions: int = 100_000) -> tuple[PlanFacts, dict[TopicPartition, tuple[int, ...]]]:
    """A plan of so many moves on so many brokers."""
    moved = tuple(
        PlannedPartition(
            TopicPartition(f"topic-{number % 500}", number // 500),
            (number % brokers, (number + 1) % brokers),
            GB,
            reasons=(Reason("disk", number % brokers, (number + 7) % brokers, 1.0 * GB, "B"),),
        )
        for number in range(partitions)
    )
    targets = {one.topic_partition: ((one.replicas[0] + 7) % brokers, one.replicas[1]) for one in moved}
    facts = PlanFacts(
        "0123456789abcdef",
        "fe",
        "rebalance",
        Totals(partitions * GB, partitions, 0, partitions * GB),
        partitions=moved,
        brokers=tuple(broker(number, 1 + number % 10, 5.5, 100, 100) for number in range(brokers)),
        means=(GoalMean("disk", "B", 5.5 * GB, 5.5 * GB), GoalMean("leaders", "", 4.0, 4.0)),
    )
    return facts, targets
