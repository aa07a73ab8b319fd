import pytest

from kreassign.errors import IllegalPlan, InputError
from kreassign.planner import plan_of
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.tasks import TopicChoice, change_factors, repair, restore
from kreassign.planner.tasks.tasks import usual_factors
from tests.planner.small_problems import brokers, partition, plan, posed

FACTORS = posed(brokers(1, 2, 3), [partition(0, 1, topic="a"), partition(0, 1, 2, topic="b")])


def test_chosen_topics_get_the_factor() -> None:
    assert change_factors(FACTORS, 3).partitions.wanted_factors.tolist() == [3, 3]
    assert change_factors(FACTORS, 3, TopicChoice(("a",))).partitions.wanted_factors.tolist() == [3, 2]


@pytest.mark.parametrize("factor", [0, 4])
def test_a_factor_that_cannot_be_is_refused(factor: int) -> None:
    with pytest.raises(InputError, match="there are 3"):
        change_factors(FACTORS, factor)


REPAIRED = posed(brokers(1, 2, 3), [
    partition(0, 1, 2, topic="a"), partition(1, 1, topic="a"), partition(2, 2, 3, topic="a"),
    partition(0, 1, topic="b"), partition(1, 1, 2, topic="b"),
    partition(0, 1, 2, 3, topic="c"), partition(1, 1, 2, topic="c"), partition(2, 1, 2, topic="c"),
])  # fmt: skip


def test_the_usual_factor_is_the_most_frequent_or_the_larger_of_equals() -> None:
    assert usual_factors(REPAIRED.partitions).tolist() == [2, 2, 2, 2, 2, 2, 2, 2]


def test_partitions_are_filled_up_but_never_thinned_out() -> None:
    assert repair(REPAIRED).partitions.wanted_factors.tolist() == [2, 2, 2, 2, 2, 3, 2, 2]
    assert repair(REPAIRED, factors=False).partitions.wanted_factors.tolist() == REPAIRED.partitions.factors.tolist()


def test_racks_are_repaired_unless_told_not_to() -> None:
    assert repair(REPAIRED).rules.repair_racks
    assert not repair(REPAIRED, racks=False).rules.repair_racks


RESTORED = posed(brokers(1, 2, 3, racks="aab"), [partition(0, 1, 3), partition(1, 2, 3)])


def test_the_lists_of_the_plan_come_back_whatever_their_factor_and_racks() -> None:
    wanted = plan((0, (2, 1)), (1, (3,)))
    problem, assignment = restore(RESTORED, wanted)
    assert plan_of(problem, assignment) == wanted
    assert evaluate(problem, assignment).legal


def test_what_cannot_come_back_is_named() -> None:
    with pytest.raises(IllegalPlan, match="t-0: there is no broker 9"):
        restore(RESTORED, plan((0, (9, 1))))
