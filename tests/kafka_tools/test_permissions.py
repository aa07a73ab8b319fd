"""The drop-in tools with just what they need, and without each of it.

A refusal is in Kafka's words, which do not name the permission; a line on stderr does. Nothing is left behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kreassign.kafka_tools import leader_election, preferred_replica_election, reassign_partitions, topics
from kreassign.twin.access import Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import ServerThread, serving
from tests.twin.asking import cluster, on_cluster, on_topics

PATIENT = "patient.properties"
"""Lets calls last ten minutes: a tool that does not give up what is refused runs into the time-out of its test."""
Main = Callable[[Sequence[str] | None], int]


LOOK, SEE = on_cluster(Operation.DESCRIBE), on_topics(Operation.DESCRIBE)
ALTER, ALTER_SETTINGS = on_cluster(Operation.ALTER), on_cluster(Operation.ALTER_CONFIGS)
ALTER_TOPICS = on_topics(Operation.ALTER_CONFIGS)
SAID = {
    LOOK: "Describe on the cluster",
    SEE: "Describe on topic t",
    ALTER: "Alter on the cluster",
    ALTER_SETTINGS: "AlterConfigs on the cluster",
    ALTER_TOPICS: "AlterConfigs on topic t",
}


@dataclass(frozen=True, slots=True)
class Need:
    """A tool with words, what it needs, and what was done `before` by somebody who may do everything.

    Without one of `late` it is refused only after a part of its work, as Kafka's tool.
    """

    main: Main
    words: str
    needed: tuple[Allow, ...]
    before: str = ""
    late: tuple[Allow, ...] = ()


MOVES = "--reassignment-json-file plan.json"
SLOWLY = f"--execute {MOVES} --throttle 1"
NEEDS = {
    "list": Need(reassign_partitions.main, "--list", (LOOK,)),
    "generate": Need(
        reassign_partitions.main, "--generate --topics-to-move-json-file topics.json --broker-list 1,2,3", (LOOK, SEE)
    ),
    "execute": Need(reassign_partitions.main, f"--execute {MOVES}", (ALTER, SEE)),
    "execute throttled": Need(
        reassign_partitions.main, f"--execute {MOVES} --throttle 1000000", (ALTER, SEE, ALTER_SETTINGS, ALTER_TOPICS)
    ),
    "execute within brokers": Need(
        reassign_partitions.main,
        "--execute --reassignment-json-file dirs.json --replica-alter-log-dirs-throttle 1000000",
        (ALTER, SEE, ALTER_SETTINGS),
    ),
    # The rates of brokers are cleared before the lists of topics.
    "verify": Need(
        reassign_partitions.main, f"--verify {MOVES}", (LOOK, SEE, ALTER_SETTINGS, ALTER_TOPICS), late=(ALTER_TOPICS,)
    ),
    "verify, throttles kept": Need(reassign_partitions.main, f"--verify --preserve-throttles {MOVES}", (LOOK, SEE)),
    "cancel": Need(reassign_partitions.main, f"--cancel --preserve-throttles {MOVES}", (ALTER,), SLOWLY),
    "cancel all": Need(reassign_partitions.main, "--cancel --all --preserve-throttles", (ALTER,), SLOWLY),
    "elect": Need(leader_election.main, "--election-type preferred --topic t --partition 0", (ALTER,)),
    "elect all": Need(leader_election.main, "--election-type preferred --all-topic-partitions", (ALTER,)),
    "elect preferred": Need(preferred_replica_election.main, "", (ALTER,)),
    "topics list": Need(topics.main, "--list", ()),
    "topics describe": Need(topics.main, "--describe --topic t", (SEE, on_topics(Operation.DESCRIBE_CONFIGS))),
    "topics alter": Need(topics.main, "--alter --topic t --partitions 9", (on_topics(Operation.ALTER),)),
    "topics create": Need(topics.main, "--create --topic new", (on_topics(Operation.CREATE),)),
    "topics delete": Need(topics.main, "--delete --topic t", (on_topics(Operation.DELETE),)),
}
OF_TOPICS = {
    on_topics(Operation.DESCRIBE_CONFIGS): "DescribeConfigs on topic t",
    on_topics(Operation.CREATE): "Create on topic new",
    # Who may neither see it nor change it is told of the first.
    on_topics(Operation.ALTER): "Describe on topic t",
    on_topics(Operation.DELETE): "Describe on topic t",
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerThread]:
    monkeypatch.chdir(tmp_path)
    moved = {"topic": "t", "partition": 0, "replicas": [3, 1]}
    within = {"topic": "t", "partition": 0, "replicas": [0, 1], "log_dirs": ["/data/0/d1", "any"]}
    Path(PATIENT).write_text("default.api.timeout.ms=600000\n")
    Path("plan.json").write_text(json.dumps({"version": 1, "partitions": [moved]}))
    Path("dirs.json").write_text(json.dumps({"version": 1, "partitions": [within]}))
    Path("topics.json").write_text(json.dumps({"version": 1, "topics": [{"topic": "t"}]}))
    with serving(Twin(cluster({"t": [[0, 1], [1, 2], [2, 0], [3, 0]]}), TwinSettings())) as found:
        yield found


@pytest.mark.parametrize("name", NEEDS)
def test_a_tool_needs_just_the_listed_permissions_and_names_the_missing(
    name: str, server: ServerThread, capsys: pytest.CaptureFixture[str]
) -> None:
    need = NEEDS[name]

    def give(allowed: frozenset[Allow]) -> int:
        rules = Permissions(allowed)
        server.do(lambda twin: setattr(twin, "settings", replace(twin.settings, permissions=rules)))
        config = "--admin.config" if need.main is preferred_replica_election.main else "--command-config"
        where = ["--bootstrap-server", server.bootstrap_servers, config, PATIENT]
        return need.main([*need.words.split(), *where])

    if need.before:
        assert need.main([*need.before.split(), "--bootstrap-server", server.bootstrap_servers]) == 0
        capsys.readouterr()

    def left() -> tuple[int, set[Path]]:
        return server.do(lambda twin: twin.metadata.offset), set(Path().iterdir())

    for left_out in need.needed:
        before = left()
        # In Kafka, who may alter may describe.
        assert give(frozenset({*need.needed, *({LOOK} if left_out == ALTER else ())} - {left_out})) == 1
        told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("permission is missing: ")]
        said = {**SAID, **OF_TOPICS}[left_out]
        assert len(told) == 1, (left_out, told)
        assert told[0].startswith(f"permission is missing: {said}; allow it with `kafka-acls --add")
        assert left() == before or left_out in need.late, left_out
    assert give(frozenset(need.needed)) == 0
    assert "permission" not in capsys.readouterr().err
