"""Every rule is broken once, alone, and kept once."""

from dataclasses import replace

import numpy as np
import pytest

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import (
    Assignment,
    Band,
    BrokerFacts,
    Budget,
    LogDirFacts,
    PartitionFacts,
    Problem,
    RackRule,
    Rules,
    assignment_of,
    problem_of,
)
from kreassign.planner.check.cost import changes_of
from kreassign.planner.check.evaluate import case_of, evaluate
from kreassign.planner.check.legality import beyond_task, over_limit
from kreassign.planner.check.racks import rack_excess
from kreassign.planner.goals import Goal
from tests.planner.sentences import says
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

FOUR = [partition(0, 1, 2), partition(1, 2, 3), partition(2, 3, 4), partition(3, 4, 1)]


def changed(broker: int, **facts) -> list[BrokerFacts]:
    return [replace(host, **facts) if host.id == broker else host for host in brokers(1, 2, 3, 4)]


def broken(problem, *lists) -> tuple[str, ...]:
    return evaluate(problem, moved(problem, *lists)).violations


def test_a_plain_plan_breaks_nothing() -> None:
    assert broken(posed(brokers(1, 2, 3, 4), FOUR), (0, (3, 2)), (1, (3, 2))) == ()


def test_a_broker_twice() -> None:
    problem = posed(brokers(1, 2, 3, 4), FOUR)
    lists = Assignment.current(problem.partitions)
    twice = Assignment(lists.offsets, np.array([0, 0, *lists.replicas[2:]], np.int32), lists.log_dirs)
    assert evaluate(problem, twice).violations == (says("named twice", 0, 1), says("crowds a rack", 0))
    last = Assignment(lists.offsets, np.array([*lists.replicas[:6], 3, 3], np.int32), lists.log_dirs)
    assert evaluate(problem, last).violations == (says("named twice", 3, 4), says("crowds a rack", 3))


@pytest.mark.parametrize(("facts", "words"), [
    ({"must_empty": True}, "is to be drained"),
    ({"must_empty": True, "may_receive": False}, "is to be drained"),
    ({"is_live": False}, "is not live"),
    ({"is_live": False, "must_empty": True}, "is not live"),
    ({"is_live": False, "may_receive": False}, "is not live"),
    ({"may_receive": False}, "may receive nothing"),
])  # fmt: skip
def test_a_copy_for_a_broker_that_takes_none(facts: dict[str, bool], words: str) -> None:
    problem = posed(changed(4, **facts), [partition(0, 1, 2)])
    demanded = () if words == "may receive nothing" else (says("still has a copy", 0, 4),)
    assert broken(problem, (0, (1, 4))) == (says("gets a copy", 0, 4, words), *demanded)
    assert broken(problem, (0, (1, 3))) == ()


def test_a_copy_outside_the_broker_set() -> None:
    hosts = [replace(host, broker_set="ab"[host.id > 2]) for host in brokers(1, 2, 3, 4)]
    problem = posed(hosts, [partition(0, 1, 2, broker_set="a"), partition(1, 1, 2)])
    assert broken(problem, (0, (1, 3))) == (says("not of the broker set", 0, 3),)
    assert broken(problem, (1, (1, 3))) == ()


def test_a_partition_that_is_fixed() -> None:
    problem = posed(brokers(1, 2, 3, 4), [partition(0, 1, 2, may_move=False)])
    assert broken(problem, (0, (2, 1))) == (says("must not move", 0),)
    assert broken(problem, (0, (1, 2))) == ()


