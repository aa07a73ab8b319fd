from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kreassign.model import NO_LEADER, Batch, Partition, Topic, TopicPartition
from kreassign.pipeline.ingest import snapshots
from kreassign.pipeline.tables.schemas import CLUSTERS, SAMPLES, Row
from tests.pipeline.clusters import LOG_DIRS, ORDERS_0, TAKEN_MS, copy, log_dir, observation, sample_round

HEAD = {"snapshot_id": "20251104T100000.123Z-c_1", "cluster_id": "c.1", "taken_ms": TAKEN_MS}


def by_broker(rows: Iterable[Row], partition: int) -> dict[int, Row]:
    return {row["broker"]: row for row in rows if row["partition"] == partition}


def test_the_id_of_a_snapshot_sorts_by_time_and_is_safe_as_a_file_name() -> None:
    earlier = replace(observation(), taken_ms=TAKEN_MS - 24)
    assert observation().snapshot_id == "20251104T100000.123Z-c_1"
    assert earlier.snapshot_id == "20251104T100000.099Z-c_1"
    assert snapshots.file_name_part("../../etc") == "______etc"


def test_a_snapshots_seal_is_last_and_every_row_fits_its_table() -> None:
    tables = snapshots.snapshot_tables(observation())
    assert tables[-1][0] is CLUSTERS
    assert len({table.name for table, _ in tables}) == 5
    for table, rows in tables:
        found = list(rows)
        assert found
        assert all(tuple(row) == table.column_names for row in found), table.name


def test_clusters_counts_what_the_snapshot_holds() -> None:
    counts = {"controller_id": 1, "broker_count": 3, "topic_count": 1, "partition_count": 2}
    assert snapshots.cluster_rows(observation()) == [HEAD | counts]


def test_a_broker_that_did_not_tell_its_log_dirs_is_there_with_the_reason() -> None:
    rows = {row["broker"]: row for row in snapshots.broker_rows(observation())}
    assert rows[1]["log_dirs_error"] is None
    assert rows[1]["rack"] == "a"
    assert rows[2]["rack"] is None
    assert rows[3]["log_dirs_error"] == "broker 3 did not answer"
    assert rows[3]["is_fenced"]


def test_a_broker_that_was_not_asked_says_so() -> None:
    rows = snapshots.broker_rows(replace(observation(), log_dirs=Batch()))
    assert [row["log_dirs_error"] for row in rows] == ["was not asked"] * 3


def test_log_dirs_add_up_what_they_hold_futures_too() -> None:
    rows = {(row["broker"], row["path"]): row for row in snapshots.log_dir_rows(observation())}
    assert sorted(rows) == [(1, "/a"), (1, "/b"), (2, "/a"), (2, "/b")]
    assert (rows[1, "/a"]["replica_count"], rows[1, "/a"]["replica_bytes"]) == (2, 160)
    assert (rows[1, "/b"]["replica_count"], rows[1, "/b"]["replica_bytes"]) == (1, 5)
    assert rows[2, "/b"]["error"] == "KAFKA_STORAGE_ERROR"


def test_partitions_show_a_running_move() -> None:
    idle, moving = snapshots.partition_rows(observation())
    assert (idle["replicas"], idle["isr"], idle["adding"], idle["removing"]) == ([1, 2], [2], [], [])
    assert (moving["replicas"], moving["adding"], moving["removing"]) == ([1, 3, 2], [3], [2])
    assert (idle["leader"], idle["leader_epoch"], idle["topic_id"]) == (2, 4, "id-1")


def test_replicas_have_their_place_state_and_size() -> None:
    rows = by_broker(snapshots.replica_rows(observation()), 0)
    assert [(row["position"], row["is_leader"], row["is_in_sync"]) for row in rows.values()] == [
        (0, False, False),
        (1, True, True),
    ]
    assert [(row["log_dir"], row["size_bytes"]) for row in rows.values()] == [("/a", 90), ("/a", 80)]


def test_replicas_tell_adding_removing_and_moves_between_directories() -> None:
    rows = by_broker(snapshots.replica_rows(observation()), 1)
    assert list(rows) == [1, 3, 2]
    assert (rows[1]["future_log_dir"], rows[1]["future_size_bytes"]) == ("/b", 5)
    assert (rows[1]["log_dir"], rows[1]["size_bytes"]) == ("/a", 70)
    assert (rows[3]["is_adding"], rows[3]["log_dir"], rows[3]["size_bytes"]) == (True, None, None)
    assert (rows[2]["is_removing"], rows[2]["is_adding"]) == (True, False)


def test_samples_leave_out_partitions_without_offsets() -> None:
    rows = snapshots.sample_rows(sample_round(5000, end_offset=150))
    assert [tuple(row) for row in rows] == [SAMPLES.column_names]
    assert rows[0] == {
        "cluster_id": "c.1",
        "taken_ms": 5000,
        "topic": "orders",
        "topic_id": "id-1",
        "partition": 0,
        "leader": 2,
        "start_offset": 100,
        "end_offset": 150,
        "size_bytes": 80,
    }


def test_the_size_of_a_sample_is_the_leaders_and_of_no_other_replica() -> None:
    def size(leader: int, seen: snapshots.SampleRound) -> int | None:
        partition = Partition(ORDERS_0, replicas=(1, 2), isr=(1, 2), leader=leader)
        rows = snapshots.sample_rows(replace(seen, topics=(Topic("orders", None, False, (partition,)),)))
        return rows[0]["size_bytes"]

    seen = sample_round(5000, end_offset=150)
    assert size(2, seen) == 80
    assert size(1, seen) == 90
    assert size(NO_LEADER, seen) is None
    assert size(1, replace(seen, log_dirs=Batch({2: LOG_DIRS[2]}))) is None
    assert size(1, replace(seen, log_dirs=Batch())) is None


def test_a_copy_being_built_by_a_move_between_directories_is_not_the_size() -> None:
    seen = replace(sample_round(5000, 150), log_dirs=Batch({2: (log_dir("/b", copy(ORDERS_0, 999, is_future=True)),)}))
    assert snapshots.sample_rows(seen)[0]["size_bytes"] is None


def test_a_partition_that_only_one_offset_is_known_of_has_no_sample() -> None:
    seen = replace(sample_round(5000, end_offset=150), end_offsets={TopicPartition("orders", 1): 7})
    assert snapshots.sample_rows(seen) == []
