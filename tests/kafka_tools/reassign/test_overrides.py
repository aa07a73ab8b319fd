"""The tool and partitions that are being reassigned: what it warns of, and the plan that cancels first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kreassign.errors import Drifted, OutcomeUnknown
from kreassign.kafka_tools.command_line import TerseError
from kreassign.kafka_tools.reassign.progress import progress
from kreassign.kafka_tools.reassign.requests import ProgressRequest
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import TopicPartition
from kreassign.model.plan import parse_plan
from kreassign.model.throttle import clear_broker_changes, move_map, rate_changes, topic_changes
from kreassign.twin.faults import read_fault, schedule_faults
from tests.approved import approve
from tests.kips.recorded_tool import CONFIGURE, LIST, REASSIGN, Request, ToolOnTwin
from tests.twin.asking import partition, twin

FOO, BAR, BAZ = (TopicPartition(topic, 0) for topic in ("foo", "bar", "baz"))


@pytest.fixture
def tool() -> ToolOnTwin:
    """foo-0 is on its way from 0, 1 to 2, 3, and baz-0 from 0 to 3; a throttle holds both."""
    made = ToolOnTwin(twin({"foo": [[0, 1]], "bar": [[1, 0]], "baz": [[0]]}))
    targets = {FOO: (2, 3), BAZ: (3,)}
    made.admin.incremental_alter_configs(topic_changes(move_map({}, targets, {FOO: (0, 1), BAZ: (0,)})))
    made.admin.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()
    made.admin.alter_partition_reassignments(dict(targets)).raise_if_any()
    return made


def test_the_list_from_before_submitted_during_a_move_is_warned_of(
    tool: ToolOnTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tool's own output for a rollback invites to just that."""
    tool.execute_with_options({FOO: (0, 1), BAR: (2, 1)}, tmp_path, "--additional")
    said = capsys.readouterr()
    approve(said.err, "override-that-never-ends")
    assert "Warning" not in said.out
    assert set(tool.admin.list_partition_reassignments([FOO, BAR])) == {FOO, BAR}


