import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import (
    ClusterSpec,
    Finished,
    JarsMissing,
    KafkaCluster,
    Listener,
    NodeFailed,
    RecordsLost,
    Refused,
    jars,
    probe,
)
from testbed.cluster import FOLDER_VARIABLE
from testbed.processes import is_alive
from testbed.producing import Producing
from testbed.properties import render
from testbed.records import load_topic, read_all, verify_readable
from testbed.releases import DEFAULT
from testbed.waiting import wait_until

StartCluster = Callable[[ClusterSpec], KafkaCluster]
_TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
_PARENT = """
import sys, threading
from testbed import ClusterSpec, KafkaCluster

def work():
    cluster = KafkaCluster.start(ClusterSpec(brokers=2))
    cluster.brokers[1].freeze()
    nodes = (*cluster.brokers.values(), *cluster.controllers.values())
    print(*(node.pid for node in nodes), flush=True)

thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.stdin.read()
"""


def test_a_frozen_broker_answers_nothing_until_it_is_thawed(kafka):
    node = kafka.brokers[2]
    node.freeze()
    assert node.is_frozen
    assert node.is_running
    request = probe.MetadataRequest(topics=[])
    with pytest.raises(TimeoutError):
        probe.ask(node.place.ports["PLAINTEXT"], request, probe.MetadataResponse, 9, timeout_s=0.5)
    wait_until(lambda: 2 not in kafka.seen().brokers, what="the frozen broker fenced")
    node.thaw()
    kafka.wait_ready()
    assert not node.is_frozen
    assert 2 in kafka.seen().brokers


def test_the_only_controller_can_be_restarted(kafka, topic_name):
    controller = kafka.controllers[100]
    pid = controller.pid
    controller.restart()
    assert controller.pid != pid
    kafka.create_topic(topic_name, [[0, 1]])


def test_the_port_of_a_broker_that_is_down_stays_reserved(kafka):
    node = kafka.brokers[0]
    node.kill()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", node.place.ports["PLAINTEXT"]))
    node.start()


def test_a_request_that_kafka_refuses_is_an_error(kafka, topic_name):
    kafka.create_topic(topic_name, [[0]])
    with pytest.raises(Refused, match=f"{topic_name}: error 36"):
        kafka.create_topic(topic_name, [[0]])


def test_a_tool_that_takes_too_long_is_killed(kafka):
    for main_class in (_TOPIC_COMMAND, "org.apache.zookeeper.ZooKeeperMain"):
        with pytest.raises(TimeoutError, match=r"killed after 0 s"):
            kafka.java_tool(main_class, "--version", timeout_s=0)


@pytest.mark.parametrize(("words", "exit_code"), [
    (("--version",), 0),
    (("--nonsense",), 1),
    (("--describe", "--topic", "absent"), 1),
    (("--list", "--topic", "absent"), 0),
])  # fmt: skip
def test_a_tool_says_the_same_in_the_java_that_stays_as_in_one_of_its_own(kafka, words, exit_code):
    arguments = (_TOPIC_COMMAND, "--bootstrap-server", kafka.bootstrap_servers, *words)
    done = subprocess.run(kafka.java_command(*arguments), capture_output=True, text=True, timeout=120, check=False)
    own = Finished(done.returncode, done.stdout, without_times(done.stderr))
    for _ in range(2):
        hosted = kafka.java_tool(*arguments)
        assert dataclasses.replace(hosted, stderr=without_times(hosted.stderr)) == own
    assert own.exit_code == exit_code


def without_times(text: str) -> str:
    """Without the moments of log lines, and without the frames of stack traces, which differ at their ends."""
    lines = [re.sub(r"\d+-\d\d-\d\dT[\d:.]+", "", line) for line in text.splitlines()]
    return "\n".join(line for line in lines if not line.startswith("\tat "))


def test_the_same_seed_gives_the_same_records(kafka, topic_name):
    topics = [f"{topic_name}-{index}" for index in range(3)]
    for topic in topics:
        kafka.create_topic(topic, [[0], [1]])
    first, second, other = (
        load_topic(kafka.bootstrap_servers, topic, {0: 200_000, 1: 50_000}, seed=seed)
        for topic, seed in zip(topics, (7, 7, 8), strict=True)
    )
    assert first.partitions == second.partitions
    assert first.partitions != other.partitions
    assert sum(record.size_bytes - 16 for record in first.partitions[0]) == 200_000


def test_every_acknowledged_record_is_read_back(kafka, topic_name):
    kafka.create_topic(topic_name, [[0, 1], [1, 2], [2, 3]])
    ledger = load_topic(kafka.bootstrap_servers, topic_name, {0: 3_000_000, 1: 1_000_000, 2: 2_000_000})
    read = read_all(kafka.bootstrap_servers, topic_name)
    assert read.partitions == ledger.partitions
    assert read.count == ledger.count > 60
    verify_readable(kafka.bootstrap_servers, ledger)