def test_kinds_of_change_that_are_not_allowed() -> None:
    hosts = brokers(1, 2, 3, 4, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    problem = posed(
        hosts, [partition(0, 1, 2, log_dirs=("/a", "/a"))], rules=Rules(between_brokers=False, leaders=False)
    )
    assert broken(problem, (0, (1, 3)))[0] == says("moves between brokers", 0, 3)
    assert broken(problem, (0, (2, 1))) == (says("leads without need", 0),)
    to_b = Plan((PartitionAssignment(TopicPartition("t", 0), (1, 2), ("/b", "/a")),))
    (sentence,) = evaluate(problem, assignment_of(problem, to_b)).violations
    assert sentence == says("changes its directory", 0, 1)


def test_a_broker_that_may_not_lead() -> None:
    problem = posed(
        changed(1, may_lead=False), [partition(0, 1, 2), partition(1, 1), partition(2, 1, 2, may_move=False)]
    )
    assert broken(problem) == (says("may not lead", 0, 1),)
    assert broken(problem, (0, (2, 1))) == ()


def test_racks_may_not_get_worse_and_are_repaired_when_asked() -> None:
    hosts = brokers(1, 2, 3, 4, racks="aabb")
    problem = posed(hosts, [partition(0, 1, 3), partition(1, 1, 2)])
    assert broken(problem, (0, (1, 2))) == (says("crowds a rack", 0),)
    assert broken(problem, (1, (2, 1))) == ()
    repairing = replace(problem, rules=Rules(repair_racks=True))
    assert broken(repairing) == (says("still crowds a rack", 1),)
    assert broken(repairing, (1, (1, 3))) == ()
    assert broken(replace(problem, rules=Rules(racks=RackRule.NONE)), (0, (1, 2))) == ()


def test_racks_are_shared_evenly_or_strictly() -> None:
    hosts = brokers(1, 2, 3, 4, racks="aabb")
    problem = posed(hosts, [partition(0, 1, 3, wanted_factor=3)])
    assert broken(problem, (0, (1, 3, 2))) == ()
    strict = replace(problem, rules=Rules(racks=RackRule.STRICT))
    assert broken(strict, (0, (1, 3, 2))) == (says("crowds a rack", 0),)


def test_brokers_without_a_rack_are_racks_of_their_own() -> None:
    assert broken(posed(brokers(1, 2, 3, 4), FOUR, rules=Rules(racks=RackRule.STRICT)), (0, (3, 4))) == ()


def test_every_limit_that_is_exceeded_is_told_in_its_unit() -> None:
    hosts = brokers(1, 2, capacity={"net-out": 2e6, "cpu": 0.25, "leaders": 1.0})
    busy = {"read_bytes_per_s": 1_500_000.0, "leader_cpu": 0.2}
    problem = posed(hosts, [partition(0, 1, **busy), partition(1, 2, **busy)], bands=())
    assert broken(replace(problem, cpu_unit="of a CPU"), (0, (2,))) == (
        says("over a limit", "broker 2: cpu", "0.4 of a CPU", "0.15 of a CPU", "0.25 of a CPU"),
        says("over a limit", "broker 2: leaders", 2, 1, 1),
        says("over a limit", "broker 2: net-out", "3 MB/s", "1 MB/s", "2 MB/s"),
    )
    # What is only known in proportion: the mean broker has 0.2.
    assert broken(problem, (0, (2,)))[0] == (
        says("over a limit", "broker 2: cpu", "200% of the mean", "75% of the mean", "125% of the mean")
    )


def test_log_directories() -> None:
    small = (LogDirFacts("/a", capacity_bytes=15 * GIGABYTE), LogDirFacts("/b", may_receive=False), LogDirFacts("/c"))
    hosts = [BrokerFacts(1, log_dirs=small), BrokerFacts(2, log_dirs=(LogDirFacts("/z"),))]
    problem = posed(hosts, [partition(0, 1, log_dirs=("/a",)), partition(1, 1, log_dirs=("/c",))],
                    rules=Rules(between_log_dirs=True))  # fmt: skip

    def judged(path: str) -> tuple[str, ...]:
        entry = PartitionAssignment(TopicPartition("t", 1), (1,), (path,))
        return evaluate(problem, assignment_of(problem, Plan((entry,)))).violations

    assert judged("/c") == ()
    assert judged("/b") == (says("closed directory", 1, 1, "/b"),)
    assert judged("/a") == (says("over a limit", "log directory /a of broker 1", "20 GB", "5 GB", "15 GB"),)
    elsewhere = Assignment.current(problem.partitions)
    wrong = Assignment(elsewhere.offsets, elsewhere.replicas, np.array([0, 3], np.int32))
    assert evaluate(problem, wrong).violations == (says("no such directory", 1, 1, "/z"),)


def test_a_broker_to_be_drained_needs_no_leaders_of_a_topic() -> None:
    hosts, loads = brokers(1, 2, 3), [partition(0, 1, 2), partition(1, 2, 1)]
    rules = Rules(least_topic_leaders={"t": 1})
    few = says("few partitions to lead", 3, "t", "t", "2 partitions", 1, 3)
    assert broken(posed(hosts, loads, rules=rules)) == (few,)
    assert broken(posed([*hosts[:2], replace(hosts[2], must_empty=True)], loads, rules=rules)) == ()


LOST = says("has lost its copy", 0, 1)
KEPT = says("still has a copy", 0, 1)
FORCED = [
    (posed(changed(1, must_empty=True), [partition(0, 1, 2)]), (2, 3), KEPT),
    (posed(changed(1, is_live=False), [partition(0, 2, 1)]), (2, 3), KEPT),
    (posed(brokers(1, 2, 3), [partition(0, 1, 2, lost_on=(1,))]), (2, 3), LOST),
    (posed(brokers(1, 2, 3), [partition(0, 1, 2, wanted_factor=3)]), (1, 2, 3), "t-0 has 2 replicas, not 3"),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "target", "words"), FORCED)
