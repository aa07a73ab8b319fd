"""Goals of single topics, judged without the search: replicas and leaders shared out, leaders in preferred racks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kreassign.model.plan_facts import LeaderRacks, TopicLeaders
from kreassign.planner import Assignment, Problem, Rules
from kreassign.planner.check.topics import (
    leader_racks,
    leaders_elsewhere,
    leaders_missed,
    least_and_most,
    shares_by_topic,
    topic_leaders,
    topics_outside,
    uneven_topics,
)
from kreassign.planner.goals import LEADERS, REPLICAS
from kreassign.planner.problem.problem import Gone
from tests.planner.sentences import says
from tests.planner.small_problems import brokers, moved, partition, posed


def now(problem: Problem) -> Assignment:
    return Assignment.current(problem.partitions)


def outside(hosts, *leaders: int, tolerance: float = 0.0) -> tuple[str, ...]:
    loads = [partition(number, leader) for number, leader in enumerate(leaders)]
    problem = posed(hosts, loads, rules=Rules(topic_spread=tolerance))
    return topics_outside(problem, now(problem))


def test_a_topic_is_spread_within_a_whole_replica_of_its_share() -> None:
    assert outside(brokers(1, 2, 3), 1, 1, 2, 3) == ()
    assert outside(brokers(1, 2), 1, 1, 2, 2) == ()
    # Both are off by one: the last is told.
    assert outside(brokers(1, 2), 1, 1, 1, 2) == (says("uneven replicas", "t", 2, "1 of 4", 2),)


def test_of_several_brokers_the_one_furthest_off_is_told() -> None:
    assert outside(brokers(1, 2, 3), 1, 1, 1, 1, 1, 2) == (says("uneven replicas", "t", 1, "5 of 6", 2),)


@pytest.mark.parametrize(("tolerance", "count"), [(0.0, 1), (0.25, 1), (0.5, 0)])
def test_a_tolerance_is_a_part_of_the_share(tolerance: float, count: int) -> None:
    assert len(outside(brokers(1, 2), 1, 1, 1, 1, 1, 1, 2, 2, tolerance=tolerance)) == count


def test_a_broker_that_is_to_be_emptied_or_is_down_has_no_share() -> None:
    hosts = [replace(host, is_live=host.id != 3) for host in brokers(1, 2, 3)]
    assert outside(hosts, 1, 2) == ()
    assert outside(hosts, 1, 3) == (says("uneven replicas", "t", 3, "1 of 2", 0),)


def test_limits_of_replicas_decide_the_shares() -> None:
    hosts = [replace(host, capacity={"replicas": 300.0 if host.id == 1 else 100.0}) for host in brokers(1, 2)]
    assert outside(hosts, 1, 1, 1, 2) == ()
    assert len(outside(hosts, 1, 1, 2, 2)) == 1


def led(*leaders: int, hosts=None, tolerance: float | None = 0.0) -> Problem:
    loads = [partition(number, leader, 3 - leader) for number, leader in enumerate(leaders)]
    return posed(hosts or brokers(1, 2), loads, rules=Rules(topic_leaders=tolerance))


def test_leaders_are_missed_by_how_many_brokers_lead_too_many_and_too_few() -> None:
    problem = led(1, 1, 1, 1)
    (missed, said) = leaders_missed(problem, now(problem))["t"]
    assert (missed, said) == (4, says("uneven leaders", "t", 1, "4 of 4", 2))
    assert list(uneven_topics(problem, now(problem))) == [said]


@pytest.mark.parametrize(("leaders", "tolerance", "missed"), [
    ((1, 1, 2), 0.0, {}), ((1, 1, 1, 2), 0.0, {"t": 2}), ((1, 1, 1, 2), 0.5, {}), ((1, 1, 1, 2), 0.4, {"t": 0}),
    ((1, 1, 1, 1), None, {}),
])  # fmt: skip
def test_whole_leaders_beside_the_share_are_even(leaders, tolerance, missed) -> None:
    problem = led(*leaders, tolerance=tolerance)
    found = {name: count for name, (count, _) in leaders_missed(problem, now(problem)).items()}
    assert found == {name: count for name, count in missed.items() if count}


def test_where_nobody_may_lead_every_leader_is_one_too_many() -> None:
    problem = led(1, 1, hosts=[replace(host, is_live=False) for host in brokers(1, 2)])
    assert leaders_missed(problem, now(problem)) == {"t": (2, says("uneven leaders", "t", 1, "2 of 2", 0))}


def test_a_plan_tells_how_many_topics_were_uneven_and_are() -> None:
    problem = led(1, 1, 1, 1)
    there = moved(problem, (0, (2, 1)))
    assert topic_leaders(problem, there) == TopicLeaders(
        1, uneven_before=1, uneven_after=1, missed_before=4, missed_after=2
    )
    assert topic_leaders(led(1, tolerance=None), now(led(1))) is None


def preferred(*lists: tuple[int, ...], hosts=None, order: tuple[str, ...] = ("b", "a")) -> Problem:
    loads = [partition(number, *replicas) for number, replicas in enumerate(lists)]
    loads.append(partition(0, 3, topic="u"))
    return posed(hosts or brokers(1, 2, 3, 4, racks="abcc"), loads, rules=Rules(leader_racks={"t": order}))


def test_a_leader_is_held_where_no_other_replica_is_in_an_earlier_rack() -> None:
    problem = preferred((2, 1), (1, 2), (1, 3), (3, 4))
    assert leader_racks(problem, now(problem)) == LeaderRacks(4, 3, 3)
    assert leader_racks(problem, moved(problem, (1, (2, 1)), (2, (3, 1)))) == LeaderRacks(4, 3, 3)
    assert leader_racks(posed(brokers(1), [partition(0, 1)]), now(problem)) is None


def test_who_leads_elsewhere_and_who_can_lead_in_none_of_the_racks_is_told() -> None:
    problem = preferred((2, 1), (1, 2), (1, 3), (3, 4))
    assert list(leaders_elsewhere(problem, now(problem))) == [
        says("no replica in the racks", "t", "1 of 4", "b, a"),
        says("leads from another rack", "t", "1 of 4", "b, a"),
    ]
    assert list(leaders_elsewhere(preferred((2, 1)), now(preferred((2, 1))))) == []


@pytest.mark.parametrize("change", [{"is_live": False}, {"must_empty": True}, {"may_lead": False}])
def test_a_broker_that_may_not_lead_does_not_count(change) -> None:
    hosts = [replace(host, **change) if host.id == 2 else host for host in brokers(1, 2, 3, racks="abc")]
    problem = preferred((1, 2), hosts=hosts)
    assert leader_racks(problem, now(problem)) == LeaderRacks(1, 1, 1)
    assert list(leaders_elsewhere(problem, now(problem))) == []


@pytest.mark.parametrize(
    ("tolerance", "held"), [(0.25, (3, 5)), (0.24, (3, 5)), (0.0, (4, 4)), (0.5, (2, 6)), (1.5, (0, 10))]
)
def test_whole_numbers_within_the_tolerance_are_even(tolerance: float, held: tuple[int, int]) -> None:
    """A share of 4: the ends are within, and one more at either is not."""
    least, most = held
    assert least_and_most(4.0, tolerance)[1] == most
    assert max(least_and_most(4.0, tolerance)[0], 0) == least


def test_the_whole_numbers_beside_a_share_are_always_even() -> None:
    assert (least_and_most(2.5, 0.0), least_and_most(1 / 3, 0.0), least_and_most(0.0, 0.5)) == ((2, 3), (0, 1), (0, 0))
    # What floating point takes for the third of three.
    assert least_and_most(1.0 + 1e-12, 0.0) == least_and_most(1.0 - 1e-12, 0.0) == (1, 1)


def test_topics_of_a_broker_set_are_shared_by_its_brokers() -> None:
    hosts = [replace(host, broker_set="ab"[host.id > 2]) for host in brokers(1, 2, 3, 4)]
    loads = [partition(n, 1, topic="free") for n in range(4)] + [
        partition(n, 1, topic="t", broker_set="a") for n in range(4)
    ]
    problem = posed(hosts, loads, rules=Rules(topic_spread=0.0, topic_leaders=0.0))
    assert topics_outside(problem, now(problem)) == (
        says("uneven replicas", "free", 1, "4 of 4", 1),
        says("uneven replicas", "t", 2, "0 of 4", 2),
    )
    assert leaders_missed(problem, now(problem)) == {
        "free": (6, says("uneven leaders", "free", 1, "4 of 4", 1)),
        "t": (4, says("uneven leaders", "t", 1, "4 of 4", 2)),
    }


def test_shares_are_those_of_replicas_and_of_leaders() -> None:
    hosts = [replace(host, share=float(host.id), may_lead=host.id != 3) for host in brokers(1, 2, 3)]
    problem = posed(hosts, [partition(0, 1)])
    assert [(topic, shares.tolist()) for topic, shares in shares_by_topic(problem, REPLICAS)] == [
        (0, [1 / 6, 2 / 6, 0.5])
    ]
    assert [shares.tolist() for _, shares in shares_by_topic(problem, LEADERS)] == [[1 / 3, 2 / 3, 0]]
    gone = posed([replace(host, is_live=False) for host in hosts], [partition(0, 1)])
    assert [shares.tolist() for _, shares in shares_by_topic(gone, REPLICAS)] == [[0, 0, 0]]


@pytest.mark.parametrize(("count", "told"), [(100, 100), (101, 101), (102, 101)])
def test_a_hundred_topics_are_told_and_how_many_there_are_beside_them(count: int, told: int) -> None:
    loads = [partition(number, 1, topic=f"t{topic:03}") for topic in range(count) for number in range(2)]
    problem = posed(brokers(1, 2), loads, rules=Rules(topic_spread=0.0, topic_leaders=0.0))
    spread, led_by = topics_outside(problem, now(problem)), list(uneven_topics(problem, now(problem)))
    assert (len(spread), len(led_by)) == (told, told)
    assert topics_outside(replace(problem, rules=Rules()), now(problem)) == ()
    assert spread[99].startswith("topic t099: ")
    assert led_by[99].startswith("topic t099: ")
    if count > 100:
        more = ("1 topic more is", "1 topic more has") if count == 101 else ("2 topics more are", "2 topics more have")
        assert (spread[-1], led_by[-1]) == (f"and {more[0]} not spread", f"and {more[1]} uneven leaders")


def test_of_leaders_the_first_of_the_widest_misses_is_told() -> None:
    problem = led(1, 1, 1, 1, hosts=brokers(1, 2, 3))
    # Shares are 4/3, so that 1 or 2 are even: 1 leads two too many, 2 and 3 one too few each.
    assert leaders_missed(problem, now(problem))["t"] == (
        4,
        says("uneven leaders", "t", 1, "4 of 4", "1.33"),
    )
    few = led(*[1] * 3, *[2] * 3, hosts=brokers(1, 2, 3))
    assert leaders_missed(few, now(few))["t"] == (4, says("uneven leaders", "t", 3, "0 of 6", 2))


def test_each_of_several_topics_has_its_own_racks() -> None:
    hosts = brokers(1, 2, 3, racks="abc")
    loads = [partition(0, 1, 2), partition(1, 1, 3), partition(0, 3, 1, topic="u"), partition(0, 1, 2, topic="v")]
    problem = posed(hosts, loads, rules=Rules(leader_racks={"u": ("b", "a"), "t": ("b",)}))
    assert leader_racks(problem, now(problem)) == LeaderRacks(3, 1, 1)
    assert list(leaders_elsewhere(problem, now(problem))) == [
        says("no replica in the racks", "t", "1 of 2", "b"),
        says("leads from another rack", "t", "1 of 2", "b"),
        says("leads from another rack", "u", "1 of 1", "b, a"),
    ]
    there = moved(problem, (0, (2, 1)))
    assert leader_racks(problem, there) == LeaderRacks(3, before=1, after=2)


def test_who_is_gone_or_has_no_rack_is_never_preferred() -> None:
    hosts = [replace(host, rack="abc"[host.id - 1] if host.id < 3 else None) for host in brokers(1, 2, 3)]
    problem = preferred((1, 2), (3, 1), hosts=hosts)
    assert leader_racks(problem, now(problem)) == LeaderRacks(2, 0, 0)
    gone = Gone(brokers=np.array([False, True, False]), replicas=np.zeros(5, bool))
    assert leader_racks(replace(problem, gone=gone), now(problem)) == LeaderRacks(2, 1, 1)
    (said,) = leaders_elsewhere(replace(problem, gone=gone), moved(problem, (1, (1, 3)), (0, (2, 1))))
    assert said == says("leads from another rack", "t", "1 of 2", "b, a")


def test_who_may_not_lead_is_not_preferred_either_where_others_are_gone() -> None:
    hosts = [replace(host, may_lead=host.id != 2) for host in brokers(1, 2, 3, racks="abc")]
    problem = preferred((1, 2), hosts=hosts)
    gone = Gone(brokers=np.array([False, False, True]), replicas=np.zeros(3, bool))
    assert leader_racks(replace(problem, gone=gone), now(problem)) == LeaderRacks(1, 1, 1)
