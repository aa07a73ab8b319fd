"""Samples of a cluster, round after round; from its offsets and sizes the load job computes rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import Clock, SystemClock
from kreassign.errors import ClusterError
from kreassign.model import Broker, ConfigEntry, ConfigResource, OffsetSpec, Topic
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.operations.compaction_meanwhile import COMPACT_EVERY, Compaction
from kreassign.operations.snapshot import described_cluster, warn_of_unread
from kreassign.operations.warnings import Warn, warn_of_failures, warn_program
from kreassign.pipeline.ingest.snapshots import CollectedRound, Observation, SampleRound, round_tables
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, LOG_DIRS, PARTITIONS, REPLICAS, SAMPLES, THROTTLES

SYSTEM_CLOCK = SystemClock()
TABLES_OF_ROUNDS = (BROKERS, LOG_DIRS, PARTITIONS, REPLICAS, CLUSTERS, SAMPLES, THROTTLES)


@dataclass(frozen=True, slots=True)
class Round:
    """A round, counted from 1: how many partitions it stored, or why it stored none."""

    number: int
    partitions: int | None
    problem: ClusterError | None = None


def collect(
    client: AdminClient,
    data: Path | str,
    *,
    rounds: int | None = None,
    interval_s: float = 60.0,
    compact_every: int = COMPACT_EVERY,
    clock: Clock = SYSTEM_CLOCK,
    warn: Warn = warn_program,
) -> Iterator[Round]:
    """Store rounds of samples in the tables of a directory; without a number of rounds until nobody asks for more.

    A round that the cluster does not answer is left out. Raises ClusterError if it is the first. After so many rounds
    as `compact_every` their files become one per table and date.
    """
    compaction = Compaction(data, TABLES_OF_ROUNDS, compact_every, clock, warn)
    for number in paced(rounds, interval_s, clock):
        yield survived(number, lambda: store_round(data, take_round(client, clock, warn)))
        compaction.after(number)


def paced(rounds: int | None, interval_s: float, clock: Clock) -> Iterator[int]:
    """Numbers from 1 to `rounds`, one per interval, or without end.

    A round that took longer is followed by the next at once.
    """
    started_s = clock.monotonic_s()
    for number in count() if rounds is None else range(rounds):
        clock.sleep(started_s + number * interval_s - clock.monotonic_s())
        yield number + 1


def survived(number: int, store: Callable[[], int]) -> Round:
    """The round that this stores, or the problem that kept it from doing so; that of a first round is raised."""
    try:
        return Round(number, store())
    except ClusterError as error:
        if number == 1:
            raise
        return Round(number, None, error)


def store_round(data: Path | str, collected: CollectedRound) -> int:
    """Write the files of a round, the seal of its snapshot last; returns the number of partitions."""
    stem = collected.samples.file_stem
    for table, rows in round_tables(collected):
        write_rows(data, table, rows, file_stem=stem)
    return len(collected.samples.end_offsets)


def take_round(client: AdminClient, clock: Clock, warn: Warn = warn_program) -> CollectedRound:
    """Ask for one round; sizes come right after the end offsets, as both together give the size of a record.

    So do the start offsets, which are therefore those of what leaders have on their own disks.
    """
    cluster = described_cluster(client)
    described = client.describe_topics()
    topics = tuple(described.ok.values())
    reassignments = client.list_partition_reassignments()
    partitions = [partition.topic_partition for topic in topics for partition in topic.partitions]
    taken_ms = clock.now_ms()
    end_offsets = client.list_offsets(partitions)
    log_dirs = client.describe_log_dirs()
    start_offsets = client.list_offsets(partitions, OffsetSpec.EARLIEST_LOCAL)
    warn_of_unread(client, described, log_dirs, warn)
    warn_of_failures(warn, "offsets", {**end_offsets.failed, **start_offsets.failed})
    return CollectedRound(
        Observation(taken_ms, cluster, topics, log_dirs, reassignments),
        SampleRound(taken_ms, cluster.cluster_id, topics, start_offsets.ok, end_offsets.ok, log_dirs),
        take_throttles(client, topics, cluster.brokers, warn),
    )


def take_throttles(
    client: AdminClient, topics: tuple[Topic, ...], brokers: tuple[Broker, ...], warn: Warn
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """The throttles of all topics, in one request, and of every live broker, each asked itself."""
    live = [ConfigResource.broker(broker.id) for broker in brokers if not broker.is_fenced]
    named = [ConfigResource.topic(topic.name) for topic in topics]
    found = client.describe_configs([*live, *named], names=(*BROKER_THROTTLES, *TOPIC_THROTTLES))
    warn_of_failures(warn, "throttles", found.failed)
    return {resource: dict(entries) for resource, entries in found.ok.items()}
