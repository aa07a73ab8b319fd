from dataclasses import replace

import pytest

from kreassign.errors import Infeasible
from kreassign.model import TopicPartition
from kreassign.planner import Band, BrokerFacts, Budget, Problem, Rules, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, LEADERS, REPLICAS
from kreassign.planner.problem.holds import Hold, held_sentences
from kreassign.planner.tasks import (
    add_brokers,
    change_factors,
    demote,
    drain_brokers,
    ignore_dead_brokers,
    only_forced,
    rebalance,
    replace_brokers,
    restore,
)
from tests.planner.small_problems import GIGABYTE, brokers, partition, plan, posed

HOSTS = [*brokers(1, 2, 3), BrokerFacts(4, is_live=False)]


def lists(problem: Problem) -> dict[int, list[int]]:
    """The new lists, by partition, after the independent check has found no broken rule."""
    assignment = solve(problem).assignment
    judged = evaluate(problem, assignment)
    assert judged.violations == ()
    assert not judged.unfinished or problem.may_leave
    ids = problem.brokers.ids
    return {number: [int(ids[place]) for place in one] for number, one in enumerate(assignment.lists())}


def test_a_whole_cluster_is_left_as_it_is() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1)])
    assert ignore_dead_brokers(problem) == (problem, ())


def test_the_live_brokers_are_evened_out_around_what_the_dead_one_holds() -> None:
    loads = [partition(number, 1) for number in range(12)] + [partition(12, 4, 2), partition(13, 2, 4)]
    bands = (Band(DISK, 0.2), Band(REPLICAS), Band(LEADERS))
    problem, told = ignore_dead_brokers(rebalance(posed(HOSTS, loads, bands=bands)))
    assert told == (
        "broker 4 is not live: 2 partitions with a replica there are not touched; `kreassign plan repair` repairs them",
    )
    after = lists(problem)
    assert (after[12], after[13]) == ([4, 2], [2, 4])
    assert not any(4 in after[number] for number in range(12))
    judged = evaluate(problem, solve(problem).assignment)
    assert judged.misses() == ()
    assert sorted(judged.after[:, 0]) == pytest.approx([20 * GIGABYTE, 40 * GIGABYTE, 50 * GIGABYTE, 50 * GIGABYTE])


def test_lost_copies_stay_in_the_list_for_the_directory_to_be_repaired() -> None:
    loads = [partition(0, 1, 2, lost_on=(1,)), partition(1, 2, 3)]
    problem, told = ignore_dead_brokers(posed(brokers(1, 2, 3), loads, bands=(Band(DISK, None),)))
    assert told[0].startswith("broker 1 has lost copies with a log directory: 1 partition")
    assert lists(problem)[0] == [1, 2]


def test_of_one_dead_broker_all_is_replaced_that_may_move() -> None:
    loads = [partition(0, 1, 4), partition(1, 2, 4, may_move=False), partition(2, 3, 5)]
    hosts = [*HOSTS, BrokerFacts(5, is_live=False)]
    problem, told = ignore_dead_brokers(only_forced(posed(hosts, loads, bands=(Band(DISK, None),))), lost_on=(4,))
    after = lists(problem)
    assert 4 not in after[0]
    assert (after[1], after[2]) == ([2, 4], [3, 5])
    assert [one.partition(":")[0] for one in told] == ["broker 4 is not live", "broker 5 is not live"]


def test_what_the_task_must_change_is_repaired_with_it() -> None:
    loads = [partition(0, 3, 4), partition(1, 1, 4), partition(2, 3, 1, lost_on=(1,)), partition(3, 3, 1)]
    hosts = [*HOSTS, BrokerFacts(5)]
    problem, told = ignore_dead_brokers(only_forced(drain_brokers(posed(hosts, loads, bands=(Band(DISK, None),)), [3])))
    after = lists(problem)
    assert after[1] == [1, 4]
    assert set(after[0]) < {1, 2, 5}
    assert set(after[2]) == {2, 5}
    assert set(after[3]) < {1, 2, 5}
    assert len(told) == 1


