"""KIP-455 and KIP-179 on tools that work through brokers, on a twin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.kafka_tools.command_line import TerseError, ToolError
from kreassign.kafka_tools.reassign_partitions import main
from kreassign.model import ConfigResource, TopicPartition, TopicPartitionReplica
from kreassign.model.cluster import ConfigSource
from kreassign.model.plan import parse_plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES, log_dir_rate_changes
from kreassign.twin import Twin
from kreassign.twin.version import kafka_version
from tests.kafka_tools.served_twin import served
from tests.kips.recorded_tool import CONFIGURE, LIST, MOVE_DIRECTORIES, REASSIGN, Request, ToolOnTwin
from tests.twin.asking import partition, twin

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
Targets = Mapping[TopicPartition, Sequence[int]]


class ServedTool:
    """A twin that is served, and our tool at it."""

    def __init__(self, asked: Twin, address: str, folder: Path) -> None:
        self.twin = asked
        self._address = address
        self._folder = folder

    def plan(self, targets: Targets) -> str:
        entries = [{"topic": key.topic, "partition": key.partition, "replicas": ids} for key, ids in targets.items()]
        path = self._folder / f"plan-{len(list(self._folder.iterdir()))}.json"
        path.write_text(json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
        return str(path)

    def __call__(self, *words: str) -> int:
        return main(["--bootstrap-server", self._address, *words])

    def execute(self, targets: Targets, *words: str) -> int:
        return self("--execute", "--reassignment-json-file", self.plan(targets), *words)

    def client(self) -> AdminClient:
        return AdminClient.connect(client_settings(bootstrap_servers=self._address))

    def moving(self) -> dict[TopicPartition, tuple[int, ...]]:
        with self.client() as client:
            return {key: move.target for key, move in client.list_partition_reassignments().items()}

    def throttles(self) -> dict[str, set[str]]:
        """Configs that are set: resource → values."""
        resources = [*map(ConfigResource.broker, range(4)), *map(ConfigResource.topic, ("foo", "bar"))]
        with self.client() as client:
            told = client.describe_configs(resources, names=(*BROKER_THROTTLES, *TOPIC_THROTTLES)).raise_if_any()
        own = {
            str(resource): {entry.value or "" for entry in found.values() if entry.source < ConfigSource.STATIC_BROKER}
            for resource, found in told.items()
        }
        return {name: values for name, values in own.items() if values}


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[ServedTool]:
    asked = twin({"foo": [[0, 1]], "bar": [[1, 0]]})
    with served(asked) as address:
        yield ServedTool(asked, address, tmp_path)


def test_a_plan_that_is_declined_sets_no_throttle(tool: ServedTool) -> None:
    assert tool.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
    before = tool.throttles()
    assert before
    assert tool.execute({BAR: (3, 0)}, "--throttle", "7") == 1
    assert tool.throttles() == before
    assert tool.moving() == {FOO: (2, 1)}


def test_an_additional_plan_changes_the_throttle_of_what_moves(tool: ServedTool) -> None:
    assert tool.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
    assert tool.execute({BAR: (3, 0)}, "--additional", "--throttle", "2000") == 0
    assert tool.throttles() == {
        **{str(ConfigResource.broker(broker)): {"2000"} for broker in range(4)},
        str(ConfigResource.topic("foo")): {"0:0,0:1", "0:2"},
        str(ConfigResource.topic("bar")): {"0:0,0:1", "0:3"},
    }


def test_a_guard_unknown_to_the_cluster_is_refused_before_any_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = twin({"foo": [[0, 1]], "bar": [[1, 0]]}, version=kafka_version("3.9"))
    with served(asked) as address:
        tool = ServedTool(asked, address, tmp_path)
        guard = ("--disallow-replication-factor-change", "--throttle", "1000")
        assert tool.execute({FOO: (2, 1), BAR: (3, 0)}, *guard) == 1
        told = capsys.readouterr().out
        assert "Error reassigning partition(s):" in told
        assert told.count("The broker does not support the AllowReplicationFactorChange option") == 2
        assert (tool.throttles(), tool.moving()) == ({}, {})
        assert tool.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
        before = tool.throttles()
        assert tool.execute({FOO: (3, 1)}, "--additional", "--cancel-first", *guard) == 1
        assert (tool.throttles(), tool.moving()) == (before, {FOO: (2, 1)})


def test_a_guarded_plan_starts_what_keeps_its_factor_and_names_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]], "bar": [[1, 0]], "baz": [[1, 0]]}))
    baz = TopicPartition("baz", 0)
    targets: dict[TopicPartition, tuple[int, ...]] = {FOO: (2, 1), BAR: (3,), baz: (0, 1, 2)}
    with pytest.raises(TerseError) as caught:
        tool.execute_with_options(targets, tmp_path, "--disallow-replication-factor-change")
    assert str(caught.value) == (
        "Error reassigning partition(s):\nbar-0: The replication factor is changed from 2 to 1\n"
        "baz-0: The replication factor is changed from 2 to 3"
    )
    assert set(tool.admin.list_partition_reassignments()) == {FOO}
    tool.twin.advance(600_000)
    assert [partition(tool.twin, name)[0] for name in ("foo", "bar", "baz")] == [(2, 1), (1, 0), (1, 0)]
    capsys.readouterr()
    tool.execute_with_options({BAR: (3,), baz: (0, 1, 2)}, tmp_path)  # unasked, any factor
    assert "Successfully started partition reassignments for bar-0,baz-0" in capsys.readouterr().out


def test_a_guarded_plan_in_batches_ends_with_the_factor_that_would_change(tmp_path: Path) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]], "bar": [[1, 0]]}))
    words = ("--disallow-replication-factor-change", "--reassignment-batch-size", "1")
    with pytest.raises(TerseError, match="bar-0: The replication factor is changed from 2 to 1\nNot submitted: foo-0"):
        tool.execute_with_options({BAR: (3,), FOO: (2, 1)}, tmp_path, *words)
    assert tool.admin.list_partition_reassignments() == {}


def test_cancelling_everything_writes_a_file_that_starts_it_again(tool: ServedTool, tmp_path: Path) -> None:
    assert tool.execute({FOO: (2, 1), BAR: (3, 0)}, "--throttle", "1000") == 0
    assert tool("--cancel", "--all", "--output", "") == 1  # of a variable that is not set
    assert tool.moving() == {FOO: (2, 1), BAR: (3, 0)}
    file = tmp_path / "again.json"
    assert tool("--cancel", "--all", "--output", str(file)) == 0
    assert (tool.moving(), tool.throttles()) == ({}, {})
    assert parse_plan(file.read_text()).replicas == {FOO: (2, 1), BAR: (3, 0)}
    assert tool("--execute", "--reassignment-json-file", str(file), "--throttle", "1000") == 0
    assert tool.moving() == {FOO: (2, 1), BAR: (3, 0)}


def test_cancelling_leaves_the_throttles_only_where_it_is_told_to(tool: ServedTool) -> None:
    assert tool.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
    words = ("--cancel", "--reassignment-json-file", tool.plan({FOO: (2, 1)}))
    before = tool.throttles()
    assert tool(*words, "--preserve-throttles") == 0
    assert (tool.moving(), tool.throttles()) == ({}, before)
    assert tool(*words) == 0
    assert tool.throttles() == {}


def test_verifying_a_plan_leaves_the_throttles_while_anything_moves(tool: ServedTool) -> None:
    assert tool.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
    before = tool.throttles()
    at_rest = tool.plan({BAR: (1, 0)})
    assert tool("--verify", "--reassignment-json-file", at_rest) == 0
    assert tool.throttles() == before
    assert tool("--cancel", "--reassignment-json-file", tool.plan({FOO: (2, 1)}), "--preserve-throttles") == 0
    assert tool("--verify", "--reassignment-json-file", at_rest) == 0
    assert str(ConfigResource.broker(0)) not in tool.throttles()


def test_a_throttle_of_directories_alone_is_set(tool: ServedTool, tmp_path: Path) -> None:
    with tool.client() as client:
        path = client.describe_log_dirs([0])[0][0].path
    entry = {"topic": "foo", "partition": 0, "replicas": [0, 1], "log_dirs": [path, "any"]}
    file = tmp_path / "directories.json"
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    words = ("--execute", "--reassignment-json-file", str(file), "--replica-alter-log-dirs-throttle", "5000")
    assert tool(*words) == 0
    assert tool.throttles() == {str(ConfigResource.broker(0)): {"5000"}}


def test_what_somebody_else_has_cancelled_meanwhile_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]]}))
    tool.admin.alter_partition_reassignments({FOO: (2, 1)}).raise_if_any()

    def cancel_it_first(request: Request) -> None:
        if request.key == LIST.key:
            tool.transport.after = lambda _request: None
            tool.admin.alter_partition_reassignments({FOO: None}).raise_if_any()

    tool.transport.after = cancel_it_first
    with pytest.raises(TerseError, match="Error cancelling partition reassignment for:\nfoo-0: "):
        tool.cancel_all()
    assert "Successfully cancelled" not in capsys.readouterr().out


def test_beside_brokers_zookeeper_is_ignored_with_a_warning(
    tool: ServedTool, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--verify", "--reassignment-json-file", tool.plan({FOO: (0, 1)}))
    assert tool("--zookeeper", "127.0.0.1:1", *words) == 0
    said = capsys.readouterr().out
    assert said.startswith("Warning: ignoring deprecated --zookeeper option because --bootstrap-server was specified.")
    assert "Reassignment of partition foo-0 is completed." in said


def test_the_file_is_written_before_anything_is_cancelled(tmp_path: Path) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]], "bar": [[1, 0]]}))
    there = next(
        log_dir.path
        for log_dir in tool.admin.describe_log_dirs([1])[1]
        if BAR not in {copy.topic_partition for copy in log_dir.replicas}
    )
    tool.admin.alter_replica_log_dirs({TopicPartitionReplica(1, *BAR): there}).raise_if_any()
    tool.admin.alter_partition_reassignments({FOO: (2, 1)}).raise_if_any()
    file = tmp_path / "again.json"
    written: list[tuple[int, str]] = []

    def read_the_file(request: Request) -> None:
        if request.key in (REASSIGN.key, MOVE_DIRECTORIES.key):
            written.append((request.key, file.read_text(encoding="utf-8")))

    tool.transport.before = read_the_file
    tool.cancel_all(file)
    assert [key for key, _text in written] == [REASSIGN.key, MOVE_DIRECTORIES.key]
    plan = parse_plan(written[0][1])
    assert plan.replicas == {FOO: (2, 1), BAR: (1, 0)}
    assert plan.log_dirs == {TopicPartitionReplica(1, *BAR): there}
    assert {text for _key, text in written} == {file.read_text(encoding="utf-8")}


def test_a_file_that_is_there_already_keeps_anything_from_being_cancelled(tmp_path: Path) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]]}))
    tool.admin.alter_partition_reassignments({FOO: (2, 1)}).raise_if_any()
    file = tmp_path / "again.json"
    file.write_text("kept", encoding="utf-8")
    with pytest.raises(ToolError, match="is already there; nothing was cancelled"):
        tool.cancel_all(file)
    assert (tool.batches, file.read_text(encoding="utf-8")) == ([], "kept")


def test_a_dry_run_only_writes_the_file_which_cancels_when_it_is_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """KIP-455: "will create a JSON file that, if applied, will cancel all the pending reassignments"."""
    tool = ToolOnTwin(twin({"foo": [[0, 1]], "bar": [[1, 0]], "baz": [[1, 0]]}))
    tool.admin.incremental_alter_configs(log_dir_rate_changes([1], 1_000)).raise_if_any()
    (here,) = [
        one.path for one in tool.admin.describe_log_dirs([1])[1] for copy in one.replicas if copy.topic_partition == BAR
    ]
    (there,) = [one.path for one in tool.admin.describe_log_dirs([1])[1] if one.path != here]
    tool.admin.alter_replica_log_dirs({TopicPartitionReplica(1, *BAR): there}).raise_if_any()
    tool.admin.alter_partition_reassignments({FOO: (2, 1)}).raise_if_any()
    before, file = tool.admin.list_partition_reassignments(), tmp_path / "all.json"

    tool.cancel_all(file, preserves_throttles=False, is_dry_run=True)
    said = capsys.readouterr().out.splitlines()
    assert (said[0], said[-1].partition(". ")[0]) == ("Partition reassignments in progress", "Nothing was cancelled")
    changes = (REASSIGN.key, MOVE_DIRECTORIES.key, CONFIGURE.key)
    assert not [request for request in tool.transport.requests if request.key in changes]
    assert tool.admin.list_partition_reassignments() == before
    assert said[2] == file.read_text(encoding="utf-8").strip()

    baz = TopicPartition("baz", 0)  # of somebody else, after the file was made
    tool.admin.alter_partition_reassignments({baz: (3, 0)}).raise_if_any()
    tool.cancel(parse_plan(file.read_text(encoding="utf-8")))
    assert set(tool.admin.list_partition_reassignments()) == {baz}
    copies = [copy for one in tool.admin.describe_log_dirs([1])[1] for copy in one.replicas]
    assert [(copy.topic_partition, copy.is_future) for copy in copies if copy.topic_partition == BAR] == [(BAR, False)]


def test_where_nothing_moves_no_throttle_is_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]]}))
    tool.cancel_all(preserves_throttles=False)
    assert capsys.readouterr().out == "No partition reassignments found.\n"
    assert tool.sent(CONFIGURE) == []


def test_what_starts_between_the_listing_and_the_cancelling_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]], "bar": [[1, 0]]}))
    tool.admin.alter_partition_reassignments({FOO: (2, 1)}).raise_if_any()

    def start_another(request: Request) -> None:
        if request.key == LIST.key:
            tool.admin.alter_partition_reassignments({BAR: (3, 0)}).raise_if_any()

    tool.transport.after = start_another
    tool.cancel_all()
    assert set(tool.admin.list_partition_reassignments()) == {BAR}
    said = capsys.readouterr().out
    assert "foo-0" in said
    assert "bar-0" not in said
    assert set(partition(tool.twin, "foo")[0]) == {0, 1}
