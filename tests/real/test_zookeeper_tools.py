"""`--zookeeper` of the drop-in tools on real Kafka 3.9.1: as the tools of Kafka 2.8 did it, the last that could."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kreassign.clock import SystemClock
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, VerifyRequest
from kreassign.kafka_tools.zookeeper import perform
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_reassignments
from testbed import Finished, KafkaCluster
from testbed.fork_server import fork_server
from testbed.ports import reserved_ports
from testbed.proxy import Deed, Interference, Proxy
from testbed.waiting import wait_until
from testbed.zookeeper import ZooKeeper, zookeeper_client
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
def znodes(kafka_zookeeper: KafkaCluster) -> Iterator[ZooKeeper]:
    with zookeeper_client(kafka_zookeeper.zookeeper_connect) as found:
        yield found


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
    kafka_zookeeper: KafkaCluster, znodes: ZooKeeper, tmp_path: Path
) -> None:
    address = f"{kafka_zookeeper.zookeeper_connect}/elsewhere"
    done = _reassign("--zookeeper", address, "--verify", "--reassignment-json-file", _plan(tmp_path, orders=[0]))
    assert done.exit_code == 1
    assert f"There is no Kafka cluster in the ZooKeeper at {address}: it has no /brokers/ids" in done.stdout
    assert znodes.exists("/elsewhere") is None


@pytest.mark.parametrize("content", [b"{bad", b'{"version":1,"partitions":[{"topic":"a"}]}'])
def test_a_malformed_reassignment_znode_is_explained_and_left_alone(
    kafka_zookeeper: KafkaCluster, znodes: ZooKeeper, tmp_path: Path, topic_name: str, content: bytes
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
        assert znodes.get(paths.REASSIGN_PARTITIONS) == content
    finally:
        znodes.delete(paths.REASSIGN_PARTITIONS)
        _elect_a_controller(znodes)


def test_an_entry_that_never_goes_away_is_recognised(
    kafka_zookeeper: KafkaCluster, znodes: ZooKeeper, tmp_path: Path, topic_name: str
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
    kafka_zookeeper: KafkaCluster, znodes: ZooKeeper, tmp_path: Path, topic_name: str
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


def test_a_lost_answer_of_zookeeper_changes_nothing_about_the_outcome(
    kafka_zookeeper: KafkaCluster, znodes: ZooKeeper, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each answer in turn is lost: of the first read, of each throttle's write, of the znode that starts the move."""
    kafka_zookeeper.create_topic(topic_name, [[0, 1]])
    key, server = TopicPartition(topic_name, 0), kafka_zookeeper.zookeeper_connect
    with reserved_ports() as ports, closing(Proxy()) as proxy:
        at = ports.take()
        proxy.stand_before(int(server.rpartition(":")[2]), at)
        for answers in range(40):
            target = (1, 0) if answers % 2 == 0 else (0, 1)
            lost = Interference(Deed.LOSE_ANSWER, keys=frozenset({0}), spared=answers, times=1)
            proxy.interfere(lost)
            plan = Plan((PartitionAssignment(key, target),))
            perform(f"127.0.0.1:{at}", _execute(plan, throttle=5_000_000 + answers), SystemClock())
            proxy.interfere(None)
            assert f"Successfully started partition reassignment for {key}" in capsys.readouterr().out
            wait_until(lambda target=target: _replicas(kafka_zookeeper, topic_name) == target, what=f"{target}")
            wait_until(lambda: znodes.exists(paths.REASSIGN_PARTITIONS) is None, what="the znode to go")
            assert f'"{5_000_000 + answers}"'.encode() in znodes.get(paths.config_path(ConfigResource.broker(0)))
            if not lost.strikes:
                break
        else:
            raise AssertionError("the tool asks more than forty times")
    assert answers > 5
    perform(server, VerifyRequest(plan, preserves_throttles=False), SystemClock())
    assert b"throttled" not in znodes.get(paths.config_path(ConfigResource.broker(0)))


def _execute(plan: Plan, *, throttle: int) -> ExecuteRequest:
    return ExecuteRequest(
        plan,
        is_additional=False,
        throttle=throttle,
        log_dir_throttle=-1,
        timeout_ms=10_000,
        allows_replication_factor_change=True,
    )


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


def _elect_a_controller(znodes: ZooKeeper) -> None:
    epoch = int(znodes.get(paths.CONTROLLER_EPOCH))
    znodes.delete(paths.CONTROLLER)
    wait_until(
        lambda: int(znodes.get(paths.CONTROLLER_EPOCH)) > epoch and znodes.exists(paths.CONTROLLER) is not None,
        what="another controller",
    )
