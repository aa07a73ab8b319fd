import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.errors import InputError
from kreassign.model import NO_LEADER, Partition, TopicPartition, TopicPartitionReplica

TOPIC_NAMES = st.text("abcXYZ019._-", min_size=1, max_size=12)


@given(TOPIC_NAMES, st.integers(0, 10**6))
def test_a_partition_is_read_back_from_its_own_text(topic: str, number: int) -> None:
    partition = TopicPartition(topic, number)
    assert TopicPartition.parse(str(partition)) == partition


def test_a_topic_may_hold_dashes() -> None:
    assert TopicPartition.parse("orders-eu-3") == TopicPartition("orders-eu", 3)
    assert str(TopicPartition("orders-eu", 3)) == "orders-eu-3"


@pytest.mark.parametrize("text", ["", "orders", "3", "-3", "orders-", "orders-x", "orders-٣", "orders-1.0"])
def test_a_malformed_partition_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a partition; write topic-partition, for example orders-3") as refused:
        TopicPartition.parse(text)
    assert repr(text) in str(refused.value)


def test_partitions_sort_by_topic_then_number() -> None:
    b0, a10, a2 = TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)
    assert sorted([b0, a10, a2]) == [a2, a10, b0]


def test_replicas_sort_by_broker_first() -> None:
    ten, two, one = (TopicPartitionReplica(broker, topic, 0) for broker, topic in [(10, "a"), (2, "a"), (1, "z")])
    assert sorted([ten, two, one]) == [one, two, ten]


def test_a_replica_names_its_partition_and_its_broker() -> None:
    replica = TopicPartitionReplica(7, "orders", 3)
    assert replica.topic_partition == TopicPartition("orders", 3)
    assert str(replica) == "orders-3-7"


def partition(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = 1) -> Partition:
    return Partition(TopicPartition("orders", 3), replicas, isr, leader)


def test_the_first_replica_is_the_preferred_leader() -> None:
    assert partition((2, 1), (1,)).preferred_leader == 2
    assert partition((), ()).preferred_leader == NO_LEADER == -1


@pytest.mark.parametrize(
    ("replicas", "isr", "expected"),
    [((1, 2), (2, 1), False), ((1, 2), (1,), True), ((1, 2), (), True), ((1,), (1, 2), False), ((), (), False)],
)
def test_under_replicated_means_that_a_replica_is_out_of_sync(
    replicas: tuple[int, ...], isr: tuple[int, ...], expected: bool
) -> None:
    assert partition(replicas, isr).under_replicated is expected


def test_a_partition_reads_as_a_sentence() -> None:
    assert str(partition((2, 1), (1,))) == "orders-3: replicas 2,1, isr 1, leader 1"
    assert str(partition((2, 1), (), NO_LEADER)) == "orders-3: replicas 2,1, isr , leader none"


def test_a_text_that_is_no_partition_is_named_as_far_as_a_message_has_room() -> None:
    with pytest.raises(InputError) as refused:
        TopicPartition.parse("x" * 41)
    said = "is not a partition; write topic-partition, for example orders-3"
    assert str(refused.value) == f"'{'x' * 40}…' {said}"


def test_the_largest_number_of_a_partition_is_kafkas() -> None:
    assert TopicPartition.parse("t-2147483647") == TopicPartition("t", 2**31 - 1)
    with pytest.raises(InputError):
        TopicPartition.parse("t-2147483648")


def test_what_a_cluster_does_not_report_of_a_partition_is_not_known() -> None:
    assert partition((1,), (1,)) == Partition(TopicPartition("orders", 3), (1,), (1,), 1, -1, (), None, None)
