"""Each command with just the permissions that `docs/start/install.md` lists for it, and without each one of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.model import NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster, Listener, Permission
from testbed.fork_server import fork_server
from testbed.properties import render
from testbed.records import load_topic
from testbed.waiting import wait_until
from tests.real.test_run import assignments, client_of, throttles

pytestmark = pytest.mark.uses_cluster("kafka_secure")

FAST_S = 5.0
PATIENCE_S = 90
CLUSTER_LOOK, CLUSTER_SETTINGS = Permission("DESCRIBE"), Permission("DESCRIBE_CONFIGS")
ALTER, ALTER_SETTINGS = Permission("ALTER"), Permission("ALTER_CONFIGS")


def of_topics(operation: str) -> Permission:
    """On all: other tests leave topics on this cluster."""
    return Permission(operation, "TOPIC", "*")


@dataclass
class Alice:
    """Who may do nothing until she is allowed to, at her machine, and a topic all of which is on broker 0."""

    cluster: KafkaCluster
    folder: Path
    topic: str

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"

    @property
    def where(self) -> tuple[str, ...]:
        """The cluster, and who she is."""
        own = str(self.folder / "alice.properties")
        return "--bootstrap-server", self.cluster.bootstrap(Listener.SASL_SSL), "--command-config", own

    def may(self, *permissions: Permission) -> None:
        """These from now on, and nothing else."""
        self.cluster.withdraw("alice")
        for permission in permissions:
            self.cluster.allow("alice", permission)

    def give(self, *words: object) -> Result:
        """A command, which must not keep her waiting where it is refused."""
        started = time.monotonic()
        found = CliRunner().invoke(kreassign, [*map(str, words), *self.where])
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        assert found.exit_code == 0 or time.monotonic() - started < FAST_S
        return found

    def nothing_is_left(self) -> bool:
        """Nothing moves, nothing has moved and nothing is throttled."""
        with client_of(self.cluster) as client:
            assert client.list_partition_reassignments() == {}
        return assignments(self.cluster, self.topic) == {0: (0,), 1: (0,)} and not throttles(self.cluster, self.topic)


@pytest.fixture
def alice(kafka_secure: KafkaCluster, topic_name: str, tmp_path: Path) -> Iterator[Alice]:
    with client_of(kafka_secure) as client:
        client.create_topics([NewTopic(topic_name, assignments=((0,), (0,)))]).raise_if_any()
    load_topic(kafka_secure.bootstrap_servers, topic_name, {0: 100_000, 1: 100_000})
    properties = kafka_secure.client_properties(Listener.SASL_SSL, user="alice", mechanism="SCRAM-SHA-512")
    (tmp_path / "alice.properties").write_text(render(properties))
    found = Alice(kafka_secure, tmp_path, topic_name)
    write_plan(found.plan, Plan(tuple(PartitionAssignment(TopicPartition(topic_name, one), (1,)) for one in (0, 1))))
    yield found
    kafka_secure.withdraw("alice")


LOOKS: dict[str, Callable[[Alice], tuple[object, ...]]] = {
    "snapshot": lambda alice: ("snapshot", "--measure-for", 0, "--out", alice.folder / "cluster.json"),
    "plan": lambda alice: ("plan", "--measure-for", 0, "--out", alice.folder / "found.json"),
    "collect": lambda alice: ("collect", "--data", alice.folder / "data", "--rounds", 1),
}


@pytest.mark.parametrize("name", LOOKS)
def test_who_looks_is_told_what_is_not_seen(alice: Alice, name: str) -> None:
    words = LOOKS[name](alice)
    whole = (CLUSTER_LOOK, CLUSTER_SETTINGS, *(of_topics(one) for one in ("DESCRIBE", "DESCRIBE_CONFIGS")))
    alice.may(*whole)
    seen = alice.give(*words)
    assert (seen.exit_code, "permission is missing" in seen.output) == (0, False), seen.output
    for left_out, said in {
        CLUSTER_LOOK: "Describe on the cluster; allow it with `kafka-acls",
        CLUSTER_SETTINGS: "DescribeConfigs on the cluster",
        of_topics("DESCRIBE"): "Describe on topic",
        of_topics("DESCRIBE_CONFIGS"): "DescribeConfigs on topic",
    }.items():
        alice.may(*(one for one in whole if one != left_out))
        seen = alice.give(*words)
        assert seen.exit_code == (4 if left_out == CLUSTER_LOOK else 0), seen.output
        assert f"permission is missing: {said}" in seen.stderr, (left_out, seen.output)
        if left_out == CLUSTER_LOOK:
            (line,) = (line for line in seen.stderr.splitlines() if line.startswith("error: "))
            assert len(line) < 250


@pytest.mark.parametrize("throttle", [(), ("--throttle", "10MB/s")])
def test_a_run_needs_just_what_is_listed_and_without_it_changes_nothing(
    alice: Alice, throttle: tuple[str, ...]
) -> None:
    run = ("run", "--yes", alice.plan, "--measure-for", 0, "--state-dir", alice.folder / "state", *throttle)
    # In Kafka, who may alter may describe.
    whole = [ALTER, of_topics("DESCRIBE")]
    said = {
        ALTER: "Alter on the cluster; allow it with `kafka-acls",
        of_topics("DESCRIBE"): f"Describe on topic {alice.topic}; allow it with `kafka-acls",
    }
    if throttle:
        of_settings = of_topics("ALTER_CONFIGS")
        whole += [ALTER_SETTINGS, of_settings]
        said |= {ALTER_SETTINGS: "AlterConfigs on the cluster", of_settings: f"AlterConfigs on topic {alice.topic}"}
    for left_out, words in said.items():
        alice.may(CLUSTER_LOOK, *(one for one in whole if one != left_out))
        refused = alice.give(*run)
        assert refused.exit_code in {2, 4}, refused.output
        assert f"permission is missing: {words}" in refused.stderr, refused.stderr
        assert alice.nothing_is_left()
    alice.may(*whole)
    done = alice.give(*run)
    assert done.exit_code == 0, done.output
    assert (assignments(alice.cluster, alice.topic), throttles(alice.cluster, alice.topic)) == ({0: (1,), 1: (1,)}, {})


def test_maintenance_is_refused_to_who_does_not_see_what_is_on_the_broker(alice: Alice) -> None:
    enter = ("maintenance", "enter", 0, "--yes", "--state-dir", alice.folder / "state")
    alice.may(ALTER, ALTER_SETTINGS)
    refused = alice.give(*enter)
    assert refused.exit_code != 0
    assert "permission is missing: Describe on topic" in refused.output, refused.output
    assert alice.nothing_is_left()


def test_the_doctor_names_what_each_command_lacks(alice: Alice) -> None:
    with client_of(alice.cluster) as client:
        client.create_topics([NewTopic(f"{alice.topic}-too", assignments=((0,),))]).raise_if_any()
    alice.may(CLUSTER_LOOK)
    told = alice.give("doctor", "--measure-for", 0, "--state-dir", alice.folder / "state").output
    kinds = {"--topic": "'*'", "--cluster": ""}
    for kind, operation in itertools.product(kinds, ("Describe", "DescribeConfigs", "Alter", "AlterConfigs")):
        is_needed = (kind, operation) not in {("--topic", "Alter"), ("--cluster", "Describe")}
        command = f"kafka-acls --add --allow-principal User:alice --operation {operation} {kind} {kinds[kind]}".strip()
        assert (f"{command} --bootstrap-server" in told) == is_needed, told


def test_a_run_says_which_permissions_were_withdrawn_and_clears_up_when_they_are_back(alice: Alice) -> None:
    load_topic(alice.cluster.bootstrap_servers, alice.topic, {0: 6_000_000, 1: 6_000_000})
    whole = (ALTER, ALTER_SETTINGS, of_topics("DESCRIBE"), of_topics("ALTER_CONFIGS"))
    run = ("run", "--yes", alice.plan, "--measure-for", 0, "--throttle", "1MB/s", "--max-moves", 1)
    state = ("--state-dir", alice.folder / "state")
    alice.may(*whole)
    process = fork_server().start("kreassign", *map(str, (*run, "--poll-interval", 0.5, *state)), *alice.where)
    with client_of(alice.cluster) as client:
        wait_until(client.list_partition_reassignments, timeout_s=PATIENCE_S, what="the first move")
    alice.may(CLUSTER_LOOK, of_topics("DESCRIBE"))

    def status() -> str:
        return CliRunner().invoke(kreassign, ["status", *map(str, state)]).output

    named = f"permission is missing: AlterConfigs on topic {alice.topic}; allow it with `kafka-acls"
    wait_until(lambda: named in " ".join(status().split()), timeout_s=PATIENCE_S, what="what is missing, in the status")
    assert process.poll() is None
    alice.may(*whole)
    process.communicate(timeout=PATIENCE_S)
    assert throttles(alice.cluster, alice.topic) == {}
    if process.returncode:
        # It was long enough for the run to give up the second move, which the same plan still does.
        assert (process.returncode, "1 of 2 moves complete" in status()) == (5, True), status()
        assert alice.give("run", "--yes", alice.plan, "--measure-for", 0, *state).exit_code == 0
    assert assignments(alice.cluster, alice.topic) == {0: (1,), 1: (1,)}