def test_what_the_task_demands_is_done_or_with_a_budget_told(problem, target, words) -> None:
    assert broken(problem) == (words,)
    assert broken(problem, (0, target)) == ()
    found = evaluate(replace(problem, budget=Budget(moves=0)), Assignment.current(problem.partitions))
    assert (found.violations, found.unfinished) == ((), (words,))


def test_what_is_out_of_reach_is_told_and_breaks_nothing() -> None:
    hosts = [*brokers(1), *brokers(2, is_live=False)]
    problem = posed(hosts, [partition(0, 2, may_move=False), partition(1, 1, lost_on=(1,), may_move=False)])
    found = evaluate(problem, Assignment.current(problem.partitions))
    assert (found.violations, found.unfinished) == ((), ())
    assert found.out_of_reach == (
        says("no copy to read", 0, 2),
        says("no copy to read", 1, 1),
    )


@pytest.mark.parametrize(("budget", "words"), [
    (Budget(moved_bytes=GIGABYTE), "bytes copied"),
    (Budget(moves=1), "the budget of moves allows 1, the plan has 2"),
    (Budget(leader_changes=0), "leader changes"),
    (Budget(bytes_in_per_broker=GIGABYTE), "bytes into one broker"),
    (Budget(bytes_out_per_broker=GIGABYTE), "bytes out of one broker"),
])  # fmt: skip
def test_a_budget_is_kept(budget: Budget, words: str) -> None:
    problem = posed(brokers(1, 2, 3, 4), FOUR, budget=budget)
    (sentence,) = broken(problem, (0, (3, 2)), (1, (2, 4)))
    assert words in sentence
    assert broken(problem) == ()


def test_what_is_written_during_a_copy_counts_for_the_time_of_its_brokers() -> None:
    """s = 10 GB at r = 1 GB/s, written at w = 0.5 GB/s: s r / (r - w) = 20 GB pass until the copy has caught up."""
    budget = Budget(bytes_in_per_broker=15 * GIGABYTE, rate_bytes_per_s=1e9)
    at_rest = posed(brokers(1, 2), [partition(0, 1)], budget=budget)
    written = posed(brokers(1, 2), [partition(0, 1, write_bytes_per_s=5e8)], budget=budget)
    assert broken(at_rest, (0, (2,))) == ()
    assert broken(written, (0, (2,))) == (says("over the budget", "bytes into one broker", 15000000000, 20000000000),)


@pytest.mark.parametrize(("count", "told", "last"), [
    (100, 100, says("still has a copy", 99, 1)), (103, 101, "and 3 more like the last"),
])  # fmt: skip
def test_many_broken_rules_are_cut_short(count: int, told: int, last: str) -> None:
    problem = problem_of(changed(1, must_empty=True), [partition(number, 1) for number in range(count)])
    found = evaluate(problem, Assignment.current(problem.partitions)).violations
    assert (len(found), found[-1]) == (told, last)


LEAST = Rules(only_forced=True)


def test_with_only_forced_no_copy_goes_elsewhere_without_need() -> None:
    problem = posed(brokers(1, 2, 3, 4), [partition(7, 3, 4), partition(0, 1, 2), partition(1, 2, 3)], rules=LEAST)
    assert broken(problem, (0, (1, 4))) == (says("moves without need", 0, 2, 4),)
    assert broken(problem) == ()


@pytest.mark.parametrize(("most", "said"), [(1.0, ()), (2.0, (says("moves without need", 0, 2, 5),))])
def test_with_only_forced_a_copy_gives_way_where_a_limit_has_no_room(most, said) -> None:
    hosts = [
        replace(host, capacity={"replicas": most} if host.id == 2 else {}, must_empty=host.id == 4)
        for host in brokers(1, 2, 3, 4, 5)
    ]
    problem = posed(hosts, [partition(0, 1, 2), partition(1, 3, 4)], rules=LEAST)
    assert broken(problem, (0, (1, 5)), (1, (3, 2))) == said


