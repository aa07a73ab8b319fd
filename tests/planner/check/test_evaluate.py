from dataclasses import replace

import numpy as np
import pytest

from bench.random_clusters import random_cluster
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import (
    Assignment,
    Band,
    BrokerFacts,
    Budget,
    LogDirFacts,
    PartitionFacts,
    Rules,
    assignment_of,
)  # fmt: skip
from kreassign.planner.check.evaluate import ROUNDING, Evaluation, Miss, evaluate
from kreassign.planner.goals import COORDINATORS, CPU, DISK, GOALS, LEADERS, NET_OUT, REPLICAS, Goal
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


def told(
    after: list[list[float]],
    low: float,
    high: float | list[list[float]],
    unit: str = "B",
    before: list[list[float]] | None = None,
) -> Evaluation:
    """An evaluation of brokers 1, 2 and so on (rows) with goals g0, g1 and so on (columns); all have the same band."""
    loads = np.array(after, float)
    hosts, goals = range(1, len(loads) + 1), range(loads.shape[1])
    problem = posed(brokers(*hosts), [partition(0, 1)])
    return replace(
        evaluate(problem, Assignment.current(problem.partitions)),
        goals=tuple(f"g{goal}" for goal in goals),
        units=(unit,) * len(goals),
        after=loads,
        before=loads if before is None else np.array(before, float),
        low=np.full_like(loads, low),
        high=np.full_like(loads, 1.0) * high,
    )


def test_misses_are_told_by_goal_the_widest_first_and_then_by_broker() -> None:
    found = told([[10, 30], [25, 10], [15, 19], [10, 21]], 15, 20)
    assert found.misses() == (
        Miss(1, "g0", -5, "B"), Miss(2, "g0", 5, "B"), Miss(4, "g0", -5, "B"),
        Miss(1, "g1", 10, "B"), Miss(2, "g1", -5, "B"), Miss(4, "g1", 1, "B"),
    )  # fmt: skip


def test_misses_means_and_spreads_are_the_plans_unless_asked_for_now() -> None:
    found = told([[15], [16]], 15, 20, before=[[5], [21]])
    assert (found.misses(), found.misses(before=True)) == ((), (Miss(1, "g0", -10, "B"), Miss(2, "g0", 1, "B")))
    assert (found.mean(0), found.mean(0, before=True)) == (15.5, 13)
    assert found.spread(0) == (15 / 15.5, 16 / 15.5)
    assert found.spread(0, before=True) == (5 / 13, 21 / 13)


def test_estimated_loads_miss_by_parts_of_the_mean() -> None:
    found = told([[30], [10]], 0, 25, unit="estimated", before=[[30], [70]])
    assert found.misses() == (Miss(1, "g0", 5 / 20, "of the mean"),)
    assert found.misses(before=True) == (Miss(2, "g0", 45 / 50, "of the mean"), Miss(1, "g0", 5 / 50, "of the mean"))


def test_the_mean_is_that_of_brokers_which_are_to_have_any() -> None:
    found = told([[1], [3], [8]], 0, [[0.5], [np.inf], [0]])
    assert (found.mean(0), found.spread(0)) == (2, (0.5, 4))
    nobody = told([[1], [3]], 0, 0)
    assert (nobody.mean(0), nobody.spread(0)) == (0, (1, 1))
    assert told([[0], [0]], 0, 1).spread(0) == (1, 1)


def test_what_rounding_adds_or_takes_is_no_miss() -> None:
    above, below = 1000 * (1 + ROUNDING), 1000 * (1 - ROUNDING)
    found = told([[above], [below], [np.nextafter(above, 2000)], [np.nextafter(below, 0)]], 1000, 1000)
    assert [(miss.broker, miss.amount > 0) for miss in found.misses()] == [(3, True), (4, False)]


def test_a_miss_says_on_which_side_of_the_band_it_is() -> None:
    assert str(Miss(1, "cpu", 0.5, "of a CPU")) == "broker 1: cpu is 0.5 of a CPU above its band"
    assert str(Miss(1, "cpu", -0.5, "of a CPU")) == "broker 1: cpu is 0.5 of a CPU below its band"


