"""A twin that keeps its metadata in a real ZooKeeper, with the programs that Kafka's users have."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kreassign.errors import ControllerMoved
from kreassign.model import TopicPartition
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import TopicZnode, format_reassignments, parse_topic
from kreassign.twin.store import zookeeper_tree
from kreassign.twin.zookeeper.znodes import Create
from testbed import ClusterSpec, Finished, KafkaCluster
from testbed.fork_server import fork_server
from testbed.waiting import PATIENCE_S, wait_until
from testbed.zookeeper import ZooKeeper, zookeeper_client

pytestmark = pytest.mark.kafka

SCENARIO = """
[[brokers]]
count = 4
log_dirs = [{ count = 1, read = "50 MB/s", write = "50 MB/s", capacity = "100 GB" }]

[[topics]]
name = "foo"
replication_factor = 2
brokers = [0, 1]
size = "400 MB"
"""
FOO = TopicPartition("foo", 0)
TOPICS = "kafka.admin.TopicCommand"
REASSIGN, ELECT = "kafka.admin.ReassignPartitionsCommand", "kafka.admin.PreferredReplicaLeaderElectionCommand"


@dataclass
class Served:
    """A twin in a process of its own."""

    zookeeper: str
    bootstrap: str
    znodes: ZooKeeper
    process: subprocess.Popen[str]

    def topic(self) -> TopicZnode:
        """The znode of foo."""
        return parse_topic("foo", self.znodes.get(paths.topic_path("foo")))

    def wait_for(self, replicas: tuple[int, ...]) -> None:
        """Wait until foo-0 has these replicas, and nothing is under way any more."""
        wanted = (replicas, {}, {})
        wait_until(lambda: self._lists() == wanted, what=f"foo-0 on {replicas}")
        wait_until(lambda: self.znodes.exists(paths.REASSIGN_PARTITIONS) is None, what="the znode to go")

    def _lists(self) -> tuple[object, ...]:
        topic = self.topic()
        return topic.partitions[0], topic.adding, topic.removing


@contextmanager
def served(zookeeper: str, folder: Path, *options: str, speed: str = "20") -> Iterator[Served]:
    """A twin of four brokers with its metadata there."""
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    main = "from kreassign.cli.main import main; main()"
    command = [sys.executable, "-c", main, "twin", "start", "--scenario", str(scenario), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*command, "--speed", speed, "--zookeeper", zookeeper, "--check", *options],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        assert "twin with 4 brokers" in process.stdout.readline()
        bootstrap = process.stdout.readline().partition(": ")[2].strip()
        with zookeeper_client(zookeeper) as znodes:
            yield Served(zookeeper, bootstrap, znodes, process)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.communicate()


def plan(folder: Path, *replicas: int) -> str:
    """A file that sends foo-0 to these brokers."""
    path = folder / "plan.json"
    entry = {"topic": "foo", "partition": 0, "replicas": replicas}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    return str(path)


@pytest.fixture
def twin(kafka_zookeeper: KafkaCluster, tmp_path: Path, topic_name: str) -> Iterator[Served]:
    with served(f"{kafka_zookeeper.zookeeper_connect}/{topic_name}", tmp_path) as found:
        yield found


def test_tools_of_kafka_2_8_move_and_elect_through_znodes(
    twin: Served, kafka_zookeeper: KafkaCluster, tmp_path: Path
) -> None:
    def tool(main: str, *words: str) -> Finished:
        return kafka_zookeeper.java_tool(main, "--zookeeper", twin.zookeeper, *words, version="2.8.2")

    file = plan(tmp_path, 2, 3)
    started = tool(REASSIGN, "--execute", "--reassignment-json-file", file, "--throttle", "20000000")
    assert "Successfully started partition reassignment for foo-0" in started.stdout, started
    twin.wait_for((2, 3))
    verified = tool(REASSIGN, "--verify", "--reassignment-json-file", file)
    assert "Reassignment of partition foo-0 is complete" in verified.stdout, verified
    assert "Clearing topic-level throttles" in verified.stdout, verified
    elected = tool(ELECT)
    assert elected.exit_code == 0, elected
    wait_until(lambda: twin.znodes.exists(paths.PREFERRED_REPLICA_ELECTION) is None, what="the election")


def test_our_tools_move_and_elect_through_znodes(twin: Served, tmp_path: Path) -> None:
    def tool(name: str, *words: str) -> str:
        module = f"kreassign.kafka_tools.{name}"
        done = fork_server().run(module, "--zookeeper", twin.zookeeper, *words, imports=[module])
        assert done.exit_code == 0, done
        return done.stdout

    file = plan(tmp_path, 3, 1)
    tool("reassign_partitions", "--execute", "--reassignment-json-file", file)
    twin.wait_for((3, 1))
    assert "foo-0" in tool("reassign_partitions", "--verify", "--reassignment-json-file", file)
    tool("preferred_replica_election")
    wait_until(lambda: twin.znodes.exists(paths.PREFERRED_REPLICA_ELECTION) is None, what="the election")


def test_tool_of_kafka_3_9_moves_lists_and_cancels_through_brokers(
    twin: Served, kafka_zookeeper: KafkaCluster, tmp_path: Path
) -> None:
    def tool(*words: str) -> Finished:
        main = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        return kafka_zookeeper.java_tool(main, "--bootstrap-server", twin.bootstrap, *words)

    file = plan(tmp_path, 2, 3)
    started = tool("--execute", "--reassignment-json-file", file, "--throttle", "100")
    assert "Successfully started partition reassignment for foo-0" in started.stdout, started
    assert re.search("replicas: 2,3,(0,1|1,0). adding: 2,3. removing: (0,1|1,0).", tool("--list").stdout)
    assert (
        "Successfully cancelled partition reassignment for: foo-0"
        in tool("--cancel", "--reassignment-json-file", file).stdout
    )
    assert sorted(twin.topic().partitions[0]) == [0, 1]


def test_the_next_twin_ends_the_move_of_a_killed_one(
    kafka_zookeeper: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    address = f"{kafka_zookeeper.zookeeper_connect}/{topic_name}"
    with served(address, tmp_path, speed="0.1") as first:
        first.znodes.create(paths.REASSIGN_PARTITIONS, format_reassignments({FOO: (3, 2)}))
        wait_until(lambda: first.topic().adding == {0: (3, 2)}, what="the move to begin")
        first.process.kill()
    with served(address, tmp_path) as second:
        second.wait_for((3, 2))
        assert second.znodes.get(paths.CONTROLLER_EPOCH) == b"2"


def test_of_two_candidates_one_is_elected_and_a_deposed_one_writes_nothing(
    kafka_zookeeper: KafkaCluster, topic_name: str
) -> None:
    address = f"{kafka_zookeeper.zookeeper_connect}/{topic_name}"
    with zookeeper_tree(address) as first, zookeeper_tree(address) as second:
        assert first.elect(1, 0) == 1
        assert second.elect(2, 0) is None
        first.write((Create("/admin"),))
        first.resign()
        assert second.elect(2, 0) == 2
        with pytest.raises(ControllerMoved):
            first.write((Create("/brokers"),))
        assert first.get("/brokers") is None
        second.write((Create("/brokers"),))
        assert first.get("/brokers") is not None


def test_a_controller_without_a_session_is_elected_and_ends_the_move(
    kafka_zookeeper: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    address = f"{kafka_zookeeper.zookeeper_connect}/{topic_name}"
    with served(address, tmp_path, speed="0.5") as twin:
        twin.znodes.create(paths.REASSIGN_PARTITIONS, format_reassignments({FOO: (3, 2)}))
        wait_until(lambda: twin.topic().adding == {0: (3, 2)}, what="the move to begin")
        twin.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: twin.znodes.exists(paths.CONTROLLER) is None, what="its session to end")
            with zookeeper_tree(address) as other:
                assert other.elect(9, 0) == 2
                other.resign()
        finally:
            twin.process.send_signal(signal.SIGCONT)
        twin.wait_for((3, 2))
        assert twin.znodes.get(paths.CONTROLLER_EPOCH) == b"3"
        wait_until(lambda: len(twin.znodes.children(paths.BROKER_IDS)) == 4, what="all brokers")


def test_kafka_2_8_creates_extends_and_deletes_topics_by_znodes(twin: Served, kafka_zookeeper: KafkaCluster) -> None:
    def tool(*words: str) -> None:
        done = kafka_zookeeper.java_tool(TOPICS, "--zookeeper", twin.zookeeper, *words, version="2.8.2")
        assert done.exit_code == 0, done

    def leaders(count: int) -> bool:
        states = [paths.partition_state_path(TopicPartition("new", number)) for number in range(count)]
        return all(twin.znodes.exists(path) for path in states)

    tool("--create", "--topic", "new", "--partitions", "2", "--replication-factor", "2")
    wait_until(lambda: leaders(2), what="two leaders")
    tool("--alter", "--topic", "new", "--partitions", "3")
    wait_until(lambda: leaders(3), what="a third leader")
    tool("--delete", "--topic", "new")
    wait_until(lambda: twin.znodes.exists(paths.topic_path("new")) is None, what="the topic to go")
    wait_until(lambda: not twin.znodes.children(paths.DELETE_TOPICS), what="the deletion to end")


def test_a_restart_of_zookeeper_in_the_middle_of_a_move_loses_nothing(
    start_cluster: Callable[[ClusterSpec], KafkaCluster], tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterSpec(version="3.9.1", brokers=1, mode="zookeeper"))
    assert cluster.zookeeper is not None
    with served(f"{cluster.zookeeper_connect}/twin", tmp_path, speed="0.5") as twin:
        twin.znodes.create(paths.REASSIGN_PARTITIONS, format_reassignments({FOO: (3, 2)}))
        wait_until(lambda: twin.topic().adding == {0: (3, 2)}, what="the move to begin")
        cluster.zookeeper.restart()
        twin.wait_for((3, 2))
        wait_until(lambda: len(twin.znodes.children(paths.BROKER_IDS)) == 4, what="all brokers")
        assert twin.znodes.exists(paths.CONTROLLER) is not None
