import pytest

from kreassign.model import TopicPartition
from kreassign.twin.replication.replicas import MoveQueue, thread_number
from kreassign.twin.replication.state import CopyKey


@pytest.mark.parametrize(
    ("topic", "partition", "threads", "thread"),
    [
        # Java's hash of "foo" is 101,574, and 31 * 101,574 = 3,148,794.
        ("foo", 0, 5, 4),
        ("foo", 3, 5, 2),
        # 31 * -1,894,580,786 (the hash of "my-topic") overflows to 1,397,537,778.
        ("my-topic", 0, 1000, 778),
        # A hash of -2^31, of which Java has no absolute value.
        ("polygenelubricants", 0, 7, 0),
        ("polygenelubricants", 1, 7, 1),
        # Outside the first 65,536 characters a character counts as two: 1,772,899, times 31 is 54,959,869.
        ("\U0001f600", 0, 1000, 869),
    ],
)
def test_a_partition_belongs_to_the_thread_that_java_would_give_it(
    topic: str, partition: int, threads: int, thread: int
) -> None:
    assert thread_number(TopicPartition(topic, partition), threads) == thread


def key(row: int, broker: int = 0) -> CopyKey:
    return CopyKey(row, broker, is_future=True)


def test_threads_and_brokers_do_not_wait_for_each_other() -> None:
    turns = MoveQueue()
    assert turns.add(key(0), TopicPartition("t", 0), 2) == key(0)
    assert turns.add(key(1), TopicPartition("t", 1), 2) == key(1)
    assert turns.add(key(0, 1), TopicPartition("t", 0), 2) == key(0, 1)
    assert turns.add(key(2), TopicPartition("t", 2), 2) is None


def test_the_least_waiting_move_is_next() -> None:
    turns = MoveQueue()
    for row in (2, 6, 0, 4):
        turns.add(key(row), TopicPartition("t", row), 2)
    assert turns.remove(key(0)) is None
    assert turns.remove(key(2)) == key(4)
    assert turns.remove(key(4)) == key(6)
    assert turns.remove(key(6)) is None
