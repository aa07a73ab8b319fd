"""Runs in processes of their own, which can be interrupted and killed, and leave nothing to the next test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kreassign.admin import AdminClient, client_settings
from kreassign.clock import SYSTEM_CLOCK
from kreassign.executor.lease import GROUP_ID, ClusterLease, LeaseHolder, Taken, present_holder
from kreassign.model import ConfigResource
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES, clear_broker_changes, clear_topic_changes
from testbed import KafkaCluster
from testbed.fork_server import Forked, fork_server
from testbed.waiting import wait_until

_started: list[tuple[KafkaCluster, Forked]] = []


def start_run(cluster: KafkaCluster, folder: Path, *arguments: object) -> Forked:
    """`kreassign run` with these arguments and its journals in the folder; `resume` and an id go on with a run."""
    options = ["--state-dir", str(folder / "state"), "--bootstrap-server", cluster.bootstrap_servers]
    words = [*words_of_run(*arguments), *options]
    return start(cluster, "kreassign.cli.commands.run", *words)


def start(cluster: KafkaCluster, module: str, *words: str) -> Forked:
    """A command of this module about a cluster; it ends with its test."""
    process = fork_server().start("kreassign", *words, imports=[module])
    _started.append((cluster, process))
    return process


def words_of_run(*arguments: object) -> tuple[str, ...]:
    """The command that begins a run with these arguments, or that resumes one."""
    words = tuple(map(str, arguments))
    return words if words[0] == "resume" else ("run", "--yes", "--measure-for", "0", *words)


def throttles(client: AdminClient, topics: Iterable[str], brokers: Iterable[int]) -> dict[str, str]:
    """Every throttle that is set on these topics and brokers, as `resource key` → value."""
    resources = [*map(ConfigResource.topic, topics), *map(ConfigResource.broker, brokers)]
    found = client.describe_configs(resources, names=(*TOPIC_THROTTLES, *BROKER_THROTTLES)).raise_if_any()
    return {
        f"{resource} {name}": entry.value or ""
        for resource, entries in found.items()
        for name, entry in entries.items()
        if entry.source.name.startswith("DYNAMIC")
    }


def end_throttles_and_moves(client: AdminClient) -> None:
    """Cancel whatever is reassigned in a cluster, and delete every throttle of its topics and brokers."""
    client.alter_partition_reassignments(dict.fromkeys(client.list_partition_reassignments()))
    changes = clear_topic_changes(client.list_topics())
    client.incremental_alter_configs(changes | clear_broker_changes(client.describe_cluster().broker_ids))
    wait_until(lambda: not client.list_partition_reassignments(), what="nothing is reassigned")


def what_started_said() -> str:
    """The output of the runs of a test that fails: they are killed."""
    for _, process in _started:
        process.kill()
    return "\n".join("".join(process.communicate()) for _, process in _started)


def end_started() -> None:
    """Kill the runs of a test that failed before their end, and take back what they did to the cluster."""
    for cluster, process in _started:
        was_running = process.poll() is None
        process.kill()
        process.communicate()
        with AdminClient.connect(client_settings(bootstrap_servers=cluster.bootstrap_servers)) as client:
            free_lease(client)
            if was_running:
                end_throttles_and_moves(client)
    _started.clear()


def free_lease(client: AdminClient) -> None:
    """Take the lease from a run that was killed; whoever asks for it next gets it."""

    def is_free() -> bool:
        # What it sent last may arrive now, and a coordinator that has just taken over may not show it: only a member is
        # sure that there is no other.
        lease = ClusterLease(client, SYSTEM_CLOCK, LeaseHolder("nobody", "a", "test", SYSTEM_CLOCK.now_ms()))
        if not isinstance(lease.take(), Taken):
            lease.release()
            return True
        expel_holder(client)
        return False

    wait_until(is_free, what="the lease free")


def expel_holder(client: AdminClient) -> None:
    """Take the lease from whoever is shown to hold it."""
    if (holder := present_holder(client)) is not None:
        client.leave_group(GROUP_ID, holder.run_id)
