"""Runs in processes of their own, which can be interrupted and killed, and leave nothing to the next test."""

from __future__ import annotations

from pathlib import Path

from kreassign.admin import AdminClient, client_settings
from kreassign.model.throttle import clear_broker_changes
from testbed import KafkaCluster
from testbed.fork_server import Forked, fork_server

_started: list[tuple[KafkaCluster, Forked]] = []


def start_run(cluster: KafkaCluster, folder: Path, *arguments: object) -> Forked:
    """`kreassign run` with these arguments and its journals in the folder."""
    options = [*map(str, arguments), "--state-dir", str(folder / "state"), "--bootstrap-server"]
    words = ["run", "--measure-for", "0", *options, cluster.bootstrap_servers]
    process = fork_server().start("kreassign", *words, imports=["kreassign.cli.commands.run"])
    _started.append((cluster, process))
    return process


def end_started() -> None:
    """Kill the runs of a test that failed before their end, and take back what they did to the cluster."""
    for cluster, process in _started:
        if process.poll() is None:
            process.kill()
            process.communicate()
            settings = client_settings(bootstrap_servers=cluster.bootstrap_servers)
            with AdminClient.connect(settings) as client:
                client.alter_partition_reassignments(dict.fromkeys(client.list_partition_reassignments()))
                client.incremental_alter_configs(clear_broker_changes(client.describe_cluster().broker_ids))
    _started.clear()
