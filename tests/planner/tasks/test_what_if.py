from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import Infeasible, InputError
from kreassign.model.closures import Closure
from kreassign.planner import Assignment, BrokerFacts, Problem, RackRule, Rules
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.tasks import Circumstances, what_if
from kreassign.planner.tasks.what_if import ResourceNeed, brokers_needed
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

W_LOADS = [partition(0, 1, 2, write_bytes_per_s=4.0, read_bytes_per_s=8.0, leader_cpu=2.0, follower_cpu=1.0)]
PROBLEM = posed(brokers(1, 2, 5, racks="aab", capacity={"disk": 10.0}), W_LOADS)


def test_traffic_multiplies_rates_and_cpu_but_no_bytes() -> None:
    found = what_if(PROBLEM, Circumstances(traffic=3)).partitions
    rates = (found.write_bytes_per_s, found.read_bytes_per_s, found.leader_cpu, found.follower_cpu)
    assert [rate.tolist() for rate in rates] == [[12.0], [24.0], [6.0], [3.0]]
    assert found.size_bytes.tolist() == [10 * GIGABYTE]


def test_growth_is_compound_and_takes_the_bytes_with_it() -> None:
    found = what_if(PROBLEM, Circumstances(growth_per_month=0.1, days=60)).partitions
    assert found.size_bytes.tolist() == [round(10 * GIGABYTE * 1.21)]
    assert found.write_bytes_per_s[0] == pytest.approx(4 * 1.21)


def test_growth_beyond_what_64_bits_count_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"would hold 20 EB in all, the largest t-0 with 10 EB each.*assume less growth"
    ):
        what_if(
            posed(brokers(1, 2), [partition(0, 1, 2, gigabytes=10**4)]),
            Circumstances(growth_per_month=1e6 - 1, days=30),
        )


def test_new_brokers_are_like_the_others_and_go_where_racks_are_short() -> None:
    found = what_if(PROBLEM, Circumstances(added=2)).brokers
    assert found.ids.tolist() == [1, 2, 5, 6, 7]
    assert [found.rack_names[rack] for rack in found.racks] == ["a", "a", "b", "b", "a"]
    np.testing.assert_array_equal(found.capacity["disk"], [10.0] * 5)
    grown = what_if(PROBLEM, Circumstances(added=2))
    assert evaluate(grown, Assignment.current(grown.partitions)).legal


@pytest.mark.parametrize("others", [
    {"capacity": {}},
    {"capacity": {}, "closure": Closure.UNREAD},
    {"capacity": {"disk": 4.0}, "closure": Closure.MAINTENANCE},
    {"capacity": {"disk": 4.0}, "is_live": False},
])  # fmt: skip
def test_they_are_like_those_that_stay_and_have_a_limit(others: dict) -> None:
    hosts = [*brokers(1, 2, capacity={"disk": 10.0}), *brokers(3, 4, 5, **others)]
    found = what_if(posed(hosts, W_LOADS), Circumstances(added=1)).brokers
    assert found.capacity["disk"].tolist()[-1] == 10.0


def test_after_the_highest_id_of_kafka_come_those_that_are_free() -> None:
    problem = posed(brokers(0, 2, 2**31 - 2), [partition(0, 0, 2)])
    assert what_if(problem, Circumstances(added=3)).brokers.ids.tolist() == [0, 2, 2**31 - 2, 2**31 - 1, 1, 3]


def test_brokers_go_and_factors_change() -> None:
    found = what_if(PROBLEM, Circumstances(removed=(5,), factor=1))
    assert found.brokers.must_empty.tolist() == [False, False, True]
    assert found.partitions.wanted_factors.tolist() == [1]


def test_nothing_different_is_the_same_load() -> None:
    found = what_if(PROBLEM, Circumstances()).partitions
    assert found.size_bytes.tolist() == PROBLEM.partitions.size_bytes.tolist()


@pytest.mark.parametrize("wrong", [{"added": -1}, {"traffic": -2.0}, {"days": -1.0}, {"growth_per_month": -1.0}])
def test_circumstances_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="cannot be negative"):
        Circumstances(**wrong)


SIZED_LOADS = [partition(number, 1, 2, gigabytes=10) for number in range(12)]


def cluster(count: int, **limits: float) -> Problem:
    return posed([replace(host, capacity=limits) for host in brokers(*range(1, count + 1))], SIZED_LOADS)