def test_a_lost_record_is_noticed(kafka, topic_name):
    kafka.create_topic(topic_name, [[0]])
    ledger = load_topic(kafka.bootstrap_servers, topic_name, {0: 500_000}, seed=1)
    last = ledger.partitions[0][-1]
    one_more = dataclasses.replace(last, offset=last.offset + 1)
    claimed = dataclasses.replace(ledger, partitions={0: (*ledger.partitions[0], one_more)})
    with pytest.raises(RecordsLost, match=f"1 of {claimed.count} acknowledged records lost .* at {one_more.offset}"):
        verify_readable(kafka.bootstrap_servers, ledger, claimed)


def test_records_that_changed_places_are_noticed(kafka, topic_name):
    kafka.create_topic(topic_name, [[0]])
    ledger = load_topic(kafka.bootstrap_servers, topic_name, {0: 500_000}, seed=1)
    backwards = dataclasses.replace(ledger, partitions={0: ledger.partitions[0][::-1]})
    with pytest.raises(RecordsLost, match="not given in the order of sending"):
        verify_readable(kafka.bootstrap_servers, backwards)


def test_acknowledged_records_survive_a_death_and_a_restart(kafka, topic_name):
    kafka.create_topic(topic_name, [[0, 1], [1, 2], [2, 0]], config={"min.insync.replicas": "1"})
    with Producing(kafka.bootstrap_servers, topic_name, partitions=3, records_per_s=100) as producing:
        kafka.brokers[1].kill()
        kafka.brokers[1].start()
        kafka.brokers[2].restart()
    assert producing.failures == ()
    assert producing.ledger.count == producing.sent > 100
    verify_readable(kafka.bootstrap_servers, producing.ledger)


def test_the_ssl_listener_takes_the_user_from_the_certificate(kafka_secure, topic_name, tmp_path):
    kafka_secure.create_topic(topic_name, [[0]])
    assert topic_name in _list_topics(kafka_secure, Listener.SSL, tmp_path, user="admin").stdout
    assert topic_name not in _list_topics(kafka_secure, Listener.SSL, tmp_path, user="alice").stdout


def test_a_broker_joins_a_running_cluster(start_cluster: StartCluster, topic_name):
    cluster = start_cluster(ClusterSpec(brokers=1, racks=("x", "y")))
    node = cluster.add_broker()
    assert node.id == 1
    assert cluster.add_broker(rack="z").id == 2
    assert cluster.seen().brokers == {0: "x", 1: "y", 2: "z"}
    cluster.create_topic(topic_name, [[2, 1]])


def test_no_process_outlives_a_parent_that_is_killed(tmp_path):
    environment = os.environ | {FOLDER_VARIABLE: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        # All alive, though the thread that started them is gone.
        assert [is_alive(pid) for pid in pids] == [True] * 3
        parent.kill()
        assert parent.wait() == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, pids)), what="all nodes dead")


def test_a_node_that_fails_says_why_and_its_log_is_kept(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(NodeFailed, match=r"missing\.Authorizer"):
        KafkaCluster.start(ClusterSpec(brokers=1, broker_config={"authorizer.class.name": "missing.Authorizer"}))
    (folder,) = tmp_path.iterdir()
    assert str(folder) in capfd.readouterr().err
    assert "missing.Authorizer" in (folder / "controller-100" / "node.log").read_text()
    assert not (folder / "broker-0" / "data-0").exists()


def test_nothing_is_left_when_all_went_well(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with KafkaCluster.start(ClusterSpec(brokers=1)) as cluster:
        assert cluster.folder.is_dir()
        pid = cluster.brokers[0].pid
    assert pid is not None
    assert not is_alive(pid)
    assert list(tmp_path.iterdir()) == []


def test_missing_jars_are_one_line_that_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setenv(jars.JARS_VARIABLE, str(tmp_path))
    with pytest.raises(JarsMissing) as raised:
        jars.class_path(DEFAULT)
    assert str(raised.value).endswith("run: make jars")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"brokers": 0},
        {"controllers": 0},
        {"mode": "zookeeper"},
        {"mode": "zookeeper", "version": "3.9.1", "is_proxied": True},
        {"log_dirs": 0},
    ],
)
def test_a_cluster_that_cannot_be_is_refused_before_anything_starts(fields):
    with pytest.raises(ValueError, match=r"controllers|broker|ZooKeeper"):
        ClusterSpec(**fields)


def _list_topics(cluster: KafkaCluster, listener: Listener, folder: Path, **credentials: str):
    settings = cluster.client_properties(listener, **credentials)
    config = folder / "client.properties"
    config.write_text(render(settings))
    servers = cluster.bootstrap(listener)
    return cluster.java_tool(_TOPIC_COMMAND, "--bootstrap-server", servers, "--command-config", str(config), "--list")
