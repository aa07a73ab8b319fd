from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanFacts, PlannedPartition, Reason, Totals, plan_id

ONE = PartitionAssignment(TopicPartition("t", 0), (1, 2))
OTHER = PartitionAssignment(TopicPartition("t", 1), (2, 1))


def test_the_id_of_a_plan_follows_its_content_and_not_its_order():
    assert plan_id(Plan((ONE, OTHER))) == plan_id(Plan((OTHER, ONE)))
    assert plan_id(Plan((ONE,))) != plan_id(Plan((OTHER,)))
    assert plan_id(Plan()) == "c4eb806c53c47534"


def test_the_gap_is_told_only_where_there_is_a_bound():
    assert Totals(moved_bytes=110, moves=1, leader_changes=0, least_bytes=100).gap == 110 / 100 - 1
    assert Totals(moved_bytes=110, moves=1, leader_changes=0).gap is None


def test_the_expected_state_is_that_of_the_partitions():
    facts = PlanFacts("id", "hash", "rebalance", Totals(0, 0, 0), partitions=(
        PlannedPartition(TopicPartition("t", 0), (1, 2), 10),
    ))  # fmt: skip
    assert facts.expected == {TopicPartition("t", 0): (1, 2)}


def test_only_a_reason_of_capacity_tells_which_limit_would_be_exceeded():
    assert [Reason(goal).limit for goal in ("capacity:disk", "capacity", "disk", "drain:disk")] == ["disk", "", "", ""]
