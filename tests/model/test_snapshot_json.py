"""Snapshot files: what is written is read back; what is not one is refused with its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.errors import InputError
from kreassign.model import Broker, TopicPartition
from kreassign.model.snapshot import (
    ClusterSnapshot,
    SnapshotBroker,
    SnapshotLogDir,
    SnapshotPartition,
    SnapshotTopic,
)
from kreassign.model.snapshot_json import format_head, format_snapshot, parse_head, parse_snapshot

MOVING = SnapshotPartition(
    replicas=(2, 0, 1),
    isr=(0, 1),
    leader=0,
    leader_epoch=7,
    log_dirs=("/d0", "/d1", None),
    sizes_bytes=(10, 100, None),
    adding=(2,),
    removing=(1,),
    future_log_dirs={0: "/d0"},
    start_offset=3,
    end_offset=5,
    write_bytes_per_s=1.5,
)
UNKNOWN = SnapshotPartition((0,), (), -1, -1, (None,), (None,))
SNAPSHOT = ClusterSnapshot(
    12,
    "id",
    (
        SnapshotBroker(
            Broker(0, "host", 9092, "a"),
            (
                SnapshotLogDir("/d0", 100, 50),
                SnapshotLogDir("/d1", is_offline=True),
                SnapshotLogDir("/d2", is_cordoned=True),
            ),
            {"leader.replication.throttled.rate": "5"},
        ),
        SnapshotBroker(Broker(1, "host", 9093, is_fenced=True)),
        SnapshotBroker(Broker(2, "höst", 9094)),
    ),
    (SnapshotTopic("t", (MOVING, UNKNOWN), {"retention.bytes": "1"}), SnapshotTopic("u", (UNKNOWN,))),
    {"min.insync.replicas": "1"},
)


def test_what_is_written_is_read_back() -> None:
    assert parse_snapshot(format_snapshot(SNAPSHOT), "x.json") == SNAPSHOT


def test_an_empty_cluster_is_written_and_read_back() -> None:
    empty = ClusterSnapshot(0, "id", ())
    assert parse_snapshot(format_snapshot(empty), "x.json") == empty


def test_every_partition_has_a_line_of_its_own() -> None:
    lines = format_snapshot(SNAPSHOT).splitlines()
    assert [line.count('"leader"') for line in lines if '"leader"' in line] == [1, 1, 1]


def test_a_partition_is_as_large_as_the_copy_of_its_leader_or_the_largest() -> None:
    assert MOVING.size_bytes == 100
    assert SnapshotPartition((0, 1), (0,), 0, 0, (None, "/d"), (None, 30)).size_bytes == 30
    assert UNKNOWN.size_bytes is None
    assert [key for key, _ in SNAPSHOT.partitions] == [
        TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "complaint"), [
    ("{", "", "x.json: this is not JSON: "),
    ("kreassign-snapshot", "other", "x.json is not a snapshot file; make one with `kreassign snapshot --out FILE`"),
    ('"version": 1', '"version": 2', "x.json has version 2 of the format; this kreassign reads version 1"),
    ('"leader_epoch"', '"leader_epok"', "x.json: [[topics]] 1: [[partitions]] 1: the key 'leader_epoch' is missing"),
    ('"sizes_bytes": [10, 100, -1]', '"sizes_bytes": [10]', "3 replicas have 3 log directories and 1 sizes"),
    ('"rack": "a"', '"rack": 1', "x.json: [[brokers]] 1: 'rack' is 1; it must be a text"),
    ('{"0": "/d0"}', '{"x": "/d0"}', "[[partitions]] 1: 'future_log_dirs' names broker 'x'"),
    ('_per_s": 1.5', '_per_s": NaN', "x.json: this is not JSON: NaN is not a number in JSON"),
    ('_per_s": 1.5', '_per_s": 1e999', "x.json: this is not JSON: 1e999 is not a finite number"),
    ('"name": "u"', r'"name": "\ud83d"', r"$.topics[1].name is '\ud83d', which has half of a surrogate pair"),
])  # fmt: skip
def test_what_is_no_snapshot_is_refused(old: str, new: str, complaint: str) -> None:
    text = format_snapshot(SNAPSHOT)
    assert old in text
    with pytest.raises(InputError) as refusal:
        parse_snapshot(text.replace(old, new, 1), "x.json")
    assert complaint in str(refusal.value)


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(InputError, match=r"^x.json: this is JSON, but not an object$"):
        parse_snapshot("[]", "x.json")


def test_a_broker_or_a_topic_that_is_there_twice_is_refused_with_the_file() -> None:
    twice = replace(SNAPSHOT, brokers=(*SNAPSHOT.brokers, SNAPSHOT.brokers[1]))
    with pytest.raises(InputError, match=r"^s\.json: broker 1 is there more than once$"):
        parse_snapshot(format_snapshot(twice), "s.json")
    name = SNAPSHOT.topics[0].name
    twice = replace(SNAPSHOT, topics=(*SNAPSHOT.topics, SNAPSHOT.topics[0]))
    with pytest.raises(InputError, match=rf"^s\.json: topic {name} is there more than once$"):
        parse_snapshot(format_snapshot(twice), "s.json")


def test_a_head_is_read_back_without_partitions_and_with_their_counts() -> None:
    bare = replace(SNAPSHOT, topics=tuple(replace(topic, partitions=()) for topic in SNAPSHOT.topics))
    assert parse_head(format_head(SNAPSHOT, (2, 1)), "x.json") == (bare, (2, 1))
