"""A twin, the tool's `--execute` on it, and every request that the tool sends, in the twin's time."""

from __future__ import annotations

from typing import NamedTuple

from kreassign.admin import Address, AdminClient, Connection, client_settings
from kreassign.kafka_tools.reassign.batches import BatchOptions
from kreassign.kafka_tools.reassign.client import ToolClient
from kreassign.kafka_tools.reassign.execute import execute
from kreassign.kafka_tools.reassign.requests import ExecuteRequest
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.twin import Twin, TwinTransport
from kreassign.wire import api
from kreassign.wire.codec import decode_request, request_head
from kreassign.wire.frame import PREFIX_BYTES

Targets = dict[TopicPartition, tuple[int, ...]]


class Sent(NamedTuple):
    """A request of the tool, when it was sent, and of which partitions it was."""

    at_ms: int
    api: str
    partitions: tuple[TopicPartition, ...] = ()


class Listening:
    """The in-process transport and clock of a twin, which write down what goes through."""

    def __init__(self, twin: Twin) -> None:
        self._inner = TwinTransport(twin)
        self.now_ms = self._inner.now_ms
        self.monotonic_s = self._inner.monotonic_s
        self.sleep = self._inner.sleep
        self.sent: list[Sent] = []

    def connect(self, address: Address, timeout_s: float) -> Connection:
        return _Tapped(self._inner.connect(address, timeout_s), self)


class _Tapped:
    def __init__(self, inner: Connection, world: Listening) -> None:
        self._inner = inner
        self._world = world

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        payload = bytes(frame[PREFIX_BYTES:])
        key, now_ms = request_head(payload).api_key, self._world.now_ms()
        if key == api.ALTER_PARTITION_REASSIGNMENTS.key:
            topics = decode_request(api.ALTER_PARTITION_REASSIGNMENTS, payload).message.topics
            partitions = (TopicPartition(one.name, entry.partition_index) for one in topics for entry in one.partitions)
            self._world.sent.append(Sent(now_ms, "alter", tuple(partitions)))
        elif key == api.LIST_PARTITION_REASSIGNMENTS.key:
            self._world.sent.append(Sent(now_ms, "list"))
        return self._inner.exchange(frame, timeout_s)

    @property
    def is_usable(self) -> bool:
        return self._inner.is_usable

    def close(self) -> None:
        self._inner.close()


class Box:
    """A twin whose tool can be listened to."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.world = Listening(twin)
        settings = client_settings({}, bootstrap_servers="broker-0:9092")
        self.client = AdminClient.connect(settings, clock=self.world, transport=self.world)

    @property
    def steps(self) -> list[tuple[TopicPartition, ...]]:
        """The partitions of each request to reassign, in order."""
        return [sent.partitions for sent in self.world.sent if sent.api == "alter"]

    @property
    def lists(self) -> int:
        """How often the tool asked what is being reassigned."""
        return sum(sent.api == "list" for sent in self.world.sent)

    def execute(
        self, targets: Targets, batches: BatchOptions, *, throttle: int = -1, is_additional: bool = False
    ) -> None:
        """Run the tool's action to its end."""
        plan = Plan(tuple(PartitionAssignment(key, replicas) for key, replicas in targets.items()))
        request = ExecuteRequest(
            plan, is_additional, throttle, -1, 10_000, allows_replication_factor_change=True, batches=batches
        )
        execute(ToolClient(self.client, through_controllers=False), request, self.world)
