"""Reactions of brokers to records of the metadata log."""

from __future__ import annotations

import pytest

from kreassign.errors import InputError
from kreassign.model import ConfigResource
from kreassign.twin import metadata
from kreassign.twin.replication.hardware import ReplicationSettings
from kreassign.twin.replication.replication import Replication
from kreassign.twin.replication.state import CopyDeleted, ReplicaCaughtUp
from tests.twin.boxes import AT_ONCE, SECOND, Box, Given, broker, directory_id, tp

LATER = 61


def create(box: Box, topic: str, partition: int, replicas: tuple[int, ...], *directories: str) -> None:
    """A new partition; the controller knows no directories unless they are given."""
    known = directories or (metadata.UNASSIGNED,) * len(replicas)
    box.say(metadata.PartitionCreated(tp(partition, topic), replicas, replicas, replicas[0], 0, 0, known))


def usable(box: Box, number: int) -> list[int | None]:
    return [log_dir.usable_bytes for log_dir in box.replication.readings.log_dirs(number)]


# Topics


def test_a_new_partition_is_empty_and_in_sync() -> None:
    box = Box()
    box.say(metadata.TopicCreated("new", "topic-new"))
    create(box, "new", 0, (0, 1))
    assert box.run(10) == []
    readings = box.replication.readings
    assert [readings.log_dir(tp(0, "new"), broker_id) for broker_id in (0, 1)] == ["/d0", "/d0"]
    assert readings.size_bytes(tp(0, "new"), 1) == 0
    assert readings.log_end_offset(tp(0, "new"), 0) == readings.high_watermark(tp(0, "new")) == 0
    box.replication.set_write_rate(tp(0, "new"), 1000)
    box.run(10)
    assert readings.size_bytes(tp(0, "new"), 1) == 10_000
    assert readings.log_end_offset(tp(0, "new"), 1) == 10


def test_a_controller_that_knows_the_directories_is_not_told_them() -> None:
    box = Box()
    box.say(metadata.TopicCreated("new", "topic-new"))
    create(box, "new", 0, (0,), directory_id(0, "/d1"))
    assert box.run(10) == []
    assert box.replication.readings.log_dir(tp(0, "new"), 0) == "/d1"


def test_brokers_fill_the_emptiest_directory_that_is_not_cordoned() -> None:
    box = Box(hardware={0: broker(log_dirs=3)})
    box.configure(ConfigResource.broker(0), "cordoned.log.dirs", "/d1")
    box.say(metadata.TopicCreated("new", "topic-new"))
    for partition in range(4):
        create(box, "new", partition, (0,))
    box.configure(ConfigResource.broker(0), "cordoned.log.dirs", "*")
    create(box, "new", 4, (0,))
    box.configure(ConfigResource.broker(0), "cordoned.log.dirs", None)
    create(box, "new", 5, (0,))
    placed = [box.replication.readings.log_dir(tp(partition, "new"), 0) for partition in range(6)]
    assert placed == ["/d0", "/d2", "/d0", "/d2", "/d0", "/d1"]
    assert [log_dir.is_cordoned for log_dir in box.replication.readings.log_dirs(0)] == [False] * 3


def test_a_deleted_topic_leaves_nothing_after_a_while() -> None:
    box = Box(Given((0, 1), size=100, rate=1), Given((1,), size=50))
    box.add(1, 2)
    box.run(0.2)
    box.say(metadata.TopicDeleted("t"))
    told = [event for _, event in box.run(59)]
    assert told == []
    assert box.size(0, 0) is None
    assert usable(box, 2) == [9980 * 10**6, 10_000 * 10**6 - 1]
    told = [event for _, event in box.run(LATER)]
    assert [event for event in told if isinstance(event, CopyDeleted)] == told
    assert len(told) == 4
    for number in range(3):
        assert usable(box, number) == [10_000 * 10**6, 10_000 * 10**6 - 1]
    assert box.replication.next_event_ms() is None


def test_a_topic_can_be_created_again() -> None:
    box = Box(Given((0, 1), size=100))
    box.say(metadata.TopicDeleted("t"), metadata.TopicCreated("t", "another"))
    create(box, "t", 0, (2,))
    create(box, "t", 1, (3,))
    assert (box.size(0, 0), box.size(0, 2), box.size(1, 3)) == (None, 0, 0)


