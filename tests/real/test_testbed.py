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
    Permission,
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


def test_brokers_have_the_racks_and_log_dirs_that_were_asked_for(kafka, topic_name):
    kafka.create_topic(topic_name, [[0]] * 4)
    assert kafka.seen().brokers == {0: "a", 1: "b", 2: "c", 3: "a"}
    log_dirs = kafka.brokers[0].log_dirs
    assert len(log_dirs) == 2
    # New logs go where the fewest are; how many those are, other tests decide too.
    assert sum(len(list(log_dir.glob(f"{topic_name}-*"))) for log_dir in log_dirs) == 4


def test_stop_hands_the_leaderships_over_and_start_brings_the_replica_back(kafka, topic_name):
    kafka.create_topic(topic_name, [[1, 2]])
    kafka.brokers[1].stop()
    assert not kafka.brokers[1].is_running
    (partition,) = kafka.describe_topic(topic_name)
    assert (partition.leader, partition.isr) == (2, (2,))
    kafka.brokers[1].start()
    wait_until(lambda: set(kafka.describe_topic(topic_name)[0].isr) == {1, 2}, what="the broker in the ISR again")


def test_a_killed_broker_is_missed_by_the_cluster_and_can_be_started_again(kafka, topic_name):
    kafka.create_topic(topic_name, [[3, 0]])
    kafka.brokers[3].kill()
    wait_until(lambda: kafka.describe_topic(topic_name)[0].leader == 0, what="another leader")
    kafka.brokers[3].start()
    kafka.wait_ready()
    assert 3 in kafka.seen().brokers


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


def test_kafkas_own_tools_run_from_the_same_jars(kafka):
    finished = kafka.java_tool(_TOPIC_COMMAND, "--version")
    assert (finished.exit_code, finished.stdout.strip()) == (0, DEFAULT)


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


def test_kafka_391_runs_on_a_kraft_controller(kafka_391, topic_name):
    kafka_391.create_topic(topic_name, [[0, 1, 2]])
    assert kafka_391.java_tool(_TOPIC_COMMAND, "--version").stdout.strip() == "3.9.1"
    assert kafka_391.bootstrap_controllers
    assert kafka_391.zookeeper_connect == ""


def test_kafka_391_registers_its_brokers_in_a_real_zookeeper(kafka_zookeeper, topic_name):
    kafka_zookeeper.create_topic(topic_name, [[0, 1, 2]])
    finished = _zookeeper(kafka_zookeeper, "ls", "/brokers/ids")
    assert "[0, 1, 2]" in finished
    assert '"partitions":{"0":[0,1,2]}' in _zookeeper(kafka_zookeeper, "get", f"/brokers/topics/{topic_name}")
    assert kafka_zookeeper.bootstrap_controllers == ""


def test_another_broker_takes_over_as_controller_in_zookeeper_mode(kafka_zookeeper, topic_name):
    first = kafka_zookeeper.seen().controller
    kafka_zookeeper.brokers[first].kill()
    kafka_zookeeper.heal()
    kafka_zookeeper.create_topic(topic_name, [[0, 1, 2]])
    assert kafka_zookeeper.seen().brokers.keys() == {0, 1, 2}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL])
def test_sasl_listeners_let_in_who_has_the_password(kafka_secure, topic_name, tmp_path, listener, mechanism):
    kafka_secure.create_topic(topic_name, [[0]])
    assert topic_name in _list_topics(kafka_secure, listener, tmp_path, mechanism=mechanism).stdout.split()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(kafka_secure, tmp_path, mechanism):
    finished = _list_topics(kafka_secure, Listener.SASL_SSL, tmp_path, mechanism=mechanism, password="guessed")
    assert finished.exit_code == 1
    assert "SaslAuthenticationException" in finished.stderr


def test_a_user_sees_only_what_an_acl_allows(kafka_secure, topic_name, tmp_path):
    kafka_secure.create_topic(topic_name, [[0]])
    assert topic_name not in _list_topics(kafka_secure, Listener.SASL_SSL, tmp_path, user="alice").stdout
    kafka_secure.allow("alice", Permission("DESCRIBE", "TOPIC", topic_name))
    assert topic_name in _list_topics(kafka_secure, Listener.SASL_SSL, tmp_path, user="alice").stdout
    kafka_secure.withdraw("alice")


def test_the_ssl_listener_takes_the_user_from_the_certificate(kafka_secure, topic_name, tmp_path):
    kafka_secure.create_topic(topic_name, [[0]])
    assert topic_name in _list_topics(kafka_secure, Listener.SSL, tmp_path, user="admin").stdout
    assert topic_name not in _list_topics(kafka_secure, Listener.SSL, tmp_path, user="alice").stdout


def test_the_ssl_listener_refuses_who_has_no_certificate(kafka_secure, tmp_path):
    settings = kafka_secure.client_properties(Listener.SSL)
    settings = {key: value for key, value in settings.items() if not key.startswith("ssl.keystore")}
    finished = _list_topics_with(kafka_secure, Listener.SSL, tmp_path, settings)
    assert finished.exit_code == 1
    assert "SslAuthenticationException" in finished.stderr


def test_a_client_with_another_authority_refuses_the_brokers(kafka_secure, tmp_path):
    foreign = str(kafka_secure.certificates.foreign_trust_store)
    settings = kafka_secure.client_properties(Listener.SASL_SSL) | {"ssl.truststore.location": foreign}
    finished = _list_topics_with(kafka_secure, Listener.SASL_SSL, tmp_path, settings)
    assert finished.exit_code == 1
    assert "SSL handshake failed" in finished.stderr


def test_a_broker_joins_a_running_cluster(start_cluster: StartCluster, topic_name):
    cluster = start_cluster(ClusterSpec(brokers=1, racks=("x", "y")))
    node = cluster.add_broker()
    assert node.id == 1
    assert cluster.add_broker(rack="z").id == 2
    assert cluster.seen().brokers == {0: "x", 1: "y", 2: "z"}
    cluster.create_topic(topic_name, [[2, 1]])


def test_another_controller_takes_over_when_the_active_one_is_killed(three_controllers: KafkaCluster, topic_name):
    cluster = three_controllers
    active = probe.active_controller(cluster.controllers[100].place.ports["CONTROLLER"])
    cluster.controllers[active].kill()
    others = [node.place.ports["CONTROLLER"] for node in cluster.controllers.values() if node.id != active]
    wait_until(
        lambda: {probe.active_controller(port) for port in others} <= set(cluster.controllers) - {active},
        what="another active controller",
    )
    cluster.create_topic(topic_name, [[0]])


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
    return _list_topics_with(cluster, listener, folder, cluster.client_properties(listener, **credentials))


def _list_topics_with(cluster: KafkaCluster, listener: Listener, folder: Path, settings: dict[str, str]):
    config = folder / "client.properties"
    config.write_text(render(settings))
    servers = cluster.bootstrap(listener)
    return cluster.java_tool(_TOPIC_COMMAND, "--bootstrap-server", servers, "--command-config", str(config), "--list")


def _zookeeper(cluster: KafkaCluster, *command: str) -> str:
    finished = cluster.java_tool("org.apache.zookeeper.ZooKeeperMain", "-server", cluster.zookeeper_connect, *command)
    assert finished.exit_code == 0, finished.stderr
    return finished.stdout