def test_with_only_forced_a_rack_that_is_crowded_is_need_enough() -> None:
    hosts = brokers(1, 2, 3, racks="aab")
    crowded = posed(hosts, [partition(0, 1, 2)], rules=replace(LEAST, repair_racks=True))
    assert broken(crowded, (0, (1, 3))) == ()
    spread = posed(brokers(1, 2, 3, racks="abb"), [partition(0, 1, 2)], rules=LEAST)
    assert broken(spread, (0, (1, 3))) == (says("moves without need", 0, 2, 3),)


@pytest.mark.parametrize("facts", [{"may_lead": False}, {"is_live": False}, {"must_empty": True}, {}])
def test_where_leaders_shall_stay_only_who_may_not_lead_gives_way(facts: dict[str, bool]) -> None:
    loads = [partition(0, 1, 2), partition(1, 3, 2)]
    problem = posed(changed(1, **facts), loads, rules=Rules(leaders=False), budget=Budget(moves=9))
    needless = () if facts else (says("leads without need", 0),)
    assert broken(problem, (0, (2, 1))) == needless
    assert broken(problem, (1, (2, 3))) == (says("leads without need", 1),)
    assert broken(problem, (0, (2, 4))) == ()
    assert broken(problem, (0, (4, 1))) == needless


@pytest.mark.parametrize(("limit", "needless"), [(10.5, (2,)), (11.0, (0, 2)), (3.0, ())])
def test_with_only_forced_a_leader_changes_where_it_would_exceed_a_limit(
    limit: float, needless: tuple[int, ...]
) -> None:
    """Broker 1 sends 4 for t-0, and takes over 7 of t-1 from broker 3, which is down; t-2 costs nothing to lead."""
    hosts = [
        replace(host, capacity={"disk": 1e15, "net-out": limit} if host.id == 1 else {}, is_live=host.id != 3)
        for host in brokers(1, 2, 3)
    ]
    loads = [partition(0, 1, 2, read_bytes_per_s=4.0), partition(1, 3, 1, read_bytes_per_s=7.0), partition(2, 1, 2)]
    found = broken(posed(hosts, loads, rules=LEAST), (0, (2, 1)), (1, (1, 2)), (2, (2, 1)))
    told = [one for one in found if "leader" in one]
    assert told == [says("leads without need", number) for number in needless]


def test_what_was_beyond_its_limit_may_go_on_leading_as_much_as_now() -> None:
    hosts = [replace(host, capacity={"net-out": 2.0} if host.id == 1 else {}) for host in brokers(1, 2)]
    loads = [partition(0, 1, 2, read_bytes_per_s=4.0), partition(1, 1, 2, read_bytes_per_s=6.0)]
    told = (says("leads without need", 0),)
    assert broken(posed(hosts, loads, rules=LEAST), (0, (2, 1))) == told


def test_who_is_not_there_may_not_lead_where_another_may() -> None:
    problem = posed(changed(1, is_live=False), [partition(0, 2, 1)], budget=Budget(moves=0))
    found = evaluate(problem, moved(problem, (0, (1, 2))))
    assert found.unfinished == (
        says("may not lead", 0, 1), says("still has a copy", 0, 1),
    )  # fmt: skip
    alone = posed([replace(host, may_lead=False) for host in brokers(1, 2)], [partition(0, 1, 2)])
    assert broken(alone) == ()
    lost = posed(changed(1, may_lead=False), [partition(0, 1, 2, lost_on=(1, 2))])
    assert broken(lost) == ()


def test_racks_are_counted_with_brokers_that_have_none() -> None:
    hosts = [replace(host, rack="a" if host.id in (1, 4) else None) for host in brokers(1, 2, 3, 4)]
    problem = posed(hosts, [partition(0, 2, 3), partition(1, 1, 2)], rules=Rules(repair_racks=True))
    assert broken(problem, (0, (1, 2)), (1, (2, 3))) == ()
    assert broken(problem, (1, (1, 4))) == (
        says("crowds a rack", 1), says("still crowds a rack", 1),
    )  # fmt: skip


