"""`--progress` on a twin: what is shown of replicas being moved, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.kafka_tools.command_line import ToolError, UsageError, parse
from kreassign.kafka_tools.reassign.options import OPTIONS, choose_action
from kreassign.kafka_tools.reassign.progress import BrokerFlow, MovingCopy, by_broker, progress
from kreassign.kafka_tools.reassign.requests import ProgressRequest, read_request
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import TopicPartition, TopicPartitionReplica
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.run import Estimate
from kreassign.model.throttle import log_dir_rate_changes, move_map, rate_changes, topic_changes
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.faults.schedule import read_fault, schedule_faults
from tests.twin.asking import twin

FOO_0, FOO_1 = TopicPartition("foo", 0), TopicPartition("foo", 1)


class Box:
    """A twin, the tool's client with it, and what is printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.twin: Twin = twin({"foo": [[0, 1], [1, 0]]})
        self.clock = TwinTransport(self.twin)
        settings = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092")
        self.client = AdminClient.connect(settings, clock=self.clock, transport=self.clock)
        self._capsys = capsys

    def start(self, targets: dict[TopicPartition, tuple[int, ...]], rate: int) -> None:
        moves = move_map({}, targets, dict.fromkeys(targets, (0, 1)))
        self.client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
        self.client.incremental_alter_configs(rate_changes(range(4), rate)).raise_if_any()
        self.client.alter_partition_reassignments(dict(targets)).raise_if_any()

    def progress(
        self, plan: Plan | None = None, *, follows: bool = False, as_json: bool = False, by_broker: bool = False
    ) -> str:
        request = ProgressRequest(plan, follows, 2_000, as_json, by_broker)
        progress(ToolClient(self.client, through_controllers=False), request, self.clock)
        return self._capsys.readouterr().out


@pytest.fixture
def box(capsys: pytest.CaptureFixture[str]) -> Box:
    return Box(capsys)


def test_nothing_on_its_way_is_said_in_a_line(box: Box) -> None:
    assert box.progress() == "No replica is being moved.\n"
    assert json.loads(box.progress(as_json=True))["moving"] == []


def test_each_replica_on_its_way_has_a_line(box: Box) -> None:
    box.start({FOO_0: (2, 3), FOO_1: (1, 2)}, rate=100_000)
    lines = box.progress().splitlines()
    assert lines[0].endswith(": 3")
    assert lines[1].split() == ["Partition", "To", "Done", "Left", "Records", "behind", "Rate", "Time", "left"]
    assert [line.split("  ")[0] for line in lines[2:]] == ["foo-0", "foo-0", "foo-1"]
    assert all("/s" in line for line in lines[2:])


def test_the_figures_agree_with_each_other_and_with_the_throttle(box: Box) -> None:
    box.start({FOO_0: (0, 2)}, rate=100_000)
    box.twin.advance(30_000)  # a fresh throttle lets a burst through
    (copy,) = json.loads(box.progress(as_json=True))["moving"]
    assert (copy["topic"], copy["partition"], copy["broker"], copy["log_dir"]) == ("foo", 0, 2, None)
    assert copy["done_bytes"] + copy["left_bytes"] == 10_000_000
    assert copy["rate_bytes_per_s"] <= 105_000
    assert copy["eta_s"] == pytest.approx(copy["left_bytes"] / copy["rate_bytes_per_s"])
    assert copy["lag_records"] > 0


def _stop_broker_2(box: Box) -> None:
    box.twin.crash(2)
    box.twin.advance(60_000)  # it is fenced


def _let_broker_2_refuse(box: Box) -> None:
    schedule_faults(box.twin, [read_fault("refuse:KAFKA_STORAGE_ERROR:ListOffsets:2@1s+1h")])
    box.twin.advance(2_000)


def _stop_the_leader(box: Box) -> None:
    """Broker 0 alone is in sync, so that nobody leads foo-0."""
    box.client.alter_partition_reassignments({FOO_0: None}).raise_if_any()
    box.client.alter_partition_reassignments({FOO_0: (0,)}).raise_if_any()
    box.start({FOO_0: (0, 2)}, rate=100_000)
    box.twin.crash(0)
    box.twin.advance(60_000)


@pytest.mark.parametrize(
    "hide", [_stop_broker_2, _let_broker_2_refuse, _stop_the_leader], ids=lambda hide: hide.__name__
)
def test_a_move_of_which_nothing_is_known_is_not_left_out(box: Box, hide: Callable[[Box], None]) -> None:
    box.start({FOO_0: (0, 2)}, rate=100_000)
    hide(box)
    assert FOO_0 in box.client.list_partition_reassignments()
    head, _columns, row = box.progress().splitlines()
    assert head.endswith(": 1")
    assert row.split() == ["foo-0", "broker", "2", "-", "-", "-", "-", "-"]
    (copy,) = json.loads(box.progress(as_json=True))["moving"]
    assert (copy["topic"], copy["partition"], copy["broker"], copy["log_dir"]) == ("foo", 0, 2, None)
    assert [copy[name] for name in ("done_bytes", "left_bytes", "lag_records", "rate_bytes_per_s", "eta_s")] == [
        None
    ] * 5
    brokers = {one["broker"]: one for one in json.loads(box.progress(as_json=True, by_broker=True))["brokers"]}
    unknown = {"copies": 1, "left_bytes": None, "rate_bytes_per_s": None}
    assert brokers.pop(2)["in"] == unknown
    assert all(one["out"] == unknown for one in brokers.values())


