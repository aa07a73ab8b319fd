import pytest

from kreassign.model import TopicPartition
from kreassign.planner import ByteProblem, PartitionLoad, PlanningBroker
from kreassign.planner.thin_evaluate import evaluate
from tests.planner.thin_problems import MEGABYTE, problem

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ((0, 9), "t-0: broker 9 is not there"),
        ((0, 0), "t-0: a broker is named more than once in [0, 0]"),
        ((0,), "t-0: 2 replicas become 1"),
        ((0, 2), "t-0: [0, 2] is on fewer racks than [0, 1]"),
    ],
)
def test_each_broken_rule_is_a_sentence(target: tuple[int, ...], sentence: str) -> None:
    judged = evaluate(problem(((0, 1), 10), racks="abab"), {T0: target})
    assert sentence in judged.violations
    assert not judged.legal


def test_a_partition_that_must_not_move_is_a_violation_when_it_does() -> None:
    pinned = ByteProblem((PlanningBroker(0), PlanningBroker(1)), (PartitionLoad(T0, (0,), 1, may_move=False),))
    assert evaluate(pinned, {T0: (1,)}).violations == ("t-0 must not move",)


def test_a_partition_nobody_knows_is_a_violation() -> None:
    judged = evaluate(problem(((0,), 1)), {TopicPartition("other", 3): (0,)})
    assert judged.violations == ("other-3 is not a partition of the problem",)


def test_figures_before_and_after_count_bytes_copies_and_preferred_leaders() -> None:
    two = problem(((0, 1), 10), ((0, 1), 30), brokers=3)
    judged = evaluate(two, {T0: (2, 1)})
    rows = [(f.broker, f.size_bytes // MEGABYTE, f.replica_count, f.preferred_leader_count) for f in judged.after]
    assert rows == [(0, 30, 1, 1), (1, 40, 2, 0), (2, 10, 1, 1)]
    assert [f.size_bytes // MEGABYTE for f in judged.before] == [40, 40, 0]
    assert judged.bytes_in == {0: 0, 1: 0, 2: 10 * MEGABYTE}
    assert (judged.copied_bytes, judged.copied_replica_count) == (10 * MEGABYTE, 1)


def test_a_new_order_copies_nothing() -> None:
    judged = evaluate(problem(((0, 1), 10)), {T0: (1, 0)})
    assert (judged.copied_bytes, judged.copied_replica_count, judged.reordered_partition_count) == (0, 0, 1)


def test_brokers_outside_the_band_are_named() -> None:
    assert evaluate(problem(((0,), 10), ((1,), 10), brokers=3), {}).out_of_band == (0, 1, 2)
