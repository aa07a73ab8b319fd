"""Single replicas get a new broker in their place: by rack, by free space, and nothing else changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kreassign.model import TopicPartition
from kreassign.planner import Assignment, BrokerFacts, Problem
from kreassign.planner.tasks import replace_lost
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed


def replaced(
    problem: Problem, broker: int, *numbers: int, barred: dict[int, tuple[int, ...]] | None = None
) -> tuple[list[tuple[int, ...]], dict[int, str]]:
    """The lists of topic t, and the reasons, once the replicas of these partitions on a broker are lost."""
    leaving = {TopicPartition("t", number): (broker,) for number in numbers}
    found, refused = replace_lost(
        problem, leaving, {TopicPartition("t", number): ids for number, ids in (barred or {}).items()}
    )
    before = {
        problem.partitions.name(index): tuple(problem.brokers.ids[replicas].tolist())
        for index, replicas in enumerate(Assignment.current(problem.partitions).lists())
    }
    return [*(before | found).values()], {name.partition: reason for name, reason in refused.items()}


def lost_broker(broker: int, rack: str | None = None) -> BrokerFacts:
    return BrokerFacts(broker, rack, may_receive=False, must_empty=True)


def test_a_replica_goes_to_a_rack_without_its_partition() -> None:
    hosts = [*brokers(1, 2, 3, racks="aab"), lost_broker(9, "b")]
    problem = posed(hosts, [partition(0, 9, 1), partition(1, 3, gigabytes=50)])
    assert replaced(problem, 9, 0) == ([(3, 1), (3,)], {})


def test_only_what_is_lost_changes_and_it_keeps_its_place_in_the_list() -> None:
    problem = posed([*brokers(1, 2, 3, 4), lost_broker(9)], [partition(0, 1, 9, 2), partition(1, 9, 1)])
    assert replaced(problem, 9, 0) == ([(1, 3, 2), (9, 1)], {})


def test_the_emptiest_broker_takes_it_by_the_part_of_its_disk_that_is_full() -> None:
    hosts = [
        BrokerFacts(1, capacity={"disk": 100 * GIGABYTE}),
        BrokerFacts(2, capacity={"disk": 100 * GIGABYTE}),
        BrokerFacts(3, capacity={"disk": 1000 * GIGABYTE}),
        lost_broker(9),
    ]
    loads = [partition(0, 1, 9), partition(1, 2, gigabytes=30), partition(2, 3, gigabytes=100)]
    assert replaced(posed(hosts, loads), 9, 0)[0][0] == (1, 3)


def test_a_broker_without_room_takes_nothing_of_any_partition() -> None:
    hosts = [*brokers(1, 2, capacity={"disk": 30 * GIGABYTE}), lost_broker(9)]
    loads = [partition(0, 1, 9, gigabytes=10), partition(1, 1, 9, gigabytes=15), partition(2, 2, gigabytes=10)]
    lists, refused = replaced(posed(hosts, loads), 9, 0, 1)
    assert (lists[0], lists[1]) == ((1, 9), (1, 2)), "the larger one comes first"
    assert refused == {0: "no other broker has room for 10 GB"}


def test_a_successor_is_of_the_broker_set_of_the_partition() -> None:
    hosts = [*brokers(1), *brokers(2, 3, broker_set="red"), lost_broker(9)]
    loads = [partition(0, 2, 9, broker_set="red"), partition(1, 2, 3, 9, broker_set="red")]
    found, refused = replaced(posed(hosts, loads), 9, 0, 1)
    assert found[0] == (2, 3)
    assert refused == {1: "no other broker of its broker set may take it"}


def test_brokers_that_are_barred_for_a_partition_are_left_out_for_it_only() -> None:
    problem = posed([*brokers(1, 2, 3), lost_broker(9)], [partition(0, 1, 9), partition(1, 1, 9)])
    lists, refused = replaced(problem, 9, 0, 1, barred={0: (2, 3)})
    assert (lists[0], refused) == ((1, 9), {0: "no other broker may take it"})
    assert lists[1] in {(1, 2), (1, 3)}


def test_a_rack_is_not_used_twice_where_the_other_racks_would_do() -> None:
    problem = posed([*brokers(1, 2, 3, racks="aab"), lost_broker(9, "b")], [partition(0, 1, 9)])
    lists, refused = replaced(problem, 9, 0, barred={0: (3,)})
    assert (lists, refused) == ([(1, 9)], {0: "every other broker is in a rack that has a replica of it"})


def test_where_a_whole_rack_is_lost_the_others_take_its_replicas() -> None:
    problem = posed([*brokers(1, 2, racks="aa"), lost_broker(9, "b")], [partition(0, 1, 9)])
    assert replaced(problem, 9, 0) == ([(1, 2)], {})


def test_sizes_that_nobody_knows_leave_the_number_of_replicas_to_decide() -> None:
    problem = posed([*brokers(1, 2, 3), lost_broker(9)], [partition(number, 1, 9, gigabytes=0) for number in range(4)])
    lists, _ = replaced(problem, 9, 0, 1, 2, 3)
    assert sorted(replicas[1] for replicas in lists) == [2, 2, 3, 3]


LISTS = st.lists(st.permutations(range(1, 7)).map(lambda ids: tuple(ids[:3])), min_size=1, max_size=8)


@given(LISTS, st.integers(1, 6), st.sampled_from(["aabbcc", "abcabc", "aaaaab", "abcdef"]))
def test_whatever_is_lost_only_its_places_change_and_no_rule_is_broken(
    lists: list[tuple[int, ...]], broker: int, racks: str
) -> None:
    hosts = [
        BrokerFacts(one, racks[one - 1], may_receive=one != broker, must_empty=one == broker) for one in range(1, 7)
    ]
    problem = posed(hosts, [partition(number, *replicas) for number, replicas in enumerate(lists)])
    after, refused = replaced(problem, broker, *range(len(lists)))
    for number, (old, new) in enumerate(zip(lists, after, strict=True)):
        changed = [(was, now) for was, now in zip(old, new, strict=True) if was != now]
        assert [was for was, _ in changed] == ([broker] if broker in old and number not in refused else [])
        assert len(set(new)) == len(new)
