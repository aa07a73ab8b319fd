"""Every command that asks a cluster, with just what it needs and without each of it: what is said, and what is left.

A twin has the rules of Kafka's authorizer, so that each command can be tried; `tests/real/test_permissions.py` asks
real brokers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_files import write_plan
from kreassign.twin.access import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Allow, Operation, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import ServerThread, serving
from tests.twin.asking import cluster, on_cluster, on_topics

PATIENT = "patient.properties"
"""Lets calls last ten minutes: a command that does not give up what is refused runs into the time-out of its test."""
SPEED = 50.0
"""Seconds of the twin in one second of ours."""


LOOK, LOOK_AT_SETTINGS = on_cluster(Operation.DESCRIBE), on_cluster(Operation.DESCRIBE_CONFIGS)
SEE, SEE_SETTINGS = on_topics(Operation.DESCRIBE), on_topics(Operation.DESCRIBE_CONFIGS)
ALTER, ALTER_SETTINGS = on_cluster(Operation.ALTER), on_cluster(Operation.ALTER_CONFIGS)
ALTER_TOPICS, READ = on_topics(Operation.ALTER_CONFIGS), on_topics(Operation.READ)
EVERYTHING = frozenset({*map(on_cluster, CLUSTER_OPERATIONS), *map(on_topics, TOPIC_OPERATIONS)})
CONTAINED = {ALTER: {LOOK}, ALTER_SETTINGS: {LOOK_AT_SETTINGS}, READ: {SEE}}
"""What a permission brings with it in Kafka, which stays when it is left out."""

SAID = {
    LOOK: "Describe on the cluster",
    LOOK_AT_SETTINGS: "DescribeConfigs on the cluster",
    SEE: "Describe on topic t",
    SEE_SETTINGS: "DescribeConfigs on topic t",
    ALTER: "Alter on the cluster",
    ALTER_SETTINGS: "AlterConfigs on the cluster",
    ALTER_TOPICS: "AlterConfigs on topic t",
    READ: "Read on topic t",
}


@dataclass(frozen=True, slots=True)
class Need:
    """Permissions that a command needs or names as missing, and its effects with all permissions."""

    words: str
    needed: tuple[Allow, ...] = (LOOK,)
    named: tuple[Allow, ...] = (LOOK_AT_SETTINGS, SEE, SEE_SETTINGS)
    before: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    said: Mapping[Allow, str] = field(default_factory=dict)


def plan(words: str, codes: tuple[int, ...] = (0,)) -> Need:
    return Need(f"plan {words} --measure-for 0", codes=codes)


RUN, STATE = "run plan.json --yes --measure-for 0 --state-dir state --poll-interval 0.1", "--state-dir state"
CHANGES = (ALTER, ALTER_SETTINGS, SEE)
NEEDS = {
    "snapshot": Need("snapshot --out cluster.json --measure-for 0"),
    "collect": Need("collect --data data --rounds 1"),
    "plan add-brokers": plan("add-brokers 3"),
    "plan brokers-needed": plan("brokers-needed", codes=(0, 2)),
    "plan check": Need("plan check placement.json", (LOOK, SEE), (), before=("plan check placement.json --update",)),
    "plan demote": plan("demote 0"),
    "plan disks": plan("disks"),
    "plan drain-brokers": plan("drain-brokers 0"),
    "plan drain-dirs": plan("drain-dirs 0:/data/0/d0"),
    "plan import": plan("import plan.json", codes=(0, 2)),
    "plan leaders": plan("leaders"),
    "plan new-topic": plan("new-topic new --partitions 2 --replication-factor 2"),
    "plan pareto": plan("pareto --rate 50MB/s"),
    "plan partitions": plan("partitions t 4", codes=(0, 2)),
    "plan rebalance": plan("rebalance"),
    "plan repair": plan("repair"),
    "plan replication-factor": plan("replication-factor 3 --topics t", codes=(0, 2)),
    "plan restore": plan("restore plan.json", codes=(0, 2)),
    "plan what-if": plan("what-if --traffic 2"),
    "run": Need(f"{RUN} --throttle 1GB/s", (*CHANGES, ALTER_TOPICS), ()),
    "run without a throttle": Need(RUN, (ALTER, SEE, SEE_SETTINGS), ()),
    "run within brokers": Need(f"run dirs.json --yes --measure-for 0 {STATE} --poll-interval 0.1", (ALTER, SEE), ()),
    "rollback": Need(
        f"rollback --yes {STATE} --throttle 1GB/s --poll-interval 0.1", (*CHANGES, ALTER_TOPICS), (), before=(RUN,)
    ),
    "maintenance enter": Need(
        f"maintenance enter 0 --yes {STATE} --poll-interval 0.1", (*CHANGES, SEE_SETTINGS), (),
    ),
    "maintenance exit": Need(
        f"maintenance exit 0 --yes {STATE} --poll-interval 0.1", CHANGES, (),
        before=(f"maintenance enter 0 --yes {STATE} --poll-interval 0.1",),
    ),
    "decommission": Need(
        f"decommission 3 --yes --measure-for 0 {STATE} --poll-interval 0.1", (*CHANGES, SEE_SETTINGS), ()
    ),
    "decommission, called off": Need(
        f"decommission 3 --cancel {STATE}", (LOOK, ALTER_SETTINGS), (SEE,),
        before=(f"decommission 3 --yes --measure-for 0 {STATE} --poll-interval 0.1",),
    ),
    "autopilot watch": Need(f"autopilot watch policy.toml --once --dry-run {STATE}", (), ()),
    "autopilot why": Need(
        f"autopilot why policy.toml {STATE}", (), (LOOK, LOOK_AT_SETTINGS, SEE),
        before=(f"autopilot watch policy.toml --once {STATE}",),
    ),
    "throttle with --remove-left": Need(
        f"throttle --remove-left --dry-run {STATE}", (LOOK, SEE), (LOOK_AT_SETTINGS, SEE_SETTINGS), codes=(0, 5),
        said={SEE: "whether a run of another machine"},
    ),
    "verify": Need("verify plan.json", codes=(1,)),
    "audit records": Need("audit records --label one --data data", (READ, SEE_SETTINGS), ()),
    "stream-metrics": Need("stream-metrics --topic t --cluster c --data data --once", (READ,), ()),
    "doctor": Need(f"doctor --measure-for 0 {STATE}", codes=(1,)),
}  # fmt: skip
BY_PLACE = {"verify", "doctor", "throttle with --remove-left", "autopilot why"}
"""They name each broker and topic of which they cannot say how it is."""
WITH_SPARK = {"audit records", "stream-metrics"}
"""They are refused before Spark is started; what is done with it is not tried here."""
ELSEWHERE = {
    "cancel": "test_an_interrupted_run_needs_only_the_listed_rights",
    "resume": "test_an_interrupted_run_needs_only_the_listed_rights",
}
"""Of a run that was interrupted, on real brokers."""
ASKS_NONE = {"plan fleet"}
"""It takes the options of all plans, and refuses to go without tables or snapshots."""
ASKS_ITS_ID = {
    "autopilot approve",
    "autopilot status",
    "autopilot off",
    "autopilot replay",
    "autopilot on",
    "autopilot silence",
    "status",
    "watch",
    "pause",
    "pace",
    "report",
    "audit run",
}
"""They ask which cluster it is, which needs no permission; the rest is in journals.

