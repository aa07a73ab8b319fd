"""Samples of a synthetic cluster whose every rate is known: growth, a daily cycle, gaps, restarts, re-created topics.

Records arrive in partition p, t days after the begin, with the intensity

    r * (1 + g * t) * (1 + a * sin(2 pi (t - f)))        records per second

and every record has b bytes. Arrivals between two rounds are drawn from Poisson's distribution of that mean. All is
drawn with a seed, so that the same call makes the same files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kreassign.model import Batch, Broker, Cluster, LogDir, LogDirReplica, Partition, Topic, TopicPartition
from kreassign.pipeline.ingest.snapshots import SnapshotAnswers, snapshot_tables
from kreassign.pipeline.tables.arrow import arrow_schema
from kreassign.pipeline.tables.delta import commit, log_to_write
from kreassign.pipeline.tables.parquet import write_files, write_rows
from kreassign.pipeline.tables.schemas import SAMPLES

BEGIN_MS = 1_762_214_400_000  # midnight, UTC
BROKERS = 6
PARTITIONS_PER_TOPIC = 50
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of the cluster, duration of sampling, and faults meanwhile."""

    partitions: int
    days: float
    interval_s: int
    is_troubled: bool = False
    seed: int = 7

    @property
    def rounds(self) -> int:
        """Number of samples of every partition."""
        return round(self.days * 86_400 / self.interval_s) + 1


@dataclass(frozen=True, slots=True, eq=False)
class KnownLoad:
    """The parameters, one entry per partition."""

    shape: Shape
    rate: Floats
    growth: Floats
    swing: Floats
    phase: Floats
    record_bytes: Floats
    recreated_at: Floats

    def intensity(self, days: Floats) -> Floats:
        """Records per second at these times: one row per time, one column per partition."""
        at = days[:, None]
        return self.rate * (1 + self.growth * at) * (1 + self.swing * np.sin(2 * np.pi * (at - self.phase)))


def known_load(shape: Shape) -> KnownLoad:
    """Draw the parameters."""
    chance = np.random.default_rng(shape.seed)
    count = shape.partitions
    recreated = chance.random(count) < (0.1 if shape.is_troubled else 0.0)
    return KnownLoad(
        shape,
        rate=10 * chance.lognormal(2.0, 1.0, count),
        growth=chance.choice([0.0, 0.02, 0.1], count),
        swing=chance.uniform(0.0, 0.8, count),
        phase=chance.uniform(0.0, 1.0, count),
        record_bytes=np.round(chance.uniform(100, 2000, count)),
        recreated_at=np.where(recreated, 0.25 * shape.days, -1.0),
    )


def write_samples(data_dir: Path, load: KnownLoad) -> int:
    """Write the tables that `kreassign collect` writes, one file of samples per hour; returns the rows of samples."""
    return sum(write_hours(data_dir, load))


def write_hours(data_dir: Path, load: KnownLoad, *, snapshot_day: float | None = None) -> Iterator[int]:
    """Write hour by hour: the rows of each file as it is written. The snapshot is taken at the end, or that day."""
    shape, chance = load.shape, np.random.default_rng(load.shape.seed + 1)
    write_snapshot(data_dir, shape, snapshot_day)
    ends, waiting = np.zeros(shape.partitions), []
    for number in range(shape.rounds):
        days = number * shape.interval_s / 86_400
        if number:
            middle = np.array([days - shape.interval_s / 172_800])
            ends = ends + chance.poisson(load.intensity(middle)[0] * shape.interval_s)
            ends = np.where((load.recreated_at > 0) & _passed(load.recreated_at, days, shape.interval_s), 0.0, ends)
        if not (shape.is_troubled and _is_missing(number)):
            waiting.append(_round(load, number, ends))
        last_of_hour = (number + 1) * shape.interval_s % 3600 == 0 or number + 1 == shape.rounds
        if last_of_hour and waiting:
            yield write_round_file(data_dir, number * shape.interval_s * 1000, waiting)
            waiting = []


