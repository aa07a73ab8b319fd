"""When a factor falls, a replica in sync never goes while a lagging one stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kreassign.errors import IllegalPlan, Infeasible
from kreassign.planner import Assignment, Budget, Problem, plan_of, solve
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.problem.holds import Hold
from kreassign.planner.results import Origin, outcome_of
from kreassign.planner.tasks import change_factors, drain_brokers, only_forced, repair, restore
from tests.planner.small_problems import brokers, partition, plan, posed

HOSTS = brokers(1, 2, 3, 4)


def kept_of(problem: Problem, factor: int) -> dict[int, set[int]]:
    """Brokers of each partition after the factor fell, by partition number; checks the plan on the way."""
    posed_problem = only_forced(change_factors(problem, factor))
    found = solve(posed_problem).assignment
    assert evaluate(posed_problem, found).violations == ()
    return {one.topic_partition.partition: set(one.replicas) for one in plan_of(posed_problem, found).assignments}


@pytest.mark.parametrize("isr", [one for many in (1, 2, 3) for one in combinations((1, 2, 3), many)])
@pytest.mark.parametrize("factor", [1, 2])
def test_those_that_lag_go_first(isr: tuple[int, ...], factor: int) -> None:
    # Broker 3 is so full that it would lose its replica if only loads counted.
    full = [partition(number, 3, isr=(3,), topic="full") for number in range(3)]
    kept = kept_of(posed(HOSTS, [partition(0, 1, 2, 3, isr=isr), *full]), factor)[0]
    assert len(kept) == factor
    assert len(kept & set(isr)) == min(factor, len(isr))


@st.composite
def falling(draw: st.DrawFn) -> Problem:
    """A small cluster of which some replicas lag, with a factor that falls, and whatever else may be asked with it."""
    count = draw(st.integers(3, 6))
    racks = "".join(draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count)))
    loads = []
    for number in range(draw(st.integers(1, 6))):
        replicas = draw(st.permutations(range(1, count + 1)))[: draw(st.integers(1, count))]
        isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
        loads.append(partition(number, *replicas, isr=tuple(isr), gigabytes=draw(st.integers(1, 20))))
    problem = change_factors(posed(brokers(*range(1, count + 1), racks=racks), loads), draw(st.integers(1, 2)))
    if draw(st.booleans()) and count > 3:
        problem = drain_brokers(problem, [draw(st.integers(1, count))])
    return only_forced(problem) if draw(st.booleans()) else problem


def in_sync_lost(problem: Problem, found: Assignment) -> list[tuple[object, set[int]]]:
    """Partitions that keep a lagging replica, and the brokers in sync that they lose although they could stay."""
    now, ids = problem.partitions, problem.brokers.ids
    drained = set(ids[problem.brokers.must_empty].tolist())
    losses = []
    for number, target in enumerate(found.lists()):
        replicas = ids[now.list_of(number)].tolist()
        synced = now.in_sync[now.offsets[number] : now.offsets[number + 1]].tolist()
        isr = {broker for broker, is_in in zip(replicas, synced, strict=True) if is_in}
        after = set(ids[target].tolist())
        gone, arrived = isr - after - drained, after - set(replicas)
        if len(after) < len(replicas) and after & set(replicas) - isr and len(gone) > len(arrived):
            losses.append((now.name(number), gone))
    return losses


@settings(max_examples=20)
@given(falling(), st.sampled_from([Budget(), Budget(moves=0), Budget(leader_changes=0), Budget(moved_bytes=10**10)]))
def test_no_falling_factor_costs_a_replica_in_sync(problem: Problem, budget: Budget) -> None:
    problem = replace(problem, budget=budget)
    try:
        found = solve(problem).assignment
    except Infeasible:
        return
    assert evaluate(problem, found).violations == ()
    assert in_sync_lost(problem, found) == []


LAGS = posed(HOSTS, [partition(0, 1, 2, 3, isr=(1, 3)), partition(1, 1, 2, isr=(1, 2))])


@pytest.mark.parametrize(
    ("target", "is_refused"),
    [((1, 2), True), ((2, 4), True), ((2,), True), ((1, 3), False), ((3,), False), ((4, 3), False), ((2, 4, 3), False)],
)
def test_a_given_list_is_judged_likewise(target: tuple[int, ...], is_refused: bool) -> None:
    problem, assignment = restore(LAGS, plan((0, target)))
    if not is_refused:
        outcome_of(problem, assignment, Origin("import"))
        return
    with pytest.raises(IllegalPlan, match=r"t-0: broker (1,)?3, in sync, would go, and broker 2, which is not"):
        outcome_of(problem, assignment, Origin("import"))


def test_replicas_outside_the_broker_set_go_before_others_in_sync() -> None:
    hosts = [replace(host, broker_set="red" if host.id < 4 else None) for host in HOSTS]
    loads = [
        partition(0, 1, 2, 4, isr=(1, 2, 4), broker_set="red"),
        partition(1, 1, 2, 4, isr=(1, 4), broker_set="red"),
    ]
    problem = posed(hosts, loads)
    assert kept_of(problem, 2) == {0: {1, 2}, 1: {1, 4}}


def test_a_move_under_way_is_no_falling_factor() -> None:
    on_its_way = partition(0, 1, 2, 3, 4, isr=(2, 3, 4), hold=Hold.MOVING)
    problem, assignment = restore(posed(HOSTS, [on_its_way]), plan((0, (1, 2, 3))))
    (why,) = evaluate(problem, assignment).violations
    assert why.startswith("t-0 must stay (being reassigned)")


def test_nothing_is_copied_from_a_replica_that_lags() -> None:
    # The only replica in sync is on a broker that is down: what the others miss would be lost for good.
    hosts = [*brokers(1, 2, 4), *brokers(3, is_live=False)]
    problem = repair(posed(hosts, [partition(0, 3, 1, 2, isr=(3,))]))
    found = solve(problem).assignment
    assert plan_of(problem, found).assignments == ()
    assert evaluate(problem, found).out_of_reach[0].startswith("t-0 stays on brokers 3,1,2 (no live broker")
