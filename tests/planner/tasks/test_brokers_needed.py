from dataclasses import replace

import pytest

from kreassign.errors import Infeasible, InputError
from kreassign.planner import Problem
from kreassign.planner.tasks.brokers_needed import Need, brokers_needed
from tests.planner.worlds import GIGABYTE, brokers, partition, world

LOADS = [partition(number, 1, 2, gigabytes=10) for number in range(12)]


def cluster(count: int, **limits: float) -> Problem:
    return world([replace(host, capacity=limits) for host in brokers(*range(1, count + 1))], LOADS)


def test_each_resource_tells_what_it_needs_and_a_placement_is_found() -> None:
    found = brokers_needed(cluster(3, disk=100.0 * GIGABYTE, replicas=20), at_most=0.5)
    assert found.needs == (Need("disk", "B", 240.0 * GIGABYTE, 50.0 * GIGABYTE, 5), Need("replicas", "", 24.0, 10.0, 3))
    assert (found.brokers, found.present, found.at_most) == (5, 3, 0.5)


def test_fewer_brokers_than_there_are_may_do() -> None:
    assert brokers_needed(cluster(6, disk=100.0 * GIGABYTE), at_most=1.0).brokers == 3


def test_there_are_never_fewer_brokers_than_replicas_of_a_partition() -> None:
    assert brokers_needed(cluster(4, disk=10_000.0 * GIGABYTE)).brokers == 2


def test_a_partition_too_large_for_any_broker_fits_on_no_number_of_them() -> None:
    with pytest.raises(Infeasible, match="no placement was found on 35 to 45 brokers"):
        brokers_needed(cluster(3, disk=10.0 * GIGABYTE))


@pytest.mark.parametrize("at_most", [0.0, 1.1])
def test_a_part_of_the_limits_is_a_part(at_most: float) -> None:
    with pytest.raises(InputError, match="cannot be used at"):
        brokers_needed(cluster(3, disk=1.0), at_most)


def test_without_limits_there_is_no_answer() -> None:
    with pytest.raises(InputError, match="no limit of the brokers is known"):
        brokers_needed(cluster(3))
