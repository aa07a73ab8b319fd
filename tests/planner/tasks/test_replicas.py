import pytest

from kreassign.errors import IllegalPlan, InputError
from kreassign.planner import plan_of
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.holds import Hold
from kreassign.planner.tasks import TopicChoice, change_factors, repair, restore
from kreassign.planner.tasks.placement import add_partitions
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


@pytest.mark.parametrize(("partitions", "usual", "refusal"), [
    ([(2, False), (1, False), (2, False)], 2, None),
    ([(1, False), (2, False)], 1, None),
    ([(3, False), (4, True), (4, True)], 3, None),
    ([(4, True), (3, False), (4, True)], 3, "t-0 is being reassigned, .* as that has meanwhile, 4 instead of 3; wait"),
    ([(2, True), (3, False), (2, False), (2, True)], 2, None),
    ([(4, True)], 0, "all partitions of topic t are being reassigned"),
])  # fmt: skip
def test_moving_partitions_are_no_norm_and_a_tie_raises_nothing(partitions, usual: int, refusal: str | None) -> None:
    loads = [partition(number, *range(factor), hold=Hold.MOVING if is_moving else Hold.NONE)
             for number, (factor, is_moving) in enumerate(partitions)]  # fmt: skip
    problem = posed(brokers(*range(5)), loads)
    assert set(problem.partitions.usual_factors.tolist()) == {usual}
    raised = repair(problem).partitions.wanted_factors.tolist()
    assert all(max(factor, usual) == wanted for (factor, _), wanted in zip(partitions, raised, strict=True))
    if refusal is None:
        placed = add_partitions(problem, "t", len(loads) + 1).partitions
        assert placed.wanted_factors.tolist()[-1] == usual
    else:
        with pytest.raises(InputError, match=refusal):
            add_partitions(problem, "t", len(loads) + 1)


def test_new_partitions_have_the_factor_of_the_first_as_kafka_demands() -> None:
    problem = posed(brokers(*range(5)), [partition(0, 1), partition(1, 2, 3), partition(2, 3, 4)])
    assert add_partitions(problem, "t", 4).partitions.wanted_factors.tolist()[-1] == 1


def test_partitions_are_filled_up_but_never_thinned_out() -> None:
    assert repair(REPAIRED).partitions.wanted_factors.tolist() == [2, 2, 2, 1, 2, 3, 2, 2]
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
    with pytest.raises(IllegalPlan, match="t-0: broker 9 is not live"):
        restore(RESTORED, plan((0, (9, 1))))
