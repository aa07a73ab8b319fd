"""A twin made of a snapshot begins with what the cluster had."""

from __future__ import annotations

from dataclasses import replace

from kreassign.model import Broker, TopicPartition
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.twin import Blueprint, Twin
from kreassign.twin.blueprint import Speeds, blueprint_of

MB = 10**6
KEY = TopicPartition("t", 0)
PARTITION = SnapshotPartition(
    replicas=(0, 1),
    isr=(1, 0),
    leader=1,
    leader_epoch=4,
    log_dirs=("/d0", "/d1"),
    sizes_bytes=(20 * MB, 20 * MB),
    start_offset=500,
    end_offset=1500,
    write_bytes_per_s=0.0,
)


def snapshot(*partitions: SnapshotPartition, fenced: int = 9) -> ClusterSnapshot:
    dirs = (SnapshotLogDir("/d0", 900 * MB, 100 * MB), SnapshotLogDir("/d1"), SnapshotLogDir("/d2", is_offline=True))
    brokers = tuple(
        SnapshotBroker(Broker(number, "h", 9092, f"r{number}", number == fenced), dirs) for number in range(3)
    )
    return ClusterSnapshot(0, "real", brokers, (SnapshotTopic("t", partitions, {"retention.ms": "1000"}),))


def blueprint(*partitions: SnapshotPartition, fenced: int = 9) -> Blueprint:
    return blueprint_of(snapshot(*partitions, fenced=fenced), Speeds(50 * MB, 70 * MB))


def test_brokers_have_their_racks_and_as_much_room_as_was_free() -> None:
    found = blueprint(PARTITION)
    assert found.cluster_id == "real"
    assert [broker.rack for broker in found.brokers] == ["r0", "r1", "r2"]
    hardware = found.brokers[0].hardware
    assert [log_dir.path for log_dir in hardware.log_dirs] == ["/d0", "/d1"]
    assert hardware.log_dirs[0].capacity_bytes == 120 * MB
    assert (hardware.log_dirs[0].read_bytes_per_s, hardware.net_in_bytes_per_s) == (50 * MB, 70 * MB)


def test_partitions_have_their_leader_order_sizes_and_offsets() -> None:
    twin = Twin(blueprint(PARTITION))
    state = twin.metadata.partition(KEY)
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((0, 1), (1, 0), 1, 4)
    readings = twin.replication.readings
    assert (readings.size_bytes(KEY, 0), readings.log_dir(KEY, 1)) == (20 * MB, "/d1")
    assert (readings.log_start_offset(KEY, 1), readings.log_end_offset(KEY, 1)) == (500, 1500)


def test_moves_go_on_from_where_they_were() -> None:
    moving = replace(
        PARTITION,
        replicas=(2, 1, 0),
        log_dirs=("/d0", "/d1", "/d0"),
        sizes_bytes=(5 * MB, 20 * MB, 20 * MB),
        adding=(2,),
        removing=(0,),
    )
    twin = Twin(blueprint(moving))
    assert set(twin.metadata.reassigning) == {KEY}
    assert twin.replication.readings.size_bytes(KEY, 2) == 5 * MB
    twin.advance(5_000)
    assert twin.metadata.partition(KEY).replicas == (2, 1)


def test_moves_between_directories_begin_again() -> None:
    twin = Twin(blueprint(replace(PARTITION, future_log_dirs={0: "/d1"})))
    assert twin.replication.readings.future_log_dir(KEY, 0) == "/d1"
    twin.advance(5_000)
    assert twin.replication.readings.log_dir(KEY, 0) == "/d1"


def test_a_copy_that_is_behind_has_what_it_had() -> None:
    behind = replace(PARTITION, isr=(1,), sizes_bytes=(8 * MB, 20 * MB))
    twin = Twin(blueprint(behind, fenced=0))
    assert not twin.is_running(0)
    assert twin.replication.readings.size_bytes(KEY, 0) == 8 * MB
    twin.start(0)
    twin.advance(5_000)
    assert set(twin.metadata.partition(KEY).isr) == {0, 1}


def test_a_broker_that_is_only_in_replica_lists_is_down() -> None:
    twin = Twin(blueprint(replace(PARTITION, replicas=(0, 7), isr=(0,), leader=0)))
    assert not twin.is_running(7)
    assert twin.metadata.partition(KEY).leader == 0


def test_what_was_in_an_offline_directory_is_brought_back_to_another() -> None:
    lost = replace(PARTITION, isr=(1,), log_dirs=("/d2", "/d1"), sizes_bytes=(None, 20 * MB))
    twin = Twin(blueprint(lost))
    assert twin.replication.readings.log_dir(KEY, 0) in {"/d0", "/d1"}


def test_what_nobody_told_is_empty_and_at_rest() -> None:
    silent = SnapshotPartition((0,), (0,), 0, 0, (None,), (None,))
    twin = Twin(blueprint(silent))
    assert twin.replication.readings.size_bytes(KEY, 0) == 0
    assert twin.next_event_ms() is None