def test_each_resource_tells_what_it_needs_and_a_placement_is_found() -> None:
    found = brokers_needed(cluster(3, disk=100.0 * GIGABYTE, replicas=20), at_most=0.5)
    assert found.needs == (
        ResourceNeed("disk", "B", 240.0 * GIGABYTE, 50.0 * GIGABYTE, 5),
        ResourceNeed("replicas", "", 24.0, 10.0, 3),
    )
    assert (found.brokers, found.present, found.at_most) == (5, 3, 0.5)


@pytest.mark.parametrize("others", [{}, {"is_live": False}, {"closure": Closure.UNREAD}])
def test_brokers_without_a_limit_say_nothing_of_it(others: dict) -> None:
    hosts = [*brokers(1, 2, capacity={"disk": 100.0 * GIGABYTE}), *brokers(3, 4, 5, **others)]
    found = brokers_needed(posed(hosts, SIZED_LOADS), at_most=0.5)
    assert found.needs == (ResourceNeed("disk", "B", 240.0 * GIGABYTE, 50.0 * GIGABYTE, 5),)


def test_fewer_brokers_than_there_are_may_do() -> None:
    assert brokers_needed(cluster(6, disk=100.0 * GIGABYTE), at_most=1.0).brokers == 3


def sized(ids: range, gigabytes: float, racks: str | None = None) -> list[BrokerFacts]:
    return brokers(*ids, racks=racks, capacity={"disk": gigabytes * GIGABYTE})


@pytest.mark.parametrize("hosts", [
    [*sized(range(1, 4), 1), *sized(range(4, 9), 100)],
    [*sized(range(1, 6), 100), *sized(range(6, 9), 1)],
])  # fmt: skip
def test_which_ids_the_small_brokers_have_does_not_count(hosts: list[BrokerFacts]) -> None:
    loads = [partition(number, 4, 5, gigabytes=10) for number in range(12)]
    assert brokers_needed(posed(hosts, loads), at_most=1.0).brokers == 3


def test_which_ids_a_rack_has_does_not_count() -> None:
    loads = [partition(number, 1, 4, gigabytes=10) for number in range(6)]
    problem = posed(sized(range(1, 7), 100, "aaabbb"), loads, rules=Rules(racks=RackRule.STRICT))
    assert brokers_needed(problem, at_most=1.0).brokers == 2


def test_a_refusal_after_a_search_blames_no_partition() -> None:
    loads = [partition(number, 1, gigabytes=6) for number in range(60)]
    with pytest.raises(Infeasible, match=r"no placement was found on 36 to 46 brokers; more are not looked into"):
        brokers_needed(posed(sized(range(1, 4), 10), loads), at_most=1.0)


def test_there_are_never_fewer_brokers_than_replicas_of_a_partition() -> None:
    assert brokers_needed(cluster(4, disk=10_000.0 * GIGABYTE)).brokers == 2


def test_a_partition_too_large_for_any_broker_fits_on_no_number_of_them() -> None:
    words = "t-0 alone has 10 GB of disk, and one broker may have 7 GB, 70% of the limit that is usual here"
    with pytest.raises(Infeasible, match=words):
        brokers_needed(cluster(3, disk=10.0 * GIGABYTE))


@pytest.mark.parametrize("at_most", [0.0, 1.1])
def test_a_part_of_the_limits_is_a_part(at_most: float) -> None:
    with pytest.raises(InputError, match="cannot be used at"):
        brokers_needed(cluster(3, disk=1.0), at_most)


def test_loads_that_no_cluster_carries_are_refused_at_once() -> None:
    absurd = posed(brokers(1, 2, capacity={"disk": 1e12}), [partition(0, 1, 2, gigabytes=4e9)])
    with pytest.raises(Infeasible, match=r"disk asks for [0-9,]+ brokers, and more than 10,000 are not looked into"):
        brokers_needed(absurd)


def test_what_was_not_counted_is_told_and_the_factor_is_a_floor() -> None:
    problem = cluster(4, disk=10_000.0 * GIGABYTE, replicas=1_000)
    found = brokers_needed(problem)
    assert (found.unlimited, found.unknown, found.factor) == (("leaders",), ("net-in", "net-out", "cpu"), 2)
    written = replace(problem, partitions=replace(problem.partitions, write_bytes_per_s=np.ones(12)))
    assert brokers_needed(written).unlimited == ("net-in", "leaders")


def test_without_limits_there_is_no_answer() -> None:
    with pytest.raises(InputError, match="no limit of the brokers is known"):
        brokers_needed(cluster(3))