def test_a_replica_lost_twice_while_its_broker_is_down_is_deleted_twice() -> None:
    """The directory of the first copy fails in between, so that the second one is another."""
    box = Box(Given((0, 1), size=100, log_dir=0))
    box.change(0, isr=(0,))
    box.replication.crash(1)
    box.change(0, replicas=(0,))
    box.replication.fail_dir(1, "/d0")
    box.add(0, 1)
    box.change(0, replicas=(0,))
    box.replication.restore_dir(1, "/d0")
    box.replication.restore(1)
    assert sorted(one.path for _, one in box.run(120, CopyDeleted) if isinstance(one, CopyDeleted)) == ["/d0", "/d1"]


def test_a_broker_that_was_down_lacks_the_records_of_a_topic_made_again() -> None:
    box = Box(Given((0, 1), size=100))
    box.replication.crash(1)
    box.say(metadata.TopicDeleted("t"), metadata.TopicCreated("t", "another"))
    create(box, "t", 0, (0,))
    box.replication.set_write_rate(tp(0), 10**6)
    box.run(10)
    box.add(0, 1)
    assert (box.size(0, 0), box.size(0, 1)) == (10, 0)


# Replicas


def test_a_directory_that_lost_a_log_is_filled_again() -> None:
    box = Box(Given((0,), log_dir=0), Given((0, 1), log_dir=0), Given((0,), log_dir=1), Given((0,), log_dir=1))
    box.change(1, replicas=(1,), isr=(1,), leader=1)
    box.add(1, 0)
    assert box.replication.readings.log_dir(tp(1), 0) == "/d0"
    box.say(metadata.TopicDeleted("t"), metadata.TopicCreated("t", "another"))
    create(box, "t", 0, (0,))
    create(box, "t", 1, (0,))
    assert [box.replication.readings.log_dir(tp(partition), 0) for partition in (0, 1)] == ["/d0", "/d1"]


def test_a_removed_copy_takes_room_until_it_is_deleted() -> None:
    box = Box(Given((0, 1), size=100))
    box.change(0, replicas=(0,), isr=(0,))
    assert box.size(0, 1) is None
    assert box.replication.readings.log_dirs(1)[0].replicas == ()
    assert usable(box, 1)[0] == 9900 * 10**6
    assert box.run(100) == [(60 * SECOND, CopyDeleted(tp(0), 1, "/d0"))]
    assert usable(box, 1)[0] == 10_000 * 10**6


def test_a_copy_removed_from_a_dead_broker_is_deleted_when_it_is_back() -> None:
    box = Box(Given((0, 1), size=100))
    box.replication.crash(1)
    box.change(0, replicas=(0,), isr=(0,))
    assert box.run(1000) == []
    box.replication.restore(1)
    assert box.run(1000) == [(1060 * SECOND, CopyDeleted(tp(0), 1, "/d0"))]


def test_a_copy_that_is_cancelled_halfway_begins_again_the_next_time() -> None:
    box = Box(Given((0,), size=100))
    box.add(0, 1)
    box.run(0.5)
    box.change(0, replicas=(0,))
    assert box.caught_up(100) == {}
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): SECOND}


def test_a_whole_move_replaces_one_copy_by_another() -> None:
    box = Box(Given((0, 1), size=100, rate=1))
    box.change(0, replicas=(0, 2, 1))
    box.live(10)
    assert box.state(0).isr == (0, 1, 2)
    box.change(0, replicas=(2, 0), isr=(0, 2), leader=2)
    box.run(LATER)
    assert (box.size(0, 0), box.size(0, 1), box.size(0, 2)) == (171, None, 171)


def test_a_change_of_the_isr_alone_moves_nothing() -> None:
    box = Box(Given((0, 1), size=100))
    box.change(0, isr=(0,))
    assert box.caught_up() == {(0, 1): 0}
    box.say(metadata.PartitionChanged(tp(0)), metadata.LogDirFailed(1, directory_id(1, "/d1")))
    assert box.run(100) == []


