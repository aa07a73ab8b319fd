"""New topics and new partitions: placed where something is missing, and nothing that is there moves."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kreassign.errors import Infeasible, InputError
from kreassign.planner import Band, BrokerFacts, Problem, RackRule, Rules, evaluate, solve
from kreassign.planner.arrays import NOWHERE
from kreassign.planner.goals import DISK, LEADERS, REPLICAS
from kreassign.planner.problem.holds import Hold
from kreassign.planner.tasks import ignore_dead_brokers
from kreassign.planner.tasks.placement import (
    ExpectedLoad,
    add_partitions,
    add_topic,
    check_new_partitions,
    mean_load,
    placed_lists,
    with_new_partitions,
)
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed

LEVEL = (Band(DISK, 0.0), Band(REPLICAS, 0.0), Band(LEADERS, 0.0))
TEN = ExpectedLoad(10 * GIGABYTE)


def lists(problem: Problem) -> tuple[tuple[int, ...], ...]:
    found = solve(problem).assignment
    assert evaluate(problem, found).violations == ()
    return placed_lists(problem, found)


def test_a_new_topic_fills_the_broker_that_lacks_most() -> None:
    """Brokers 1 and 2 hold two each, 3 nothing: two new partitions belong on 3, and nothing has to be copied."""
    problem = posed(brokers(1, 2, 3), [partition(n, 1 + n % 2) for n in range(4)], bands=LEVEL)
    new = add_topic(problem, "new", [1, 1], TEN, NOWHERE)
    found = solve(new).assignment
    assert placed_lists(new, found) == ((3,), (3,))
    after = with_new_partitions(new, found, problem)
    assert evaluate(after, solve(after).assignment).moved_bytes == 0
    assert evaluate(problem, solve(problem).assignment).moved_bytes > 0


def test_more_partitions_take_their_part_of_what_the_topic_has() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1, topic="a"), partition(1, 1, topic="a"), partition(0, 2, topic="b")])
    grown = add_partitions(replace(problem, bands=LEVEL), "a", 4)
    assert grown.partitions.size_bytes.tolist() == [5 * GIGABYTE] * 4 + [10 * GIGABYTE]
    assert [str(grown.partitions.name(one)) for one in range(5)] == ["a-0", "a-1", "a-2", "a-3", "b-0"]
    assert lists(grown) == ((2,), (2,)) or sorted(lists(grown)) == [(1,), (2,)]


def test_what_a_new_topic_is_like_counts_with_its_own_factor() -> None:
    like = partition(0, 1, 2, write_bytes_per_s=100.0, read_bytes_per_s=300.0)
    load = mean_load(posed(brokers(1, 2), [like]).partitions, "t", 3)
    assert (load.size_bytes, load.write_bytes_per_s, load.read_bytes_per_s) == (10 * GIGABYTE, 100.0, 400.0)


def test_a_size_that_nobody_knows_is_no_zero_of_a_mean() -> None:
    unsized = [partition(number, 1, gigabytes=0, hold=Hold.UNSIZED) for number in range(3)]
    problem = posed(brokers(1, 2), [*unsized, partition(3, 2)])
    assert mean_load(problem.partitions, "t", 1).size_bytes == 10 * GIGABYTE
    assert add_partitions(problem, "t", 8).partitions.size_bytes.tolist() == [0] * 3 + [5 * GIGABYTE] * 5
    for asked in (lambda one: mean_load(one.partitions, "t", 1), lambda one: add_partitions(one, "t", 8)):
        with pytest.raises(
            InputError, match="topic t will be is not known: no broker reported the size of any; see to"
        ):
            asked(posed(brokers(1, 2), unsized))


@pytest.mark.parametrize(("factors", "words"), [([4], "needs 4 brokers"), ([0], "factor of 0"), ([], "factor of 0")])
def test_a_factor_that_no_brokers_are_there_for_is_refused(factors: list[int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        add_topic(posed(brokers(1, 2, 3), [partition(0, 1)]), "new", factors, TEN, NOWHERE)


def test_existing_topics_missing_ones_and_lower_counts_are_refused() -> None:
    problem = posed(brokers(1, 2), [partition(0, 1), partition(1, 2)])
    with pytest.raises(InputError, match="topic t is there already"):
        add_topic(problem, "t", [1], TEN, NOWHERE)
    with pytest.raises(InputError, match="there is no topic 'x'"):
        add_partitions(problem, "x", 3)
    with pytest.raises(InputError, match="has 2 partitions already"):
        add_partitions(problem, "t", 2)


def test_brokers_that_take_nothing_get_nothing_and_dead_ones_neither() -> None:
    hosts = [replace(host, may_receive=host.id != 1, is_live=host.id != 2) for host in brokers(1, 2, 3, 4)]
    problem, _ = ignore_dead_brokers(posed(hosts, [partition(0, 2, 3), partition(1, 1, 3)], bands=LEVEL))
    assert {one for replicas in lists(add_topic(problem, "new", [2] * 3, TEN, NOWHERE)) for one in replicas} == {3, 4}


def test_a_new_topic_of_a_tenant_stays_on_its_brokers() -> None:
    hosts = [replace(host, broker_set="one" if host.id < 3 else "two") for host in brokers(1, 2, 3, 4)]
    problem = posed(hosts, [partition(0, 3, broker_set="two"), partition(1, 1, broker_set="one")], bands=LEVEL)
    assert {one for replicas in lists(add_topic(problem, "new", [1] * 4, TEN, 0)) for one in replicas} == {1, 2}


def test_a_full_disk_takes_none_and_all_full_have_no_placement() -> None:
    hosts = [replace(host, capacity={"disk": (25.0 if host.id == 1 else 45.0) * GIGABYTE}) for host in brokers(1, 2)]
    problem = posed(hosts, [partition(0, 1), partition(1, 1), partition(2, 2)], bands=(Band(DISK),))
    assert lists(add_topic(problem, "new", [1] * 3, TEN, NOWHERE)) == ((2,), (2,), (2,))
    with pytest.raises(Infeasible, match="disk"):
        lists(add_topic(problem, "new", [1] * 5, TEN, NOWHERE))


def random_problem(random: Random) -> Problem:
    count = random.randint(3, 9)
    racks = random.choice((None, 1, 2, 3))
    hosts = [BrokerFacts(one, rack=None if racks is None else "abc"[one % racks]) for one in range(count)]
    loads = [
        partition(number, *random.sample(range(count), random.randint(1, 3)), gigabytes=random.lognormvariate(0, 1))
        for number in range(random.randint(5, 40))
    ]
    return posed(hosts, loads, rules=Rules(racks=random.choice((RackRule.EVEN, RackRule.NONE))))


@pytest.mark.parametrize("seed", range(12))
def test_on_random_clusters_nothing_moves_and_brokers_get_no_less_even(seed: int) -> None:
    """New partitions only fill gaps: brokers that were within the bands stay within them."""
    random = Random(seed)
    problem = random_problem(random)
    factor, count = random.randint(1, 3), random.randint(1, 40)
    new = add_topic(problem, "new", [factor] * count, ExpectedLoad(GIGABYTE), NOWHERE)
    found = solve(new).assignment
    judged = evaluate(new, found)
    assert judged.violations == ()
    there = with_new_partitions(new, found, problem)
    assert (
        there.partitions.replicas[: len(problem.partitions.replicas)].tolist() == problem.partitions.replicas.tolist()
    )
    new_lists = placed_lists(new, found)
    assert (len(new_lists), {len(set(one)) for one in new_lists}) == (count, {factor})
    at_random = np.array([random.sample(range(len(problem.brokers)), factor) for _ in range(count)]).ravel()
    worse = replace(there.partitions, replicas=np.append(problem.partitions.replicas, at_random).astype(np.int32))
    by_chance = evaluate(new, replace(found, replicas=worse.replicas))
    misses = [sum(abs(one.amount) for one in each.misses() if one.goal == "replicas") for each in (judged, by_chance)]
    assert misses[0] <= misses[1]


@pytest.mark.parametrize(("count", "extra_records"), [(10_000, 0), (9_999, 1)], ids=["present topic", "new topic"])
def test_as_many_partitions_as_a_controller_creates_may_be_placed(count: int, extra_records: int) -> None:
    check_new_partitions("t", count, extra_records=extra_records)
    with pytest.raises(InputError, match=f"creates at most {count:,} per request"):
        check_new_partitions("t", count + 1, extra_records=extra_records)
