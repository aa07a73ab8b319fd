"""`kreassign snapshot`: what the cluster looks like now, as tables."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.cluster_snapshot import described_cluster, whole_snapshot
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.options.data_dir import optional_data_option, warn_of_failures
from kreassign.cli.output import parse_duration
from kreassign.cli.snapshot_files import write_snapshot
from kreassign.clock import SystemClock
from kreassign.pipeline.ingest.snapshots import Observation, snapshot_tables
from kreassign.pipeline.tables.parquet import write_rows
from kreassign.report.text import format_bytes


@click.command()
@cluster_options
@optional_data_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the whole cluster to one JSON file, too: for `kreassign twin from-snapshot` and `plan --snapshot`.",
)
@click.option(
    "--rates-over",
    type=parse_duration,
    default="5s",
    show_default=True,
    metavar="TIME",
    help="How long to watch, for --out, how fast partitions grow; 0 for not at all.",
)
def snapshot(
    bootstrap_server: str, command_config: Path | None, data: Path | None, out: Path | None, rates_over: float
) -> None:
    """Write what the cluster looks like now as tables, as one file, or both.

    Brokers, log directories, partitions, replicas and running moves go to DIR as Parquet; every snapshot adds its own
    files. FILE has them as well, with the configuration that was set (throttles, for example), offsets and write
    rates; with a name ending in .gz it is compressed. Prints the id of the snapshot.
    """
    if data is None and out is None:
        raise click.UsageError("say where to write the snapshot: --data DIR, --out FILE, or both")
    clock = SystemClock()
    with connect(bootstrap_server, command_config) as client:
        seen = observe(client, clock.now_ms())
        whole = None if out is None else whole_snapshot(client, seen, clock, rates_over)
    if data is not None:
        for table, rows in snapshot_tables(seen):
            write_rows(data, table, rows, file_stem=seen.snapshot_id)
    if out is not None and whole is not None:
        write_snapshot(out, whole)
    click.echo(summary(seen, " and ".join(str(place) for place in (data, out) if place is not None)))


def observe(client: AdminClient, taken_ms: int) -> Observation:
    """Ask the cluster for everything that a snapshot holds; what single brokers or topics did not tell is warned of."""
    cluster = described_cluster(client)
    topics = client.describe_topics()
    reassignments = client.list_partition_reassignments()
    log_dirs = client.describe_log_dirs()
    warn_of_failures("topic metadata", topics.failed)
    warn_of_failures("log directories", {f"broker {broker}": error for broker, error in log_dirs.failed.items()})
    return Observation(taken_ms, cluster, tuple(topics.ok.values()), log_dirs, reassignments)


def summary(seen: Observation, where: str) -> str:
    """One line on what was written."""
    sizes = (replica.size_bytes for dirs in seen.log_dirs.ok.values() for dir_ in dirs for replica in dir_.replicas)
    partitions = sum(len(topic.partitions) for topic in seen.topics)
    return (
        f"snapshot {seen.snapshot_id}: {len(seen.cluster.brokers)} brokers, {len(seen.topics)} topics, {partitions} "
        f"partitions, {format_bytes(sum(sizes))} on disk, {len(seen.reassignments)} moves under way; in {where}"
    )
