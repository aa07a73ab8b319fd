"""`kafka-reassign-partitions` on a twin, in the twin's time, with a record of every request that it sends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kreassign.admin import Address, AdminClient, Connection, client_settings
from kreassign.kafka_tools.command_line import parse
from kreassign.kafka_tools.reassign.actions import cancel, cancel_all, execute, generate
from kreassign.kafka_tools.reassign.options import OPTIONS, BatchOptions, choose_action
from kreassign.kafka_tools.reassign.requests import (
    CancelAllRequest,
    CancelRequest,
    ExecuteRequest,
    GenerateRequest,
    read_request,
)
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.faults import read_fault
from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, decode_request, request_head

Targets = dict[TopicPartition, tuple[int, ...]]
LIST, REASSIGN, CONFIGURE = (
    api.LIST_PARTITION_REASSIGNMENTS,
    api.ALTER_PARTITION_REASSIGNMENTS,
    api.INCREMENTAL_ALTER_CONFIGS,
)
MOVE_DIRECTORIES = api.ALTER_REPLICA_LOG_DIRS


ONLY_ASKS = -1
"""In place of the key of a request that would change something, and only asks whether it may: it names nothing."""


class Request(NamedTuple):
    """A request of the tool: when it was sent, of which partitions it was, and which settings it made."""

    at_ms: int
    key: int
    partitions: tuple[TopicPartition, ...] = ()
    settings: tuple[tuple[str, str, str], ...] = ()


def _request(payload: bytes, at_ms: int) -> Request:
    key = request_head(payload).api_key
    if key == REASSIGN.key:
        topics = decode_request(REASSIGN, payload).message.topics
        names = tuple(TopicPartition(t.name, p.partition_index) for t in topics for p in t.partitions)
        return Request(at_ms, key if names else ONLY_ASKS, names)
    if key == CONFIGURE.key:
        asked = decode_request(CONFIGURE, payload).message
        settings = tuple((r.resource_name, c.name, c.value) for r in asked.resources for c in r.configs)
        return Request(at_ms, ONLY_ASKS if asked.validate_only else key, (), settings)
    return Request(at_ms, key)


class RecordingTransport:
    """The in-process transport and clock of a twin, which record what is sent and call `before` and `after` it."""

    takes_turns = True

    def __init__(self, twin: Twin) -> None:
        self._inner = TwinTransport(twin)
        self.now_ms = self._inner.now_ms
        self.monotonic_s = self._inner.monotonic_s
        self.sleep = self._inner.sleep
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda _request: None
        self.after: Callable[[Request], None] = lambda _request: None

    def connect(self, address: Address, timeout_s: float) -> Connection:
        return _RecordingConnection(self._inner.connect(address, timeout_s), self)


class _RecordingConnection:
    def __init__(self, inner: Connection, transport: RecordingTransport) -> None:
        self._inner = inner
        self._transport = transport

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        request = _request(bytes(frame[PREFIX_BYTES:]), self._transport.now_ms())
        self._transport.requests.append(request)
        self._transport.before(request)
        answer = self._inner.exchange(frame, timeout_s)
        self._transport.after(request)
        return answer

    @property
    def is_usable(self) -> bool:
        return self._inner.is_usable

    def close(self) -> None:
        self._inner.close()


def client_of_a_replaced_controller(twin: Twin) -> tuple[AdminClient, RecordingTransport]:
    """A client whose first list of moves is that of a controller which has just lost its place: empty."""
    transport, fault = RecordingTransport(twin), read_fault("empty-lists@0")
    lists: list[Request] = []

    def before(request: Request) -> None:
        if request.key == LIST.key:
            lists.append(request)
            if len(lists) == 1:
                fault.inject(twin)

    transport.before, transport.after = before, lambda _request: fault.recover(twin)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    return AdminClient.connect(settings, clock=transport, transport=transport), transport


class ToolOnTwin:
    """The tool's actions on a twin. `admin` is a client of somebody else, whose requests are not recorded."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.transport = RecordingTransport(twin)
        settings = client_settings(bootstrap_servers="broker-0:9092")
        self._client = AdminClient.connect(settings, clock=self.transport, transport=self.transport)
        other = TwinTransport(twin)
        self.admin = AdminClient.connect(settings, clock=other, transport=other)

    def sent(self, wanted: api.Api) -> list[Request]:
        """The requests of one kind, in order."""
        return [request for request in self.transport.requests if request.key == wanted.key]

    @property
    def batches(self) -> list[tuple[TopicPartition, ...]]:
        """The partitions of each request to reassign, in order."""
        return [request.partitions for request in self.sent(REASSIGN)]

    def execute(
        self,
        targets: Targets,
        batches: BatchOptions,
        *,
        throttle: int = -1,
        is_additional: bool = False,
        log_dirs: tuple[str, ...] = (),
    ) -> None:
        """`--execute`, to its end; with `log_dirs` the replicas of all partitions go to these directories."""
        plan = Plan(tuple(PartitionAssignment(key, replicas, log_dirs) for key, replicas in targets.items()))
        self.execute_request(
            ExecuteRequest(
                plan, is_additional, throttle, -1, 10_000, allows_replication_factor_change=True, batches=batches
            )
        )

    def execute_with_options(self, targets: Targets, folder: Path, *words: str) -> None:
        """`--execute` of a plan in a file, with these options of a command line."""
        path = folder / "plan.json"
        entries = [{"topic": key.topic, "partition": key.partition, "replicas": ids} for key, ids in targets.items()]
        path.write_text(json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
        start = ("--bootstrap-server", "broker-0:9092", "--execute", "--reassignment-json-file", str(path))
        options = parse(OPTIONS, (*start, *words))
        request = read_request(choose_action(options), options)
        assert isinstance(request, ExecuteRequest)
        self.execute_request(request)

    def execute_request(self, request: ExecuteRequest) -> None:
        """`--execute` as this says."""
        execute(ToolClient(self._client, through_controllers=False), request, self.transport)

    def generate(self, *topics: str) -> None:
        """`--generate --disable-rack-aware` of these topics, for all brokers."""
        request = GenerateRequest(topics, tuple(self.twin.metadata.brokers), is_rack_aware=False)
        generate(ToolClient(self._client, through_controllers=False), request)

    def cancel(self, plan: Plan) -> None:
        """`--cancel --preserve-throttles` of a plan."""
        request = CancelRequest(plan, preserves_throttles=True, timeout_ms=10_000)
        cancel(ToolClient(self._client, through_controllers=False), request, self.transport)

    def cancel_all(
        self, output: Path | None = None, *, preserves_throttles: bool = True, is_dry_run: bool = False
    ) -> None:
        """`--cancel --all`."""
        request = CancelAllRequest(preserves_throttles, 10_000, output, is_dry_run)
        cancel_all(ToolClient(self._client, through_controllers=False), request, self.transport)
