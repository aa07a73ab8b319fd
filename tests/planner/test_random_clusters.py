"""Random clusters of every kind: no plan may be illegal. `python -m bench planner-random` does 300."""

from collections import Counter

import pytest

from bench.planner_random import judge
from bench.random_clusters import random_cluster
from kreassign.planner import plan_of, solve
from kreassign.planner.problem.fingerprint import fingerprint

pytestmark = pytest.mark.thorough

SAMPLE = range(0, 300, 15)


@pytest.mark.parametrize("seed", SAMPLE)
def test_no_plan_breaks_a_rule_or_copies_less_than_the_bound(seed: int) -> None:
    found = judge(random_cluster(seed))
    assert found.violations == (), found.cluster.traits
    assert found.gap is None or found.gap > -1e-9


@pytest.mark.parametrize("seed", [3, 30])
def test_the_same_problem_gives_the_same_plan(seed: int) -> None:
    one, other = random_cluster(seed).problem, random_cluster(seed).problem
    assert fingerprint(one) == fingerprint(other)
    assert plan_of(one, solve(one).assignment) == plan_of(other, solve(other).assignment)


def test_the_sample_has_every_kind_of_cluster() -> None:
    kinds = Counter(trait for seed in SAMPLE for trait in random_cluster(seed).traits)
    assert len(kinds) >= 12
    assert not [trait for trait, count in kinds.items() if count < 2]
