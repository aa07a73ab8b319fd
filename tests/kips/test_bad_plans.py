"""Refusals of a plan by the tool: one clear line, exit code 1, and nothing is changed, not even a throttle."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.kafka_tools.reassign_partitions import main
from kreassign.model import ConfigResource
from kreassign.model.cluster import ConfigSource
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.access import Permissions
from tests.kafka_tools.served_twin import served
from tests.twin.asking import partition, twin

BOTH = ("--execute", "--cancel")


def one(replicas: str, *, topic: str = "foo", number: str = "0") -> str:
    """A plan with one partition."""
    return f'{{"version":1,"partitions":[{_entry(replicas, topic, number)}]}}'


def _entry(replicas: str, topic: str = "foo", number: str = "0") -> str:
    return f'{{"topic":"{topic}","partition":{number},"replicas":{replicas}}}'


@pytest.fixture
def asked() -> Twin:
    return twin({"foo": [[0, 1], [1, 0]]})


@pytest.fixture
def address(asked: Twin) -> Iterator[str]:
    with served(asked) as found:
        yield found


def refused(capsys: pytest.CaptureFixture[str], address: str, *words: str, also: str = "") -> str:
    """The line that says why; what is said besides on stderr begins with `also`."""
    assert main(["--bootstrap-server", address, *words]) == 1
    said = capsys.readouterr()
    assert said.err.startswith(also)
    assert said.err.count("\n") == bool(also)
    return next(line for line in said.out.splitlines() if line)


def as_before(asked: Twin) -> bool:
    resources = [*map(ConfigResource.broker, range(4)), ConfigResource.topic("foo")]
    transport = TwinTransport(asked)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, transport=transport, clock=transport) as client:
        told = client.describe_configs(resources, names=(*BROKER_THROTTLES, *TOPIC_THROTTLES)).raise_if_any()
        moving = client.list_partition_reassignments()
    own = [entry for found in told.values() for entry in found.values() if entry.source < ConfigSource.STATIC_BROKER]
    return (own, moving, [partition(asked, "foo", number)[0] for number in (0, 1)]) == ([], {}, [(0, 1), (1, 0)])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (one("[2,1]", topic="nope"), "Topic nope not found."),
        (one("[2,1]", number="7"), "Unable to find partition: foo-7"),
        (one("[2,1]", number="-1"), "Unable to find partition: foo--1"),
        (one("[2,77]"), "Error: Unknown broker id 77"),
        (one("[2,-1]"), "Error: Unknown broker id -1"),
        (one("[2,2]"), "Partition replica lists may not contain duplicate entries: foo-0 contains multiple entries"),
        (one("[]"), "Error: Partition replica list cannot be empty"),
        (f'{{"version":1,"partitions":[{_entry("[2,1]")},{_entry("[3,1]")}]}}', "contains duplicate topic partitions"),
        ('{"version":1,"partitions":[]}', "Partition reassignment list cannot be empty"),
        ('{"version":1,"partitions":', "Error: Unexpected end-of-input within/between Object entries"),
        ('{"version":9,"partitions":[]}', "Error: Not supported version field value 9"),
        ("", "Error: The input string shouldn't be empty"),
    ],
)
def test_a_plan_that_cannot_be_changes_nothing(
    asked: Twin, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(content, encoding="utf-8")
    words = ("--execute", "--throttle", "1000", "--reassignment-json-file", str(plan))
    assert said in refused(capsys, address, *words)
    assert as_before(asked)


def test_a_file_that_cannot_be_read_is_named(
    asked: Twin, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in (*BOTH, "--verify"):
        assert "missing.json" in refused(
            capsys, address, action, "--reassignment-json-file", str(tmp_path / "missing.json")
        )
    assert as_before(asked)


@pytest.mark.parametrize("words", [("--cancel", "--all"), ("--progress",), ("--list",), ("--execute", "--plan")])
def test_who_may_not_is_told_so_and_nothing_changes(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(one("[2,1]"), encoding="utf-8")
    asked = twin({"foo": [[0, 1], [1, 0]]}, permissions=Permissions({}))
    named = ("--execute", "--throttle", "1000", "--reassignment-json-file", str(plan))
    with served(asked) as address:
        also = "permission is missing: Describe on the cluster; allow it with `kafka-acls "
        line = refused(capsys, address, *(named if words[-1] == "--plan" else words), also=also)
    assert line.startswith("Error: org.apache.kafka.common.errors.ClusterAuthorizationException: ")
    assert line.endswith(" needs DESCRIBE permission.")
    assert [partition(asked, "foo", number)[0] for number in (0, 1)] == [(0, 1), (1, 0)]


@pytest.mark.parametrize("words", [("--cancel", "--all"), ("--progress",), ("--list",)])
def test_a_server_that_nobody_reaches_is_one_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=200\n", encoding="utf-8")
    line = refused(capsys, f"127.0.0.1:{port}", *words, "--command-config", str(config))
    assert str(port) in line or "Timed out" in line
