"""Every rule is broken once, alone, and kept once."""

from dataclasses import replace

import numpy as np
import pytest

from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.planner import Assignment, BrokerFacts, Budget, LogDirFacts, RackRule, Rules, assignment_of, problem_of
from kreassign.planner.check.evaluate import evaluate
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
    assert evaluate(problem, twice).violations[0] == "t-0: broker 1 is named more than once"


@pytest.mark.parametrize(("facts", "words"), [
    ({"must_empty": True}, "is to be drained"),
    ({"is_live": False}, "is not live"),
    ({"may_receive": False}, "may receive nothing"),
])  # fmt: skip
def test_a_copy_for_a_broker_that_takes_none(facts: dict[str, bool], words: str) -> None:
    problem = posed(changed(4, **facts), [partition(0, 1, 2)])
    assert broken(problem, (0, (1, 4)))[0] == f"t-0: broker 4 gets a copy but {words}"
    assert broken(problem, (0, (1, 3))) == ()


def test_a_copy_outside_the_broker_set() -> None:
    hosts = [replace(host, broker_set="ab"[host.id > 2]) for host in brokers(1, 2, 3, 4)]
    problem = posed(hosts, [partition(0, 1, 2, broker_set="a"), partition(1, 1, 2)])
    assert broken(problem, (0, (1, 3))) == ("t-0: broker 3 is not of the broker set of the partition",)
    assert broken(problem, (1, (1, 3))) == ()


def test_a_partition_that_is_fixed() -> None:
    problem = posed(brokers(1, 2, 3, 4), [partition(0, 1, 2, may_move=False)])
    assert broken(problem, (0, (2, 1))) == ("t-0 must not move",)
    assert broken(problem, (0, (1, 2))) == ()


def test_kinds_of_change_that_are_not_allowed() -> None:
    hosts = brokers(1, 2, 3, 4, log_dirs=(LogDirFacts("/a"), LogDirFacts("/b")))
    problem = posed(
        hosts, [partition(0, 1, 2, log_dirs=("/a", "/a"))], rules=Rules(between_brokers=False, leaders=False)
    )
    assert broken(problem, (0, (1, 3)))[0] == "t-0: broker 3 gets a copy, but nothing may go from broker to broker"
    assert broken(problem, (0, (2, 1))) == ("t-0 changes its leader without need",)
    to_b = Plan((PartitionAssignment(TopicPartition("t", 0), (1, 2), ("/b", "/a")),))
    (sentence,) = evaluate(problem, assignment_of(problem, to_b)).violations
    assert sentence == "t-0: broker 1 changes its log directory, which is not allowed"


def test_a_leader_changes_where_it_must_even_if_leaders_shall_stay() -> None:
    problem = posed(changed(1, may_lead=False), [partition(0, 1, 2)], rules=Rules(leaders=False))
    assert broken(problem, (0, (2, 1))) == ()


def test_a_broker_that_may_not_lead() -> None:
    problem = posed(
        changed(1, may_lead=False), [partition(0, 1, 2), partition(1, 1), partition(2, 1, 2, may_move=False)]
    )
    assert broken(problem) == ("t-0: broker 1 would lead, but may not",)
    assert broken(problem, (0, (2, 1))) == ()


def test_racks_may_not_get_worse_and_are_repaired_when_asked() -> None:
    hosts = brokers(1, 2, 3, 4, racks="aabb")
    problem = posed(hosts, [partition(0, 1, 3), partition(1, 1, 2)])
    assert broken(problem, (0, (1, 2))) == ("t-0 has more replicas in one rack than before",)
    assert broken(problem, (1, (2, 1))) == ()
    repairing = replace(problem, rules=Rules(repair_racks=True))
    assert broken(repairing) == ("t-1 still has too many replicas in one rack",)
    assert broken(repairing, (1, (1, 3))) == ()
    assert broken(replace(problem, rules=Rules(racks=RackRule.NONE)), (0, (1, 2))) == ()


def test_racks_are_shared_evenly_or_strictly() -> None:
    hosts = brokers(1, 2, 3, 4, racks="aabb")
    problem = posed(hosts, [partition(0, 1, 3, wanted_factor=3)])
    assert broken(problem, (0, (1, 3, 2))) == ()
    strict = replace(problem, rules=Rules(racks=RackRule.STRICT))
    assert broken(strict, (0, (1, 3, 2))) == ("t-0 has more replicas in one rack than before",)


def test_brokers_without_a_rack_are_racks_of_their_own() -> None:
    assert broken(posed(brokers(1, 2, 3, 4), FOUR, rules=Rules(racks=RackRule.STRICT)), (0, (3, 4))) == ()


