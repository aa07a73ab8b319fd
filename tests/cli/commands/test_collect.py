"""`kreassign collect` on the twin: what a round holds, and what is left when it is killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.admin import AdminClient, client_settings
from kreassign.cli.commands.tables import line
from kreassign.cli.main import kreassign
from kreassign.clock import VirtualClock
from kreassign.errors import Unreachable
from kreassign.model import ConfigChange, ConfigResource, NewTopic
from kreassign.model.cluster import CLEANUP_POLICY
from kreassign.model.throttle import FOLLOWER_THROTTLED_RATE
from kreassign.operations.ingest import Round, paced, store_round, survived, take_round
from kreassign.operations.snapshot import SnapshotOutputs, store_snapshot
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.schemas import BROKERS, CLUSTERS, PARTITIONS, REPLICAS, SAMPLES, THROTTLES
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving as serving_twin
from kreassign.twin.transport import TwinTransport
from testbed.fork_server import fork_server
from testbed.waiting import PATIENCE_S, wait_until
from tests.cli.commands.test_twin import serving
from tests.executor.twin_runs import tp
from tests.twin.asking import cluster


def test_rounds_begin_at_even_times_and_a_slow_one_is_not_made_up_for() -> None:
    clock = VirtualClock()
    begun = []
    for number in paced(4, 10.0, clock):
        begun.append((number, clock.monotonic_s()))
        clock.sleep(25.0 if number == 2 else 3.0)
    assert begun == [(1, 0.0), (2, 10.0), (3, 35.0), (4, 38.0)]


def test_without_a_number_of_rounds_it_goes_on() -> None:
    numbers = paced(None, 1.0, VirtualClock())
    assert [next(numbers) for _ in range(50)] == list(range(1, 51))


def test_a_round_without_an_answer_is_told_and_left_out_but_not_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Unreachable("nobody is there")

    def fail() -> int:
        raise problem

    found = survived(2, fail)
    assert found == Round(2, None, problem)
    assert line(found, 3, Path("data")) == "round 2 of 3: nothing: the cluster did not answer; in data"
    assert capsys.readouterr().err == "warning: nobody is there\n"
    with pytest.raises(Unreachable):
        survived(1, fail)


def test_rounds_and_snapshots_store_the_cleanup_policy_of_topics(tmp_path: Path) -> None:
    transport = TwinTransport(Twin(cluster({"kept": [[0, 1]], "t": [[0, 1]]}), TwinSettings()))
    settings = client_settings(bootstrap_servers="broker-0:9092")
    by_round, by_snapshot = tmp_path / "round", tmp_path / "snapshot"
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        changes = {
            ConfigResource.topic("t"): [ConfigChange.set(CLEANUP_POLICY, "compact,delete")],
            ConfigResource.broker(2): [ConfigChange.set(FOLLOWER_THROTTLED_RATE, "7")],
        }
        client.incremental_alter_configs(changes).raise_if_any()
        store_round(by_round, take_round(client, transport))
        store_snapshot(client, SnapshotOutputs(by_snapshot), transport)
    for data in (by_round, by_snapshot):
        policies = {row["topic"]: row["cleanup_policy"] for row in read_rows(data, PARTITIONS)}
        assert policies == {"kept": "delete", "t": "compact,delete"}
    assert [row["name"] for row in read_rows(by_round, THROTTLES)] == [FOLLOWER_THROTTLED_RATE]


def test_a_round_is_stored_in_folders_of_its_date(tmp_path: Path) -> None:
    transport = TwinTransport(Twin(cluster({"t": [[0, 1]]}), TwinSettings()))
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        rate = {ConfigResource.broker(2): [ConfigChange.set(FOLLOWER_THROTTLED_RATE, "7")]}
        client.incremental_alter_configs(rate).raise_if_any()
        client.alter_partition_reassignments({tp(0): (1, 2)}).raise_if_any()
        assert store_round(tmp_path, take_round(client, transport)) == 1
    (partition,) = read_rows(tmp_path, PARTITIONS)
    assert (partition["adding"], partition["removing"]) == ([2], [0])
    (throttle,) = read_rows(tmp_path, THROTTLES)
    assert (throttle["resource"], throttle["name"], throttle["value"]) == ("2", FOLLOWER_THROTTLED_RATE, "7")
    (sample,) = read_rows(tmp_path, SAMPLES)
    assert sample["taken_ms"] == partition["taken_ms"]
    (file,) = (tmp_path / "samples").rglob("*.parquet")
    assert file.name.startswith(file.parent.name.removeprefix("date=").replace("-", "") + "T")


class Collecting:
    """A running `kreassign collect` without a pause between rounds."""

    def __init__(self, bootstrap: str, data: Path, *options: str) -> None:
        words = ["collect", "--bootstrap-server", bootstrap, "--out", str(data), "--interval", "1ms", *options]
        self.process = fork_server().start("kreassign", *words, imports=["kreassign.cli.commands.tables"])

    def kill(self) -> None:
        """Kill it at whatever it is doing."""
        self.process.send_signal(signal.SIGKILL)
        self.ended()

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.wait()


@pytest.mark.thorough
def test_a_killed_collector_leaves_whole_files_and_a_restart_goes_on(tmp_path: Path) -> None:
    def sealed() -> int:
        return len(list((tmp_path / "clusters" / "_delta_log").glob("*.json")))

    with serving() as served, served.admin() as admin:
        admin.create_topics([NewTopic("t", assignments=((0, 1), (1, 2)))]).raise_if_any()
        for _ in range(2):
            before = sealed()
            running = Collecting(served.bootstrap(), tmp_path)
            wait_until(lambda before=before: sealed() >= before + 3, what="three rounds")
            running.kill()
        left = sealed()
        assert Collecting(served.bootstrap(), tmp_path, "--rounds", "2").ended() == 0
    clusters = read_rows(tmp_path, CLUSTERS)
    assert len(clusters) == left - 1 + 2  # the first commit makes the table
    sizes = {table: len(read_rows(tmp_path, table)) for table in (BROKERS, PARTITIONS, REPLICAS, SAMPLES)}
    # A broken-off round may have some of its tables, but what its seal says is there.
    assert sizes[PARTITIONS] >= sum(row["partition_count"] for row in clusters)
    for seal in clusters:
        own = {"snapshot_id": seal["snapshot_id"]}
        assert len(read_rows(tmp_path, BROKERS, only=own)) == seal["broker_count"]
        assert len(read_rows(tmp_path, PARTITIONS, only=own)) == seal["partition_count"]


@pytest.mark.thorough
def test_its_end_names_the_next_command_with_its_arguments(tmp_path: Path) -> None:
    with serving_twin(Twin(cluster({"t": [[0, 1]]}), TwinSettings())) as thread:
        words = [
            "collect",
            "--bootstrap-server",
            thread.bootstrap_servers,
            "--data",
            str(tmp_path),
            "--interval",
            "1ms",
        ]
        two, one = (CliRunner().invoke(kreassign, [*words, "--rounds", rounds]) for rounds in ("2", "1"))
        assert (two.exit_code, two.stderr) == (0, f"next: kreassign load --data {tmp_path}\n")
        again = f"next: kreassign collect --bootstrap-server {thread.bootstrap_servers} --data {tmp_path}\n"
        assert one.stderr == again, "one round has no rates"
