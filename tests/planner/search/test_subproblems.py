from dataclasses import replace

import numpy as np
import pytest

from bench.pop import giant
from bench.random_clusters import random_cluster
from kreassign.errors import Infeasible
from kreassign.planner import Assignment, Budget, Problem, plan_of, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.results import least_bytes
from kreassign.planner.search.subproblems import Answer, attempt, merged, solve_in_subproblems, split, subset
from tests.planner.small_problems import brokers, partition, posed

"""A problem in parts: nothing is lost on the way, and the plan is as good as that of the whole."""


def here(problems: list[Problem]) -> list[Answer]:
    return [attempt(problem) for problem in problems]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return giant(40, 6_000, topics=50)


@pytest.fixture
def small() -> Problem:
    """Cluster of six brokers with everything on two."""
    return posed(brokers(1, 2, 3, 4, 5, 6), [partition(number, 1, 2) for number in range(60)])


def test_every_partition_is_in_one_part_and_parts_are_of_one_size(problem: Problem) -> None:
    parts = split(problem, 7)
    assert sorted(np.concatenate([part.indices for part in parts]).tolist()) == list(range(len(problem.partitions)))
    assert {len(part.indices) for part in parts} <= {2_000 // 7, 2_000 // 7 + 1}
    index = int(parts[3].indices[11])
    assert parts[3].problem.partitions.name(11) == problem.partitions.name(index)
    assert parts[3].problem.partitions.list_of(11).tolist() == problem.partitions.list_of(index).tolist()


def test_a_part_asks_of_each_broker_its_share_of_what_the_whole_asks(problem: Problem) -> None:
    whole = problem.limits.mean
    parts = [part.problem.limits.mean for part in split(problem, 4)]
    # No share is below nothing, where a broker has much to give and little of it was dealt.
    assert np.sum(parts, axis=0) == pytest.approx(whole, rel=0.05)
    assert np.median(np.abs(np.sum(parts, axis=0) / whole - 1)) < 1e-9
    # Not a fourth of the mean: what chance has dealt to the broker, and a fourth of what it lacks.
    assert parts[0] != pytest.approx(whole / 4, rel=0.01)


def test_topics_stay_whole_where_a_rule_is_about_topics(problem: Problem) -> None:
    ruled = replace(problem, rules=replace(problem.rules, topic_spread=0.1))
    seen = [set(part.problem.partitions.topics.tolist()) for part in split(ruled, 3)]
    assert sum(map(len, seen)) == len(set.union(*seen))


def test_parts_that_stay_as_they_are_are_the_present_state_again(problem: Problem) -> None:
    parts = split(problem, 3)
    again = merged(problem, parts, ["no plan"] * 3)
    now = Assignment.current(problem.partitions)
    assert [again.replicas.tolist(), again.offsets.tolist()] == [now.replicas.tolist(), now.offsets.tolist()]


@pytest.mark.thorough
def test_in_parts_hardly_more_is_copied_and_every_band_is_met(problem: Problem) -> None:
    found = evaluate(problem, solve_in_subproblems(problem, 4, 1, here).assignment)
    assert (found.violations, found.misses()) == ((), ())
    assert found.moved_bytes <= 1.1 * least_bytes(problem, found)


def test_the_same_seed_gives_the_same_plan_and_another_one_another(small: Problem) -> None:
    plans = [plan_of(small, solve_in_subproblems(small, 3, seed, here).assignment) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(0, 60, 15))
def test_plans_of_random_clusters_in_parts_break_no_rule(seed: int) -> None:
    whole = random_cluster(seed).problem
    alone = attempt(whole)
    if isinstance(alone, str):
        with pytest.raises(Infeasible):
            solve_in_subproblems(whole, 3, 1, here)
        return
    assert evaluate(whole, solve_in_subproblems(whole, 3, 1, here).assignment).violations == ()


def test_a_budget_holds_for_all_parts_together(small: Problem) -> None:
    limited = replace(small, budget=Budget(moves=20))
    assert evaluate(limited, solve_in_subproblems(limited, 3, 1, here).assignment).moves == 20


def test_a_search_that_begins_elsewhere_still_counts_from_where_things_are() -> None:
    problem = posed(brokers(1, 2, 3), [partition(number, 1, 2) for number in range(6)])
    alone = solve(problem).assignment
    away = evaluate(problem, solve(problem, start=alone).assignment)
    assert away.moved_bytes == evaluate(problem, alone).moved_bytes
    # All copies on other brokers than they need to be on: what is not worth it goes back.
    crowded = replace(Assignment.current(problem.partitions), replicas=np.full(12, 2, np.int32))
    crowded.replicas[1::2] = 1
    assert evaluate(problem, solve(problem, start=crowded).assignment).moved_bytes == away.moved_bytes


def test_a_subset_keeps_what_belongs_to_each_replica() -> None:
    loads = [partition(0, 1, 2), partition(1, 2, 3, 1), partition(2, 3)]
    found = subset(posed(brokers(1, 2, 3), loads).partitions, np.array([1, 2]))
    assert (found.offsets.tolist(), found.replicas.tolist()) == ([0, 3, 4], [1, 2, 0, 2])
