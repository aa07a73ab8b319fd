"""Each command with just the permissions that `docs/start/install.md` lists for it, and without each one of them."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.executor.events import Event, MovesObserved, PartitionObservation, PlacementState
from kreassign.executor.journal import find_journals, read_events
from kreassign.model import NewTopic, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from testbed import KafkaCluster, Listener, Permission
from testbed.fork_server import fork_server
from testbed.properties import render
from testbed.records import load_topic
from testbed.waiting import PATIENCE_S, wait_until
from tests.real.kip_checks import tool
from tests.real.test_run import HELD, HELD_RATE, MEGABYTE, assignments, client_of, throttles

pytestmark = pytest.mark.uses_cluster("kafka_secure")

CLUSTER_LOOK, CLUSTER_SETTINGS = Permission("DESCRIBE"), Permission("DESCRIBE_CONFIGS")
ALTER, ALTER_SETTINGS = Permission("ALTER"), Permission("ALTER_CONFIGS")


def of_topics(operation: str) -> Permission:
    """On all: other tests leave topics on this cluster."""
    return Permission(operation, "TOPIC", "*")


@dataclass
class Alice:
    """A user without permissions at first, her machine, and a topic that is on broker 0 alone."""

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
        """A command. Her calls last ten minutes: one that does not give up what is refused ends with its test."""
        found = CliRunner().invoke(kreassign, [*map(str, words), *self.where])
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return found

    def nothing_is_left(self) -> bool:
        """Assert that nothing moves, nothing has moved and nothing is throttled."""
        with client_of(self.cluster) as client:
            assert client.list_partition_reassignments() == {}
        return assignments(self.cluster, self.topic) == {0: (0,), 1: (0,)} and not throttles(self.cluster, self.topic)


@pytest.fixture
def alice(kafka_secure: KafkaCluster, topic_name: str, tmp_path: Path) -> Iterator[Alice]:
    with client_of(kafka_secure) as client:
        client.create_topics([NewTopic(topic_name, assignments=((0,), (0,)))]).raise_if_any()
    load_topic(kafka_secure.bootstrap_servers, topic_name, {0: 100_000, 1: 100_000})
    properties = kafka_secure.client_properties(Listener.SASL_SSL, user="alice", mechanism="SCRAM-SHA-512")
    (tmp_path / "alice.properties").write_text(render(properties | {"default.api.timeout.ms": "600000"}))
    found = Alice(kafka_secure, tmp_path, topic_name)
    write_plan(
        found.plan, Plan(tuple(PartitionAssignment(TopicPartition(topic_name, one), (1,)) for one in (0, 1))), None
    )
    yield found
    kafka_secure.withdraw("alice")


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
    else:
        whole += [of_topics("DESCRIBE_CONFIGS")]
        said |= {of_topics("DESCRIBE_CONFIGS"): f"DescribeConfigs on topic {alice.topic}"}
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


STAYS = "stays.json"
READS, READS_SETTINGS = of_topics("DESCRIBE"), of_topics("DESCRIBE_CONFIGS")
EVERY_LOOK = {
    CLUSTER_LOOK: "Describe on the cluster",
    READS: "Describe on topic",
    CLUSTER_SETTINGS: "DescribeConfigs on the cluster",
    READS_SETTINGS: "DescribeConfigs on topic",
}
# What each command that changes nothing needs, and what is said without it.
LOOKS_AT: dict[str, tuple[tuple[object, ...], dict[Permission, str]]] = {
    "snapshot": (("snapshot", "--measure-for", 0, "--out", "cluster.json"), EVERY_LOOK),
    "collect": (("collect", "--data", "data", "--rounds", 1), EVERY_LOOK),
    "plan": (("plan", "--measure-for", 0, "--out", "found.json"), EVERY_LOOK),
    "verify": (("verify", STAYS), EVERY_LOOK),
    "plan import": (("plan", "import", STAYS, "--measure-for", 0, "--out", "imported.json"), EVERY_LOOK),
    "plan leaders": (("plan", "leaders", "--measure-for", 0, "--out", "leaders.json"), EVERY_LOOK),
    "plan check": (("plan", "check", "placement.json"), {one: EVERY_LOOK[one] for one in (CLUSTER_LOOK, READS)}),
    "decommission": (
        ("decommission", 0, "--dry-run", "--measure-for", 0),
        {ALTER: "Alter on the cluster", **{one: said for one, said in EVERY_LOOK.items() if one != CLUSTER_LOOK}},
    ),
    "maintenance": (("maintenance", "enter", 0, "--dry-run"), EVERY_LOOK),
}


def stays(alice: Alice) -> Path:
    """A plan of what is so already."""
    path = alice.folder / STAYS
    write_plan(path, Plan(tuple(PartitionAssignment(TopicPartition(alice.topic, one), (0,)) for one in (0, 1))), None)
    return path


@pytest.mark.parametrize("name", LOOKS_AT)
def test_each_permission_that_a_look_lacks_is_named(alice: Alice, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, said = LOOKS_AT[name]
    monkeypatch.chdir(stays(alice).parent)
    alice.may(*said)
    if name == "plan check":
        assert alice.give("plan", "check", "placement.json", "--update").exit_code == 0
    state = ("--state-dir", "state") if name in {"decommission", "maintenance"} else ()
    seen = alice.give(*words, *state)
    assert "is missing" not in seen.output
    # Topics of other tests, with one replica, may be in the way of the maintenance, which its dry run tells by 5.
    assert seen.exit_code in ((0, 5) if name == "maintenance" else (0,)), seen.output
    for left_out, expected in said.items():
        alice.may(*(one for one in said if one != left_out), *((CLUSTER_LOOK,) if left_out == ALTER else ()))
        seen = alice.give(*words, *state)
        assert [line for line in seen.output.splitlines() if expected in line], (left_out, seen.output)
        assert seen.exit_code == 4 or left_out != CLUSTER_LOOK
        assert "authorization failed." not in seen.output
        assert "Request(" not in seen.output


@dataclass(frozen=True, slots=True)
class Tool:
    """A drop-in tool and what it needs. Its refusals are in Kafka's words; a line below names the permission."""

    module: str
    words: tuple[str, ...]
    needs: tuple[Permission, ...]