def test_a_list_printed_during_a_move_is_warned_of(
    tool: ToolOnTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's text says to save it for a rollback; KIP-860 tells how it inflates the replication factor."""
    tool.execute_with_options({FOO: (2, 3), BAR: (1, 0)}, tmp_path, "--additional", "--throttle", "100000")
    said = capsys.readouterr()
    approve(said.err, "printed-during-a-move")
    saved = parse_plan(said.out.splitlines()[2]).replicas
    assert saved == {FOO: (2, 3, 0, 1), BAR: (1, 0)}  # as Kafka's tool prints it


def test_a_list_that_only_shrinks_is_one_to_go_back_to(
    tool: ToolOnTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool.twin.crash(1)
    tool.twin.advance(60_000)
    tool.admin.alter_partition_reassignments({BAR: (1,)}).raise_if_any()
    assert tool.admin.list_partition_reassignments()[BAR].removing == (0,)
    tool.execute_with_options({BAR: (0, 2)}, tmp_path, "--additional")
    assert "printed above" not in capsys.readouterr().err


def test_a_proposal_during_a_move_is_warned_of(tool: ToolOnTwin, capsys: pytest.CaptureFixture[str]) -> None:
    tool.generate("foo", "bar")
    said = capsys.readouterr()
    approve(said.err, "proposed-during-a-move")
    proposed = parse_plan(said.out.splitlines()[-1]).replicas
    assert (len(proposed[FOO]), len(proposed[BAR])) == (4, 2)


def test_a_proposal_says_that_moves_are_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    tool = ToolOnTwin(twin({"foo": [[0, 1]]}))

    def lose_listings(request: Request) -> None:
        if request.key == LIST.key:
            raise OutcomeUnknown("no answer", api=LIST.name)

    tool.transport.before = lose_listings
    tool.generate("foo")
    said = capsys.readouterr()
    approve(said.err, "proposed-without-the-moves")
    assert len(parse_plan(said.out.splitlines()[-1]).replicas[FOO]) == 2


def test_a_plan_that_cancels_first_ends_with_its_own_targets(
    tool: ToolOnTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool.execute_with_options(
        {FOO: (0, 1), BAR: (2, 1)}, tmp_path, "--additional", "--cancel-first", "--throttle", "10000000"
    )
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0] == "Successfully cancelled partition reassignment for: foo-0"
    rollback = parse_plan(lines[lines.index("Current partition replica assignment") + 2])
    assert rollback.replicas == {FOO: (0, 1), BAR: (1, 0)}  # and not what was being added, too
    assert tool.batches == [(FOO,), (BAR, FOO)]
    order = [request.key for request in tool.transport.requests if request.key in (CONFIGURE.key, REASSIGN.key)]
    assert (order[0], order[-1]) == (REASSIGN.key, REASSIGN.key)  # its throttle is there before it starts
    assert set(tool.admin.list_partition_reassignments()) == {BAR, BAZ}  # what the plan does not name goes on
    tool.twin.advance(600_000)
    assert (partition(tool.twin, "foo")[0], partition(tool.twin, "bar")[0]) == ((0, 1), (2, 1))


@pytest.mark.parametrize("stale", ["ListPartitionReassignments", "DescribeTopicPartitions"])
def test_a_plan_waits_until_all_nodes_show_its_cancels(
    tool: ToolOnTwin, tmp_path: Path, capsys: pytest.CaptureFixture[str], stale: str
) -> None:
    """A broker that lags shows the list of the move that was cancelled: one to plan by, and to save for a rollback."""
    schedule_faults(tool.twin, [read_fault(f"stale-answers:{stale}@0s+5s")])
    tool.twin.advance(1)
    began_ms = tool.twin.now_ms
    tool.execute_with_options({FOO: (0, 1)}, tmp_path, "--additional", "--cancel-first")
    cancelled, started = tool.sent(REASSIGN)
    assert cancelled.at_ms - began_ms < 1_000
    assert 4_900 < started.at_ms - began_ms < 5_400
    lines = capsys.readouterr().out.splitlines()
    assert parse_plan(lines[lines.index("Current partition replica assignment") + 2]).replicas == {FOO: (0, 1)}


@pytest.mark.parametrize(
    ("is_complete", "cancelled", "present"),
    [
        (True, [], {FOO: (2, 3), BAZ: (3,)}),
        (False, ["Successfully cancelled partition reassignment for: baz-0"], {FOO: (0, 1), BAZ: (0,)}),
    ],
    ids=["both are complete", "others cancelled one"],
)
def test_a_plan_that_cancels_first_is_sent_if_a_move_has_just_ended(
    tool: ToolOnTwin,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    is_complete: bool,
    cancelled: list[str],
    present: dict[TopicPartition, tuple[int, ...]],
) -> None:
    def end_moves(request: Request) -> None:
        if request.key == REASSIGN.key:
            tool.transport.before = lambda _request: None
            if is_complete:
                tool.admin.incremental_alter_configs(clear_broker_changes(range(4))).raise_if_any()
                tool.twin.advance(600_000)
            else:
                tool.admin.alter_partition_reassignments({FOO: None}).raise_if_any()

    tool.transport.before = end_moves
    tool.execute_with_options({FOO: (1, 2), BAZ: (1,)}, tmp_path, "--additional", "--cancel-first")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "cancelled" in line] == cancelled
    assert parse_plan(lines[lines.index("Current partition replica assignment") + 2]).replicas == present
    assert tool.batches == [(BAZ, FOO), (BAZ, FOO)]
    assert {key: move.target for key, move in tool.admin.list_partition_reassignments().items()} == {
        FOO: (1, 2),
        BAZ: (1,),
    }


def test_a_plan_is_sent_after_a_move_that_only_added_has_ended(tool: ToolOnTwin, tmp_path: Path) -> None:
    """Its last list has all that it had while it moved."""
    wider = {BAR: (1, 0, 2)}
    tool.admin.incremental_alter_configs(topic_changes(move_map({}, wider, {BAR: (1, 0)}))).raise_if_any()
    tool.admin.alter_partition_reassignments(dict(wider)).raise_if_any()

    def end_moves(request: Request) -> None:
        if request.key == REASSIGN.key:
            tool.transport.before = lambda _request: None
            tool.admin.incremental_alter_configs(clear_broker_changes(range(4))).raise_if_any()
            tool.twin.advance(600_000)

    tool.transport.before = end_moves
    tool.execute_with_options({BAR: (3, 1)}, tmp_path, "--additional", "--cancel-first")
    assert tool.admin.list_partition_reassignments()[BAR].target == (3, 1)


def test_a_plan_that_cancels_first_is_not_sent_while_brokers_show_the_move(tool: ToolOnTwin, tmp_path: Path) -> None:
    schedule_faults(tool.twin, [read_fault("stale-answers:DescribeTopicPartitions@0s")])
    tool.twin.advance(1)
    with pytest.raises(TerseError) as caught:
        tool.execute_with_options({FOO: (0, 1), BAR: (2, 1)}, tmp_path, "--additional", "--cancel-first")
    assert str(caught.value) == (
        "Nothing was submitted: still being reassigned after they were cancelled, or brokers still show their move: "
        "foo-0. Execute the plan again once they show it as cancelled"
    )
    assert tool.batches == [(FOO,)]


def test_a_plan_of_what_does_not_move_has_nothing_to_cancel_first(tool: ToolOnTwin, tmp_path: Path) -> None:
    tool.execute_with_options({BAR: (2, 1)}, tmp_path, "--additional", "--cancel-first")
    assert tool.batches == [(BAR,)]


def test_what_is_not_as_expected_is_not_cancelled(tool: ToolOnTwin, tmp_path: Path) -> None:
    expected = tmp_path / "expected.json"
    entry = {"topic": "foo", "partition": 0, "replicas": [2, 3, 0, 1]}
    expected.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    words = ("--additional", "--cancel-first", "--expect-current", str(expected))
    with pytest.raises(Drifted, match="foo-0"):
        tool.execute_with_options({FOO: (0, 1)}, tmp_path, *words)
    assert tool.batches == []


def shown(tool: ToolOnTwin, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    progress(
        ToolClient(tool.admin, through_controllers=False), ProgressRequest(None, False, 2_000, as_json), tool.transport
    )
    return capsys.readouterr().out


def test_a_move_that_can_never_end_has_no_time_left(tool: ToolOnTwin, capsys: pytest.CaptureFixture[str]) -> None:
    assert "never" not in shown(tool, capsys)
    tool.admin.alter_partition_reassignments({FOO: (0, 1)}, warns_of_overrides=False).raise_if_any()
    _head, _columns, baz, *foo, warning = shown(tool, capsys).splitlines()
    assert baz.startswith("baz-0")
    assert "never" not in baz
    assert [line.split()[0] for line in foo] == ["foo-0", "foo-0"]
    assert all(line.endswith("  never") for line in foo)
    approve([warning], "progress-of-an-override")
    copies = json.loads(shown(tool, capsys, as_json=True))["moving"]
    assert [(copy["topic"], copy["can_never_complete"], copy["eta_s"] is None) for copy in copies][1:] == [
        ("foo", True, True),
        ("foo", True, True),
    ]
    assert copies[0]["can_never_complete"] is False
