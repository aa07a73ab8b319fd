from dataclasses import replace
from itertools import permutations

import pytest

from kreassign.operations.plan import Alternatives
from kreassign.planner import Assignment
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.results import Origin
from kreassign.planner.tasks import rebalance
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


STRAYS = rebalance(
    posed(
        [*brokers(1, 2, broker_set="red"), *brokers(3)],
        [partition(0, 3, broker_set="red"), partition(1, 3, gigabytes=1, broker_set="red")],
    )
)


def test_each_choice_says_what_of_it_leaves_replicas_outside_their_set() -> None:
    found = Alternatives(pareto(STRAYS), Origin("rebalance"))
    outcomes = [found.outcome(choice) for choice in found.choices]
    said = {line.partition("broker set")[2] for one in outcomes for line in one.evaluation.unfinished}
    assert said == {": this task copies nothing from broker to broker", ": beyond the budget"}


def test_a_plan_that_leaves_less_undone_is_kept_whatever_it_copies() -> None:
    choices = pareto(replace(STRAYS, bands=()))
    assert [choice.moved_bytes for choice in choices][-1] == 11 * GIGABYTE


def test_better_means_nowhere_worse_and_somewhere_better() -> None:
    def choice(*costs: float) -> Choice:
        return Choice(
            "id", "", PROBLEM, Assignment.current(PROBLEM.partitions), int(costs[0]), costs[1], costs[2], int(costs[3])
        )

    assert choice(1, 0.1, 1, 1).beats(choice(2, 0.1, 1, 1))
    assert not choice(1, 0.1, 1, 1).beats(choice(1, 0.1, 1, 1))
    assert not choice(1, 0.2, 1, 1).beats(choice(2, 0.1, 1, 1))
