from kreassign.admin.call import by_topic
from kreassign.model import TopicPartition


def test_partitions_are_grouped_and_sorted_and_counted_once() -> None:
    partitions = [TopicPartition("b", 1), TopicPartition("a", 10), TopicPartition("a", 2), TopicPartition("a", 10)]
    grouped = by_topic(partitions)
    assert grouped == {"a": [2, 10], "b": [1]}
    assert list(grouped) == ["a", "b"]
    assert by_topic([]) == {}