def test_a_rack_may_hold_as_many_as_its_brokers_require() -> None:
    hosts = [
        replace(host, broker_set="a" if host.id < 4 else "b", must_empty=host.id == 3)
        for host in brokers(1, 2, 3, 4, 5, racks="xxyzw")
    ]
    loads = [partition(0, 1, broker_set="a", wanted_factor=2), partition(1, 4, broker_set="b", wanted_factor=2)]
    problem = posed(hosts, loads, rules=Rules(repair_racks=True))
    assert broken(problem, (0, (1, 2)), (1, (4, 5))) == ()
    assert rack_excess(problem, moved(problem, (0, (1, 2)), (1, (4, 5)))).tolist() == [0, 0]
    strict = replace(problem, rules=Rules(racks=RackRule.STRICT))
    assert rack_excess(strict, moved(strict, (0, (1, 2)), (1, (4, 5)))).tolist() == [1, 0]
    anywhere = posed(hosts, [partition(0, 1, wanted_factor=4)])
    # Without a set there are three racks that stay, x, z and w: two of four replicas may share one.
    assert rack_excess(anywhere, moved(anywhere, (0, (1, 2, 4, 5)))).tolist() == [0]
    three = replace(anywhere, partitions=replace(anywhere.partitions, wanted_factors=np.array([3], np.int32)))
    assert rack_excess(three, moved(three, (0, (1, 2, 4)))).tolist() == [1]
    nobody = posed([replace(host, must_empty=True) for host in hosts], [partition(0, 1, 2)])
    assert rack_excess(nobody, moved(nobody)).tolist() == [0]


def test_a_rack_that_lacks_a_replica_is_an_excess_of_the_others() -> None:
    problem = posed(brokers(1, 2, 3, 4, 5, 6, racks="aabbcc"), [partition(0, 1, 2, 3, 5)])
    assert rack_excess(problem, moved(problem)).tolist() == [0]
    assert rack_excess(problem, moved(problem, (0, (1, 2, 3, 4)))).tolist() == [1]
    alone = posed(brokers(1, 2, 3, 4, racks="abbb"), [partition(0, 1, 2, 3, 4)])
    assert rack_excess(alone, moved(alone)).tolist() == [0]
    two = posed(brokers(1, 2, 3, 4, racks="abbb"), [partition(0, 1, 2, 3)])
    assert rack_excess(two, moved(two, (0, (2, 3, 4)))).tolist() == [1]


def test_an_excess_in_racks_is_the_sum_of_that_of_all() -> None:
    hosts = brokers(1, 2, 3, 4, 5, 6, racks="aaabbb")
    problem = posed(hosts, [partition(0, 1, wanted_factor=2), partition(1, 1, 2, 3, wanted_factor=2)])
    assert rack_excess(problem, moved(problem, (0, (1, 2, 4, 5)))).tolist() == [2, 2]
    assert rack_excess(replace(problem, rules=Rules(racks=RackRule.NONE)), moved(problem)).tolist() == [0, 0]


def test_a_partition_that_is_fixed_or_out_of_reach_need_not_be_repaired() -> None:
    hosts = [
        *brokers(1, 2, 3, racks="aab"),
        BrokerFacts(4, rack="c", is_live=False),
        BrokerFacts(5, rack="c", is_live=False),
    ]
    loads = [partition(0, 1, 2, may_move=False), partition(1, 4, 5)]
    assert broken(posed(hosts, loads, rules=Rules(repair_racks=True))) == ()


def test_what_has_a_factor_that_it_keeps_is_told() -> None:
    loads = [partition(0, 1, 2, wanted_factor=3, may_move=False), partition(1, 1, 2, may_move=False)]
    found = evaluate(posed(brokers(1, 2, 3), loads), Assignment.current(posed(brokers(1, 2, 3), loads).partitions))
    assert found.violations == ()
    assert found.out_of_reach == (says("keeps its factor", 0, "2 replicas", 3),)


def test_of_what_no_live_broker_has_nothing_is_demanded() -> None:
    hosts = [*brokers(1, 2), BrokerFacts(3, is_live=False), BrokerFacts(4, must_empty=True)]
    loads = [partition(0, 3, wanted_factor=2), partition(1, 4, 3, lost_on=(4,))]
    assert broken(posed(hosts, loads)) == ()


def test_a_copy_that_was_lost_may_go_and_another_broker_have_one() -> None:
    problem = posed(brokers(1, 2, 3), [partition(0, 1, 2), partition(1, 1, 2, lost_on=(2,))])
    assert broken(problem) == (says("has lost its copy", 1, 2),)
    assert broken(problem, (1, (1, 3))) == ()


