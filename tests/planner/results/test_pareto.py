from itertools import permutations

import pytest

from kreassign.planner import Assignment
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.tasks.what_if import Choice, pareto
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

pytestmark = pytest.mark.thorough

PROBLEM = posed(brokers(1, 2, 3), [partition(number, 1, 2, gigabytes=10 + number) for number in range(12)])


def test_no_choice_beats_another_and_none_comes_twice() -> None:
    found = pareto(PROBLEM, rate_bytes_per_s=GIGABYTE)
    assert len(found) > 2
    assert len({choice.id for choice in found}) == len(found)
    assert not [1 for one, other in permutations(found, 2) if one.beats(other)]
    assert [choice.moved_bytes for choice in found] == sorted(choice.moved_bytes for choice in found)
    assert all(evaluate(PROBLEM, choice.assignment).legal for choice in found)


def test_the_cheapest_choice_copies_nothing() -> None:
    first, *_ = pareto(PROBLEM)
    assert (first.asked_for, first.moved_bytes, first.seconds) == ("leaders only", 0, 0.0)


def test_better_means_nowhere_worse_and_somewhere_better() -> None:
    def choice(*costs: float) -> Choice:
        return Choice(
            "id", "", Assignment.current(PROBLEM.partitions), int(costs[0]), costs[1], costs[2], int(costs[3])
        )

    assert choice(1, 0.1, 1, 1).beats(choice(2, 0.1, 1, 1))
    assert not choice(1, 0.1, 1, 1).beats(choice(1, 0.1, 1, 1))
    assert not choice(1, 0.2, 1, 1).beats(choice(2, 0.1, 1, 1))
