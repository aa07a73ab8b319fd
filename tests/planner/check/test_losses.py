"""What others would carry after a loss: by hand, on clusters small enough for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kreassign.planner import Assignment, Band, Problem, RackRule, Rules
from kreassign.planner.check.failover import Losses, losses
from kreassign.planner.goals import LEADERS, NET_OUT
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


def test_what_exceeds_limits_is_counted_in_means_and_told_with_the_worst_case() -> None:
    found = of(posed_with())
    assert found.excess == 1.5
    (worst,) = found.worst("before")
    assert (worst.state, worst.goal, worst.lost, worst.broker) == ("before", "leaders", "broker 1", 2)
    assert (worst.load, worst.limit, worst.offline) == (4.0, 3.0, 0)
    told = "if broker 1 is lost, broker 2 has leaders 4, its limit is then 3, and 2 cases more"
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
    assert found.sentences()[-1] == "if broker 1 is lost, 2 partitions have no replica left"


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