def _is_missing(number: int) -> bool:
    """A collector that stands still for 20 rounds of every 500, and loses one of every 97."""
    return number % 500 in range(100, 120) or number % 97 == 13


def _passed(moments: Floats, days: float, interval_s: int) -> npt.NDArray[np.bool_]:
    return (moments <= days) & (moments > days - interval_s / 86_400)


def _round(load: KnownLoad, number: int, ends: Floats) -> pa.Table:
    shape = load.shape
    partitions = np.arange(shape.partitions)
    days = number * shape.interval_s / 86_400
    # A restart every quarter of a day moves the leaders to the next broker for an hour.
    moved = 1 if shape.is_troubled and (days * 4) % 1 < 1 / 6 else 0
    is_new = (load.recreated_at > 0) & (load.recreated_at <= days)
    topics = np.char.mod("topic-%04d", partitions // PARTITIONS_PER_TOPIC)
    columns = {
        "cluster_id": pa.array(np.repeat("synthetic", shape.partitions)),
        "taken_ms": pa.array(np.full(shape.partitions, BEGIN_MS + number * shape.interval_s * 1000)),
        "topic": pa.array(topics),
        "topic_id": pa.array(np.char.add(topics, np.where(is_new, "-second", "-first"))),
        "partition": pa.array((partitions % PARTITIONS_PER_TOPIC).astype(np.int32)),
        "leader": pa.array(((partitions + moved) % BROKERS).astype(np.int32)),
        "start_offset": pa.array(np.zeros(shape.partitions, np.int64)),
        "end_offset": pa.array(ends.astype(np.int64)),
        "size_bytes": pa.array((ends * load.record_bytes).astype(np.int64)),
    }
    return pa.table(columns, schema=arrow_schema(SAMPLES))


def write_round_file(data_dir: Path, passed_ms: int, rounds: list[pa.Table]) -> int:
    """Write rounds of samples as the file of the hour that begins or ends so long after the begin; returns the rows."""
    table = pa.concat_tables(rounds)
    commit(log_to_write(data_dir, SAMPLES), write_files(data_dir, SAMPLES, table, f"{passed_ms:012}"))
    return int(table.num_rows)


def write_snapshot(data_dir: Path, shape: Shape, day: float | None = None) -> None:
    """Write the tables of one snapshot, taken at the end, or so many days after the begin."""
    brokers = tuple(Broker(number, f"b{number}", 9092) for number in range(BROKERS))
    begins = range(0, shape.partitions, PARTITIONS_PER_TOPIC)
    topics = tuple(
        Topic(
            f"topic-{topic:04}", None, is_internal=False, partitions=tuple(_partitions(topic, shape.partitions - begin))
        )
        for topic, begin in enumerate(begins)
    )
    copies: dict[int, list[LogDirReplica]] = {broker.id: [] for broker in brokers}
    for topic in topics:
        for partition in topic.partitions:
            for broker in partition.replicas:
                copies[broker].append(LogDirReplica(partition.topic_partition, 1_000_000, 0, is_future=False))
    dirs = {broker: (LogDir("/data", None, None, None, is_cordoned=False, replicas=tuple(each)),)
            for broker, each in copies.items()}  # fmt: skip
    taken_ms = BEGIN_MS + round((shape.days if day is None else day) * DAY_MS)
    seen = SnapshotAnswers(taken_ms, Cluster("synthetic", 0, brokers), topics, Batch(dirs, {}), {})
    for table, rows in snapshot_tables(seen):
        write_rows(data_dir, table, rows, file_stem=seen.snapshot_id)


def _partitions(topic: int, most: int) -> list[Partition]:
    found = []
    for number in range(min(PARTITIONS_PER_TOPIC, most)):
        replicas = tuple((topic * PARTITIONS_PER_TOPIC + number + place) % BROKERS for place in range(3))
        name = TopicPartition(f"topic-{topic:04}", number)
        found.append(Partition(name, replicas=replicas, isr=replicas, leader=replicas[0], leader_epoch=1))
    return found