def test_the_imbalance_is_a_part_of_the_middle_of_the_band() -> None:
    assert told([[22], [13]], 15, 20).imbalance == 2 / 17.5
    assert told([[22], [12]], 15, 20).imbalance == 3 / 17.5
    # Without an upper end the lower one is the middle.
    assert told([[22], [12]], 15, np.inf).imbalance == 3 / 15
    assert told([[0.75], [0.25]], 0.25, 0.5).imbalance == 0.25 / 0.375
    assert told([[0], [0]], 0, 0).imbalance == 0.0
    assert told([[0], [0.5]], 0, 0).imbalance == np.inf
    assert told([[15], [20]], 15, 20).imbalance == 0.0


def test_the_imbalance_leaves_out_what_rounding_may_be() -> None:
    assert told([[1e9 + 0.5]], 0, 1e9).imbalance == 0.0
    assert told([[1e9 + 2]], 0, 1e9).imbalance == 2 / 5e8
    assert (told([[0.5 * ROUNDING]], 0, 0).imbalance, told([[1.5 * ROUNDING]], 0, 0).imbalance) == (0.0, np.inf)


def test_without_goals_nothing_is_missed() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1)], bands=())
    found = evaluate(problem, Assignment.current(problem.partitions))
    assert (found.misses(), found.imbalance, found.goals, found.units) == ((), 0.0, (), ())


def band(goal: Goal, tolerance: float | None, hosts: list[BrokerFacts], *loads: PartitionFacts) -> list[list[float]]:
    """Low and high ends by broker."""
    problem = posed(hosts, loads, bands=(Band(goal, tolerance),))
    found = evaluate(problem, Assignment.current(problem.partitions))
    return [found.low[:, 0].tolist(), found.high[:, 0].tolist()]


HEAVY = (replace(partition(0, 1), size_bytes=30), replace(partition(1, 2), size_bytes=10))


def test_a_band_is_as_wide_as_its_tolerance_and_never_below_nothing() -> None:
    assert band(DISK, 0.25, brokers(1, 2), *HEAVY) == [[15, 15], [25, 25]]
    assert band(DISK, 1.5, brokers(1, 2), *HEAVY) == [[0, 0], [50, 50]]
    assert band(DISK, None, brokers(1, 2), *HEAVY) == [[0, 0], [np.inf, np.inf]]
    assert band(DISK, 0.0, brokers(1, 2), replace(HEAVY[1], wanted_factor=2)) == [[10, 10], [10, 10]]


def test_a_limit_ends_a_band_and_may_lie_below_it() -> None:
    hosts = [replace(host, capacity={"disk": limit}) for host, limit in zip(brokers(1, 2), (22.0, 4.0), strict=True)]
    hosts = [replace(host, share=1.0) for host in hosts]
    assert band(DISK, 0.25, hosts, *HEAVY) == [[15, 4], [22, 4]]
    assert band(DISK, None, hosts, *HEAVY) == [[0, 0], [22, 4]]


def test_shares_follow_the_limits_of_those_that_stay_if_all_have_one() -> None:
    def ends(third: BrokerFacts) -> list[float]:
        first, second = (
            replace(one, capacity={"disk": limit}) for one, limit in zip(brokers(1, 2), (90, 30), strict=True)
        )
        return band(DISK, 0.0, [first, second, third], *HEAVY)[1]

    assert ends(BrokerFacts(3, must_empty=True)) == [30, 10, 0]
    assert ends(BrokerFacts(3, is_live=False)) == [30, 10, 0]
    assert ends(BrokerFacts(3, capacity={"disk": 5}, must_empty=True)) == [30, 10, 0]
    assert ends(BrokerFacts(3)) == pytest.approx([40 / 3] * 3)


