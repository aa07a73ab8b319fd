"""`kreassign collect`: the cluster, round after round; from its offsets and sizes the load job computes rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.cluster_snapshot import described_cluster
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.options.data_dir import data_or_out_option, warn_of_failures
from kreassign.cli.output import parse_duration
from kreassign.clock import Clock, SystemClock
from kreassign.errors import ClusterError
from kreassign.model import Broker, ConfigEntry, ConfigResource, Topic
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.pipeline.ingest.snapshots import CollectedRound, Observation, SampleRound, round_tables
from kreassign.pipeline.tables.parquet import write_rows


@click.command()
@cluster_options
@data_or_out_option
@click.option(
    "--interval", type=parse_duration, default="60s", show_default=True, metavar="TIME", help="From round to round."
)
@click.option("--rounds", type=click.IntRange(min=1), help="How many; without it until stopped. Rates need two.")
def collect(
    bootstrap_server: str, command_config: Path | None, data: Path, interval: float, rounds: int | None
) -> None:
    """Take samples of the cluster, round after round, without an agent on brokers.

    Every round adds one file to each of the tables of a snapshot, to `samples` and to `throttles` in DIR, in a folder
    of its date and hour. A file is there whole or not at all: stop it at any time, go on whenever you like. A round
    that the cluster does not answer is told and left out; only the first must succeed.
    """
    clock = SystemClock()
    of_all = "" if rounds is None else f" of {rounds}"
    with connect(bootstrap_server, command_config) as client:
        for number in paced(rounds, interval, clock):
            told = survived(number, lambda: store_round(data, take_round(client, clock)))
            click.echo(f"round {number}{of_all}: {told} in {data}")


def paced(rounds: int | None, interval_s: float, clock: Clock) -> Iterator[int]:
    """Numbers from 1 to `rounds`, one per interval, or without end.

    A round that took longer is followed by the next at once.
    """
    started_s = clock.monotonic_s()
    for number in count() if rounds is None else range(rounds):
        clock.sleep(started_s + number * interval_s - clock.monotonic_s())
        yield number + 1


def survived(number: int, work: Callable[[], str]) -> str:
    """What the work of a round tells, or why there is none; a first round that fails ends the command."""
    try:
        return work()
    except ClusterError as error:
        if number == 1:
            raise
        click.echo(f"warning: {error}", err=True)
        return "nothing: the cluster did not answer;"


def store_round(data: Path, collected: CollectedRound) -> str:
    """Write the files of a round, the seal of its snapshot last; returns what to tell."""
    taken_ms, stem = collected.samples.taken_ms, collected.samples.file_stem
    for table, rows in round_tables(collected):
        write_rows(data, table, rows, file_stem=stem, taken_ms=taken_ms)
    return f"{len(collected.samples.end_offsets)} partitions"


def take_round(client: AdminClient, clock: Clock) -> CollectedRound:
    """Ask for one round; sizes come right after the end offsets, as both together give the size of a record."""
    cluster = described_cluster(client)
    described = client.describe_topics()
    topics = tuple(described.ok.values())
    reassignments = client.list_partition_reassignments()
    partitions = [partition.topic_partition for topic in topics for partition in topic.partitions]
    taken_ms = clock.now_ms()
    end_offsets = client.list_offsets(partitions)
    log_dirs = client.describe_log_dirs()
    start_offsets = client.list_offsets(partitions, earliest=True)
    warn_of_failures("topic metadata", described.failed)
    warn_of_failures("log directories", {f"broker {broker}": error for broker, error in log_dirs.failed.items()})
    warn_of_failures("offsets", {**end_offsets.failed, **start_offsets.failed})
    return CollectedRound(
        Observation(taken_ms, cluster, topics, log_dirs, reassignments),
        SampleRound(taken_ms, cluster.cluster_id, topics, start_offsets.ok, end_offsets.ok, log_dirs),
        take_throttles(client, topics, cluster.brokers),
    )


def take_throttles(
    client: AdminClient, topics: tuple[Topic, ...], brokers: tuple[Broker, ...]
) -> dict[ConfigResource, dict[str, ConfigEntry]]:
    """The throttles of all topics, in one request, and of every live broker, each asked itself."""
    live = [ConfigResource.broker(broker.id) for broker in brokers if not broker.is_fenced]
    named = [ConfigResource.topic(topic.name) for topic in topics]
    found = client.describe_configs([*live, *named], names=(*BROKER_THROTTLES, *TOPIC_THROTTLES))
    warn_of_failures("throttles", found.failed)
    return {resource: dict(entries) for resource, entries in found.ok.items()}
