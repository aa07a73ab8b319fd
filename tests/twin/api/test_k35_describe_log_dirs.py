from __future__ import annotations

from kreassign.model import ConfigResource, TopicPartition
from kreassign.twin.access import Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata import ConfigChanged
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.twin.asking import ask, cluster, twin

TOPIC = api.DESCRIBE_LOG_DIRS.request.DescribableLogDirTopic


def described(asked: Twin, topics: list[Message] | None = None, *, node: int = 0, version: int = 5) -> Message:
    return ask(asked, api.DESCRIBE_LOG_DIRS, version, node=node, topics=topics)


def contents(response: Message) -> dict[str, list[tuple[str, int, int, bool]]]:
    """Per directory: topic, partition, size and whether it is a future copy."""
    return {
        result.log_dir: [
            (topic.name, one.partition_index, one.partition_size, one.is_future_key)
            for topic in result.topics
            for one in topic.partitions
        ]
        for result in response.results
    }


def test_every_directory_is_told_with_its_copies_in_the_order_of_the_configuration() -> None:
    asked = twin({"orders": [[0, 1], [1, 0], [1, 2]]})
    response = described(asked)
    assert contents(response) == {
        "/data/0/d0": [("orders", 0, 10_000_000, False)],
        "/data/0/d1": [("orders", 1, 10_000_000, False)],
    }
    (first, _) = response.results
    assert (first.error_code, first.total_bytes, first.is_cordoned) == (0, 2_000_000_000_000, False)
    assert first.usable_bytes == first.total_bytes - 10_000_000


def test_null_means_all_partitions_and_an_empty_list_none() -> None:
    asked = twin({"orders": [[0, 1], [0, 1]]})
    wanted = [TOPIC(topic="orders", partitions=[1, 7]), TOPIC(topic="nope", partitions=[0])]
    assert sum(map(len, contents(described(asked)).values())) == 2
    assert sum(map(len, contents(described(asked, wanted)).values())) == 1
    assert contents(described(asked, [])) == {"/data/0/d0": [], "/data/0/d1": []}


def test_a_move_between_directories_is_a_second_entry_with_its_lag() -> None:
    asked = Twin(cluster({"orders": [[0, 1]]}, size_bytes=1_000_000_000))
    asked.replication.alter_log_dir(TopicPartition("orders", 0), 0, "/data/0/d1")
    asked.advance(1_000)
    response = described(asked)
    ((_, _, size, _),) = contents(response)["/data/0/d0"]
    ((_, _, future_size, is_future),) = contents(response)["/data/0/d1"]
    assert (size, is_future) == (1_000_000_000, True)
    assert 0 < future_size < size
    lags = [one.offset_lag for result in response.results for topic in result.topics for one in topic.partitions]
    assert lags == [0, (size - future_size) // 1000]


def test_a_failed_directory_has_an_error_and_nothing_in_it() -> None:
    asked = twin({"orders": [[0, 1]]})
    asked.fail_log_dir(0, "/data/0/d0")
    failed, healthy = described(asked).results
    assert (failed.error_code, failed.topics, failed.total_bytes, failed.usable_bytes) == (56, [], -1, -1)
    assert healthy.error_code == 0


def test_a_cordoned_directory_says_so() -> None:
    asked = twin()
    asked.commit(Decision((ConfigChanged(ConfigResource.broker(0), "cordoned.log.dirs", "/data/0/d1"),), None))
    assert [result.is_cordoned for result in described(asked).results] == [False, True]


def test_who_may_not_see_gets_an_error_or_in_old_versions_nothing() -> None:
    asked = twin({"orders": [[0, 1]]}, permissions=Permissions(frozenset()))
    assert (described(asked).error_code, described(asked).results) == (31, [])
    assert described(asked, version=2).results == []