def test_an_unregistered_broker_joins_nothing() -> None:
    box = Box(Given((0,), size=100))
    box.add(0, 1)
    box.say(metadata.BrokerUnregistered(1))
    assert box.run(100, ReplicaCaughtUp) == []


# Configuration


def test_retention_that_is_set_on_a_topic_shortens_its_logs() -> None:
    box = Box(Given((0, 1), size=100, rate=1))
    box.configure(ConfigResource.topic("t"), "retention.bytes", "30000000")
    assert (box.size(0, 0), box.size(0, 1)) == (30, 30)
    box.run(100)
    assert (box.size(0, 0), box.size(0, 1)) == (30, 30)
    assert box.replication.readings.log_end_offset(tp(0), 0) == 200_000
    box.configure(ConfigResource.topic("t"), "retention.bytes", "-1")
    box.run(100)
    assert box.size(0, 0) == 130


def test_a_copy_starts_where_its_leader_does_and_follows_its_retention() -> None:
    # 60 MB at 10 - 1 MB/s.
    box = Box(Given((0,), size=90, rate=1, retention=90), hardware={0: broker(read=10)})
    box.run(5)
    box.add(0, 1)
    assert box.replication.readings.log_start_offset(tp(0), 1) == 5000
    assert box.caught_up(100) == {(0, 1): 10 * SECOND}
    assert box.size(0, 1) == 90


def test_other_configuration_is_none_of_its_business() -> None:
    box = Box(Given((0,), size=100))
    box.configure(ConfigResource.topic("t"), "min.insync.replicas", "2")
    box.configure(ConfigResource.broker(0), "log.cleaner.threads", "2")
    box.configure(ConfigResource(ConfigResource.broker(0).type, ""), "leader.replication.throttled.rate", "1")
    box.add(0, 1)
    assert box.caught_up() == {(0, 1): SECOND}


# Loading


def test_a_cluster_is_taken_over_with_its_throttles_and_moves() -> None:
    box = Box(Given((0, 1), size=100, rate=2), Given((0,), size=100, rate=1, retention=100))
    box.throttle(10)
    box.add(0, 2)
    box.add(1, 3)
    box.configure(ConfigResource.topic("t"), "retention.bytes", "100000000")
    twin = Replication({number: broker() for number in range(4)}, AT_ONCE)
    traffic = {tp(0): Given((0,), size=100, rate=2).traffic, tp(1): Given((0,), size=100, rate=1).traffic}
    twin.load(box.metadata, traffic, {(tp(0), 2): 40_000_000, (tp(1), 3): 40_000_000})
    box.replication = twin
    # The budget of broker 0 is 10 MB/s: its follower in sync takes 2, the copies 4 each, of which 2 and 3 close in.
    first = box.run(20, ReplicaCaughtUp)[0]
    assert first == (20 * SECOND, ReplicaCaughtUp(tp(1), 3))
    # It came to 120 MB, and the first 40 of them are past their retention by now.
    assert box.size(0, 2) == pytest.approx(80)
    assert box.size(1, 0) == 100
    with pytest.raises(InputError, match="partitions already"):
        twin.load(box.metadata, {})


def test_adding_replicas_are_found_empty() -> None:
    box = Box(Given((0,), size=100))
    box.say(metadata.PartitionChanged(tp(0), (0, 1), (1,), directories=(directory_id(0, "/d0"), metadata.UNASSIGNED)))
    twin = Replication({number: broker() for number in range(4)}, AT_ONCE)
    twin.load(box.metadata, {tp(0): Given((0,), size=100).traffic})
    assert twin.readings.size_bytes(tp(0), 1) == 0


def test_every_broker_of_the_metadata_needs_hardware() -> None:
    box = Box(Given((0,)))
    with pytest.raises(InputError, match="broker 3 has no hardware"):
        Replication({number: broker() for number in range(3)}).load(box.metadata, {})


def test_an_empty_cluster_never_does_anything() -> None:
    twin = Replication({}, ReplicationSettings())
    twin.load(metadata.ClusterMetadata(), {})
    assert twin.next_event_ms() is None
    assert twin.advance(10**9) == ()