def test_a_limit_may_be_reached_and_not_exceeded() -> None:
    hosts = brokers(1, 2, 3, capacity={"replicas": 2.0})
    loads = [partition(0, 1), partition(1, 1), partition(2, 2), partition(3, 3)]
    problem = posed(hosts, loads, bands=())
    assert broken(problem, (0, (2,))) == ()
    assert broken(problem, (0, (2,)), (3, (2,))) == (says("over a limit", "broker 2: replicas", 3, 1, 2),)
    # A sum that rounding makes exceed its limit: 0.1 + 0.2.
    busy = [partition(0, 1, leader_cpu=0.1), partition(1, 2, leader_cpu=0.2)]
    assert broken(posed(brokers(1, 2, capacity={"cpu": 0.3}), busy, bands=()), (0, (2,))) == ()
    # What is above its limit may stay so, and get less.
    above = posed(brokers(1, 2, capacity={"replicas": 1.0}), [partition(n, 1) for n in range(4)], bands=())
    assert broken(above, (0, (2,))) == ()


def test_estimates_are_told_by_the_mean_of_brokers_that_stay() -> None:
    hosts = [BrokerFacts(1), BrokerFacts(2, capacity={"cpu": 1.0}), BrokerFacts(3, must_empty=True)]
    problem = posed(hosts, [partition(0, 1, leader_cpu=1.0), partition(1, 2, leader_cpu=1.0)], bands=())
    assert broken(problem, (0, (2,))) == (
        says("over a limit", "broker 2: cpu", "200% of the mean", "100% of the mean", "100% of the mean"),
    )
    none = posed([replace(host, must_empty=True) for host in hosts], [partition(0, 1, leader_cpu=2.0)], bands=())
    assert broken(none, (0, (2,)))[1] == says(
        "over a limit", "broker 2: cpu", "2 estimated", "1 estimated", "1 estimated"
    )


def test_a_goal_of_the_users_own_has_a_limit_if_it_has_a_band() -> None:
    own = Goal("weight", "kg", leader=lambda p: 2 * np.ones(len(p)), follower=lambda p: np.ones(len(p)))
    problem = posed(
        brokers(1, 2, capacity={"weight": 2.0}), [partition(0, 1), partition(1, 2)], bands=(Band(own, None),)
    )
    assert broken(problem, (0, (2,))) == (says("over a limit", "broker 2: weight", "4 kg", "2 kg", "2 kg"),)
    assert broken(replace(problem, bands=()), (0, (2,))) == ()


WITHIN = Rules(between_log_dirs=True)
SECOND = LogDirFacts("/b")


def dirs_problem(
    *loads: PartitionFacts, capacity: int | None = None, rules: Rules = WITHIN, second: LogDirFacts = SECOND
) -> Problem:
    """Brokers 1 and 2 with /a, of this capacity in GB, and a second directory."""
    size = None if capacity is None else capacity * GIGABYTE
    return posed(brokers(1, 2, log_dirs=(LogDirFacts("/a", size), second)), loads, rules=rules)


def placed(problem: Problem, *entries: tuple[int, tuple[int, ...], tuple[str, ...]]) -> tuple[str, ...]:
    plan = Plan(tuple(PartitionAssignment(TopicPartition("t", one), hosts, dirs) for one, hosts, dirs in entries))
    return evaluate(problem, assignment_of(problem, plan)).violations


def test_a_log_directory_may_become_full_and_not_more() -> None:
    loads = [partition(0, 1, gigabytes=6, log_dirs=("/a",)), partition(1, 1, gigabytes=4, log_dirs=("/b",)),
             partition(2, 2, gigabytes=4, log_dirs=("/b",))]  # fmt: skip
    to_a = (1, (1,), ("/a",))
    assert placed(dirs_problem(*loads, capacity=10), to_a) == ()
    assert placed(dirs_problem(*loads, capacity=9), to_a) == (
        says("over a limit", "log directory /a of broker 1", "10 GB", "1 GB", "9 GB"),
    )
    # One that is above its limit may stay so.
    assert placed(dirs_problem(*loads, capacity=5), (2, (2,), ("/a",))) == ()
    # What comes from elsewhere without naming a directory counts for none.
    assert placed(dirs_problem(*loads, capacity=9), (2, (1,), ())) == ()


@pytest.mark.parametrize("second", [replace(SECOND, may_receive=False), replace(SECOND, must_empty=True)])
def test_no_copy_arrives_in_a_directory_that_takes_none(second: LogDirFacts) -> None:
    problem = dirs_problem(partition(0, 1, log_dirs=("/a",)), partition(1, 1, log_dirs=("/a",)), second=second)
    rules = ("closed directory", "drained directory")[: 1 + second.must_empty]
    told = tuple(says(rule, number, 2 - number, "/b") for rule in rules for number in (0, 1))
    assert placed(problem, (0, (2,), ("/b",)), (1, (1,), ("/b",))) == told
    assert placed(problem, (0, (2,), ("/a",))) == ()


