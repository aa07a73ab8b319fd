"""A plan made on stale metadata never runs (what KIP-860 left to the client), on the twin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import Drifted, KreassignError
from kreassign.kafka_tools.command_line import parse
from kreassign.kafka_tools.reassign.actions import execute
from kreassign.kafka_tools.reassign.options import OPTIONS, choose_action
from kreassign.kafka_tools.reassign.requests import ExecuteRequest, read_request
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, format_plan, parse_plan
from kreassign.model.throttle import TOPIC_THROTTLES
from kreassign.twin import Twin, TwinTransport
from tests.kips.recorded_tool import REASSIGN, Request, ToolOnTwin
from tests.twin.asking import partition, twin

FOO = TopicPartition("foo", 0)


@pytest.fixture
def asked() -> Twin:
    return twin({"foo": [[0, 1], [1, 2]]})


@pytest.fixture
def client(asked: Twin) -> AdminClient:
    transport = TwinTransport(asked)
    settings = client_settings(bootstrap_servers="broker-0:9092,broker-1:9092")
    return AdminClient.connect(settings, clock=transport, transport=transport)


def test_the_client_submits_what_is_as_expected(asked: Twin, client: AdminClient) -> None:
    client.alter_partition_reassignments({FOO: (2, 1)}, expected={FOO: (0, 1)}).raise_if_any()
    asked.advance(60_000)
    assert partition(asked, "foo")[0] == (2, 1)


@pytest.mark.parametrize("expected", [(1, 0), (0, 1, 2), (3,)])
def test_the_client_refuses_any_difference_and_sends_nothing(
    asked: Twin, client: AdminClient, expected: tuple[int, ...]
) -> None:
    with pytest.raises(Drifted, match=r"foo-0: expected on .* but it is on 0,1"):
        client.alter_partition_reassignments({FOO: (2, 1), TopicPartition("foo", 1): (3, 2)}, expected={FOO: expected})
    asked.advance(60_000)
    assert [partition(asked, "foo", number)[0] for number in (0, 1)] == [(0, 1), (1, 2)]


def _file(folder: Path, name: str, replicas: list[int], number: int = 0) -> str:
    path = folder / name
    entry = {"topic": "foo", "partition": number, "replicas": replicas}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
    return str(path)


def _request(plan: str, expected: str) -> ExecuteRequest:
    words = (
        f"--bootstrap-server a:1 --execute --throttle 5000 --reassignment-json-file {plan} --expect-current {expected}"
    )
    options = parse(OPTIONS, words.split())
    request = read_request(choose_action(options), options)
    assert isinstance(request, ExecuteRequest)
    return request


def _run(client: AdminClient, request: ExecuteRequest, asked: Twin) -> None:
    execute(ToolClient(client, through_controllers=False), request, TwinTransport(asked))


def _throttles(client: AdminClient) -> list[str]:
    topic = ConfigResource.topic("foo")
    found = client.describe_configs([topic], names=TOPIC_THROTTLES)[topic]
    return [entry.value for entry in found.values() if entry.value]


def test_the_tool_runs_a_plan_whose_expectation_holds(asked: Twin, client: AdminClient, tmp_path: Path) -> None:
    _run(client, _request(_file(tmp_path, "plan", [2, 1]), _file(tmp_path, "now", [0, 1])), asked)
    assert client.list_partition_reassignments()[FOO].target == (2, 1)


def test_the_tool_refuses_a_stale_plan_before_it_sets_any_throttle(
    asked: Twin, client: AdminClient, tmp_path: Path
) -> None:
    with pytest.raises(Drifted, match="foo-0: expected on 1,0, but it is on 0,1"):
        _run(client, _request(_file(tmp_path, "plan", [2, 1]), _file(tmp_path, "now", [1, 0])), asked)
    assert client.list_partition_reassignments() == {}
    assert _throttles(client) == []


@pytest.mark.parametrize("behind", range(2))
def test_the_tool_refuses_a_stale_plan_beside_a_broker_that_lags(
    asked: Twin, client: AdminClient, tmp_path: Path, behind: int
) -> None:
    asked.views.hold_back(behind)
    client.alter_partition_reassignments({FOO: (1, 0)}).raise_if_any()
    with pytest.raises(Drifted, match="foo-0: expected on 0,1, but it is on 1,0"):
        _run(client, _request(_file(tmp_path, "plan", [2, 1]), _file(tmp_path, "now", [0, 1])), asked)
    assert client.list_partition_reassignments() == {}


@pytest.mark.parametrize("size", [1, 2])
def test_a_change_between_two_batches_ends_the_plan(tmp_path: Path, size: int) -> None:
    """Each batch is compared right before it is sent, not only the plan before its first."""
    tool = ToolOnTwin(twin({"foo": [[0, 1]] * 5}))
    parts = [TopicPartition("foo", number) for number in range(5)]
    now = Plan(tuple(PartitionAssignment(key, (0, 1)) for key in parts))
    (tmp_path / "now").write_text(format_plan(now), encoding="utf-8")

    def drift(request: Request) -> None:
        if request.key == REASSIGN.key:
            tool.transport.after = lambda _request: None
            tool.admin.alter_partition_reassignments({parts[2]: (1, 0)}).raise_if_any()

    tool.transport.after = drift
    words = ("--reassignment-batch-size", str(size), "--expect-current", str(tmp_path / "now"))
    with pytest.raises(Drifted) as caught:
        tool.execute_with_options(dict.fromkeys(parts, (2, 1)), tmp_path, *words)
    submitted = [key for batch in tool.batches for key in batch]
    assert submitted == parts[:2]
    assert str(caught.value) == (
        "nothing more was submitted, because the cluster is not what was expected:\n"
        "  foo-2: expected on 0,1, but it is on 1,0\nNot submitted: foo-2,foo-3,foo-4"
    )
    rest = parse_plan((tmp_path / "plan.not-submitted.json").read_text(encoding="utf-8"))
    assert rest.replicas == dict.fromkeys(parts[2:], (2, 1))


def test_a_plan_must_be_expected_in_whole(tmp_path: Path) -> None:
    with pytest.raises(KreassignError, match="--expect-current does not name foo-0, which the plan moves"):
        _request(_file(tmp_path, "plan", [2, 1]), _file(tmp_path, "now", [1, 2], number=1))
