import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.planner import Assignment
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.tasks import Circumstances, what_if
from tests.planner.worlds import GIGABYTE, brokers, partition, world

LOADS = [partition(0, 1, 2, write_bytes_per_s=4.0, read_bytes_per_s=8.0, leader_cpu=2.0, follower_cpu=1.0)]
PROBLEM = world(brokers(1, 2, 5, racks="aab", capacity={"disk": 10.0}), LOADS)


def test_traffic_multiplies_rates_and_cpu_but_no_bytes() -> None:
    found = what_if(PROBLEM, Circumstances(traffic=3)).partitions
    rates = (found.write_bytes_per_s, found.read_bytes_per_s, found.leader_cpu, found.follower_cpu)
    assert [rate.tolist() for rate in rates] == [[12.0], [24.0], [6.0], [3.0]]
    assert found.size_bytes.tolist() == [10 * GIGABYTE]


def test_growth_is_compound_and_takes_the_bytes_with_it() -> None:
    found = what_if(PROBLEM, Circumstances(growth_per_month=0.1, days=60)).partitions
    assert found.size_bytes.tolist() == [round(10 * GIGABYTE * 1.21)]
    assert found.write_bytes_per_s[0] == pytest.approx(4 * 1.21)


def test_new_brokers_are_like_the_others_and_go_where_racks_are_short() -> None:
    found = what_if(PROBLEM, Circumstances(added=2)).brokers
    assert found.ids.tolist() == [1, 2, 5, 6, 7]
    assert [found.rack_names[rack] for rack in found.racks] == ["a", "a", "b", "b", "a"]
    np.testing.assert_array_equal(found.capacity["disk"], [10.0] * 5)
    grown = what_if(PROBLEM, Circumstances(added=2))
    assert evaluate(grown, Assignment.current(grown.partitions)).legal


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
