"""Runs in processes of their own, which can be interrupted and killed, and leave nothing to the next test."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from kreassign.admin import AdminClient, client_settings
from kreassign.model.throttle import clear_broker_changes
from testbed import KafkaCluster
from testbed.processes import ProcessGroup

_PROGRAM = "from kreassign.cli.main import main; main()"
_started: list[tuple[KafkaCluster, subprocess.Popen[str]]] = []


@cache
def _group() -> ProcessGroup:
    return ProcessGroup()


def start_run(cluster: KafkaCluster, folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """`kreassign run` with these arguments and its journals in the folder."""
    options = [*map(str, arguments), "--state-dir", str(folder / "state"), "--bootstrap-server"]
    command = [sys.executable, "-c", _PROGRAM, "run", "--measure-for", "0", *options, cluster.bootstrap_servers]
    process = _group().open(command)
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
