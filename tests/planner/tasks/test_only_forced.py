from dataclasses import replace

import pytest

from kreassign.planner import LogDirFacts, Problem, Rules
from kreassign.planner.tasks import change_factors, demote, drain_brokers, drain_log_dirs, only_forced
from tests.planner.worlds import brokers, partition, world

DISKS = (LogDirFacts("/a"), LogDirFacts("/b"))
LOADS = [partition(0, 1, 2, log_dirs=("/a", "/a")), partition(1, 2, 3, log_dirs=("/b", "/b"))]
PROBLEM = world(brokers(1, 2, 3, racks="xxy", log_dirs=DISKS), LOADS)


@pytest.mark.parametrize(("task", "movable"), [
    (drain_brokers(PROBLEM, (1,)), [True, False]),
    (drain_brokers(PROBLEM, (2,)), [True, True]),
    (change_factors(PROBLEM, 2), [False, False]),
    (change_factors(PROBLEM, 3), [True, True]),
    (demote(PROBLEM, (2,)), [False, True]),
    (drain_log_dirs(PROBLEM, [(2, "/a")]), [True, False]),
    (replace(PROBLEM, rules=Rules(repair_racks=True)), [True, False]),
])  # fmt: skip
def test_only_what_the_task_demands_may_move(task: Problem, movable: list[bool]) -> None:
    assert only_forced(task).partitions.may_move.tolist() == movable


def test_what_is_fixed_stays_fixed() -> None:
    fixed = world(brokers(1, 2, 3), [partition(0, 1, may_move=False)])
    assert not only_forced(change_factors(fixed, 2)).partitions.may_move.any()
