"""`kreassign doctor`: finds what is wrong with reassignments on a cluster, and says what to do."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kreassign.admin import AdminClient
from kreassign.cli.context import cluster_options, connect
from kreassign.cli.output import console, format_option, print_json
from kreassign.cli.runs import state_dir_option
from kreassign.executor.cluster import queries
from kreassign.executor.history.diagnosis import Symptoms, diagnose
from kreassign.executor.history.interrupted_runs import left_runs
from kreassign.executor.throttle.ledger import ConfigKey
from kreassign.model import ConfigResource
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES


@click.command()
@cluster_options
@state_dir_option
@format_option
@click.pass_context
def doctor(
    context: click.Context, bootstrap_server: str, command_config: Path | None, state_dir: Path, output_format: str
) -> None:
    """Look for what is wrong with reassignments on the cluster, and say what to do; changes nothing.

    Finds reassignments that can never complete, destinations that are gone, throttles that nobody needs any more,
    runs that were left, and partitions and directories in trouble. Exit code 0 if all is well, 1 if not.
    """
    with connect(bootstrap_server, command_config) as client:
        found = diagnose(examine(client, state_dir))
    if output_format == "json":
        print_json({"ok": not found, "ailments": [asdict(ailment) for ailment in found]})
    else:
        for ailment in found:
            console().print(str(ailment), soft_wrap=True)
        console().print(f"{len(found)} findings" if found else "all is well")
    context.exit(1 if found else 0)


def examine(client: AdminClient, state_dir: Path) -> Symptoms:
    """Ask the cluster for all that a diagnosis needs. Raises ClusterError."""
    cluster = client.describe_cluster()
    topics = client.describe_topics()
    keys = [ConfigKey(ConfigResource.topic(topic), name) for topic in topics.ok for name in TOPIC_THROTTLES]
    keys += [
        ConfigKey(ConfigResource.broker(broker), name) for broker in cluster.broker_ids for name in BROKER_THROTTLES
    ]
    settings, unread = queries.read_configs(client, keys)
    log_dirs = client.describe_log_dirs(cluster.broker_ids, partitions=())
    return Symptoms(
        live=cluster.broker_ids,
        partitions=tuple(queries.partitions_of(topics).values()),
        ongoing=client.list_partition_reassignments(),
        throttles=tuple(present for present in settings if present.value is not None),
        log_dirs=log_dirs.ok,
        left_runs=tuple(found.run_id for found in left_runs(state_dir, cluster.cluster_id)),
        unread=(
            *(f"topic {name}: {error}" for name, error in topics.failed.items()),
            *(f"{resource} {problem}" for resource, problem in unread),
            *(f"log directories of broker {broker}: {error}" for broker, error in log_dirs.failed.items()),
        ),
    )
