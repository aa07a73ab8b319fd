"""Plans around brokers that receive nothing, and that Kafka 4.4 takes in no changed list."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kreassign.errors import IllegalPlan, Infeasible, InputError
from kreassign.model.closures import REFUSES, Closure, closure_of
from kreassign.planner import Band, BrokerFacts, Budget, Problem, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK, LEADERS, REPLICAS
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.problem import Assignment
from kreassign.planner.results import Origin, outcome_of
from kreassign.planner.tasks import (
    add_brokers,
    change_factors,
    demote,
    drain_brokers,
    leaders_only,
    only_forced,
    plan_around,
    rebalance,
    repair,
    replace_brokers,
    restore,
)
from tests.planner.small_problems import brokers, partition, plan, posed
from tests.planner.tasks.test_ignore_dead_brokers import lists

SILENT, BINDING = Closure.CORDONED, Closure.CORDONED | Closure.BINDING
EVEN = (Band(DISK, 0.2), Band(REPLICAS))


def hosts(closure: Closure, *ids: int) -> list[BrokerFacts]:
    """Open brokers with these ids, and broker 4, which is closed."""
    return [*brokers(*ids), BrokerFacts(4, closure=closure)]


@pytest.mark.parametrize(("cordons", "facts", "found"), [
    ([False], {}, Closure.NONE),
    ([True, False], {}, Closure.NONE),
    ([None, False], {}, Closure.NONE),
    ([False], {"in_maintenance": True}, Closure.MAINTENANCE),
    ([True, True], {"may_be_named": True}, SILENT),
    ([True, True], {"may_be_named": False}, BINDING),
    ([True], {}, BINDING),
    ([True], {"in_maintenance": True, "may_be_named": True}, SILENT | Closure.MAINTENANCE),
    ([], {"may_be_named": True}, Closure.UNREAD),
    ([True, None], {}, Closure.UNREAD | Closure.BINDING),
])  # fmt: skip
def test_what_is_not_known_closes_a_broker(cordons: list[bool | None], facts: dict[str, bool], found: Closure) -> None:
    assert closure_of(cordons, **facts) == found


@pytest.mark.parametrize("closure", [SILENT, Closure.MAINTENANCE, Closure.UNREAD, BINDING])
def test_a_closed_broker_receives_nothing_and_is_named(closure: Closure) -> None:
    loads = [partition(number, 1) for number in range(9)]
    problem, told = plan_around(rebalance(posed(hosts(closure, 1, 2, 3), loads, bands=EVEN)))
    assert not any(4 in one for one in lists(problem).values())
    (sentence,) = told
    assert sentence == f"broker 4 gets nothing: {closure.why}; {closure.remedy}"


def test_partitions_there_are_fixed_and_counted() -> None:
    loads = [partition(number, 1, 2) for number in range(6)] + [partition(6, 4, 1), partition(7, 1, 4)]
    problem, (sentence,) = plan_around(posed(hosts(BINDING, 1, 2, 3), loads, bands=EVEN))
    after = lists(problem)
    assert (after[6], after[7]) == ([4, 1], [1, 4])
    assert f". {REFUSES}: 2 partitions with a replica there stay as they are; " in sentence
    assert Hold(int(problem.partitions.holds[6])).why == Hold.CORDONED.why
    assert evaluate(problem, solve(problem).assignment).misses() == ()


@pytest.mark.parametrize(("task", "after"), [
    (lambda problem: drain_brokers(problem, [1]), [{2}, {2, 3}, {2, 4}]),
    (lambda problem: change_factors(problem, 3), [{1, 2, 3}] * 3),
    (lambda problem: change_factors(problem, 1), [{1}, {1}, {2}]),
])  # fmt: skip
def test_what_the_task_changes_leaves_the_broker_whole(
    task: Callable[[Problem], Problem], after: list[set[int]]
) -> None:
    loads = [partition(0, 1, 2), partition(1, 1, 4), partition(2, 2, 4)]
    problem, _ = plan_around(only_forced(task(posed(hosts(BINDING, 1, 2, 3), loads, bands=(Band(DISK, None),)))))
    assert all(set(one) >= least for one, least in zip(lists(problem).values(), after, strict=True))
    held = problem.partitions.may_move.tolist()
    assert not any(4 in one for one, is_free in zip(lists(problem).values(), held, strict=True) if is_free)


def test_the_reason_of_such_a_move_is_the_cordon() -> None:
    loads = [partition(0, 1, 4)]
    problem, _ = plan_around(drain_brokers(posed(hosts(BINDING, 1, 2, 3), loads), [1]))
    (change,) = outcome_of(problem, solve(problem).assignment, Origin("drain")).facts.partitions
    assert {(one.goal, one.source) for one in change.reasons} == {("drain", 1), ("cordoned", 4)}


@pytest.mark.parametrize("task", [leaders_only, lambda problem: demote(problem, [4])])
def test_no_order_is_changed_there(task: Callable[[Problem], Problem]) -> None:
    loads = [partition(0, 4, 1), partition(1, 4, 2), partition(2, 1, 2)]
    problem, _ = plan_around(task(posed(hosts(BINDING, 1, 2), loads)))
    assert [lists(problem)[number] for number in (0, 1)] == [[4, 1], [4, 2]]


def test_a_silent_cordon_lets_leaders_change() -> None:
    loads = [partition(0, 4, 1), partition(1, 4, 2)]
    problem, _ = plan_around(demote(posed(hosts(SILENT, 1, 2), loads), [4]))
    assert lists(problem) == {0: [1, 4], 1: [2, 4]}


@pytest.mark.parametrize(("task", "names_it"), [
    (leaders_only, True),
    (rebalance, True),
    (lambda problem: only_forced(drain_brokers(problem, [5])), False),
    (lambda problem: only_forced(change_factors(problem, 3)), False),
    (lambda problem: only_forced(repair(problem)), False),
])  # fmt: skip
def test_no_plan_lets_a_broker_in_maintenance_lead(task: Callable[[Problem], Problem], names_it: bool) -> None:
    """It goes on leading only what no other replica can lead, and where a task changes no leaders."""
    loads = [
        *(partition(number, 1 + number % 2, 4, 2 - number % 2) for number in range(8)),
        partition(8, 5, 4, 1),
        partition(9, 4),
    ]
    problem, _ = plan_around(task(posed(hosts(Closure.MAINTENANCE, 1, 2, 3, 5), loads, bands=(Band(LEADERS),))))
    assignment = solve(problem).assignment
    after = [problem.brokers.ids[one].tolist() for one in assignment.lists()]
    assert [number for number, one in enumerate(after) if one[0] == 4] in ([9], [])
    facts = outcome_of(problem, assignment, Origin("balance")).facts
    says = "broker 4 keeps leading t-9: no other replica may lead"
    assert (says in facts.remaining) is (names_it and after[9] == [4])


def test_a_plan_for_leaders_takes_leading_from_it() -> None:
    loads = [partition(0, 4, 1), partition(1, 4)]
    problem, _ = plan_around(leaders_only(posed(hosts(Closure.MAINTENANCE, 1, 2), loads, bands=(Band(LEADERS),))))
    assert lists(problem) == {0: [1, 4], 1: [4]}


def test_a_list_that_lets_it_lead_is_refused() -> None:
    loads = [partition(0, 1, 4), partition(1, 4, 1)]
    problem = posed(hosts(Closure.MAINTENANCE, 1, 2), loads)
    given = Assignment(
        problem.partitions.offsets, problem.partitions.replicas[[1, 0, 2, 3]], problem.partitions.log_dirs
    )
    problem = replace(problem, rules=replace(problem.rules, is_given=True))
    problem, _ = plan_around(problem, given)
    (sentence,) = evaluate(problem, given).violations
    remedy = "it is in maintenance; end that with `kreassign maintenance exit`"
    assert sentence == f"t-0: broker 4 would lead, but {remedy}"


def test_what_a_budget_leaves_undone_is_left_whole() -> None:
    loads = [partition(0, 1, 4, 2)]
    problem, _ = plan_around(only_forced(drain_brokers(posed(hosts(BINDING, 1, 2, 3, 5), loads), [1])))
    problem = replace(problem, budget=Budget(moves=1))
    assignment = solve(problem).assignment
    assert problem.brokers.ids[assignment.replicas].tolist() == [1, 4, 2]
    assert evaluate(problem, assignment).violations == ()
    assert evaluate(problem, assignment).unfinished


def test_a_cordoned_broker_that_is_drained_is_not_held() -> None:
    problem, told = plan_around(drain_brokers(posed(hosts(BINDING, 1, 2), [partition(0, 4, 1), partition(1, 4)]), [4]))
    assert told == ()
    assert not any(4 in one for one in lists(problem).values())


@pytest.mark.parametrize("closure", [SILENT, BINDING])
def test_a_partition_on_a_dead_and_a_cordoned_broker_stays_as_it_is(closure: Closure) -> None:
    """Neither of both makes a task change it; a cordon that binds is no reason to repair the dead copy."""
    down = [*hosts(closure, 1, 2, 3), BrokerFacts(5, is_live=False)]
    loads = [partition(0, 4, 5), partition(1, 1, 5), *(partition(number, 1, 2) for number in range(2, 8))]
    problem, told = plan_around(rebalance(posed(down, loads, bands=EVEN)))
    after = lists(problem)
    assert (after[0], after[1]) == ([4, 5], [1, 5])
    assert any("broker 5 is not live: 2 partitions with a replica there are not touched" in one for one in told)
    drained, _ = plan_around(drain_brokers(posed(down, loads, bands=EVEN), [4]))
    assert set(lists(drained)[0]) <= {1, 2, 3}


def test_a_repair_leaves_the_broker_too() -> None:
    down = [*hosts(BINDING, 1, 2), BrokerFacts(5, is_live=False)]
    problem, _ = plan_around(repair(posed(down, [partition(0, 5, 4, 1), partition(1, 4, 1)])), repairs_dead=True)
    with pytest.raises(Infeasible, match="broker 4 takes none: all its working log directories are cordoned"):
        solve(problem)
    more = [*down, BrokerFacts(6), BrokerFacts(7)]
    problem, _ = plan_around(repair(posed(more, [partition(0, 5, 4, 1), partition(1, 4, 1)])), repairs_dead=True)
    after = lists(problem)
    assert 4 not in after[0]
    assert after[1] == [4, 1]


@pytest.mark.parametrize(("closure", "wanted", "said"), [
    (BINDING, (2, 4), f"t-0: broker 4 stays in a changed list, but {BINDING.why}, and {REFUSES}; leave the partition "),
    (BINDING, (4, 1), "t-0: broker 4 stays in a changed list"),
    (SILENT, (2, 4), ""),
    (BINDING, (1, 2), ""),
])  # fmt: skip
def test_lists_from_elsewhere_are_judged(closure: Closure, wanted: tuple[int, ...], said: str) -> None:
    loads = [partition(0, 1, 4), partition(1, 1, 2)]
    problem, assignment = restore(posed(hosts(closure, 1, 2), loads, bands=()), plan((0, wanted)))
    judged, _ = plan_around(problem, assignment)
    if not said:
        outcome_of(judged, assignment, Origin("import"))
        return
    with pytest.raises(IllegalPlan) as refused:
        outcome_of(judged, assignment, Origin("import"))
    assert said in str(refused.value)


@pytest.mark.parametrize("closure", [SILENT, BINDING, Closure.MAINTENANCE])
def test_a_copy_to_a_closed_broker_is_refused_with_the_reason(closure: Closure) -> None:
    problem, assignment = restore(posed(hosts(closure, 1, 2), [partition(0, 1)], bands=()), plan((0, (1, 4))))
    judged, _ = plan_around(problem, assignment)
    with pytest.raises(IllegalPlan, match=f"t-0: broker 4 gets a copy but {closure.why}"):
        outcome_of(judged, assignment, Origin("import"))


def test_a_closed_successor_is_refused() -> None:
    with pytest.raises(InputError, match="broker 4 cannot take over from 1: all its working log directories"):
        replace_brokers(posed(hosts(BINDING, 1, 2), [partition(0, 1)]), {1: 4})


def test_a_closed_new_broker_stays_empty() -> None:
    problem, told = plan_around(add_brokers(posed(hosts(BINDING, 1, 2), [partition(0, 1), partition(1, 1)]), [4]))
    assert lists(problem) == {0: [1], 1: [1]}
    assert told[0].startswith("broker 4 gets nothing: ")
