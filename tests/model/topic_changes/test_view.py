"""Facts about brokers and topics in a cluster's description."""

from __future__ import annotations

import pytest

from kreassign.model import Broker, LogDir, LogDirReplica, Topic, TopicPartition
from kreassign.model.topic_changes import BrokerView, TopicsView, topics_view
from tests.model.topic_changes.views import FOO, FOO_0, FOO_1, partition

TOPICS = {FOO: Topic(FOO, None, is_internal=False, partitions=(partition(0, (1, 2)), partition(1, (2,))))}


def log_dir(path: str, *replicas: LogDirReplica, is_cordoned: bool = False) -> LogDir:
    return LogDir(path, None, None, None, is_cordoned, replicas)


def test_a_broker_holds_the_copies_in_its_directories_but_future_ones() -> None:
    being_built = LogDirReplica(FOO_1, 5, 9, True)
    dirs = {
        1: (log_dir("/a", LogDirReplica(FOO_0, 70, 0, False), being_built), log_dir("/b")),
        2: (log_dir("/a", LogDirReplica(FOO_0, 60, 0, False)), log_dir("/b", LogDirReplica(FOO_1, 8, 0, False))),
    }
    brokers = (Broker(1, "h", 9092, "r"), Broker(2, "h", 9093), Broker(3, "h", 9094))
    seen = topics_view(brokers, dirs, TOPICS, min_in_sync={})
    assert seen.brokers == {
        1: BrokerView(1, "r", 70, 1),
        2: BrokerView(2, None, 68, 2),
        3: BrokerView(3, may_receive=False, is_unread=True),
    }
    assert seen.sizes_bytes == {FOO_0: 70, FOO_1: 8}


@pytest.mark.parametrize(("is_fenced", "cordoned", "may_receive"), [
    (False, (), False),
    (False, (False, True), True),
    (False, (True, True), False),
    (True, (False,), False),
])  # fmt: skip
def test_what_is_down_or_cordoned_altogether_may_receive_nothing(
    is_fenced: bool, cordoned: tuple[bool, ...], may_receive: bool
) -> None:
    dirs = {1: tuple(log_dir(f"/d{number}", is_cordoned=one) for number, one in enumerate(cordoned))}
    seen = topics_view((Broker(1, "h", 9092, is_fenced=is_fenced),), dirs, TOPICS, min_in_sync={FOO: 2})
    assert seen.brokers[1].may_receive == may_receive
    assert (seen.topics, seen.min_in_sync, seen.ongoing) == (TOPICS, {FOO: 2}, frozenset())


def test_what_moves_is_kept_and_only_the_copy_of_a_leader_has_the_size() -> None:
    stranger = LogDirReplica(TopicPartition("bar", 0), 3, 0, False)
    dirs = {2: (log_dir("/a", LogDirReplica(FOO_0, 60, 0, False), stranger),), 7: (log_dir("/a", stranger),)}
    seen = topics_view((Broker(2, "h", 9092),), dirs, TOPICS, ongoing=frozenset({FOO_1}), min_in_sync={})
    assert seen == TopicsView({2: BrokerView(2, None, 63, 2)}, TOPICS, {}, frozenset({FOO_1}), {})
