from dataclasses import replace

import numpy as np
import pytest

from bench.random_clusters import random_cluster
from kreassign.errors import InputError
from kreassign.planner import (
    Assignment,
    Band,
    BrokerFacts,
    Budget,
    BytesBound,
    Rules,
    bytes_bound,
    least_seconds,
    solve,
)
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import CPU, DISK, NET_IN, REPLICAS
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed


def gigabytes(*lists: tuple[float, tuple[int, ...]], hosts=None, **changes) -> tuple[float, float, float]:
    """Forced, excess and lack of a problem of disk alone, tolerance 10 %."""
    loads = [partition(number, *replicas, gigabytes=size) for number, (size, replicas) in enumerate(lists)]
    bound = bytes_bound(posed(hosts or brokers(1, 2, 3), loads, **{"bands": (Band(DISK),), **changes}))
    return bound.forced / GIGABYTE, bound.excess / GIGABYTE, bound.lack / GIGABYTE


def test_what_stands_above_or_is_missing_below_the_band_bounds_the_bytes() -> None:
    # Mean 20, band 18 to 22: broker 1 holds 38 too many, brokers 2 and 3 miss 18 each.
    assert gigabytes((30, (1,)), (30, (1,))) == (0, 38, 36)


def test_a_drained_broker_gives_all_and_others_count_as_before() -> None:
    hosts = [*brokers(1, 2), BrokerFacts(3, must_empty=True)]
    assert gigabytes((10, (1,)), (10, (2,)), (20, (3,)), hosts=hosts) == (20, 20, 16)


def test_a_higher_factor_forces_copies_and_a_lower_one_none() -> None:
    loads = [partition(0, 1, gigabytes=10, wanted_factor=3), partition(1, 1, 2, 3, gigabytes=90, wanted_factor=1)]
    assert bytes_bound(posed(brokers(1, 2, 3), loads, bands=())).total == 20 * GIGABYTE


def test_a_lost_copy_forces_one_and_counts_for_nothing_that_is_held() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 1, 2, lost_on=(1,))])
    assert bytes_bound(replace(problem, bands=())).forced == 10 * GIGABYTE
    assert bytes_bound(replace(problem, bands=())).excess == 10 * GIGABYTE
    out_of_reach = posed(brokers(1, 2), [partition(0, 1, lost_on=(1,), may_move=False), partition(1, 2)], bands=())
    assert bytes_bound(out_of_reach).total == 0


def test_crowded_racks_force_copies_only_when_they_are_to_be_repaired() -> None:
    hosts = brokers(1, 2, 3, racks="aab")
    assert gigabytes((10, (1, 2)), hosts=hosts, bands=()) == (0, 0, 0)
    assert gigabytes((10, (1, 2)), hosts=hosts, bands=(), rules=Rules(repair_racks=True)) == (10, 0, 0)
    marked = [partition(0, 1, 2, may_move=False), partition(1, 1, 2)]
    assert bytes_bound(posed(hosts, marked, bands=(), rules=Rules(repair_racks=True))).forced == 10 * GIGABYTE


def test_another_goal_than_disk_costs_the_fewest_bytes_of_its_excess() -> None:
    # Six replicas, two a broker, none more than three: broker 1 sheds two, the two smallest weigh 3 GB.
    loads = [partition(number, 1, gigabytes=size) for number, size in enumerate((1, 2, 40, 50, 60))]
    bound = bytes_bound(posed(brokers(1, 2), [*loads, partition(9, 2)], bands=(Band(REPLICAS, 0.0),)))
    assert bound.excess == 3 * GIGABYTE


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(40))
def test_no_plan_that_reaches_its_bands_copies_less_than_the_bound(seed: int) -> None:
    found = replace(random_cluster(seed).problem, budget=Budget())
    judged = evaluate(found, solve(found).assignment)
    bound = bytes_bound(found)
    assert judged.moved_bytes >= bound.forced
    if not judged.misses():
        assert judged.moved_bytes >= bound.total * (1 - 1e-9)


