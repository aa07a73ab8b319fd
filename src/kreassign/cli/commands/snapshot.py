"""`kreassign snapshot`: what the cluster looks like now, as tables."""

from __future__ import annotations

from pathlib import Path

import click

from kreassign.cli.collector import uncollected
from kreassign.cli.next_command import CLUSTER, DATA, next_command, print_next
from kreassign.cli.options.cluster import ClusterOptions, cluster_options, measure_for_option
from kreassign.cli.options.data_dir import optional_data_option
from kreassign.cli.options.values import Place
from kreassign.cli.output import examples, warn
from kreassign.operations.snapshot import Observation, SnapshotOutputs, store_snapshot
from kreassign.report.text import format_bytes


@click.command(
    epilog=examples(
        "kreassign snapshot --bootstrap-server localhost:9092 --out cluster.json.gz",
        "kreassign snapshot --bootstrap-server localhost:9092 --data ./data",
    )
)
@cluster_options
@optional_data_option
@click.option(
    "--out",
    type=Place(is_file=True, needs_directory=False),
    metavar="FILE",
    help="Write the whole cluster to one file, for `kreassign twin from-snapshot` and `plan --snapshot`: JSON, or with "
    "a name ending in .parquet columns, which large clusters need.  "
    "[default: no file]",
)
@measure_for_option("With --out: how long to measure write rates; 0 to skip.")
def snapshot(cluster: ClusterOptions, data: Path | str | None, out: Path | None, measure_for: float) -> None:
    """Take a snapshot of the cluster: as tables, as one file, or both.

    Brokers, log directories, partitions, replicas and active reassignments go to DIR as Parquet; every snapshot adds
    its own files. FILE also has the configuration overrides (throttles, for example), offsets and write rates; with a
    name ending in .gz or .parquet it is compressed. Prints the id of the snapshot.
    """
    if out is not None and out.parent != data:  # the tables' own directory is made with them
        Place.check_directory(out, "--out")
    if data is None and out is None:
        raise click.UsageError("specify --data DIR, --out FILE, or both")
    with uncollected(), cluster.connect() as client:
        seen = store_snapshot(client, SnapshotOutputs(data, out, measure_for), warn=warn)
    click.echo(summary(seen, " and ".join(str(place) for place in (data, out) if place is not None)))
    if out is not None:
        print_next(next_command("plan", "--snapshot", out, "--out", "plan.json"))
    else:
        print_next(next_command("collect", takes=(*CLUSTER, *DATA)))


def summary(seen: Observation, where: str) -> str:
    """One line on what was written."""
    sizes = (replica.size_bytes for dirs in seen.log_dirs.ok.values() for dir_ in dirs for replica in dir_.replicas)
    partitions = sum(len(topic.partitions) for topic in seen.topics)
    return (
        f"snapshot {seen.snapshot_id}: {len(seen.cluster.brokers)} brokers, {len(seen.topics)} topics, {partitions} "
        f"partitions, {format_bytes(sum(sizes))} on disk, {len(seen.reassignments)} active reassignments; in {where}"
    )
