from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import Infeasible
from kreassign.planner import Band, BrokerFacts, LogDirFacts, PartitionFacts, Problem, Rules, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, Goal, nothing, one_each
from tests.planner.small_problems import GIGABYTE, partition, posed

JBOD = Rules(between_log_dirs=True)


def host(broker: int, *dirs: LogDirFacts, **facts) -> BrokerFacts:
    return BrokerFacts(broker, log_dirs=dirs or (LogDirFacts("/a"), LogDirFacts("/b")), **facts)


def in_dir(number: int, broker: int, path: str = "/a", **facts) -> PartitionFacts:
    return partition(number, broker, log_dirs=(path,), **facts)


def held(problem: Problem) -> list[float]:
    """Gigabytes per log directory after the plan, which the independent check finds legal."""
    solution = solve(problem).assignment
    judged = evaluate(problem, solution)
    assert (judged.violations, judged.unfinished) == ((), ())
    sizes = np.repeat(problem.partitions.size_bytes, np.diff(solution.offsets))
    return (np.bincount(solution.log_dirs, sizes, len(problem.log_dirs or ())) / GIGABYTE).tolist()


def test_directories_of_a_broker_are_evened_out_without_leaving_it() -> None:
    loads = [in_dir(number, number % 2 + 1) for number in range(40)]
    problem = posed([host(1), host(2)], loads, bands=(Band(DISK),), rules=replace(JBOD, between_brokers=False))
    assert held(problem) == pytest.approx([100] * 4, rel=0.1)
    judged = evaluate(problem, solve(problem).assignment)
    assert (judged.moved_bytes, judged.log_dir_bytes) == (0, 180 * GIGABYTE)


def test_what_arrives_goes_to_the_emptier_directory() -> None:
    loads = [in_dir(number, 1) for number in range(10)] + [in_dir(10 + number, 2) for number in range(2)]
    problem = posed([host(1), host(2)], loads, bands=(Band(DISK),), rules=JBOD)
    assert held(problem) == pytest.approx([30] * 4)


def test_directories_fill_by_their_capacity() -> None:
    dirs = LogDirFacts("/a", 100 * GIGABYTE), LogDirFacts("/b", 300 * GIGABYTE)
    problem = posed([host(1, *dirs)], [in_dir(number, 1) for number in range(20)], bands=(Band(DISK),), rules=JBOD)
    assert held(problem) == pytest.approx([50, 150], rel=0.1)


def test_a_directory_to_be_drained_ends_empty() -> None:
    dirs = LogDirFacts("/a", must_empty=True), LogDirFacts("/b")
    problem = posed([host(1, *dirs)], [in_dir(0, 1), in_dir(1, 1, "/b")], bands=(), rules=JBOD)
    assert held(problem) == [0, 20]


def test_directories_that_cannot_hold_their_broker_are_refused() -> None:
    dirs = LogDirFacts("/a", must_empty=True), LogDirFacts("/b", 15 * GIGABYTE)
    problem = posed([host(7, *dirs)], [in_dir(0, 7), in_dir(1, 7, "/b")], bands=(), rules=JBOD)
    with pytest.raises(Infeasible, match=r"^t-0 must leave a drained log directory, and no other one"):
        solve(problem)
    with pytest.raises(Infeasible, match=r"(?s)log directories of broker 7 .* exceeds the capacity"):
        solve(replace(problem, rules=replace(JBOD, between_brokers=False)))


@pytest.mark.parametrize(("rules", "emptied"), [(Rules(), True), (JBOD, False)])
def test_a_replica_larger_than_any_directory_is_refused_by_name(rules: Rules, emptied: bool) -> None:
    words = "t-0: a replica of 100 GB is larger than any log directory that may take it; the largest may hold 60 GB"
    dirs = LogDirFacts("/a", 60 * GIGABYTE), LogDirFacts("/b", 40 * GIGABYTE), LogDirFacts("/c", must_empty=not emptied)
    hosts = [host(1, *dirs, must_empty=emptied), host(2, *dirs[:2], capacity={"disk": 120.0 * GIGABYTE})]
    with pytest.raises(Infeasible, match=words):
        solve(posed(hosts, [in_dir(0, 1, "/c", gigabytes=100)], rules=rules))


def test_a_goal_may_have_any_name() -> None:
    """Its limits are those of a goal, also if it is called like what the planner knows of log directories."""
    goal = Goal("log directories of broker racks", "", one_each, nothing)
    hosts = [host(broker, capacity={goal.name: 1.0}) for broker in (1, 2)]
    loads = [partition(number, 3) for number in range(3)]
    with pytest.raises(Infeasible, match="the load of 3 exceeds the capacity of the 2 brokers that stay by 1"):
        solve(posed([*hosts, host(3, must_empty=True)], loads, bands=(Band(goal),)))


def test_directories_stay_unless_moves_between_them_are_allowed() -> None:
    problem = posed([host(1)], [in_dir(0, 1), in_dir(1, 1)], bands=(Band(DISK),))
    assert held(problem) == [20, 0]


def test_a_replica_without_a_directory_that_has_room_keeps_back_no_other() -> None:
    """Broker 2 has room for half of it all, but in directories of 30 GB each."""
    small = LogDirFacts("/a", 30 * GIGABYTE), LogDirFacts("/b", 30 * GIGABYTE)
    limited = {"capacity": {"disk": 60.0 * GIGABYTE}, "share": 1.0}
    hosts = [host(1, capacity={"disk": 500.0 * GIGABYTE}, share=1.0), host(2, *small, **limited)]
    loads = [in_dir(number, 1, gigabytes=size) for number, size in enumerate((50, 50, 20))]
    assert held(posed(hosts, loads, bands=(Band(DISK),), rules=JBOD)) == pytest.approx([50, 50, 20, 0])
