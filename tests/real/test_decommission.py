"""A broker is taken out of a real cluster: from the cordon of its directories to the end of its registration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kreassign.model import NewTopic
from testbed import ClusterSpec, KafkaCluster
from testbed.fork_server import Forked, fork_server
from testbed.producing import Producing
from testbed.records import verify_readable
from testbed.releases import DEFAULT, FORMER
from testbed.waiting import PATIENCE_S, wait_until
from tests.real.run_processes import throttles
from tests.real.test_run import (
    HELD,
    HELD_RATE,
    MEGABYTE,
    assignments,
    client_of,
    invoke,
    let_go,
    loaded,
    wait_for_copies,
)

GOING = 3
PLACES = [(GOING, 1), (0, GOING), (1, 2), (GOING, 0)]


def start_decommission(cluster: KafkaCluster, folder: Path, *words: str, brokers: str = str(GOING)) -> Forked:
    usual = ("--throttle", HELD_RATE, "--measure-for", "0", "--poll-interval", "200ms", "-o", "json", "--yes")
    state = ("--state-dir", str(folder / "state"))
    reach = ("--bootstrap-server", cluster.bootstrap_servers, "--bootstrap-controller", cluster.bootstrap_controllers)
    options = (*words, *usual, *reach, *state)
    return fork_server().start(
        "kreassign", "decommission", brokers, *options, imports=["kreassign.cli.commands.decommission"]
    )


def ended(process: Forked, exit_code: int) -> dict[str, Any]:
    """Output of a decommission that has ended."""
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == exit_code, stderr
    found: dict[str, Any] = json.loads(stdout)
    return found


def brokers_of(cluster: KafkaCluster, topic: str) -> set[int]:
    return {broker for replicas in assignments(cluster, topic).values() for broker in replicas}


@pytest.mark.parametrize("release", [DEFAULT, FORMER])
def test_a_broker_leaves_through_kill_and_restart_under_traffic(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path, release: str
) -> None:
    cluster = start_cluster(ClusterSpec(version=release, brokers=4))
    servers, later = cluster.bootstrap_servers, f"{topic_name}-later"
    acknowledged = loaded(cluster, topic_name, PLACES, HELD, MEGABYTE)
    with Producing(servers, topic_name, partitions=len(PLACES), records_per_s=10) as producing:
        killed = start_decommission(cluster, tmp_path)
        try:
            wait_for_copies(tmp_path)
        finally:
            killed.kill()
            killed.communicate()
        with client_of(cluster) as client:
            client.create_topics([NewTopic(later, 8, 2)]).raise_if_any()
        assert GOING not in brokers_of(cluster, later), "it is cordoned already"

        resumed = start_decommission(cluster, tmp_path, "--unregister")
        let_go(tmp_path)
        emptied = ended(resumed, exit_code=5)
        assert emptied["steps"][0].startswith("resume run ")
        assert [run["state"] for run in emptied["runs"]] == ["done"], emptied
        assert emptied["next"].startswith(f"broker {GOING} is empty and still running: stop the process")
        with client_of(cluster) as client:
            topics = client.list_topics()
            assert throttles(client, topics, range(4)) == {}
        assert [topic for topic in topics if GOING in brokers_of(cluster, topic)] == []

        cluster.brokers[GOING].stop()
        gone = ended(start_decommission(cluster, tmp_path, "--unregister"), exit_code=0)
    removed = f"delete cordoned.log.dirs of the id {GOING}, for a broker that may get it later"
    assert gone["steps"] == [f"unregister broker {GOING}", removed]
    assert gone["is_finished"]
    with client_of(cluster) as client:
        wait_until(lambda: GOING not in client.describe_cluster().broker_ids, what="three brokers")
    verify_readable(servers, acknowledged)
    verify_readable(servers, producing.ledger)


@pytest.mark.parametrize("release", [DEFAULT, FORMER])
def test_two_brokers_are_called_off_after_a_kill_then_emptied_and_back(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], topic_name: str, tmp_path: Path, release: str
) -> None:
    cluster = start_cluster(ClusterSpec(version=release, brokers=5))
    servers, before = cluster.bootstrap_servers, {0: (3, 4), 1: (4, 0), 2: (0, 3), 3: (1, 2)}
    acknowledged = loaded(cluster, topic_name, list(before.values()), HELD, MEGABYTE)
    both = {"brokers": "3,4"}
    with Producing(servers, topic_name, partitions=len(before), records_per_s=10) as producing:
        killed = start_decommission(cluster, tmp_path / "first", **both)
        try:
            wait_for_copies(tmp_path / "first")
        finally:
            killed.kill()
            killed.communicate()
        called_off = ended(start_decommission(cluster, tmp_path / "first", "--cancel", **both), exit_code=0)
        assert called_off["steps"][-2:] == ["uncordon broker 3", "uncordon broker 4"]
        # A reassignment that is cancelled leaves the order of its target (KIP-455).
        left = assignments(cluster, topic_name)
        assert {name: set(replicas) for name, replicas in left.items()} == {
            name: set(replicas) for name, replicas in before.items()
        }

        drain = start_decommission(cluster, tmp_path / "second", **both)
        let_go(tmp_path / "second")
        (drained,) = ended(drain, exit_code=0)["runs"]
        assert not brokers_of(cluster, topic_name) & {3, 4}
        ended(start_decommission(cluster, tmp_path / "second", "--cancel", **both), exit_code=0)
        back = invoke(cluster, "rollback", drained["run_id"], "--yes", "--state-dir", tmp_path / "second" / "state")
        assert back.exit_code == 0, back.output
        assert assignments(cluster, topic_name) == left
        with client_of(cluster) as client:
            assert throttles(client, client.list_topics(), range(5)) == {}
    verify_readable(servers, acknowledged)
    verify_readable(servers, producing.ledger)
