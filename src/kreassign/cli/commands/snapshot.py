"""`kreassign snapshot`: what the cluster looks like now, as tables."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.data_dir import data_option, warn_of_failures
from kreassign.clock import SystemClock
from kreassign.errors import Unsupported
from kreassign.model import Cluster
from kreassign.pipeline.rows import write_rows
from kreassign.pipeline.snapshots import Observation, snapshot_tables
from kreassign.report.text import format_bytes


@click.command()
@cluster_options
@data_option
def snapshot(bootstrap_server: str, command_config: Path | None, data: Path) -> None:
    """Write what the cluster looks like now as tables.

    Brokers, log directories, partitions, replicas and running moves go to DIR as Parquet; every snapshot adds its own
    files. Prints the id of the snapshot.
    """
    with connect(bootstrap_server, command_config) as client:
        seen = observe(client, SystemClock().now_ms())
    for table, rows in snapshot_tables(seen):
        write_rows(data, table, rows, file_stem=seen.snapshot_id)
    click.echo(summary(seen, data))


def observe(client: AdminClient, taken_ms: int) -> Observation:
    """Ask the cluster for everything that a snapshot holds; what single brokers or topics did not tell is warned of."""
    cluster = _cluster(client)
    topics = client.describe_topics()
    reassignments = client.list_partition_reassignments()
    log_dirs = client.describe_log_dirs()
    warn_of_failures("topic metadata", topics.failed)
    warn_of_failures("log directories", {f"broker {broker}": error for broker, error in log_dirs.failed.items()})
    return Observation(taken_ms, cluster, tuple(topics.ok.values()), log_dirs, reassignments)


def _cluster(client: AdminClient) -> Cluster:
    try:
        return client.describe_cluster(include_fenced=True)
    except Unsupported:  # before Kafka 4.0 only the live brokers can be listed
        return client.describe_cluster()


def summary(seen: Observation, data: Path) -> str:
    """One line on what was written."""
    sizes = (replica.size_bytes for dirs in seen.log_dirs.ok.values() for dir_ in dirs for replica in dir_.replicas)
    partitions = sum(len(topic.partitions) for topic in seen.topics)
    return (
        f"snapshot {seen.snapshot_id}: {len(seen.cluster.brokers)} brokers, {len(seen.topics)} topics, {partitions} "
        f"partitions, {format_bytes(sum(sizes))} on disk, {len(seen.reassignments)} moves under way; in {data}"
    )