def test_count_bands_are_whole_and_include_the_middle() -> None:
    def ends(count: int, tolerance: float, goal: Goal = REPLICAS) -> list[float]:
        low, high = band(goal, tolerance, brokers(1, 2), *(partition(number, 1) for number in range(count)))
        return [low[0], high[0]]

    assert (ends(8, 0.5), ends(8, 0.4), ends(8, 0.0)) == ([2, 6], [3, 5], [4, 4])
    assert (ends(5, 0.0), ends(5, 0.1), ends(5, 0.3)) == ([2, 3], [2, 3], [2, 3])
    heads = Goal("heads", "", leader=lambda p: np.ones(len(p)), follower=lambda p: np.zeros(len(p)), counts=True)
    assert (ends(5, 0.3, heads), ends(5, 0.3, replace(heads, counts=False))) == ([2, 3], [1.75, 3.25])


@pytest.mark.parametrize("goal", [LEADERS, COORDINATORS, NET_OUT])
def test_what_only_leaders_bring_is_shared_by_brokers_that_may_lead(goal: Goal) -> None:
    hosts = [replace(host, may_lead=host.id != 3) for host in brokers(1, 2, 3)]
    problem = posed(hosts, [partition(0, 1, 3, read_bytes_per_s=6.0), partition(1, 1, read_bytes_per_s=2.0)])
    counted = replace(problem.partitions, coordinated=np.array([1.0, 1.0]))
    problem = replace(problem, partitions=counted, bands=(Band(goal, 0.0), Band(CPU), Band(REPLICAS, 0.0)))
    found = evaluate(problem, Assignment.current(problem.partitions))
    middle = 4 if goal is NET_OUT else 1
    assert found.high[:, 0].tolist() == [middle, middle, 0]
    assert found.high[:, 2].tolist() == [1, 1, 1]
    # Where consumers fetch from followers, all brokers send.
    reads = replace(problem, partitions=replace(counted, follower_reads=np.array([1.0, 1.0])))
    expected = [3, 3, 3] if goal is NET_OUT else [1, 1, 0]
    assert evaluate(reads, Assignment.current(reads.partitions)).high[:, 0].tolist() == expected


def test_where_nobody_may_have_any_no_share_is_left() -> None:
    hosts = [replace(host, may_lead=False) for host in brokers(1, 2)]
    assert band(LEADERS, 0.0, hosts, *HEAVY) == [[0, 0], [0, 0]]


def test_changes_of_log_directories_are_counted_with_their_bytes() -> None:
    hosts = brokers(1, 2, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    loads = [partition(0, 1, 2, gigabytes=3, log_dirs=("/a", "/a")), partition(1, 1, gigabytes=5, log_dirs=("/a",))]
    problem = posed(hosts, loads, rules=Rules(between_log_dirs=True))
    plan = Plan((PartitionAssignment(TopicPartition("t", 0), (1, 2), ("/b", "/b")),))
    found = evaluate(problem, assignment_of(problem, plan))
    assert (found.log_dir_moves, found.log_dir_bytes) == (2, 6 * GIGABYTE)
    assert (found.moves, found.moved_bytes, found.partitions, found.leader_changes) == (0, 0, 1, 0)
    assert found.units == ("B", "B/s", "B/s", "estimated", "", "")


def test_the_present_leader_sends_every_copy_of_its_partition() -> None:
    problem = posed(brokers(1, 2, 3, 4), [partition(0, 2, 1, gigabytes=3), partition(1, 1, gigabytes=5)])
    found = evaluate(problem, moved(problem, (0, (3, 4)), (1, (2,))))
    assert found.bytes_in.tolist() == [0, 5 * GIGABYTE, 3 * GIGABYTE, 3 * GIGABYTE]
    assert found.bytes_out.tolist() == [5 * GIGABYTE, 6 * GIGABYTE, 0, 0]
    assert found.peak_bytes.tolist() == [8 * GIGABYTE, 8 * GIGABYTE, 3 * GIGABYTE, 3 * GIGABYTE]
    assert (found.broker_ids, found.moves, found.leader_changes) == ((1, 2, 3, 4), 3, 2)
