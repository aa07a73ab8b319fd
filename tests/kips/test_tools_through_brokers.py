"""What KIP-455 and KIP-179 say of tools that work through brokers, on a twin."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from kreassign.admin import Address, AdminClient, Connection, client_settings
from kreassign.kafka_tools.reassign.cancel import cancel_all
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.requests import CancelAllRequest
from kreassign.kafka_tools.reassign_partitions import main
from kreassign.model import ConfigResource, TopicPartition
from kreassign.model.config import ConfigSource
from kreassign.model.plan_json import parse_plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin import Twin, TwinTransport
from kreassign.wire import api
from tests.kafka_tools.served_twin import served
from tests.twin.asking import partition, twin

FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
Targets = Mapping[TopicPartition, Sequence[int]]


class Box:
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
        return AdminClient.connect(client_settings({}, bootstrap_servers=self._address))

    def moving(self) -> dict[TopicPartition, tuple[int, ...]]:
        with self.client() as client:
            return {key: move.target for key, move in client.list_partition_reassignments().items()}

    def throttles(self) -> dict[str, set[str]]:
        """What is set: resource → values."""
        resources = [*map(ConfigResource.broker, range(4)), *map(ConfigResource.topic, ("foo", "bar"))]
        with self.client() as client:
            told = client.describe_configs(resources, names=(*BROKER_THROTTLES, *TOPIC_THROTTLES)).raise_if_any()
        own = {
            str(resource): {entry.value or "" for entry in found.values() if entry.source < ConfigSource.STATIC_BROKER}
            for resource, found in told.items()
        }
        return {name: values for name, values in own.items() if values}


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    asked = twin({"foo": [[0, 1]], "bar": [[1, 0]]})
    with served(asked) as address:
        yield Box(asked, address, tmp_path)


def test_a_plan_that_is_declined_sets_no_throttle(box: Box) -> None:
    assert box.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
    before = box.throttles()
    assert before
    assert box.execute({BAR: (3, 0)}, "--throttle", "7") == 1
    assert box.throttles() == before
    assert box.moving() == {FOO: (2, 1)}


def test_an_additional_plan_changes_the_throttle_of_what_moves(box: Box) -> None:
    assert box.execute({FOO: (2, 1)}, "--throttle", "1000") == 0
    assert box.execute({BAR: (3, 0)}, "--additional", "--throttle", "2000") == 0
    assert box.throttles() == {
        **{str(ConfigResource.broker(broker)): {"2000"} for broker in range(4)},
        str(ConfigResource.topic("foo")): {"0:0,0:1", "0:2"},
        str(ConfigResource.topic("bar")): {"0:0,0:1", "0:3"},
    }


def test_cancelling_everything_writes_a_file_that_starts_it_again(box: Box, tmp_path: Path) -> None:
    assert box.execute({FOO: (2, 1), BAR: (3, 0)}, "--throttle", "1000") == 0
    file = tmp_path / "again.json"
    assert box("--cancel", "--all", "--output", str(file)) == 0
    assert (box.moving(), box.throttles()) == ({}, {})
    assert parse_plan(file.read_text()).replicas == {FOO: (2, 1), BAR: (3, 0)}
    assert box("--execute", "--reassignment-json-file", str(file), "--throttle", "1000") == 0
    assert box.moving() == {FOO: (2, 1), BAR: (3, 0)}


def test_beside_brokers_zookeeper_is_ignored_with_a_warning(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--verify", "--reassignment-json-file", box.plan({FOO: (0, 1)}))
    assert box("--zookeeper", "127.0.0.1:1", *words) == 0
    said = capsys.readouterr().out
    assert said.startswith("Warning: ignoring deprecated --zookeeper option because --bootstrap-server was specified.")
    assert "Reassignment of partition foo-0 is completed." in said


class AfterListing:
    """A way to a twin on which something happens right after the first listing was answered."""

    def __init__(self, asked: Twin, happens: Callable[[], None]) -> None:
        self._transport = TwinTransport(asked)
        self._happens: list[Callable[[], None]] = [happens]

    def connect(self, address: Address, timeout_s: float) -> Connection:
        return AfterListingConnection(self._transport.connect(address, timeout_s), self._happens)


class AfterListingConnection:
    """One connection of it."""

    def __init__(self, connection: Connection, happens: list[Callable[[], None]]) -> None:
        self._connection = connection
        self._happens = happens

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        answer = self._connection.exchange(frame, timeout_s)
        if int.from_bytes(frame[4:6], "big") == api.LIST_PARTITION_REASSIGNMENTS.key and self._happens:
            self._happens.pop()()
        return answer

    def is_usable(self) -> bool:
        return self._connection.is_usable()

    def close(self) -> None:
        self._connection.close()


def test_what_starts_between_the_listing_and_the_cancelling_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    asked = twin({"foo": [[0, 1]], "bar": [[1, 0]]})
    world = TwinTransport(asked)
    settings = client_settings({}, bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, transport=world, clock=world) as other:
        other.alter_partition_reassignments({FOO: (2, 1)}).raise_if_any()

        def start_another() -> None:
            other.alter_partition_reassignments({BAR: (3, 0)}).raise_if_any()

        with AdminClient.connect(settings, transport=AfterListing(asked, start_another), clock=world) as client:
            request = CancelAllRequest(preserves_throttles=True, timeout_ms=10_000, output=None)
            cancel_all(ToolClient(client, through_controllers=False), request, world)
        assert set(other.list_partition_reassignments()) == {BAR}
    said = capsys.readouterr().out
    assert "foo-0" in said
    assert "bar-0" not in said
    assert set(partition(asked, "foo")[0]) == {0, 1}
