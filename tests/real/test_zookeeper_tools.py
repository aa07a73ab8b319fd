"""`--zookeeper` of the drop-in tools on real Kafka 3.9.1: as the tools of Kafka 2.8 did it, the last that could."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kreassign.model import TopicPartition
from kreassign.model.znodes import format_reassignments, paths
from testbed import Finished, KafkaCluster
from testbed.fork_server import fork_server
from testbed.waiting import PATIENCE_S, wait_until
from tests.real.tool_comparison import Programs, outcomes
from tests.real.zookeeper_scenarios import SCENARIOS

REASSIGN_28 = Programs("kafka.admin.ReassignPartitionsCommand", "kreassign.kafka_tools.reassign_partitions", "2.8.2")


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_tools_do_and_say_the_same(kafka_zookeeper: KafkaCluster, tmp_path: Path, name: str) -> None:
    theirs, ours = outcomes(kafka_zookeeper, name, SCENARIOS[name], tmp_path, REASSIGN_28)
    # Since 2.8 one word has changed; all else that differs is the order of a hash table.
    assert ours == theirs.replace(" is complete.", " is completed.")


def _reassign(*words: str) -> Finished:
    return fork_server().run(REASSIGN_28.module, *words, imports=[REASSIGN_28.module])


def _plan(folder: Path, **requested: list[int]) -> str:
    entries = [{"topic": topic, "partition": 0, "replicas": replicas} for topic, replicas in requested.items()]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
    return str(path)


@pytest.fixture
def znodes(kafka_zookeeper: KafkaCluster) -> Iterator[KazooClient]:
    client = KazooClient(hosts=kafka_zookeeper.zookeeper_connect)
    client.start(timeout=PATIENCE_S)
    yield client
    client.stop()
    client.close()


def test_with_brokers_named_too_zookeeper_is_ignored_with_a_warning(
    kafka_zookeeper: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    kafka_zookeeper.create_topic(topic_name, [[0, 1]])
    done = _reassign(
        "--zookeeper", "127.0.0.1:1", "--bootstrap-server", kafka_zookeeper.bootstrap_servers,
        "--verify", "--reassignment-json-file", _plan(tmp_path, **{topic_name: [0, 1]}),
    )  # fmt: skip
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "Warning: ignoring deprecated --zookeeper option because --bootstrap-server was specified.  "
        "The --zookeeper option will be removed in a future version of Kafka.\nStatus of partition reassignment:"
    )


def test_a_wrong_chroot_is_told_and_nothing_is_written_there(
    kafka_zookeeper: KafkaCluster, znodes: KazooClient, tmp_path: Path
) -> None:
    address = f"{kafka_zookeeper.zookeeper_connect}/elsewhere"
    done = _reassign("--zookeeper", address, "--verify", "--reassignment-json-file", _plan(tmp_path, orders=[0]))
    assert done.exit_code == 1
    assert f"There is no Kafka cluster in the ZooKeeper at {address}: it has no /brokers/ids" in done.stdout
    assert znodes.exists("/elsewhere") is None


@pytest.mark.parametrize("content", [b"{bad", b'{"version":1,"partitions":[{"topic":"a"}]}'])
def test_a_malformed_reassignment_znode_is_explained_and_left_alone(
    kafka_zookeeper: KafkaCluster, znodes: KazooClient, tmp_path: Path, topic_name: str, content: bytes
) -> None:
    kafka_zookeeper.create_topic(topic_name, [[0, 1]])
    znodes.create(paths.REASSIGN_PARTITIONS, content)
    try:
        done = _reassign(
            "--zookeeper", kafka_zookeeper.zookeeper_connect,
            "--execute", "--reassignment-json-file", _plan(tmp_path, **{topic_name: [1, 0]}),
        )  # fmt: skip
        assert done.exit_code == 1
        assert "Error: znode /admin/reassign_partitions is damaged: " in done.stdout
        assert znodes.get(paths.REASSIGN_PARTITIONS)[0] == content
    finally:
        znodes.delete(paths.REASSIGN_PARTITIONS)
        _elect_a_controller(znodes)


def test_an_entry_that_never_goes_away_is_recognised(
    kafka_zookeeper: KafkaCluster, znodes: KazooClient, tmp_path: Path, topic_name: str
) -> None:
    kafka_zookeeper.create_topic(topic_name, [[0, 1]])
    znodes.create(paths.REASSIGN_PARTITIONS, _entry(topic_name, "[1,1]"))
    try:
        wait_until(lambda: _replicas(kafka_zookeeper, topic_name) == (1,), what="the duplicate to be lost")
        plan = _plan(tmp_path, **{topic_name: [1, 0]})
        words = ("--zookeeper", kafka_zookeeper.zookeeper_connect, "--reassignment-json-file", plan)
        refused = _reassign("--execute", *words)
        assert refused.exit_code == 1
        assert "Delete it, then /controller" in refused.stdout
        assert "names a broker twice" in refused.stdout
        assert "names a broker twice" in _reassign("--verify", *words).stderr
    finally:
        znodes.delete(paths.REASSIGN_PARTITIONS)
        _elect_a_controller(znodes)


def test_a_controller_that_does_not_listen_any_more_is_told_of(
    kafka_zookeeper: KafkaCluster, znodes: KazooClient, tmp_path: Path, topic_name: str
) -> None:
    """After a znode was deleted by hand the controller does not see a new one until another controller is elected."""
    kafka_zookeeper.create_topic(topic_name, [[0, 1]])
    znodes.create(paths.REASSIGN_PARTITIONS, _entry(topic_name, "[1,1]"))
    wait_until(lambda: _replicas(kafka_zookeeper, topic_name) == (1,), what="the duplicate to be lost")
    # The controller does one thing after the other: when a later topic is there, it is done with the entry.
    kafka_zookeeper.create_topic(f"{topic_name}-later", [[0]])
    znodes.delete(paths.REASSIGN_PARTITIONS)
    done = _reassign(
        "--zookeeper", kafka_zookeeper.zookeeper_connect,
        "--execute", "--reassignment-json-file", _plan(tmp_path, **{topic_name: [2, 0]}),
    )  # fmt: skip
    assert done.exit_code == 0
    assert "Successfully started partition reassignment for" in done.stdout
    assert done.stderr.startswith("Warning: the controller has not read the new znode /admin/reassign_partitions.")
    _elect_a_controller(znodes)  # the way out that the warning names
    wait_until(lambda: _replicas(kafka_zookeeper, topic_name) == (2, 0), what="the move to be made")
    wait_until(lambda: znodes.exists(paths.REASSIGN_PARTITIONS) is None, what="the znode to go")


def test_nobody_there_is_told_in_one_line(tmp_path: Path) -> None:
    done = _reassign("--zookeeper", "127.0.0.1:1", "--verify", "--reassignment-json-file", _plan(tmp_path, orders=[0]))
    assert done.exit_code == 1
    assert re.search(r"^Error: No ZooKeeper answered at 127\.0\.0\.1:1 within 15 s$", done.stdout, re.MULTILINE)
    assert done.stderr == ""


def _entry(topic: str, replicas: str) -> bytes:
    written = format_reassignments({TopicPartition(topic, 0): (1,)})
    return written.replace(b'"replicas":[1]', f'"replicas":{replicas}'.encode())


def _replicas(cluster: KafkaCluster, topic: str) -> tuple[int, ...]:
    (partition,) = cluster.describe_topic(topic)
    return tuple(partition.replicas)


def _elect_a_controller(znodes: KazooClient) -> None:
    epoch = int(znodes.get(paths.CONTROLLER_EPOCH)[0])
    znodes.delete(paths.CONTROLLER)
    wait_until(
        lambda: int(znodes.get(paths.CONTROLLER_EPOCH)[0]) > epoch and znodes.exists(paths.CONTROLLER) is not None,
        what="another controller",
    )