def test_the_bound_says_what_it_counts() -> None:
    loads = [partition(number, 1 + number % 2) for number in range(20)]
    joined = bytes_bound(posed(brokers(1, 2, 3), loads, bands=(Band(DISK),)))
    # Two brokers give 26.67 GB each to come down to 73.33; the third needs 60 at least.
    assert (joined.binding, joined.lack, joined.excess) == ("lack", 60 * GIGABYTE, 53_333_333_333)
    assert bytes_bound(posed(brokers(1, 2), [partition(0, 1, wanted_factor=2)])).binding == "forced"
    assert bytes_bound(posed(brokers(1), [partition(0, 1)])).binding == ""


def test_what_may_not_move_is_not_counted_whatever_is_wanted_of_it() -> None:
    """Neither a replica that a factor wants, nor one on a broker that is dead."""
    loads = [partition(0, 1, wanted_factor=2), partition(1, 1, wanted_factor=2, gigabytes=70, may_move=False)]
    assert bytes_bound(posed(brokers(1, 2), loads, bands=())).total == 10 * GIGABYTE
    dead = [*brokers(1, 2), BrokerFacts(3, is_live=False)]
    loads = [partition(0, 3, 1), partition(1, 3, 1, gigabytes=70, may_move=False)]
    assert bytes_bound(posed(dead, loads, bands=())).total == 10 * GIGABYTE


def test_time_is_bounded_by_the_neediest_broker_and_by_all_bytes_together() -> None:
    even = posed(brokers(1, 2, 3), [partition(0, 1, gigabytes=30), partition(1, 1, gigabytes=30)], bands=(Band(DISK),))
    assert least_seconds(even, 1e9) == pytest.approx(18)
    grown = posed(brokers(1, 2), [partition(0, 1, gigabytes=10, wanted_factor=2)], bands=())
    assert least_seconds(grown, 1e9) == pytest.approx(5)
    with pytest.raises(InputError, match="copies nothing"):
        least_seconds(even, 0)


def test_a_balanced_arrangement_needs_nothing() -> None:
    level = posed(brokers(1, 2), [partition(0, 1, 2), partition(1, 2, 1)])
    assert bytes_bound(level).total == 0
    assert evaluate(level, Assignment.current(level.partitions)).misses() == ()
    assert np.isfinite(least_seconds(level, 1.0))


def test_bytes_that_carry_the_excess_of_several_goals_count_once() -> None:
    loads = [partition(number, 1, gigabytes=10, write_bytes_per_s=1e6) for number in range(4)]
    problem = posed(brokers(1, 2), loads, bands=(Band(DISK, 0.0), Band(NET_IN, 0.0)))
    assert bytes_bound(problem).excess == 20 * GIGABYTE


def test_with_only_forced_no_band_demands_a_byte() -> None:
    assert gigabytes((30, (1,)), (30, (1,)), rules=Rules(only_forced=True)) == (0, 0, 0)
    uneven = posed(brokers(1, 2), [partition(0, 1), partition(1, 1)], bands=(Band(DISK),))
    assert least_seconds(replace(uneven, rules=Rules(only_forced=True)), 1e9) == 0.0


def test_a_broker_that_receives_nothing_lacks_nothing() -> None:
    hosts = [*brokers(1, 2), BrokerFacts(3, may_receive=False)]
    assert gigabytes((30, (1,)), (30, (1,)), hosts=hosts) == (0, 38, 18)


def test_what_no_live_broker_has_is_not_copied_whatever_is_wanted_of_it() -> None:
    dead = [*brokers(1, 2), BrokerFacts(3, is_live=False)]
    assert bytes_bound(posed(dead, [partition(0, 3, wanted_factor=2)], bands=())).total == 0


@pytest.mark.parametrize("repair_racks", [False, True])
def test_a_partition_whose_brokers_are_all_drained_is_copied_as_a_whole(repair_racks: bool) -> None:
    hosts = [*brokers(1, 2), BrokerFacts(3, must_empty=True), BrokerFacts(4, must_empty=True)]
    rules = Rules(repair_racks=repair_racks)
    assert gigabytes((10, (1, 2)), (20, (3, 4)), hosts=hosts, bands=(), rules=rules) == (40, 40, 0)


