"""`kreassign collect`: samples of offsets and sizes, from which the load job computes rates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.data_dir import data_option, warn_of_failures
from kreassign.cli.output import parse_duration
from kreassign.clock import Clock, SystemClock
from kreassign.pipeline.rows import write_rows
from kreassign.pipeline.schemas import SAMPLES
from kreassign.pipeline.snapshots import SampleRound, sample_rows


@click.command()
@cluster_options
@data_option
@click.option(
    "--interval", type=parse_duration, default="5s", show_default=True, metavar="TIME", help="From round to round."
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="How many; rates need at least two."
)
def collect(bootstrap_server: str, command_config: Path | None, data: Path, interval: float, rounds: int) -> None:
    """Take samples of sizes and end offsets.

    Every round adds one file of table `samples` to DIR, whole or not at all: stop it at any time, go on whenever you
    like.
    """
    clock = SystemClock()
    with connect(bootstrap_server, command_config) as client:
        cluster_id = client.describe_cluster().cluster_id
        for number in paced(rounds, interval, clock):
            seen = take_round(client, cluster_id, clock)
            rows = sample_rows(seen)
            write_rows(data, SAMPLES, rows, file_stem=seen.file_stem)
            click.echo(f"round {number} of {rounds}: {len(rows)} partitions in {data}")


def paced(rounds: int, interval_s: float, clock: Clock) -> Iterator[int]:
    """Numbers from 1 to `rounds`, one per interval; a round that took longer is followed by the next at once."""
    started_s = clock.monotonic_s()
    for number in range(rounds):
        clock.sleep(started_s + number * interval_s - clock.monotonic_s())
        yield number + 1


def take_round(client: AdminClient, cluster_id: str, clock: Clock) -> SampleRound:
    """Ask for one round; sizes come right after the end offsets, as both together give the size of a record."""
    topics = client.describe_topics()
    partitions = [partition.topic_partition for topic in topics.ok.values() for partition in topic.partitions]
    taken_ms = clock.now_ms()
    end_offsets = client.list_offsets(partitions)
    log_dirs = client.describe_log_dirs()
    start_offsets = client.list_offsets(partitions, earliest=True)
    warn_of_failures("topic metadata", topics.failed)
    warn_of_failures("log directories", {f"broker {broker}": error for broker, error in log_dirs.failed.items()})
    warn_of_failures("offsets", {**end_offsets.failed, **start_offsets.failed})
    return SampleRound(taken_ms, cluster_id, tuple(topics.ok.values()), start_offsets.ok, end_offsets.ok, log_dirs)
