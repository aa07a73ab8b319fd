from kreassign.planner.tasks import repair
from kreassign.planner.tasks.repair import usual_factors
from tests.planner.worlds import brokers, partition, world

PROBLEM = world(brokers(1, 2, 3), [
    partition(0, 1, 2, topic="a"), partition(1, 1, topic="a"), partition(2, 2, 3, topic="a"),
    partition(0, 1, topic="b"), partition(1, 1, 2, topic="b"),
    partition(0, 1, 2, 3, topic="c"), partition(1, 1, 2, topic="c"), partition(2, 1, 2, topic="c"),
])  # fmt: skip


def test_the_usual_factor_is_the_most_frequent_or_the_larger_of_equals() -> None:
    assert usual_factors(PROBLEM.partitions).tolist() == [2, 2, 2, 2, 2, 2, 2, 2]


def test_partitions_are_filled_up_but_never_thinned_out() -> None:
    assert repair(PROBLEM).partitions.wanted_factors.tolist() == [2, 2, 2, 2, 2, 3, 2, 2]
    assert repair(PROBLEM, factors=False).partitions.wanted_factors.tolist() == PROBLEM.partitions.factors.tolist()


def test_racks_are_mended_unless_they_shall_not() -> None:
    assert repair(PROBLEM).rules.repair_racks
    assert not repair(PROBLEM, racks=False).rules.repair_racks