Requests to an autopilot also ask who looks after the cluster, if nobody here does; where they may not, they warn.
"""
SERVES = {"web"}
"""It asks what the operations behind `doctor`, `plan`, `run` and `rollback` ask, when somebody looks."""
OF_MAINTENANCE = "which brokers are in maintenance could not be read"
"""Told besides: the cluster keeps the record in a topic of its own."""


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is none of others, by its words."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    with click.Context(command) as context:
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from commands(below, f"{name} {word}".strip())


def test_every_command_that_asks_a_cluster_is_tried() -> None:
    asking = {
        name for name, one in commands(kreassign) if any("--bootstrap-server" in each.opts for each in one.params)
    }
    tried = {
        name for name in asking if any(each == name or each.startswith((f"{name} with", f"{name},")) for each in NEEDS)
    }
    assert asking == tried | ELSEWHERE.keys() | ASKS_NONE | ASKS_ITS_ID | SERVES
    real = (Path(__file__).parents[1] / "real" / "test_permissions.py").read_text()
    assert not [test for test in ELSEWHERE.values() if f"def {test}(" not in real]


@dataclass
class Asked:
    """A twin whose only client may do what it is allowed just now."""

    server: ServerThread

    def may(self, rules: frozenset[Allow]) -> None:
        found = Permissions(rules)
        self.server.do(lambda twin: setattr(twin, "settings", replace(twin.settings, permissions=found)))

    def give(self, words: str) -> Result:
        where = ("--bootstrap-server", self.server.bootstrap_servers, "--command-config", PATIENT)
        found = CliRunner().invoke(kreassign, [*words.split(), *where])
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return found

    def state(self) -> tuple[int, dict[str, bytes]]:
        """Traces that a command may leave: records of the cluster, and files other than those of SQLite's readers."""
        files = (path for path in Path().rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
        return self.server.do(lambda twin: twin.metadata.offset), {str(path): path.read_bytes() for path in files}


def write_files() -> None:
    """Write the files that commands take."""
    Path(PATIENT).write_text("default.api.timeout.ms=600000\nretry.backoff.ms=10\n")
    Path("policy.toml").write_text("[care]")
    moved = PartitionAssignment(TopicPartition("t", 0), (3, 1))
    write_plan(Path("plan.json"), Plan((moved,)), None)
    write_plan(Path("dirs.json"), Plan((replace(moved, replicas=(0, 1), log_dirs=("/data/0/d1", "any")),)), None)


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    """A twin whose only client may do everything, and the files that commands need, in a folder that is then ours."""
    twin = Twin(cluster({"t": [[0, 1], [1, 2], [2, 0], [3, 0]]}), TwinSettings(permissions=Permissions(EVERYTHING)))
    with chdir(tmp_path), serving(twin, speed=SPEED) as server:
        write_files()
        yield Asked(server)


def lines_with(text: str, found: Result) -> list[str]:
    return [line for line in found.output.splitlines() if text in line]


@pytest.mark.parametrize("name", NEEDS)
def test_a_command_needs_the_listed_permissions_and_names_missing_ones(name: str, asked: Asked) -> None:
    need = NEEDS[name]
    for words in need.before:
        assert asked.give(words).exit_code == 0
    whole, before = frozenset({*need.needed, *need.named}), asked.state()
    for left_out in need.needed:
        asked.may(whole - {left_out} | CONTAINED.get(left_out, set()))
        refused = asked.give(need.words)
        assert refused.exit_code in {2, 4, 5}, refused.output
        assert len(lines_with(need.said.get(left_out, SAID[left_out]), refused)) == 1, (left_out, refused.output)
        assert "authorization failed" not in refused.output.lower()
        assert "User:NAME" not in refused.output
        assert "Request(" not in refused.output
        assert asked.state() == before, (left_out, refused.output)
    if name in WITH_SPARK:
        return
    for left_out in need.named:
        asked.may(whole - {left_out})
        seen = asked.give(need.words)
        said = lines_with(SAID[left_out].replace("topic t", "topic"), seen)
        said = [line for line in said if OF_MAINTENANCE not in line]
        assert len(said) == 1 or (said and name in BY_PLACE), (left_out, seen.output)
        assert seen.exit_code in {0, *need.codes}, (left_out, seen.output)
        assert "User:NAME" not in seen.output
        assert "Request(" not in seen.output
    asked.may(whole)
    done = asked.give(need.words)
    assert done.exit_code in need.codes, done.output
    assert not lines_with("permission is missing", done) or name == "doctor", done.output


def test_a_broker_whose_settings_cannot_be_read_is_not_called_dead(asked: Asked) -> None:
    asked.may(frozenset({LOOK, SEE}))
    refused = asked.give(f"decommission 3 --cancel {STATE}")
    assert refused.exit_code == 2
    assert lines_with("broker 3 cannot be read: permission is missing: DescribeConfigs on the cluster", refused)
    assert "not live" not in refused.output


def test_what_is_shown_without_a_command_names_what_is_missing(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", asked.server.bootstrap_servers)
    monkeypatch.setenv("KREASSIGN_STATE_DIR", "state")
    asked.may(frozenset({SEE}))
    shown = CliRunner().invoke(kreassign, [])
    (line,) = lines_with(SAID[LOOK], shown)
    assert line.startswith("cluster at ")
    assert "Request(" not in shown.output


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_others_cannot_read_directories_that_commands_make(asked: Asked, umask: int) -> None:
    assert asked.give("plan rebalance --measure-for 0 --out found.json").exit_code == 0
    before = os.umask(umask)
    try:
        for words in (
            "collect --data data --rounds 1",
            f"run found.json --yes --measure-for 0 --throttle 1GB/s {STATE}",
            f"maintenance enter 0 --yes {STATE} --poll-interval 0.1",
            f"maintenance exit 0 --yes {STATE} --poll-interval 0.1",
            f"rollback --yes {STATE}",
        ):
            assert asked.give(words).exit_code == 0, words
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in Path("state").rglob("*")}
    assert {path.suffix for path in modes} >= {".sqlite", ".gz", ".json"}
    assert {modes[path] for path in modes if path.is_file()} == {0o600}
    assert {Path(name).stat().st_mode & 0o777 for name in ("state", "state/twin", "data")} == {0o700}