THROTTLES = (ALTER_SETTINGS, of_topics("ALTER_CONFIGS"))
MOVES = ("--reassignment-json-file", STAYS)
TOOLS = {
    "reassign list": Tool("reassign_partitions", ("--list",), (CLUSTER_LOOK,)),
    "reassign verify": Tool("reassign_partitions", ("--verify", *MOVES), (CLUSTER_LOOK, READS, *THROTTLES)),
    "reassign execute": Tool("reassign_partitions", ("--execute", *MOVES), (ALTER, READS)),
    "reassign cancel": Tool("reassign_partitions", ("--cancel", "--preserve-throttles", *MOVES), (ALTER,)),
    "elect": Tool(
        "leader_election", ("--election-type", "preferred", "--topic", "TOPIC", "--partition", "0"), (ALTER,)
    ),
    "topics describe": Tool("topics", ("--describe", "--topic", "TOPIC"), (READS, READS_SETTINGS)),
    "topics alter": Tool("topics", ("--alter", "--topic", "TOPIC", "--partitions", "3"), (of_topics("ALTER"),)),
    "topics create": Tool("topics", ("--create", "--topic", "TOPIC-too"), (of_topics("CREATE"),)),
    "topics delete": Tool("topics", ("--delete", "--topic", "TOPIC"), (of_topics("DELETE"),)),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_drop_in_tool_needs_just_what_is_listed(alice: Alice, name: str) -> None:
    asked, plan = TOOLS[name], str(stays(alice))
    words = [word.replace("TOPIC", alice.topic).replace(STAYS, plan) for word in asked.words]
    for left_out in asked.needs:
        alice.may(*(one for one in asked.needs if one != left_out))
        refused = tool(asked.module, *words, *alice.where)
        assert refused.exit_code == 1, (left_out, refused)
        named = [line for line in refused.stderr.splitlines() if line.startswith("permission is missing: ")]
        assert len(named) == 1, (left_out, refused)
        assert alice.nothing_is_left()
    alice.may(*asked.needs)
    done = tool(asked.module, *words, *alice.where)
    assert done.exit_code == 0, done


def test_a_tool_refused_its_throttle_or_moves_leaves_no_throttle(alice: Alice) -> None:
    words = ("--execute", "--throttle", "1000000", "--reassignment-json-file", str(alice.plan))
    whole = (ALTER, READS, *THROTTLES)
    for left_out, said in {
        ALTER: "Alter on the cluster",
        ALTER_SETTINGS: "AlterConfigs on the cluster",
        of_topics("ALTER_CONFIGS"): f"AlterConfigs on topic {alice.topic}",
    }.items():
        alice.may(CLUSTER_LOOK, *(one for one in whole if one != left_out))
        refused = tool("reassign_partitions", *words, *alice.where)
        assert (refused.exit_code, alice.nothing_is_left()) == (1, True), refused
        assert f"permission is missing: {said}; allow it with `kafka-acls --add" in refused.stderr


LEASE_GROUP = Permission("READ", "GROUP", "kreassign-lease")


def test_a_run_with_lease_and_its_rollback_need_the_listed_rights(alice: Alice) -> None:
    state = ("--state-dir", alice.folder / "state")
    whole = {
        ALTER: "Alter on the cluster",
        READS: f"Describe on topic {alice.topic}",
        LEASE_GROUP: "Read on group kreassign-lease; allow it with `kafka-acls",
    }

    # Producers are compared with min.insync.replicas before a run, not before what undoes it.
    of_run = whole | {of_topics("DESCRIBE_CONFIGS"): f"DescribeConfigs on topic {alice.topic}"}

    def each_is_missed(words: tuple[object, ...], whole: dict[Permission, str]) -> None:
        before = find_journals(alice.folder / "state")
        for left_out, expected in whole.items():
            alice.may(CLUSTER_LOOK, *(one for one in whole if one != left_out))
            refused = alice.give(*words)
            assert refused.exit_code in {2, 4}, refused.output
            named = [line for line in refused.stderr.splitlines() if f"permission is missing: {expected}" in line]
            assert len(named) == 1, (left_out, refused.output)
            assert find_journals(alice.folder / "state") == before, "no run was begun"
        alice.may(*whole)

    run = ("run", "--yes", alice.plan, "--measure-for", 0, "--lease", "require", *state)
    each_is_missed(run, of_run)
    assert alice.nothing_is_left()
    done = alice.give(*run)
    assert (done.exit_code, assignments(alice.cluster, alice.topic)) == (0, {0: (1,), 1: (1,)}), done.output
    back = ("rollback", "--yes", "--lease", "require", *state)
    each_is_missed(back, whole)
    assert assignments(alice.cluster, alice.topic) == {0: (1,), 1: (1,)}
    done = alice.give(*back)
    assert (done.exit_code, alice.nothing_is_left()) == (0, True), done.output


def observations(events: Iterable[Event]) -> Iterator[PartitionObservation]:
    """All of them, in their order."""
    return (one for event in events if isinstance(event, MovesObserved) for one in event.observations)


def test_an_interrupted_run_needs_only_the_listed_rights(alice: Alice) -> None:
    load_topic(alice.cluster.bootstrap_servers, alice.topic, {0: HELD, 1: MEGABYTE})
    state = ("--state-dir", alice.folder / "state")
    whole = {
        ALTER: "Alter on the cluster",
        READS: f"Describe on topic {alice.topic}",
        ALTER_SETTINGS: "AlterConfigs on the cluster",
        of_topics("ALTER_CONFIGS"): f"AlterConfigs on topic {alice.topic}",
    }

    def left(*words: object, known: int = 0) -> int:
        """Give a command that goes on with the run, and interrupt it once it has looked at a move under way."""
        process = fork_server().start("kreassign", *map(str, (*words, *state)), *alice.where)

        def has_looked() -> bool:
            new = [event for one in find_journals(alice.folder / "state") for event in read_events(one)][known:]
            return any(one.placement is PlacementState.MOVING for one in observations(new))

        wait_until(has_looked, what="a look at a move that is under way")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        return process.returncode

    alice.may(*whole)
    assert left("run", "--yes", alice.plan, "--measure-for", 0, "--throttle", HELD_RATE, "--max-moves", 1) == 130
    (journal,) = find_journals(alice.folder / "state")
    told, throttle = read_events(journal), throttles(alice.cluster, alice.topic)
    for command, left_out in itertools.product(("resume", "cancel"), whole):
        alice.may(CLUSTER_LOOK, *(one for one in whole if one != left_out))
        refused = alice.give(command, *state)
        assert refused.exit_code == 2, refused.output
        assert f"- permission is missing: {whole[left_out]}; allow it with `kafka-acls" in refused.stderr
        assert (read_events(journal), throttles(alice.cluster, alice.topic)) == (told, throttle)
    alice.may(*whole)
    assert left("resume", known=len(told)) == 130
    done = alice.give("cancel", *state)
    assert (done.exit_code, alice.nothing_is_left()) == (5, True), done.output


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


def test_a_run_names_withdrawn_rights_and_restores_with_them_back(alice: Alice) -> None:
    load_topic(alice.cluster.bootstrap_servers, alice.topic, {0: 2_500_000, 1: 2_500_000})
    whole = (ALTER, ALTER_SETTINGS, of_topics("DESCRIBE"), of_topics("ALTER_CONFIGS"))
    run = ("run", "--yes", alice.plan, "--measure-for", 0, "--throttle", "50kB/s", "--max-moves", 1)
    state = ("--state-dir", alice.folder / "state")
    alice.may(*whole)
    process = fork_server().start("kreassign", *map(str, (*run, "--poll-interval", 0.5, *state)), *alice.where)
    with client_of(alice.cluster) as client:
        wait_until(client.list_partition_reassignments, what="the first move")
    alice.may(CLUSTER_LOOK, of_topics("DESCRIBE"))

    def status() -> str:
        return CliRunner().invoke(kreassign, ["status", *map(str, state)]).output

    named = f"permission is missing: AlterConfigs on topic {alice.topic}; allow it with `kafka-acls"
    wait_until(lambda: named in " ".join(status().split()), what="what is missing, in the status")
    assert process.poll() is None
    alice.may(*whole)
    process.communicate(timeout=PATIENCE_S)
    assert throttles(alice.cluster, alice.topic) == {}
    if process.returncode:
        # It was long enough for the run to give up the second move, which the same plan still does.
        assert (process.returncode, "1 of 2 moves complete" in status()) == (5, True), status()
        assert alice.give("run", "--yes", alice.plan, "--measure-for", 0, *state).exit_code == 0
    assert assignments(alice.cluster, alice.topic) == {0: (1,), 1: (1,)}