def test_with_only_forced_a_copy_leaves_only_a_full_directory() -> None:
    rules = Rules(only_forced=True, between_log_dirs=True)
    loads = [partition(0, 1, gigabytes=6, log_dirs=("/a",)), partition(1, 1, gigabytes=4, log_dirs=("/a",))]
    to_b = (1, (1,), ("/b",))
    needless = (says("leaves a directory", 1, 1, "/a"),)
    assert placed(dirs_problem(*loads, rules=rules), to_b) == needless
    assert placed(dirs_problem(*loads, rules=rules, capacity=10), to_b) == needless
    assert placed(dirs_problem(*loads, rules=rules, capacity=9), to_b) == ()
    away = [replace(loads[0], log_dirs=("/b",)), replace(loads[1], log_dirs=("/b",))]
    assert (
        placed(
            dirs_problem(*away, rules=rules, second=replace(SECOND, must_empty=True)),
            (0, (1,), ("/a",)),
            (1, (1,), ("/a",)),
        )
        == ()
    )


def test_only_forced_reports_no_unknown_directory_as_left() -> None:
    rules = Rules(only_forced=True, between_log_dirs=True)
    assert placed(dirs_problem(partition(0, 1), rules=rules), (0, (1,), ("/a",))) == ()


def test_with_only_forced_a_drained_copy_may_leave_its_broker_too() -> None:
    hosts = [
        BrokerFacts(1, log_dirs=(LogDirFacts("/a", must_empty=True), LogDirFacts("/b"))),
        BrokerFacts(2, log_dirs=(LogDirFacts("/a"),)),
    ]
    drained, kept = partition(0, 1, log_dirs=("/a",)), partition(1, 1, log_dirs=("/b",))
    problem = posed(hosts, [drained, kept], rules=replace(LEAST, between_log_dirs=True))
    assert placed(problem, (0, (2,), ("/a",))) == ()
    assert placed(problem, (0, (1,), ("/b",)), (1, (2,), ("/a",))) == (says("moves without need", 1, 1, 2),)


def test_with_only_forced_followers_keep_their_order() -> None:
    loads = [partition(0, 1, 2, 3), partition(1, 2, 3, 4), partition(2, 3, 4, 1)]
    problem = posed(brokers(1, 2, 3, 4), loads, rules=LEAST)
    assert broken(problem, (1, (2, 4, 3))) == (says("ordered without need", 1),)
    assert broken(problem, (2, (3, 1, 4))) == (says("ordered without need", 2),)
    # Who takes over from a leader that goes comes to the front, whichever it is.
    drained = posed(changed(1, must_empty=True), loads, rules=LEAST)
    assert broken(drained, (0, (3, 2, 4)), (2, (3, 4, 2))) == ()
    assert broken(drained, (0, (2, 4, 3)), (2, (3, 4, 2))) == ()
    assert broken(replace(problem, rules=Rules()), (1, (2, 4, 3))) == ()


def test_with_only_forced_a_limit_of_nothing_is_a_limit() -> None:
    hosts = [
        replace(host, capacity={"leaders": 0.0, "disk": 1e15} if host.id == 2 else {}) for host in brokers(1, 2, 3)
    ]
    problem = posed(hosts, [partition(0, 1, 2)], rules=LEAST)
    assert broken(problem, (0, (3, 1))) == (says("leads without need", 0),)
    assert broken(problem, (0, (1, 3))) == (says("moves without need", 0, 2, 3),)


def test_the_limit_that_is_exceeded_by_the_largest_part_of_it_is_told() -> None:
    limits = {"cpu": 10.0, "disk": 5.0 * GIGABYTE, "leaders": 0.0}
    hosts = [replace(host, capacity=limits if host.id == 2 else {}) for host in brokers(1, 2, 3)]
    problem = posed(hosts, [partition(0, 1, 2, leader_cpu=25.0, follower_cpu=12.0)], rules=LEAST)

    def worst(*target: int) -> tuple[str, float] | None:
        there = moved(problem, (0, target))
        return over_limit(case_of(problem, there, changes_of(problem, there)), 0, broker=1, place=target.index(3))

    # It had 10 GB and 12 of CPU before, so that as a follower it comes back to what it had; leading costs 25.
    assert worst(1, 3) is None
    assert worst(3, 1) == ("leaders", 1.0)
    limits["leaders"] = 1.0
    problem = posed([replace(host, capacity=limits if host.id == 2 else {}) for host in hosts],
                    [partition(0, 1, leader_cpu=25.0, follower_cpu=12.0)], rules=LEAST)  # fmt: skip
    assert worst(3) == ("cpu", 15.0)
    assert worst(1, 3) == ("disk", 5.0 * GIGABYTE)


