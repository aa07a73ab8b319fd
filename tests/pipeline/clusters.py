"""A small cluster as model values, for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kreassign import model
from kreassign.errors import Unreachable
from kreassign.pipeline.ingest.snapshots import SampleRound, SnapshotAnswers, sample_rows, snapshot_tables
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import SAMPLES

UNKNOWN_LOADS = dict.fromkeys(
    ("p95_write_bytes_per_s", "p99_write_bytes_per_s", "peak_write_bytes_per_s", "forecast_size_bytes",
     "forecast_write_bytes_per_s", "read_bytes_per_s", "read_basis", "read_error_share", "cpu_share",
     "follower_cpu_share", "low_write_bytes_per_s", "high_write_bytes_per_s", "low_p95_write_bytes_per_s",
     "high_p95_write_bytes_per_s"),
) | {"verdict": "unknown"}  # fmt: skip
TAKEN_MS = 1_762_250_400_123
ORDERS_0, ORDERS_1 = model.TopicPartition("orders", 0), model.TopicPartition("orders", 1)


def copy(topic_partition: model.TopicPartition, size_bytes: int, *, is_future: bool = False) -> model.LogDirReplica:
    return model.LogDirReplica(topic_partition, size_bytes, offset_lag=0, is_future=is_future)


def log_dir(path: str, *replicas: model.LogDirReplica, error: str | None = None) -> model.LogDir:
    return model.LogDir(path, error, 1000, 400, is_cordoned=False, replicas=replicas)


def orders(topic_id: str = "id-1") -> model.Topic:
    """Partition 0 is led by its second replica, partition 1 is moving from broker 2 to broker 3."""
    return model.Topic(
        "orders",
        topic_id,
        is_internal=False,
        partitions=(
            model.Partition(ORDERS_0, replicas=(1, 2), isr=(2,), leader=2, leader_epoch=4),
            model.Partition(ORDERS_1, replicas=(1, 3, 2), isr=(1, 2), leader=1),
        ),
    )


LOG_DIRS: model.Batch[int, tuple[model.LogDir, ...]] = model.Batch(
    {
        1: (
            log_dir("/a", copy(ORDERS_0, 90), copy(ORDERS_1, 70)),
            log_dir("/b", copy(ORDERS_1, 5, is_future=True)),
        ),
        2: (log_dir("/a", copy(ORDERS_0, 80), copy(ORDERS_1, 71)), log_dir("/b", error="KAFKA_STORAGE_ERROR")),
    },
    {3: Unreachable("broker 3 did not answer")},
)


def observation() -> SnapshotAnswers:
    """Three brokers, of which the third did not tell its log directories."""
    brokers = (
        model.Broker(1, "h1", 9092, "a"),
        model.Broker(2, "h2", 9092),
        model.Broker(3, "h3", 9092, is_fenced=True),
    )
    moving = model.OngoingReassignment(replicas=(1, 3, 2), adding=(3,), removing=(2,))
    return SnapshotAnswers(TAKEN_MS, model.Cluster("c.1", 1, brokers), (orders(),), LOG_DIRS, {ORDERS_1: moving})


def sample_round(taken_ms: int, end_offset: int, topic_id: str = "id-1") -> SampleRound:
    """Offsets of partition 0 only: its log keeps records from 100 on."""
    return SampleRound(taken_ms, "c.1", (orders(topic_id),), {ORDERS_0: 100}, {ORDERS_0: end_offset}, LOG_DIRS)


def fill(data_dir: Path) -> None:
    """Two snapshots and three rounds of samples; in one of them a row is bad."""
    older = replace(observation(), taken_ms=TAKEN_MS - 60_000)
    for seen in (older, observation()):
        for table, rows in snapshot_tables(seen):
            write_rows(data_dir, table, rows, file_stem=seen.snapshot_id)
    for second, end_offset in ((0, 110), (4, 120), (8, 140)):
        seen_round = sample_round(TAKEN_MS + 1000 * second, end_offset)
        write_rows(data_dir, SAMPLES, sample_rows(seen_round), file_stem=seen_round.file_stem)
    bad = sample_rows(sample_round(TAKEN_MS, 110))[0] | {"partition": 1, "start_offset": 200}
    write_rows(data_dir, SAMPLES, [bad], file_stem="bad")
