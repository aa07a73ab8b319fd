from dataclasses import replace

from kreassign.planner.check.topics import uneven_topics_by_size
from tests.planner.small_problems import GIGABYTE, brokers, partition, posed


def named(*sizes: float, **facts: object) -> list[str]:
    """The partitions of topic t, of these sizes in GB, that are named beside an even topic of 100 GB."""
    even = [partition(number, 1, topic="even", gigabytes=10) for number in range(10)]
    loads = [partition(number, 1, gigabytes=size, **facts) for number, size in enumerate(sizes)]
    return [one.partition for one in uneven_topics_by_size(posed(brokers(1, 2), [*even, *loads]))]


def test_a_partition_of_more_than_twice_the_others_is_named() -> None:
    assert named(10, 30) == ["t-1"]
    assert named(10, 20) == []
    assert named(0, 5, 0) == ["t-1"]


def test_small_topics_and_single_partitions_are_left_out() -> None:
    assert named(0.1, 0.5) == []  # a hundredth of what a broker holds is about 0.5 GB
    assert named(90) == []


def test_what_a_broker_holds_are_all_replicas() -> None:
    def found(*replicas: int) -> int:
        loads = [partition(number, *replicas, topic="even") for number in range(10)]
        loads += [partition(0, 1, gigabytes=0.2), partition(1, 1, gigabytes=1)]
        return len(uneven_topics_by_size(posed(brokers(1, 2), loads)))

    assert (found(1), found(1, 2)) == (1, 0)


def test_partitions_of_unknown_size_do_not_count() -> None:
    unknown = partition(7, 1, gigabytes=0, may_move=False)
    loads = [partition(0, 1), partition(1, 2, gigabytes=15), unknown]
    assert uneven_topics_by_size(posed(brokers(1, 2), loads)) == ()


def test_the_largest_comes_first_and_says_how_large_the_others_are() -> None:
    loads = [
        partition(n, 1, topic=t, gigabytes=size) for t in "ab" for n, size in enumerate((1, 1, 20 + 9 * (t == "b")))
    ]
    first, second = uneven_topics_by_size(posed(brokers(1, 2), loads))
    assert (first.partition, first.size_bytes, first.other_bytes, first.partitions) == (
        "b-2", 29 * GIGABYTE, GIGABYTE, 3,
    )  # fmt: skip
    assert second.partition == "a-2"


def test_a_cluster_without_partitions_has_none() -> None:
    assert uneven_topics_by_size(posed(brokers(1), [])) == ()


def whole(*sizes: int, rest: int, hosts: int = 1) -> list[tuple[str, int, int, int]]:
    """Sentence about topic t with these bytes, beside one partition of the rest."""
    loads = [replace(partition(number, 1), size_bytes=size) for number, size in enumerate(sizes)]
    loads.append(replace(partition(0, 1, topic="rest"), size_bytes=rest))
    found = uneven_topics_by_size(posed(brokers(*range(1, hosts + 1)), loads))
    return [(one.partition, one.size_bytes, one.other_bytes, one.partitions) for one in found]


def test_a_hundredth_of_what_a_broker_holds_is_enough() -> None:
    assert whole(100, 0, rest=9_900) == [("t-0", 100, 0, 2)]
    assert whole(100, 0, rest=9_901) == []
    assert whole(100, 0, rest=19_900, hosts=2) == [("t-0", 100, 0, 2)]
    # The difference counts: 149 are more than twice 50, and 99 more.
    assert (whole(50, 150, rest=9_800), whole(50, 149, rest=9_801)) == ([("t-1", 150, 50, 2)], [])


def test_others_count_on_average_and_the_first_of_equals_is_named() -> None:
    assert whole(500, 100, 400, rest=0) == []
    assert whole(501, 100, 400, rest=0) == [("t-0", 501, 250, 3)]
    assert whole(500, 500, 0, 0, 0, 0, rest=0) == [("t-0", 500, 100, 6)]


def test_topics_whose_largest_are_alike_come_by_name() -> None:
    loads = [replace(partition(n, 1, topic=topic), size_bytes=n) for topic in "cab" for n in (0, 1)]
    assert [one.partition for one in uneven_topics_by_size(posed(brokers(1), loads))] == ["a-1", "b-1", "c-1"]
