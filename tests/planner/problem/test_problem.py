from dataclasses import replace

import numpy as np
import pytest

from kreassign.planner import Band, Budget, LogDirFacts, Problem, Rules, problem_of
from kreassign.planner.goals import DISK
from kreassign.planner.problem.fingerprint import fingerprint
from kreassign.planner.problem.holds import Hold
from tests.planner.small_problems import brokers, partition

HOSTS = brokers(1, 2, racks="ab", capacity={"disk": 5.0}, log_dirs=(LogDirFacts("/a"),))
LOADS = [partition(0, 1, 2), partition(1, 2, 1)]
PROBLEM = problem_of(HOSTS, LOADS)


def test_the_same_inputs_have_the_same_hash_in_whatever_order_they_came() -> None:
    assert fingerprint(problem_of(HOSTS[::-1], LOADS[::-1])) == fingerprint(PROBLEM)


@pytest.mark.parametrize("other", [
    replace(PROBLEM, budget=Budget(moves=3)),
    replace(PROBLEM, rules=Rules(least_topic_leaders={"t": 1})),
    replace(PROBLEM, bands=(Band(DISK),)),
    replace(PROBLEM, bands=PROBLEM.bands[::-1]),
    replace(PROBLEM, partitions=PROBLEM.partitions.held(np.array([False, True]), Hold.STAYS)),
    replace(PROBLEM, brokers=replace(PROBLEM.brokers, capacity={"disk": np.array([5.0, 6.0])})),
    replace(PROBLEM, log_dirs=None),
])  # fmt: skip
def test_any_other_input_has_another(other: Problem) -> None:
    assert fingerprint(other) != fingerprint(PROBLEM)