def test_more_copies_than_the_task_forces_are_counted() -> None:
    problem = posed(brokers(1, 2, 3, 4), [partition(0, 1, 2), partition(1, 1, wanted_factor=2), partition(2, 1, 2)])
    there = moved(problem, (0, (3, 4)), (1, (3, 2)))
    assert beyond_task(problem, changes_of(problem, there)) == {0: 2, 1: 1}
    assert beyond_task(problem, changes_of(problem, moved(problem, (1, (1, 2))))) == {}


@pytest.mark.parametrize(("field", "spent"), [
    ("moved_bytes", 2000), ("moves", 2), ("leader_changes", 1), ("bytes_in_per_broker", 2000),
    ("bytes_out_per_broker", 1000),
])  # fmt: skip
def test_a_budget_may_be_spent_to_its_end(field: str, spent: int) -> None:
    """t-0 and t-1 are copied to broker 4 from their leaders 1 and 2; t-0 is led by broker 4 then."""
    loads = [partition(0, 1, 2, gigabytes=1e-6), partition(1, 2, 3, gigabytes=1e-6)]
    problem = posed(brokers(1, 2, 3, 4), loads, budget=Budget(**{field: spent}))
    assert broken(problem, (0, (4, 2)), (1, (2, 4))) == ()
    what = {
        "moved_bytes": "bytes copied", "moves": "moves", "leader_changes": "leader changes",
        "bytes_in_per_broker": "bytes into one broker", "bytes_out_per_broker": "bytes out of one broker",
    }[field]  # fmt: skip
    less = replace(problem, budget=Budget(**{field: spent - 1}))
    assert broken(less, (0, (4, 2)), (1, (2, 4))) == (says("over the budget", what, spent - 1, spent),)


def test_a_copy_that_never_catches_up_fits_no_budget() -> None:
    budget = Budget(bytes_in_per_broker=2 * GIGABYTE, rate_bytes_per_s=4)
    loads = [partition(0, 1, gigabytes=1, write_bytes_per_s=2.0), partition(1, 1, gigabytes=0, write_bytes_per_s=4.0),
             partition(2, 1, gigabytes=1e-9, write_bytes_per_s=4.0), partition(3, 1, gigabytes=1e-9)]  # fmt: skip
    problem = posed(brokers(1, 2), loads, budget=budget)
    assert broken(problem, (0, (2,)), (1, (2,))) == ()
    assert broken(problem, (2, (2,))) == (says("over the budget", "bytes into one broker", 2000000000, "inf"),)
    # One byte of two billion may be rounding.
    assert broken(problem, (0, (2,)), (3, (2,))) == ()


def test_leaders_of_a_topic_are_those_of_no_other() -> None:
    loads = [partition(0, 1, 2), partition(0, 2, 1, topic="u"), partition(1, 1, 2, topic="u")]
    problem = posed(brokers(1, 2), loads, rules=Rules(least_topic_leaders={"t": 1, "u": 1, "v": 1}))
    assert broken(problem) == (
        says("few partitions to lead", 2, "t", "t", "1 partition", 1, 2),
        says("few partitions to lead", 1, "v", "v", "0 partitions", 2, 2),
        says("few partitions to lead", 2, "v", "v", "0 partitions", 2, 2),
    )


def test_with_only_forced_no_broker_leads_fewer_of_a_topic_than_now() -> None:
    hosts = [replace(host, may_lead=host.id != 4, is_live=host.id != 5) for host in brokers(1, 2, 3, 4, 5)]
    loads = [partition(n, *replicas) for n, replicas in enumerate([(1, 2), (1, 2), (1, 3), (2, 3)])]
    problem = posed(hosts, loads, rules=replace(LEAST, least_topic_leaders={"t": 2}))
    assert broken(problem) == ()
    # Broker 1 leads one instead of three, of which two are demanded; broker 2 keeps its one.
    fewer = [one for one in broken(problem, (0, (2, 1)), (1, (2, 1))) if "leads" in one]
    assert fewer == [says("few leaders of a topic", 1, "1 partition", "t", 2)]
    assert says("few leaders of a topic", 2, "0 partitions", "t", 2) in broken(problem, (3, (3, 2)))
