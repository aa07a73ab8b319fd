import pytest

from kreassign.errors import IllegalPlan
from kreassign.planner import plan_of
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.tasks import restore
from tests.planner.worlds import brokers, partition, plan, world

PROBLEM = world(brokers(1, 2, 3, racks="aab"), [partition(0, 1, 3), partition(1, 2, 3)])


def test_the_lists_of_the_plan_come_back_whatever_their_factor_and_racks() -> None:
    wanted = plan((0, (2, 1)), (1, (3,)))
    problem, assignment = restore(PROBLEM, wanted)
    assert plan_of(problem, assignment) == wanted
    assert evaluate(problem, assignment).legal


def test_what_cannot_come_back_is_named() -> None:
    with pytest.raises(IllegalPlan, match="t-0: there is no broker 9"):
        restore(PROBLEM, plan((0, (9, 1))))
