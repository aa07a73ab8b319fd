"""Snapshot files: what is written is read back; what is not one is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kreassign.errors import InputError
from kreassign.model import Broker
from kreassign.model.snapshot import (
    ClusterSnapshot,
    SnapshotBroker,
    SnapshotLogDir,
    SnapshotPartition,
    SnapshotTopic,
    format_head,
    format_snapshot,
    parse_head,
    parse_snapshot,
)
from kreassign.model.text import LARGEST_ID
from tests.approved import approve

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
    (SnapshotTopic("t", (MOVING, UNKNOWN), {"retention.bytes": "1"}), SnapshotTopic("u", (UNKNOWN,), topic_id="AAAA")),
    {"min.insync.replicas": "1"},
    measured_for_s=5.0,
)


def test_what_is_written_is_read_back() -> None:
    assert parse_snapshot(format_snapshot(SNAPSHOT), "x.json") == SNAPSHOT


def test_every_field_of_a_snapshot_has_its_place_in_the_text() -> None:
    approve(format_snapshot(SNAPSHOT), "snapshot.json")


def test_a_head_is_the_same_in_one_line_with_counts_instead_of_partitions() -> None:
    document = json.loads(format_snapshot(SNAPSHOT))
    for topic, count in zip(document["topics"], (2, 1), strict=True):
        del topic["partitions"]
        topic["partition_count"] = count
    assert format_head(SNAPSHOT, (2, 1)) == json.dumps(document)


@pytest.mark.parametrize(("old", "new", "complaint"), [
    ("{", "", "x.json: this is not JSON: "),
    ('"sizes_bytes": [10, 100, -1]', '"sizes_bytes": [10]', "3 replicas have 3 log directories and 1 size;"),
    ('"rack": "a"', '"rack": 1', "x.json: [[brokers]] 1: 'rack' is 1; it must be a text"),
    ('_per_s": 1.5', '_per_s": NaN', "x.json: this is not JSON: NaN is not a number in JSON"),
    ('_per_s": 1.5', '_per_s": 1e999', "x.json: this is not JSON: 1e999 is not a finite number"),
    ('"name": "u"', r'"name": "\ud83d"', r"$.topics[1].name is '\ud83d', which has half of a surrogate pair"),
    ('"name": "u"', '"name": ""', "x.json: [[topics]] 2: 'name' is '', which no topic can have; correct the file"),
    ('"name": "u"', r'"name": "a b\n"', r"x.json: [[topics]] 2: 'name' is 'a b\n', which no topic can have"),
    ('"isr": [0, 1]', '"isr": [7, 0, 8]', "x.json: [[topics]] 1: t-0: 'isr' names [7, 8], which 'replicas' does not; "),
    ('"leader": 0', '"leader": 7', "x.json: [[topics]] 1: t-0: 'leader' is 7, which 'replicas' does not name; correct"),
    ('"replicas": [2, 0, 1]', '"replicas": [0, 0, 1]', "t-0: 'replicas' is [0, 0, 1], which names a broker twice; "),
])  # fmt: skip
def test_what_is_no_snapshot_is_refused(old: str, new: str, complaint: str) -> None:
    text = format_snapshot(SNAPSHOT)
    assert old in text
    with pytest.raises(InputError) as refusal:
        parse_snapshot(text.replace(old, new, 1), "x.json")
    assert complaint in str(refusal.value)


def test_a_snapshot_without_brokers_or_replicas_is_refused() -> None:
    with pytest.raises(InputError, match=r"^s\.json: it has no brokers; correct the file, or make it again with "):
        parse_snapshot(format_snapshot(replace(SNAPSHOT, brokers=())), "s.json")
    bare = replace(SNAPSHOT, topics=(SnapshotTopic("t", (SnapshotPartition((), (), -1, -1, (), ()),)),))
    with pytest.raises(InputError, match=r"^s\.json: \[\[topics\]\] 1: t-0: 'replicas' is empty; correct the file"):
        parse_snapshot(format_snapshot(bare), "s.json")


def test_brokers_of_a_move_that_ended_meanwhile_are_no_fault() -> None:
    ended = replace(MOVING, adding=(7,), removing=(9,), isr=(0, 9))
    known = replace(SNAPSHOT, topics=(SnapshotTopic("t", (ended,)),))
    assert parse_snapshot(format_snapshot(known), "s.json") == known


def test_a_log_directory_that_a_broker_has_twice_is_refused_with_the_file() -> None:
    first = SNAPSHOT.brokers[0]
    twice = replace(first, log_dirs=(first.log_dirs[0], first.log_dirs[0]))
    said = rf"^s\.json: \[\[brokers\]\] 1: log directory {first.log_dirs[0].path} is there more than once$"
    with pytest.raises(InputError, match=said):
        parse_snapshot(format_snapshot(replace(SNAPSHOT, brokers=(twice, *SNAPSHOT.brokers[1:]))), "s.json")


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


def snapshot_with(change: Callable[[Any], object]) -> ClusterSnapshot:
    """Read the text above with something in it changed."""
    document = json.loads(format_snapshot(SNAPSHOT))
    change(document)
    return parse_snapshot(json.dumps(document), "x.json")


def without(place: Callable[[Any], Any], name: str) -> ClusterSnapshot:
    return snapshot_with(lambda document: place(document).pop(name))


def first_partition(document: Any) -> Any:
    return document["topics"][0]["partitions"][0]


def first_log_dir(document: Any) -> Any:
    return document["brokers"][0]["log_dirs"][0]


def with_partition(**fields: Any) -> ClusterSnapshot:
    """The snapshot above with other fields of its first partition."""
    topic = replace(SNAPSHOT.topics[0], partitions=(replace(MOVING, **fields), UNKNOWN))
    return replace(SNAPSHOT, topics=(topic, SNAPSHOT.topics[1]))


def with_broker(**fields: Any) -> ClusterSnapshot:
    """The snapshot above with other fields of its first broker."""
    return replace(SNAPSHOT, brokers=(replace(SNAPSHOT.brokers[0], **fields), *SNAPSHOT.brokers[1:]))


def with_log_dir(**fields: Any) -> ClusterSnapshot:
    """The snapshot above with other fields of the first log directory of its first broker."""
    first, *others = SNAPSHOT.brokers[0].log_dirs
    return with_broker(log_dirs=(replace(first, **fields), *others))


def with_topic(**fields: Any) -> ClusterSnapshot:
    """The snapshot above with other fields of its last topic."""
    return replace(SNAPSHOT, topics=(SNAPSHOT.topics[0], replace(SNAPSHOT.topics[1], **fields)))


def whole(document: Any) -> Any:
    return document


def first_broker(document: Any) -> Any:
    return document["brokers"][0]


def last_topic(document: Any) -> Any:
    return document["topics"][1]


@pytest.mark.parametrize(("place", "name", "snapshot"), [
    *((first_partition, name, with_partition(**{name: ()})) for name in ("isr", "adding", "removing")),
    (first_partition, "future_log_dirs", with_partition(future_log_dirs={})),
    *((first_partition, name, with_partition(**{name: None}))
      for name in ("start_offset", "end_offset", "write_bytes_per_s")),
    *((first_log_dir, name, with_log_dir(**{name: None})) for name in ("total_bytes", "usable_bytes", "is_cordoned")),
    (first_log_dir, "is_offline", with_log_dir(is_offline=False)),
    (first_broker, "rack", with_broker(broker=Broker(0, "host", 9092))),
    (first_broker, "is_fenced", SNAPSHOT),
    (first_broker, "log_dirs", with_broker(log_dirs=())),
    (first_broker, "configs", with_broker(configs={})),
    (last_topic, "topic_id", with_topic(topic_id=None)),
    (last_topic, "configs", SNAPSHOT),
    (last_topic, "partitions", with_topic(partitions=())),
    (whole, "broker_defaults", replace(SNAPSHOT, broker_defaults={})),
    (whole, "topics", replace(SNAPSHOT, topics=())),
])  # fmt: skip
def test_what_is_not_known_may_be_left_out(place: Callable[[Any], Any], name: str, snapshot: ClusterSnapshot) -> None:
    assert without(place, name) == snapshot


TEXT_KIND = "a text without the character U+0000, which no name and no path has"
COUNT = f"a whole number of at least 0 and at most {LARGEST_ID}"
NUMBER = "a whole number of at least 0"
PLACES: dict[str, Callable[[Any], Any]] = {
    "x.json": whole,
    "x.json: [[brokers]] 1": first_broker,
    "x.json: [[brokers]] 1: [[log_dirs]] 1": first_log_dir,
    "x.json: [[topics]] 1": lambda document: document["topics"][0],
    "x.json: [[topics]] 1: [[partitions]] 1": first_partition,
}


@pytest.mark.parametrize(("place", "name", "kind"), [
    ("x.json", "version", NUMBER),
    ("x.json", "taken_ms", NUMBER),
    ("x.json", "cluster_id", TEXT_KIND),
    ("x.json: [[brokers]] 1", "id", COUNT),
    ("x.json: [[brokers]] 1", "host", TEXT_KIND),
    ("x.json: [[brokers]] 1", "port", COUNT),
    ("x.json: [[brokers]] 1: [[log_dirs]] 1", "path", TEXT_KIND),
    ("x.json: [[topics]] 1", "name", TEXT_KIND),
    ("x.json: [[topics]] 1: [[partitions]] 1", "leader", f"a whole number of at least -1 and at most {LARGEST_ID}"),
    (
        "x.json: [[topics]] 1: [[partitions]] 1", "leader_epoch",
        f"a whole number of at least -1 and at most {LARGEST_ID}",
    ),
])  # fmt: skip
def test_what_has_to_be_there_is_named_where_it_is_not(place: str, name: str, kind: str) -> None:
    with pytest.raises(InputError) as refused:
        without(PLACES[place], name)
    assert str(refused.value) == f"{place}: the key '{name}' is missing; it must be {kind}"


PARTITION = "x.json: [[topics]] 1: [[partitions]] 1"


@pytest.mark.parametrize(("place", "name", "value", "kind"), [
    ("x.json", "taken_ms", -1, NUMBER),
    ("x.json: [[brokers]] 1", "id", LARGEST_ID + 1, COUNT),
    ("x.json: [[brokers]] 1", "port", LARGEST_ID + 1, COUNT),
    ("x.json: [[brokers]] 1", "is_fenced", 1, "true or false"),
    ("x.json: [[brokers]] 1", "rack", None, TEXT_KIND),
    ("x.json: [[brokers]] 1: [[log_dirs]] 1", "total_bytes", -1, NUMBER),
    ("x.json: [[brokers]] 1: [[log_dirs]] 1", "usable_bytes", 0.5, NUMBER),
    ("x.json: [[brokers]] 1: [[log_dirs]] 1", "is_offline", 0, "true or false"),
    ("x.json: [[brokers]] 1: [[log_dirs]] 1", "is_cordoned", "no", "true or false"),
    ("x.json: [[topics]] 1", "topic_id", 5, TEXT_KIND),
    (PARTITION, "leader", -2, f"a whole number of at least -1 and at most {LARGEST_ID}"),
    (PARTITION, "leader", LARGEST_ID + 1, f"a whole number of at least -1 and at most {LARGEST_ID}"),
    (PARTITION, "leader_epoch", -2, f"a whole number of at least -1 and at most {LARGEST_ID}"),
    (PARTITION, "leader_epoch", LARGEST_ID + 1, f"a whole number of at least -1 and at most {LARGEST_ID}"),
    (PARTITION, "start_offset", -1, NUMBER),
    (PARTITION, "end_offset", True, NUMBER),
    (PARTITION, "write_bytes_per_s", -0.5, "a number of at least 0"),
    (PARTITION, "replicas", 5, "a list of whole numbers"),
    (PARTITION, "log_dirs", [1], "a list of texts"),
])  # fmt: skip
def test_a_value_that_a_field_cannot_have_is_named_with_its_place(
    place: str, name: str, value: object, kind: str
) -> None:
    with pytest.raises(InputError) as refused:
        snapshot_with(lambda document: PLACES[place](document).update({name: value}))
    shown = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    assert str(refused.value) == f"{place}: '{name}' is {shown}; it must be {kind}"


@pytest.mark.parametrize("place", PLACES)
def test_a_key_that_nobody_knows_is_named_with_its_place(place: str) -> None:
    with pytest.raises(InputError) as refused:
        snapshot_with(lambda document: PLACES[place](document).update({"zeal": 1}))
    assert str(refused.value).startswith(f"{place}: there is no key 'zeal' here; there are ")


def test_the_largest_values_that_kafka_has_are_read() -> None:
    largest = replace(
        MOVING, replicas=(LARGEST_ID,), isr=(LARGEST_ID,), leader=LARGEST_ID, leader_epoch=LARGEST_ID,
        log_dirs=("/d",), sizes_bytes=(2**63 - 1,), future_log_dirs={LARGEST_ID: "/e"}, start_offset=0,
        end_offset=2**63 - 1, write_bytes_per_s=0.0,
    )  # fmt: skip
    snapshot = replace(
        SNAPSHOT,
        brokers=(SnapshotBroker(Broker(LARGEST_ID, "h", LARGEST_ID), (SnapshotLogDir("/d", 0, 2**63 - 1),)),),
        topics=(SnapshotTopic("t", (largest,)),),
    )
    assert parse_snapshot(format_snapshot(snapshot), "x.json") == snapshot


@pytest.mark.parametrize(("sizes", "said"), [
    ([10, 100, -2], f"[10, 100, -2]; it must be a list of whole numbers from -1 to {2**63 - 1}"),
    ([2**63, 1, 1], f"[{2**63}, 1, 1]; it must be a list of whole numbers from -1 to {2**63 - 1}"),
])  # fmt: skip
def test_sizes_are_known_or_not(sizes: list[int], said: str) -> None:
    with pytest.raises(InputError) as refused:
        snapshot_with(lambda document: first_partition(document).update(sizes_bytes=sizes))
    assert str(refused.value) == f"{PARTITION}: 'sizes_bytes' is {said}"


@pytest.mark.parametrize("broker", ["x", "-1", "", "2147483648", "y" * 41])
def test_a_broker_that_gets_a_copy_into_another_directory_is_an_id(broker: str) -> None:
    named = broker if len(broker) <= 40 else f"{broker[:40]}…"
    with pytest.raises(InputError) as refused:
        snapshot_with(lambda document: first_partition(document).update(future_log_dirs={broker: "/d"}))
    assert str(refused.value) == (
        f"{PARTITION}: 'future_log_dirs' names broker '{named}'; it must be a whole number of at least 0"
    )


@pytest.mark.parametrize(("changes", "said"), [
    ({"format": "other"}, "x.json is not a snapshot file; make one with `kreassign snapshot --out FILE`"),
    ({"format": ""}, "x.json is not a snapshot file; make one with `kreassign snapshot --out FILE`"),
    ({"version": 0}, "x.json has version 0 of the format; this kreassign reads version 1"),
])  # fmt: skip
def test_another_format_or_version_is_refused_in_heads_too(changes: dict[str, object], said: str) -> None:
    for document in (json.loads(format_snapshot(SNAPSHOT)), json.loads(format_head(SNAPSHOT, (2, 1)))):
        with pytest.raises(InputError) as refused:
            parse_head(json.dumps(document | changes), "x.json")
        assert str(refused.value) == said


def head_with(**changes: object) -> str:
    document = json.loads(format_head(SNAPSHOT, (2, 1)))
    document["topics"][1] |= changes
    return json.dumps(document)


@pytest.mark.parametrize(("changes", "said"), [
    ({"partition_count": -1}, f"'partition_count' is -1; it must be {COUNT}"),
    ({"partition_count": LARGEST_ID + 1}, f"'partition_count' is {LARGEST_ID + 1}; it must be {COUNT}"),
    ({"partitions": []}, "there is no key 'partitions' here; there are configs, name, partition_count, topic_id"),
])  # fmt: skip
def test_a_topic_of_a_head_has_a_count_instead_of_partitions(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_head(head_with(**changes), "x.json")
    assert str(refused.value) == f"x.json: [[topics]] 2: {said}"
    assert parse_head(head_with(partition_count=LARGEST_ID), "x.json")[1] == (2, LARGEST_ID)
