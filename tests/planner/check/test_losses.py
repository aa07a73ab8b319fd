"""Loads after a loss: by hand, on small clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreassign.model.plan_facts import WorstLoss
from kreassign.planner import Assignment, Band, Problem, RackRule, Rules
from kreassign.planner.check.failover import Losses, losses
from kreassign.planner.goals import CPU, DISK, LEADERS, NET_OUT, Goal
from kreassign.planner.problem.problem import Gone
from tests.planner.sentences import says
from tests.planner.small_problems import brokers, moved, partition, posed

SPREAD = Rules(failover=0.0)
LEADING = (Band(LEADERS, None),)
LISTS = [(1, 2)] * 4 + [(3, 2)] * 2


def of(problem: Problem) -> Losses:
    return losses(problem, Assignment.current(problem.partitions))


def posed_with(hosts=None, lists=LISTS, bands=LEADING, rules=SPREAD, **facts) -> Problem:
    loads = [partition(number, *replicas, **facts) for number, replicas in enumerate(lists)]
    return posed(hosts or brokers(1, 2, 3), loads, bands=bands, rules=rules)


def test_the_second_of_each_list_leads_what_its_broker_led() -> None:
    found = of(posed_with())
    assert found.names == ("broker 1", "broker 2", "broker 3")
    assert found.loads[:, :, 0].tolist() == [[0, 4, 2], [4, 0, 2], [4, 2, 0]]
    assert found.limits[:, :, 0].tolist() == [[np.inf, 3, 3], [3, np.inf, 3], [3, 3, np.inf]]
    assert (found.offline.tolist(), found.means.tolist()) == ([0, 0, 0], [2.0])


def test_excess_after_a_loss_is_counted_in_means() -> None:
    found = of(posed_with())
    assert found.excess == 1.5
    (worst,) = found.worst("before")
    assert (worst.state, worst.goal, worst.lost, worst.broker) == ("before", "leaders", "broker 1", 2)
    assert (worst.load, worst.limit, worst.offline) == (4.0, 3.0, 0)
    told = says("limit after a loss", "broker 1", 2, "leaders 4", "3, and 2 cases more")
    assert found.sentences() == (told,)


def test_a_wider_tolerance_has_nothing_to_tell() -> None:
    found = of(posed_with(rules=Rules(failover=0.5)))
    assert (found.excess, found.sentences()) == (0.0, ())


def test_a_capacity_is_the_limit_of_a_broker_whatever_the_tolerance() -> None:
    hosts = [replace(host, capacity={"leaders": 5.0} if host.id == 2 else {}) for host in brokers(1, 2, 3)]
    found = of(posed_with(hosts))
    assert found.limits[:, :, 0].tolist() == [[np.inf, 5, 3], [3, np.inf, 3], [3, 5, np.inf]]


def test_a_partition_of_one_replica_has_nobody_left() -> None:
    found = of(posed_with(lists=[(1,), (1,), (2, 3), (3,)]))
    assert found.offline.tolist() == [2, 0, 1]
    assert found.sentences()[-1] == says("offline after a loss", "broker 1", 2)


def test_of_a_rack_the_first_replica_elsewhere_takes_over() -> None:
    found = of(posed_with(brokers(1, 2, 3, racks="aab"), lists=[(1, 2, 3), (2, 1)]))
    assert found.names == ("broker 1", "broker 2", "broker 3", "rack a", "rack b")
    assert found.loads[:, :, 0].tolist() == [[0, 2, 0], [2, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 0]]
    assert found.offline.tolist() == [0, 0, 0, 1, 0]


def test_the_only_rack_is_not_lost_and_none_where_racks_do_not_matter() -> None:
    assert of(posed_with(brokers(1, 2, 3, racks="aaa"))).names == ("broker 1", "broker 2", "broker 3")
    no_racks = replace(SPREAD, racks=RackRule.NONE)
    assert len(of(posed_with(brokers(1, 2, 3, racks="aab"), rules=no_racks)).names) == 3


def test_a_rack_is_lost_where_others_have_none() -> None:
    hosts = [replace(host, rack=None if host.id == 3 else "a") for host in brokers(1, 2, 3)]
    assert of(posed_with(hosts)).names[3:] == ("rack a",)


def test_of_a_single_broker_nobody_is_left_to_judge() -> None:
    found = of(posed_with(brokers(1), lists=[(1,)]))
    assert (found.names, found.worst("after"), found.sentences(), found.excess) == ((), (), (), 0.0)
    assert found.means.tolist() == [1.0]


def test_nothing_exceeds_a_limit_of_0_more_than_something_does() -> None:
    hosts = [replace(host, capacity={"leaders": 0.0} if host.id == 3 else {}) for host in brokers(1, 2, 3)]
    (worst,) = of(posed_with(hosts, lists=[(1, 2)] * 9 + [(2, 3)])).worst("after")
    assert (worst.lost, worst.broker, worst.load, worst.limit) == ("broker 2", 3, 1.0, 0.0)


def test_a_broker_that_is_down_leads_nothing_and_takes_nothing_over() -> None:
    hosts = [replace(host, is_live=host.id != 2) for host in brokers(1, 2, 3)]
    found = of(posed_with(hosts, lists=[(1, 2, 3), (2, 3, 1), (1, 2)]))
    assert found.names == ("broker 1", "broker 3")
    assert found.loads[:, :, 0].tolist() == [[0, 0, 2], [3, 0, 0]]
    assert found.offline.tolist() == [1, 0]


def test_what_leading_adds_is_what_consumers_read() -> None:
    found = of(posed_with(bands=(Band(NET_OUT, None),), read_bytes_per_s=1_500_000.0))
    assert found.loads[0, :, 0].tolist() == [0, 6_000_000, 3_000_000]
    assert (found.goals, found.units, found.broker_ids) == (("net-out",), ("B/s",), (1, 2, 3))


def test_a_plan_is_judged_by_its_own_lists() -> None:
    problem = posed_with()
    found = losses(problem, moved(problem, (0, (1, 3)), (1, (1, 3))))
    assert found.loads[0, :, 0].tolist() == [0, 2, 4]


def test_every_goal_has_its_own_loads_and_limits() -> None:
    """Each of two partitions costs 0.75 of a CPU where it leads, and 0.25 where it follows."""
    problem = posed_with(
        lists=[(1, 2), (2, 3)],
        bands=(Band(CPU, None), Band(DISK), Band(LEADERS, None)),
        leader_cpu=0.75,
        follower_cpu=0.25,
    )
    found = of(problem)
    assert (found.goals, found.units) == (("cpu", "leaders"), ("estimated", ""))
    assert found.loads[:, :, 0].tolist() == [[0, 1.5, 0.25], [0.75, 0, 0.75], [0.75, 1, 0]]
    assert found.loads[:, :, 1].tolist() == [[0, 2, 0], [1, 0, 1], [1, 1, 0]]
    assert found.limits[0].tolist() == [[np.inf, np.inf], [1, 1], [1, 1]]
    assert found.means.tolist() == [2 / 3, 2 / 3]
    assert found.excess == pytest.approx(0.5 / (2 / 3) + 1 / (2 / 3))
    cpu, led = found.worst("after")
    assert (cpu.load, cpu.limit) == pytest.approx((2.25, 1.5))
    assert replace(cpu, load=0.0, limit=0.0) == WorstLoss("after", "cpu", "broker 1", 2, 0.0, 0.0, "of the mean", 0)
    assert led == WorstLoss("after", "leaders", "broker 1", 2, 2.0, 1.0, "", 0)
    assert found.sentences() == (
        says("limit after a loss", "broker 1", 2, "cpu 225% of the mean", "150% of the mean"),
        says("limit after a loss", "broker 1", 2, "leaders 2", 1),
    )


def test_limits_are_shares_of_those_that_are_left() -> None:
    hosts = [replace(host, share=2.0 if host.id == 2 else 1.0) for host in brokers(1, 2, 3)]
    assert of(posed_with(hosts)).limits[:, :, 0].tolist() == [[np.inf, 4, 2], [3, np.inf, 3], [2, 4, np.inf]]
    only = [replace(host, may_lead=host.id == 1) for host in brokers(1, 2, 3)]
    assert of(posed_with(only)).limits[:, :, 0].tolist() == [[np.inf, 0, 0], [6, np.inf, 0], [6, 0, np.inf]]


@pytest.mark.parametrize("tolerance", [None, float("inf")])
def test_without_a_tolerance_only_capacities_are_limits(tolerance: float | None) -> None:
    rules = Rules(failover=tolerance)
    assert np.isinf(of(posed_with(rules=rules)).limits).all()
    hosts = [replace(host, capacity={"leaders": 0.5} if host.id == 2 else {}) for host in brokers(1, 2, 3)]
    found = of(posed_with(hosts, rules=rules))
    assert found.limits[2, :, 0].tolist() == [np.inf, 0.5, np.inf]
    assert [(one.lost, one.broker, one.limit) for one in found.worst("after")] == [("broker 1", 2, 0.5)]


def test_what_only_followers_cost_has_no_mean_where_nobody_follows() -> None:
    found = of(posed_with(lists=[(1,), (2,)], bands=(Band(CPU, None),), follower_cpu=5.0))
    assert (found.means.tolist(), found.excess) == ([0.0], 0.0)


def test_racks_of_brokers_that_are_down_cannot_be_lost() -> None:
    hosts = [replace(host, is_live=host.id != 3) for host in brokers(1, 2, 3, racks="aab")]
    assert of(posed_with(hosts)).names == ("broker 1", "broker 2")
    hosts = [replace(host, is_live=host.id != 3) for host in brokers(1, 2, 3, 4, racks="aabc")]
    found = of(posed_with(hosts, lists=[(1, 4), (4, 1), (1, 2), (3, 2)]))
    assert found.names == ("broker 1", "broker 2", "broker 4", "rack a", "rack c")
    assert found.loads[:, :, 0].tolist() == [[0, 2, 0, 2], [2, 0, 0, 1], [3, 1, 0, 0], [0, 0, 0, 2], [3, 1, 0, 0]]
    assert found.offline.tolist() == [0, 1, 0, 2, 0]


def test_who_lost_its_copy_neither_leads_nor_takes_over() -> None:
    loads = [partition(0, 1, 2, 3, lost_on=(1,)), partition(1, 3, 1, 2, lost_on=(1,)), partition(2, 1, 2)]
    found = of(posed(brokers(1, 2, 3), loads, bands=LEADING, rules=SPREAD))
    assert found.loads[:, :, 0].tolist() == [[0, 2, 1], [1, 0, 2], [1, 2, 0]]


def test_what_a_plan_leaves_on_brokers_that_are_gone_is_led_by_others() -> None:
    problem = posed_with(lists=[(2, 1), (1, 2), (1, 3), (3, 1)])
    replicas = np.zeros(8, bool)
    replicas[[0, 3, 5]] = True  # those on broker 2, and that of the third partition on broker 3
    found = of(replace(problem, gone=Gone(brokers=np.array([False, True, False]), replicas=replicas)))
    assert found.names == ("broker 1", "broker 3")
    assert found.loads[:, :, 0].tolist() == [[0, 0, 1], [4, 0, 0]]
    assert found.offline.tolist() == [3, 0]


def judged(loads: list[list[float]], limits: list[list[float]], offline: tuple[int, ...] = (0, 0)) -> Losses:
    """Two losses (rows) and what brokers 1 and 2 would carry of one goal, on the average 4."""
    shape = (2, 2, 1)
    carried, allowed = (np.array(one, float).reshape(shape) for one in (loads, limits))
    return Losses(("x", "y"), (1, 2), ("g",), ("",), carried, allowed, np.array(offline), np.array([4.0]))


def test_the_worst_loss_is_the_one_that_comes_nearest_to_a_limit() -> None:
    def worst(loads: list[list[float]], limits: list[list[float]]) -> tuple[str, int, float, float]:
        (one,) = judged(loads, limits).worst("before")
        return one.lost, one.broker, one.load, one.limit

    assert worst([[9, 4], [8, 5]], [[10, 10], [10, 5.5]]) == ("y", 2, 5, 5.5)
    # A limit of 0 that is met is as good as unused, and one that is not is worse than any other.
    assert worst([[0, 3], [2, 1]], [[0, 10], [10, 10]]) == ("x", 2, 3, 10)
    assert worst([[0.5, 30], [2, 1]], [[0, 10], [10, 10]]) == ("x", 1, 0.5, 0)
    assert worst([[0.25, 1], [2, 1]], [[0.5, 10], [10, 10]]) == ("x", 1, 0.25, 0.5)
    assert worst([[0, 0], [0, 0]], [[0, 1], [1, 1]]) == ("x", 1, 0, 0)


def test_what_rounding_adds_exceeds_no_limit() -> None:
    most = 1000 * (1 + 1e-9) + 1e-9
    assert judged([[most, 0], [0, 0]], [[1000, 1], [1, 1]]).sentences() == ()
    assert len(judged([[np.nextafter(most, 2000), 0], [0, 0]], [[1000, 1], [1, 1]]).sentences()) == 1


def test_exceeded_limits_are_counted_and_offline_ones_named() -> None:
    found = judged([[3, 6], [5, 2]], [[2, 4], [4, 4]], offline=(1, 3))
    assert found.excess == (1 + 2 + 1) / 4
    assert found.sentences() == (
        says("limit after a loss", "x", 1, "g 3", "2, and 2 cases more"),
        says("offline after a loss", "y", 3),
    )
    two = judged([[3, 6], [4, 2]], [[2, 4], [4, 4]]).sentences()
    assert two == (says("limit after a loss", "x", 1, "g 3", "2, and 1 cases more"),)


@pytest.mark.parametrize(("counts", "limit"), [(True, 3), (False, 2.5)])
def test_limits_of_what_users_count_are_whole_numbers(counts: bool, limit: float) -> None:
    heads = Goal("heads", "", leader=lambda p: np.ones(len(p)), follower=lambda p: np.zeros(len(p)), counts=counts)
    found = of(posed_with(lists=[(1, 2)] * 5, bands=(Band(heads, None),)))
    assert found.limits[0, :, 0].tolist() == [np.inf, limit, limit]