def test_capacity_may_not_be_exceeded_but_what_is_over_it_may_stay() -> None:
    hosts = brokers(1, 2, 3, capacity={"disk": 15 * GIGABYTE})
    problem = posed(hosts, [partition(0, 1), partition(1, 1), partition(2, 2)], bands=())
    assert broken(problem) == ()
    assert broken(problem, (0, (2,))) == ("broker 2: disk rises to 20 GB, 5 GB above its limit of 15 GB",)
    assert broken(problem, (0, (3,))) == ()


def test_every_limit_that_is_exceeded_is_told_in_its_unit() -> None:
    hosts = brokers(1, 2, capacity={"net-out": 2e6, "cpu": 0.25, "leaders": 1.0})
    busy = {"read_bytes_per_s": 1_500_000.0, "leader_cpu": 0.2}
    problem = posed(hosts, [partition(0, 1, **busy), partition(1, 2, **busy)], bands=())
    assert broken(replace(problem, cpu_unit="of a CPU"), (0, (2,))) == (
        "broker 2: cpu rises to 0.4 of a CPU, 0.15 of a CPU above its limit of 0.25 of a CPU",
        "broker 2: leaders rises to 2, 1 above its limit of 1",
        "broker 2: net-out rises to 3 MB/s, 1 MB/s above its limit of 2 MB/s",
    )
    # What is only known in proportion: the mean broker has 0.2.
    assert broken(problem, (0, (2,)))[0] == (
        "broker 2: cpu rises to 200% of the mean, 75% of the mean above its limit of 125% of the mean"
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
    assert judged("/b") == ("t-1: broker 1 gets a copy in /b, which may receive nothing",)
    assert judged("/a") == ("log directory /a of broker 1 rises to 20 GB, 5 GB above its limit of 15 GB",)
    elsewhere = Assignment.current(problem.partitions)
    wrong = Assignment(elsewhere.offsets, elsewhere.replicas, np.array([0, 3], np.int32))
    assert evaluate(problem, wrong).violations == ("t-1: broker 1 has no log directory /z",)


def test_topics_keep_their_least_leaders() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, 2), partition(1, 2, 1)], rules=Rules(least_topic_leaders={"t": 1}))
    assert broken(problem) == ()
    assert broken(problem, (1, (1, 2))) == ("broker 2 leads 0 partitions of topic t, not 1",)


def test_a_broker_to_be_drained_needs_no_leaders_of_a_topic() -> None:
    hosts, loads = brokers(1, 2, 3), [partition(0, 1, 2), partition(1, 2, 1)]
    rules = Rules(least_topic_leaders={"t": 1})
    assert broken(posed(hosts, loads, rules=rules)) == ("broker 3 leads 0 partitions of topic t, not 1",)
    assert broken(posed([*hosts[:2], replace(hosts[2], must_empty=True)], loads, rules=rules)) == ()


LOST = "t-0: broker 1 has lost its copy, but is to have one"
KEPT = "t-0: broker 1 still has a copy, but is to have none"
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
    why = "no live broker has a copy to replicate from; it stays on brokers"
    assert found.out_of_reach == (
        f"t-0: {why} [2] until one of them comes back",
        f"t-1: {why} [1] until one of them comes back",
    )


def test_a_log_directory_is_drained() -> None:
    hosts = [BrokerFacts(1, log_dirs=(LogDirFacts("/a", must_empty=True), LogDirFacts("/b")))]
    problem = posed(hosts, [partition(0, 1, log_dirs=("/a",))])
    assert broken(problem) == ("t-0: broker 1 still has its copy in /a, to be drained",)


@pytest.mark.parametrize(("budget", "words"), [
    (Budget(moved_bytes=GIGABYTE), "bytes copied"),
    (Budget(moves=1), "allows 1 moves, the plan has 2"),
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
    assert broken(written, (0, (2,))) == (
        "the budget allows 15000000000 bytes into one broker, the plan has 20000000000",
    )


def test_many_broken_rules_are_cut_short() -> None:
    loads = [partition(number, 1) for number in range(103)]
    problem = problem_of(changed(1, must_empty=True), loads)
    found = evaluate(problem, Assignment.current(problem.partitions)).violations
    assert len(found) == 101
    assert found[-1] == "and 3 more like the last"


LEAST = Rules(only_forced=True)


def test_with_only_forced_no_copy_goes_elsewhere_without_need() -> None:
    problem = posed(brokers(1, 2, 3, 4), [partition(7, 3, 4), partition(0, 1, 2), partition(1, 2, 3)], rules=LEAST)
    assert broken(problem, (0, (1, 4))) == ("t-0 goes from broker 2 to 4 without need",)
    assert broken(problem) == ()


@pytest.mark.parametrize(("most", "said"), [(1.0, ()), (2.0, ("t-0 goes from broker 2 to 5 without need",))])
def test_with_only_forced_a_copy_gives_way_to_another_where_a_limit_has_no_room_for_both(most, said) -> None:
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
    assert broken(spread, (0, (1, 3))) == ("t-0 goes from broker 2 to 3 without need",)
