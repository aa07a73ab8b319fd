import pytest

from kreassign.twin.replication.hardware import NO_LIMIT, ThrottledReplicas, parse_rate


@pytest.mark.parametrize("text", ["0:1,3:2", " 0:1, 3:2 ", "0:1,,3:2,"])
def test_a_list_holds_pairs_of_partition_and_broker(text: str) -> None:
    listed = ThrottledReplicas.parse(text)
    held = [(partition, broker) for partition in range(5) for broker in range(5) if listed.holds(partition, broker)]
    assert held == [(0, 1), (3, 2)]


@pytest.mark.parametrize("text", [None, "", " "])
def test_no_list_holds_nobody(text: str | None) -> None:
    assert not ThrottledReplicas.parse(text).holds(0, 0)


def test_a_star_holds_everybody() -> None:
    assert ThrottledReplicas.parse("*").holds(7, 9)


def test_lists_differ_in_the_partitions_that_only_one_of_them_names() -> None:
    old, new = ThrottledReplicas.parse("0:1,1:1"), ThrottledReplicas.parse("1:1,2:1")
    assert old.differs(new) == {0, 2}
    assert old.differs(old) == frozenset()
    star = ThrottledReplicas.parse("*")
    assert star.differs(old) is None
    assert star.differs(star) == frozenset()


def test_a_rate_that_is_not_set_limits_nothing() -> None:
    assert parse_rate(None) == NO_LIMIT
    assert parse_rate("1000") == 1000
