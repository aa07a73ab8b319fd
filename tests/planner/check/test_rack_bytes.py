"""Bytes that a plan copies between racks, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreassign.errors import InputError
from kreassign.model.plan_facts import NO_PRICES, RackBytes, RackPrices, joined_prices, parse_price
from kreassign.model.plan_facts_json import format_facts, parse_facts
from kreassign.planner import Rules
from kreassign.planner.check.cost import rack_bytes
from kreassign.planner.problem.problem import Gone, RackRule
from kreassign.planner.results import Origin, outcome_of
from tests.planner.small_problems import GIGABYTE, brokers, moved, partition, posed

LOADS = [partition(0, 1, 2), partition(1, 2, 1), partition(2, 3, 1)]
ANYWHERE = Rules(racks=RackRule.NONE)


def test_a_copy_comes_from_the_leader_that_the_partition_has_now() -> None:
    problem = posed(brokers(1, 2, 3, 4, racks="abab"), LOADS, rules=ANYWHERE)
    # 0: from 1 in a to 4 in b. 1: from 2 in b to 3 in a, although 1 in a has a copy too. 2: from 3 in a to 4 in b.
    there = moved(problem, (0, (1, 4)), (1, (1, 3)), (2, (4, 1)))
    found = rack_bytes(problem, there, RackPrices(0.01, {("b", "a"): 2.0}))
    assert found == (RackBytes("a", "b", 20 * GIGABYTE, 0.2), RackBytes("b", "a", 10 * GIGABYTE, 20.0))
    assert [one.crosses for one in found] == [True, True]


def test_within_a_rack_nothing_is_paid_unless_the_pair_is_named() -> None:
    problem = posed(brokers(1, 2, 3, 4, racks="abab"), LOADS, rules=ANYWHERE)
    there = moved(problem, (0, (1, 3)))
    (free,) = rack_bytes(problem, there, RackPrices(1.0))
    (paid,) = rack_bytes(problem, there, RackPrices(1.0, {("a", "a"): 0.5}))
    assert ((free.crosses, free.cost), paid.cost) == ((False, 0.0), 5.0)


def test_racks_and_prices_that_are_not_known_are_told_as_such() -> None:
    hosts = [replace(host, rack=None if host.id == 4 else host.rack) for host in brokers(1, 2, 3, 4, racks="abab")]
    problem = posed(hosts, LOADS, rules=ANYWHERE)
    found = rack_bytes(problem, moved(problem, (0, (1, 4)), (1, (2, 3))), RackPrices(pairs={("a", "b"): 1.0}))
    assert found == (RackBytes("a", None, 10 * GIGABYTE, None), RackBytes("b", "a", 10 * GIGABYTE, None))
    unknown = posed(brokers(1, 2, 3), LOADS)
    assert rack_bytes(unknown, moved(unknown, (0, (1, 3))), RackPrices(1.0)) == ()
    (one,) = rack_bytes(posed(brokers(1, 2, 3, racks="aaa"), LOADS), moved(unknown, (0, (1, 3))), NO_PRICES)
    assert (one.crosses, one.cost) == (False, None)


def test_of_a_dead_leader_the_next_in_the_list_that_lives_is_copied_from() -> None:
    hosts = [replace(host, is_live=host.id != 1) for host in brokers(1, 2, 3, racks="abb")]
    problem = posed(hosts, [partition(0, 1, 2)], rules=ANYWHERE)
    (found,) = rack_bytes(problem, moved(problem, (0, (2, 3))), NO_PRICES)
    assert (found.source, found.target) == ("b", "b")


def test_who_has_lost_its_copy_or_is_gone_is_not_copied_from() -> None:
    hosts = brokers(1, 2, 3, 4, racks="abcd")
    lost = posed(hosts, [partition(0, 1, 2), partition(1, 1, 2, lost_on=(1,))], rules=ANYWHERE)
    there = moved(lost, (0, (1, 4)), (1, (2, 3)))
    assert rack_bytes(lost, there, NO_PRICES) == (
        RackBytes("a", "d", 10 * GIGABYTE, None), RackBytes("b", "c", 10 * GIGABYTE, None),
    )  # fmt: skip
    replicas = np.array([True, False, False, False])  # of the first partition that on broker 1
    gone = replace(lost, gone=Gone(brokers=np.zeros(4, bool), replicas=replicas))
    assert [(one.source, one.target) for one in rack_bytes(gone, there, NO_PRICES)] == [("b", "c"), ("b", "d")]
    nobody = posed(hosts, [partition(0, 1, 2, lost_on=(1, 2)), partition(1, 3)], rules=ANYWHERE)
    assert [one.source for one in rack_bytes(nobody, moved(nobody, (0, (1, 4))), NO_PRICES)] == ["a"]


def test_racks_come_by_name_and_unknown_ones_last() -> None:
    hosts = [replace(host, rack="zya"[host.id - 1] if host.id < 4 else None) for host in brokers(1, 2, 3, 4, 5)]
    loads = [partition(number, broker) for number, broker in enumerate((1, 1, 1, 3, 3, 4, 4, 5))]
    problem = posed(hosts, loads, rules=ANYWHERE)
    targets = (2, 4, 3, 4, 1, 3, 5, 2)
    found = rack_bytes(problem, moved(problem, *((n, (target,)) for n, target in enumerate(targets))), NO_PRICES)
    assert [(one.source, one.target) for one in found] == [
        ("a", "z"), ("a", None), ("z", "a"), ("z", "y"), ("z", None), (None, "a"), (None, "y"), (None, None),
    ]  # fmt: skip
    assert {one.size_bytes for one in found} == {10 * GIGABYTE}


def test_nothing_is_told_where_nothing_is_copied() -> None:
    problem = posed(brokers(1, 2, racks="ab"), [partition(0, 1, 2)], rules=ANYWHERE)
    assert rack_bytes(problem, moved(problem, (0, (2, 1))), RackPrices(1.0)) == ()


def test_the_sum_is_what_the_plan_copies_and_the_facts_keep_it() -> None:
    problem = posed(brokers(1, 2, 3, 4, racks="abab"), LOADS, rules=ANYWHERE)
    outcome = outcome_of(problem, moved(problem, (0, (1, 4)), (2, (4, 1))), Origin("t", rack_prices=RackPrices(0.02)))
    assert sum(one.size_bytes for one in outcome.facts.racks) == outcome.facts.totals.moved_bytes
    assert parse_facts(format_facts(outcome.facts)).racks == outcome.facts.racks


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "a=1", ":b=1", "a:=1", "a:b=", "a:b=-1", "1e400", "-0"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is no price; write for example 0.01, or a:b=0.02"):
        parse_price(text)


def test_a_later_price_takes_the_place_of_an_earlier_one() -> None:
    both = joined_prices(parse_price("0.01"), parse_price("a:b=0.02"))
    assert both == RackPrices(0.01, {("a", "b"): 0.02})
    assert joined_prices(both, parse_price("a:b=0")).cost("a", "b", GIGABYTE) == 0
    assert joined_prices(both, parse_price("3")).between == 3
