from dataclasses import replace

import numpy as np
import pytest

from bench.random_clusters import random_cluster
from kreassign.planner import Assignment, Band, Budget, Rules
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, GOALS, LEADERS, Goal
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

UNEVEN = [partition(number, 1, 2, write_bytes_per_s=3.0, read_bytes_per_s=9.0, leader_cpu=5.0, follower_cpu=1.0)
          for number in range(4)]  # fmt: skip


def test_loads_of_every_resource_before_and_after() -> None:
    found = evaluate(posed(brokers(1, 2, 3), UNEVEN), moved(posed(brokers(1, 2, 3), UNEVEN), (0, (3, 2))))
    after = {goal: found.after[:, column].tolist() for column, goal in enumerate(found.goals)}
    assert after == {
        "disk": [30 * GIGABYTE, 40 * GIGABYTE, 10 * GIGABYTE],
        "net-in": [9.0, 12.0, 3.0],
        "net-out": [27.0, 0.0, 9.0],
        "cpu": [15.0, 4.0, 5.0],
        "replicas": [3.0, 4.0, 1.0],
        "leaders": [3.0, 0.0, 1.0],
    }
    assert found.before[:, 0].tolist() == [40 * GIGABYTE, 40 * GIGABYTE, 0]


def test_bytes_in_and_out_and_the_peak() -> None:
    problem = posed(brokers(1, 2, 3), UNEVEN)
    found = evaluate(problem, moved(problem, (0, (1, 3)), (1, (2, 3))))
    assert found.bytes_in.tolist() == [0, 0, 20 * GIGABYTE]
    assert found.bytes_out.tolist() == [20 * GIGABYTE, 0, 0]
    assert found.peak_bytes.tolist() == [40 * GIGABYTE, 40 * GIGABYTE, 20 * GIGABYTE]
    assert (found.moved_bytes, found.moves, found.partitions, found.leader_changes) == (20 * GIGABYTE, 2, 2, 1)


def test_brokers_outside_their_band_are_named_with_the_amount() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1), partition(1, 1), partition(2, 2)], bands=(Band(DISK, 0.1),))
    found = evaluate(problem, Assignment.current(problem.partitions))
    assert [(miss.broker, miss.goal, round(miss.amount / GIGABYTE, 6)) for miss in found.misses()] == [
        (2, "disk", -3.5),
        (1, "disk", 3.5),
    ]
    assert str(found.misses()[1]) == "broker 1: disk is 3.5 GB above its band"
    assert found.imbalance == pytest.approx(3.5 / 15)
    level = evaluate(problem, moved(problem, (0, (2,)), (2, (1,))))
    assert (len(level.misses()), level.imbalance) == (2, found.imbalance)


def test_the_imbalance_is_the_widest_miss_also_below_a_band() -> None:
    loads = [partition(0, 1, gigabytes=15), partition(1, 2, gigabytes=15)]
    problem = posed(brokers(1, 2, 3), loads, bands=(Band(DISK, 0.1),))
    found = evaluate(problem, Assignment.current(problem.partitions))
    assert [(miss.broker, miss.amount / GIGABYTE) for miss in found.misses()] == [(3, -9.0), (1, 4.0), (2, 4.0)]
    assert found.imbalance == pytest.approx(0.9)


def test_an_even_cluster_misses_nothing() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, 2), partition(1, 2, 1)])
    found = evaluate(problem, Assignment.current(problem.partitions))
    assert (found.misses(), found.imbalance, found.legal) == ((), 0.0, True)


def test_shares_follow_capacity_told_shares_and_who_may_lead() -> None:
    loads = [partition(0, 1, gigabytes=30), partition(1, 2, gigabytes=10)]
    by_capacity = [replace(host, capacity={"disk": 100.0 * GIGABYTE * (4 - host.id)}) for host in brokers(1, 2)]
    told = [replace(host, share=float(host.id)) for host in brokers(1, 2)]
    for hosts, middle in ((by_capacity, [24, 16]), (told, [40 / 3, 80 / 3])):
        found = evaluate(
            posed(hosts, loads, bands=(Band(DISK, 0.0),)), Assignment.current(posed(hosts, loads).partitions)
        )
        assert (found.high[:, 0] / GIGABYTE).tolist() == pytest.approx(middle)
    demoted = [replace(host, may_lead=host.id == 1) for host in brokers(1, 2)]
    problem = posed(demoted, loads, bands=(Band(LEADERS, 0.0),))
    assert evaluate(problem, moved(problem)).high[:, 0].tolist() == [2.0, 0.0]


def test_a_goal_of_the_users_own_is_judged_by_its_columns() -> None:
    own = Goal("weight", "kg", leader=lambda p: p.numbers + 1.0, follower=lambda p: p.numbers * 0.0)
    problem = posed(brokers(1, 2), [partition(0, 1, 2), partition(1, 1, 2)], bands=(Band(own, None),))
    assert evaluate(problem, moved(problem, (1, (2, 1)))).after[:, 0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("seed", range(12))
def test_bands_are_those_of_the_problem(seed: int) -> None:
    """The search reads `problem.limits`; here they are computed a second time, by other code."""
    problem = replace(random_cluster(seed).problem, budget=Budget(), rules=Rules())
    found, limits = evaluate(problem, Assignment.current(problem.partitions)), problem.limits
    assert found.goals == tuple(goal.name for goal in GOALS)
    np.testing.assert_allclose(found.low, limits.low)
    np.testing.assert_allclose(found.high, limits.high)