def test_a_budget_leaves_whole_what_would_still_name_a_dead_broker() -> None:
    """A run refuses the changed list of t-0 unless both of its copies are replaced."""
    loads = [partition(0, 1, 3, 4), partition(1, 3, 2)]
    problem = only_forced(drain_brokers(posed([*HOSTS, BrokerFacts(5)], loads, bands=(Band(DISK, None),)), [3]))
    problem, _ = ignore_dead_brokers(replace(problem, budget=Budget(moves=1)))
    after = lists(problem)
    assert after[0] == [1, 3, 4]
    assert 3 not in after[1]


def test_partitions_of_another_factor_are_repaired_with_it() -> None:
    loads = [partition(0, 1, 4), partition(1, 2, 4, topic="u")]
    problem, _ = ignore_dead_brokers(change_factors(posed(HOSTS, loads, bands=(Band(DISK, None),)), 3))
    assert [sorted(one) for one in lists(problem).values()] == [[1, 2, 3], [1, 2, 3]]


def test_a_task_that_copies_nothing_repairs_nothing() -> None:
    loads = [partition(0, 1, 4), partition(1, 1, 2)]
    problem, told = ignore_dead_brokers(demote(posed(HOSTS, loads), [1]))
    assert lists(problem) == {0: [1, 4], 1: [2, 1]}
    assert len(told) == 1


def test_leaders_of_a_topic_are_not_asked_of_a_dead_broker() -> None:
    loads = [partition(number, 1, 2, 3) for number in range(3)] + [partition(0, 4, 1, topic="u")]
    problem = posed(HOSTS, loads, bands=(), rules=Rules(least_topic_leaders={"t": 1}))
    problem, _ = ignore_dead_brokers(problem)
    after = lists(problem)
    assert {after[number][0] for number in range(3)} == {1, 2, 3}


def test_what_cannot_be_repaired_with_the_task_is_refused() -> None:
    problem, _ = ignore_dead_brokers(drain_brokers(posed(HOSTS, [partition(0, 2, 3, 4)]), [3]))
    with pytest.raises(Infeasible, match="no broker may take them: t-0; every receiver holds a replica of it already"):
        solve(problem)


GIVEN = posed(
    [*brokers(1, 2, 3), BrokerFacts(4, is_live=False)],
    [
        partition(0, 1, 2),
        partition(1, 3, 4),
        partition(2, 4, hold=Hold.OUT_OF_REACH),
        partition(3, 1, 2, hold=Hold.EXCLUDED),
    ],
    bands=(),
)


@pytest.mark.parametrize(("wanted", "violations"), [
    ((0, (1, 3)), ()),
    ((1, (3, 1)), ()),
    ((1, (4, 3)), ("t-1: broker 4 is not live, but is to have a copy",)),
    ((0, (1, 4)), ("t-0: broker 4 gets a copy but is not live",)),
    ((2, (1,)), tuple(held_sentences([(TopicPartition("t", 2), Hold.OUT_OF_REACH)]))),
    ((3, (2, 1)), tuple(held_sentences([(TopicPartition("t", 3), Hold.EXCLUDED)]))),
])  # fmt: skip
def test_of_given_lists_only_what_they_change_is_judged(wanted, violations: tuple[str, ...]) -> None:
    problem, assignment = restore(GIVEN, plan(wanted))
    judged, told = ignore_dead_brokers(problem, assignment)
    assert evaluate(judged, assignment).violations == violations
    is_repaired = wanted[0] == 1
    assert told == (
        (
            "broker 4 is not live: 1 partition with a replica there is not touched; "
            if is_repaired
            else "broker 4 is not live: 2 partitions with a replica there are not touched; `kreassign plan repair` "
            "repairs the others; "
        )
        + next(held_sentences([(TopicPartition("t", 2), Hold.OUT_OF_REACH)])),
    )


def test_a_broker_is_replaced_while_another_one_is_down() -> None:
    problem, assignment = replace_brokers(GIVEN, {1: 3})
    free = replace(problem, partitions=replace(problem.partitions, holds=problem.partitions.holds & ~Hold.EXCLUDED))
    judged, told = ignore_dead_brokers(free, assignment)
    assert evaluate(judged, assignment).violations == ()
    assert len(told) == 1


def test_a_dead_broker_without_a_replica_is_told_too() -> None:
    problem, told = ignore_dead_brokers(add_brokers(posed(HOSTS, [partition(0, 1), partition(1, 2)]), [4]))
    assert told == ("broker 4 gets nothing: it is not live; start it, then plan again",)
    assert lists(problem) == {0: [1], 1: [2]}