@pytest.mark.parametrize(("leaders_stay", "excess"), [(True, 9_333_333_333), (False, 0)])
def test_leaders_that_stay_carry_their_load_and_others_the_lighter(leaders_stay: bool, excess: int) -> None:
    # 2.1 of a CPU, 0.7 a broker; broker 1 has 1.3. Where it follows costs 1 GB for 0.1; 0.5 of 0.6 are 8.3 of 10 GB.
    lists = ((10, (1, 2)), (20, (1, 2)), (1, (3, 1)))
    loads = [
        partition(number, *replicas, gigabytes=size, leader_cpu=0.6, follower_cpu=0.1)
        for number, (size, replicas) in enumerate(lists)
    ]
    problem = posed(brokers(1, 2, 3), loads, bands=(Band(CPU, 0.0),))
    assert bytes_bound(problem, leaders_stay=leaders_stay) == BytesBound(forced=0, excess=excess, lack=0)
    if not leaders_stay:
        assert bytes_bound(problem) == BytesBound(0, 0, 0)


def written(*lists: tuple[float, float, int]) -> BytesBound:
    """The bound of bytes written, tolerance 0: each partition has so many GB, is written so fast, and on a broker."""
    loads = [
        partition(number, broker, gigabytes=size, write_bytes_per_s=rate)
        for number, (size, rate, broker) in enumerate(lists)
    ]
    return bytes_bound(posed(brokers(1, 2, 3), loads, bands=(Band(NET_IN, 0.0),)))


def test_each_broker_sheds_first_what_brings_most_load_for_its_bytes() -> None:
    # The mean is 5. Broker 1 has 6: a quarter of what is written at 4. Broker 2 has 8: all at 2, and a sixth of 6.
    found = written((8, 4, 1), (6, 2, 1), (30, 6, 2), (2, 2, 2), (1, 1, 3))
    assert found == BytesBound(forced=0, excess=(2 + 2 + 5) * GIGABYTE, lack=0)


def test_what_brings_no_load_is_never_shed() -> None:
    # The mean is 2; of broker 1, which has 3, a third goes.
    assert written((9, 3, 1), (1, 0, 1), (5, 2, 2), (5, 1, 3)).excess == 3 * GIGABYTE


def test_a_copy_that_is_lost_has_no_load_to_shed() -> None:
    # Four replicas of broker 1, of which one is lost, and no broker is to have more than three.
    loads = [partition(0, 1, 2, lost_on=(1,)), *(partition(number, 1) for number in (1, 2, 3)), partition(4, 2)]
    problem = posed(brokers(1, 2), loads, bands=(Band(REPLICAS, 0.0),))
    assert bytes_bound(problem) == BytesBound(forced=10 * GIGABYTE, excess=10 * GIGABYTE, lack=0)


def test_one_replica_too_many_is_an_excess_and_told_as_binding() -> None:
    loads = [*(partition(number, 1, gigabytes=size) for number, size in enumerate((1, 2, 40))), partition(3, 2)]
    bound = bytes_bound(posed(brokers(1, 2), loads, bands=(Band(REPLICAS, 0.0),)))
    assert (bound.excess, bound.binding) == (GIGABYTE, "excess")


def test_seconds_count_lost_replicas_and_only_receiving_brokers() -> None:
    lost = posed(brokers(1, 2), [partition(0, 1, 2, lost_on=(2,))], bands=(Band(DISK, 0.0),))
    assert least_seconds(lost, 1e9) == 10.0
    hosts = [BrokerFacts(1, may_receive=False), BrokerFacts(2)]
    assert least_seconds(posed(hosts, [partition(0, 1, wanted_factor=2)], bands=()), 1e9) == 10.0
    assert least_seconds(posed(brokers(1, 2), [partition(0, 1, 2)], bands=(Band(DISK),)), 0.5) == 0.0