def test_following_goes_on_while_a_broker_is_down(box: Box) -> None:
    box.start({FOO_0: (0, 2)}, rate=1_000_000)
    _stop_broker_2(box)
    box.twin.schedule(box.twin.now_ms + 30_000, lambda: box.twin.start(2))
    looks = [json.loads(line)["moving"] for line in box.progress(follows=True, as_json=True).splitlines()]
    assert looks[0][0]["done_bytes"] is None
    assert any(copies[0]["rate_bytes_per_s"] for copies in looks if copies)
    assert looks[-1] == []
    assert not box.client.list_partition_reassignments()


def test_a_plan_narrows_the_view(box: Box) -> None:
    box.start({FOO_0: (0, 2), FOO_1: (1, 2)}, rate=100_000)
    plan = Plan((PartitionAssignment(FOO_1, (1, 2)),))
    (copy,) = json.loads(box.progress(plan, as_json=True))["moving"]
    assert copy["partition"] == 1


def test_following_goes_on_to_the_end(box: Box) -> None:
    box.start({FOO_0: (0, 2)}, rate=1_000_000)
    looks = [json.loads(line)["moving"] for line in box.progress(follows=True, as_json=True).splitlines()]
    done = [copies[0]["done_bytes"] for copies in looks if copies]
    assert len(done) > 2
    assert done == sorted(done)
    assert looks[-1] == []


def test_a_move_between_directories_is_shown_with_its_directory(box: Box) -> None:
    box.client.incremental_alter_configs(log_dir_rate_changes([0], 100_000)).raise_if_any()
    (there,) = [
        log_dir.path
        for log_dir in box.client.describe_log_dirs([0])[0]
        if all(copy.topic_partition != FOO_0 for copy in log_dir.replicas)
    ]
    box.client.alter_replica_log_dirs({TopicPartitionReplica(0, *FOO_0): there}).raise_if_any()
    (copy,) = json.loads(box.progress(as_json=True))["moving"]
    assert (copy["broker"], copy["log_dir"]) == (0, there)
    assert copy["done_bytes"] + copy["left_bytes"] == pytest.approx(10_000_000, rel=0.01)


def test_by_broker_every_copy_counts_where_it_comes_from_and_where_it_goes(box: Box) -> None:
    """foo-0 is led by 0, foo-1 by 1."""
    box.start({FOO_0: (2, 3), FOO_1: (1, 2)}, rate=100_000)
    box.twin.advance(30_000)  # a fresh throttle lets a burst through
    brokers = json.loads(box.progress(as_json=True, by_broker=True))["brokers"]
    assert [(each["broker"], each["in"]["copies"], each["out"]["copies"]) for each in brokers] == [
        (0, 0, 2),
        (1, 0, 1),
        (2, 2, 0),
        (3, 1, 0),
    ]
    for side in ("left_bytes", "rate_bytes_per_s"):
        arriving = sum(each["in"][side] for each in brokers)
        assert arriving == pytest.approx(sum(each["out"][side] for each in brokers))
        assert arriving > 0
    assert all(each["within"] == {"copies": 0, "left_bytes": 0, "rate_bytes_per_s": 0} for each in brokers)
    head, columns, *rows = box.progress(by_broker=True).splitlines()
    assert head.endswith(": 3")
    assert columns.split("  ")[0] == "Broker"
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3"]


def test_by_broker_nothing_unknown_is_taken_for_nothing() -> None:
    known, unknown = Estimate(50, 50, 10.0), Estimate(50, None)
    copies = [
        (MovingCopy(FOO_0, 2), 0, known),
        (MovingCopy(FOO_1, 2), None, unknown),
        (MovingCopy(FOO_1, 3, "/d1"), 3, known),
    ]
    found = dict(by_broker(copies))
    assert found[2]["in"] == BrokerFlow(2, None, None)
    assert found[0]["out"] == BrokerFlow(1, 50, 10.0)  # who sends the other one, nobody knows
    assert found[3] == {"in": BrokerFlow(0, 0, 0), "out": BrokerFlow(0, 0, 0), "within": BrokerFlow(1, 50, 10.0)}


def _request(tmp_path: Path, words: str) -> ProgressRequest:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1]}]}', encoding="utf-8")
    options = parse(OPTIONS, ["--bootstrap-server", "a:1", "--progress", *words.replace("PLAN", str(plan)).split()])
    request = read_request(choose_action(options), options)
    assert isinstance(request, ProgressRequest)
    return request


def test_the_command_line_is_read(tmp_path: Path) -> None:
    assert _request(tmp_path, "") == ProgressRequest(None, follows=False, interval_ms=2_000, as_json=False)
    whole = _request(tmp_path, "--reassignment-json-file PLAN --follow --format json --interval-ms 5000 --by-broker")
    assert whole.plan is not None
    assert whole.plan.replicas == {FOO_0: (1,)}
    assert (whole.follows, whole.interval_ms, whole.as_json, whole.by_broker) == (True, 5_000, True, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--format xml", "--format is one of text, json, not xml"),
        ("--interval-ms 10", "--interval-ms must be at least 2000, not 10"),
        ("--interval-ms x", "Cannot parse argument 'x' of option interval-ms"),
        ("--reassignment-json-file nowhere", "Unable to read file nowhere"),
    ],
)
def test_bad_values_are_named(tmp_path: Path, words: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        _request(tmp_path, words)


def test_its_options_go_with_no_other_action() -> None:
    for option in ("--follow", "--format json", "--interval-ms 9", "--by-broker"):
        with pytest.raises(UsageError, match="can't be used with action"):
            choose_action(parse(OPTIONS, ["--bootstrap-server", "a:1", "--list", *option.split()]))
