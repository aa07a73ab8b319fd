"""The twin: metadata, controller, brokers and their copies, joined in one time.

Whatever changes the metadata goes through `commit`: a decision's records are written to the log, applied, and
followed by the brokers. Whatever time brings goes through `advance`: brokers tell what happened to their copies, and
the controller decides what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from kreassign.errors import ControllerMoved, InputError
from kreassign.model import TopicPartition
from kreassign.twin.brokers.processes import Processes
from kreassign.twin.brokers.quorum import Quorum
from kreassign.twin.brokers.reports import report
from kreassign.twin.controller.configs import first_records
from kreassign.twin.controller.context import ControllerContext, ServerSettings
from kreassign.twin.controller.decision import Decision
from kreassign.twin.metadata.broker_views import StaleViews
from kreassign.twin.metadata.records import PartitionChanged, PartitionCreated, Record, TopicDeleted
from kreassign.twin.metadata.state import ClusterMetadata, PartitionState
from kreassign.twin.metadata.step import Step
from kreassign.twin.network.connection import Connection
from kreassign.twin.network.endpoints import Address, Listener, Node
from kreassign.twin.network.permissions import Permissions
from kreassign.twin.network.response_faults import Reply, ResponseFaults
from kreassign.twin.replication.event_queue import EventQueue
from kreassign.twin.replication.replication import Replication
from kreassign.twin.replication.settings import ReplicationSettings
from kreassign.twin.setup.blueprint import Blueprint, seeded_random
from kreassign.twin.setup.version import DEFAULT, Endpoint, KafkaVersion
from kreassign.twin.store.nothing import NoLog
from kreassign.wire.frame import PREFIX_BYTES

if TYPE_CHECKING:
    from kreassign.twin.zookeeper.controller import ZooKeeperController

Answer = TypeVar("Answer")

CONTROLLER_PORT = 9093


@dataclass(frozen=True, slots=True)
class TwinSettings:
    """How a twin behaves apart from what it is made of.

    `seed` decides everything that is drawn by lot. Without `permissions` everybody may do everything. After
    `session_timeout_ms` without a sign of life a broker is fenced; `start_up_ms` is how long one takes to come back,
    `catch_up_ms` how long one that was frozen takes to learn what it has missed.
    """

    version: KafkaVersion = DEFAULT
    seed: int = 0
    start_ms: int = 0
    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    permissions: Permissions | None = None
    session_timeout_ms: int = 9_000
    start_up_ms: int = 1_000
    catch_up_ms: int = 500
    controller_count: int = 1


class MetadataLog(Protocol):
    """Where the records are kept."""

    def append(self, records: Iterable[Record]) -> None:
        """Write records, all of them or none."""
        ...

    def read(self) -> Iterator[Record]:
        """All records from the first."""
        ...


Watcher = Callable[["Twin", Step], None]
"""Told of every step after it was taken; it reads and changes nothing."""


class Twin:
    """A cluster in a box. Not safe for several threads at once; whoever shares it takes turns."""

    def __init__(
        self, blueprint: Blueprint, settings: TwinSettings | None = None, log: MetadataLog | None = None
    ) -> None:
        self.settings = settings or TwinSettings()
        self.cluster_id = blueprint.cluster_id
        self.metadata = ClusterMetadata()
        self.views = StaleViews(self.metadata)
        self.quorum = Quorum(self.settings.controller_count, max(broker.id for broker in blueprint.brokers))
        self.processes = Processes(self, tuple(broker.id for broker in blueprint.brokers))
        self.response_faults = ResponseFaults()
        self.listener = Listener("PLAINTEXT")
        self.controller: ZooKeeperController | None = None
        self._watchers: list[Watcher] = []
        self._log: MetadataLog = NoLog() if log is None else log
        self._timers: EventQueue[Callable[[], None]] = EventQueue()
        self._connection_count = 0
        self.replication = Replication(blueprint.hardware, self.settings.replication, self.settings.start_ms)
        self._begin(blueprint)

    def _begin(self, blueprint: Blueprint) -> None:
        records = list(self._log.read())
        is_new = not records
        # A log that is taken up again goes on drawing where nobody has drawn before.
        self.random = seeded_random(f"{self.settings.seed}:{len(records)}")
        if is_new:
            records = [*first_records(self.context), *blueprint.records(self.random)]
            self._log.append(records)
        for record in records:
            self.metadata.apply(record)
        if unknown := self.metadata.brokers.keys() ^ set(self.processes.ids):
            raise InputError(f"the metadata log is of other brokers than this cluster has: {sorted(unknown)}")
        self.replication.load(self.metadata, blueprint.traffic, blueprint.held_bytes)
        self.processes.take_over()
        for replica, path in blueprint.directory_moves.items() if is_new else ():
            self.replication.alter_log_dir(replica.topic_partition, replica.broker, path)

    # --- what it is -------------------------------------------------------------------------------------------

    @property
    def version(self) -> KafkaVersion:
        """The release of Kafka that this twin stands for."""
        return self.settings.version

    @property
    def permissions(self) -> Permissions | None:
        """Who may do what; None if everybody may do everything."""
        return self.settings.permissions

    @property
    def context(self) -> ControllerContext:
        """What the controller decides upon."""
        return ControllerContext(
            self.metadata,
            self.version.rules,
            self.settings.server,
            controllers=frozenset(self.quorum.ids),
        )

    def metadata_of(self, node_id: int) -> ClusterMetadata:
        """What a node knows: everything, unless it is held back."""
        return self.views.of(node_id)

    # --- nodes ------------------------------------------------------------------------------------------------

    @property
    def controller_id(self) -> int:
        """The active controller; in ZooKeeper mode a broker, or -1 while there is none."""
        return self.quorum.active if self.controller is None else self.controller.controller_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Brokers, running or not, and the controllers."""
        return (*self.processes.ids, *self.quorum.ids)

    def endpoint(self, node_id: int) -> Endpoint:
        """Which kind of node this is."""
        return Endpoint.CONTROLLER if node_id in self.quorum.ids else Endpoint.BROKER

    def is_running(self, node_id: int) -> bool:
        """Whether a node's process is up, so that it can be connected to."""
        return node_id in self.quorum.ids or self.processes.is_running(node_id)

    def is_frozen(self, node_id: int) -> bool:
        """Whether a node's process is up but does nothing, so that requests wait."""
        return self.processes.is_frozen(node_id)

    def start_count(self, node_id: int) -> int:
        """How often a node has been started; connections do not outlast a life."""
        return self.processes.start_count(node_id)

    def address(self, node_id: int, listener: Listener) -> Address:
        """Where a client finds a node: by the listener's own list, else as the broker registered."""
        found = listener.addresses.get(node_id)
        if found is not None:
            return found
        if node_id in self.quorum.ids:
            return Address(f"controller-{node_id}", CONTROLLER_PORT)
        broker = self.metadata.brokers[node_id]
        return Address(broker.host, broker.port)

    def node_at(self, address: tuple[str, int], listener: Listener) -> Node | None:
        """Which node listens there; None for nobody."""
        registered = (node_id for node_id in self.node_ids if self._has_address(node_id))
        found = (node_id for node_id in registered if self.address(node_id, listener) == address)
        return next((Node(node_id, self.endpoint(node_id), listener) for node_id in found), None)

    def _has_address(self, node_id: int) -> bool:
        return node_id in self.quorum.ids or node_id in self.metadata.brokers

    # --- requests ---------------------------------------------------------------------------------------------

    def connect(self, node_id: int) -> Connection:
        """A new connection to a node, by the listener that every node has."""
        self._connection_count += 1
        node = Node(node_id, self.endpoint(node_id), self.listener)
        return Connection(
            self, node, f"node-{node_id}:0-in-process:{self._connection_count}-0-{self._connection_count}"
        )

    def submit(self, node_id: int, frame: bytes) -> Reply:
        """The answer to one frame on a connection of its own; `ProtocolViolation` where the node would hang up."""
        return self.connect(node_id).answer(frame[PREFIX_BYTES:])

    def commit(self, decision: Decision[Answer]) -> Answer:
        """Write what was decided, let it happen, and return the answer."""
        if decision.records:
            self._log.append(decision.records)
            self._apply(decision)
        return decision.answer

    def apply(self, records: tuple[Record, ...]) -> None:
        """Let happen what is written already."""
        if records:
            self._apply(Decision(records, None))

    def _apply(self, decision: Decision[Answer]) -> None:
        step = self._step(decision) if self._watchers else None
        if self.controller is not None:
            self.controller.before_commit(decision.records)
        for record in decision.records:
            self.metadata.apply(record)
            self.replication.apply(record, self.metadata)
        self.views.apply(decision.records)
        self._tell(step)
        if self.controller is not None:
            self.controller.after_commit(decision.records)

    # --- watching ---------------------------------------------------------------------------------------------

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody of every step from now on; there is no way to stop that."""
        self._watchers.append(watcher)

    def _tell(self, step: Step | None) -> None:
        if step is not None:
            for watcher in self._watchers:
                watcher(self, step)

    def _step(self, decision: Decision[Answer]) -> Step:
        before = dict(self._concerned(decision.records))
        watermarks = ((key, self.replication.readings.held_offset(key)) for key, state in before.items() if state)
        was_held = {key: offset for key, offset in watermarks if offset is not None}
        return Step(decision.records, before=before, was_held=was_held, answer=decision.answer)

    def _concerned(self, records: Iterable[Record]) -> Iterator[tuple[TopicPartition, PartitionState | None]]:
        """The partitions that records are about, as they are now."""
        for record in records:
            match record:
                case PartitionChanged(key) | PartitionCreated(key):
                    yield key, self.metadata.partition(key)
                case TopicDeleted(name):
                    yield from ((one.topic_partition, one) for one in self.metadata.topics[name].partitions.values())
                case _:
                    pass

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """What time it is."""
        return self.replication.now_ms

    def next_event_ms(self) -> int | None:
        """When something happens next if nobody asks for anything until then; None for never."""
        times = (self._timers.next_ms, self.replication.next_event_ms())
        return min((time for time in times if time is not None), default=None)

    @property
    def is_copying(self) -> bool:
        """Whether any copy is on its way and comes closer."""
        return self.replication.is_copying

    def advance(self, milliseconds: int) -> None:
        """Let so much time pass, with everything that happens in it."""
        self.advance_to(self.now_ms + milliseconds)

    def at(self, due_ms: int, action: Callable[[], None]) -> None:
        """Do something when a time has come; at the next moment if it has passed."""
        self._timers.add(due_ms, action)

    def advance_to(self, to_ms: int) -> None:
        """Let time pass until then; nothing happens if it is past already."""
        while self.now_ms <= to_ms:
            due_ms = self._timers.next_ms
            limit_ms = to_ms if due_ms is None else min(to_ms, max(due_ms, self.now_ms))
            if events := self.replication.advance(limit_ms):
                self._tell(Step(events=events))
                for event in events:
                    self._try(partial(report, self, event))
            elif action := self._timers.take(self.now_ms):
                self._try(action)
            elif self.now_ms == to_ms:
                return

    def _try(self, action: Callable[[], None]) -> None:
        """Do what nobody waits for. What a deposed controller cannot write any more, its successor will look after."""
        with suppress(ControllerMoved):
            action()

    # --- what stops, starts and breaks ------------------------------------------------------------------------

    def crash(self, broker_id: int) -> None:
        """Kill a broker. The controller notices when its session is over."""
        self.processes.crash(broker_id)

    def stop(self, broker_id: int) -> None:
        """Shut a broker down in order: it hands over what it leads, then goes, and the controller knows."""
        self.processes.stop(broker_id)

    def start(self, broker_id: int) -> None:
        """Start a broker that is down; it is back in service after `start_up_ms`."""
        self.processes.start(broker_id)

    def freeze(self, broker_id: int) -> None:
        """Suspend a broker's process; its session lapses as if it had crashed."""
        self.processes.freeze(broker_id)

    def unfreeze(self, broker_id: int) -> None:
        """Let a frozen process go on from what it knew."""
        self.processes.unfreeze(broker_id)

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Take a log directory offline. A broker that has no other is gone."""
        self.processes.fail_log_dir(broker_id, path)

    def repair_log_dir(self, broker_id: int, path: str) -> None:
        """Mend a log directory; its broker uses it after its next start."""
        self.processes.repair_log_dir(broker_id, path)

    def fail_over(self) -> None:
        """Let another controller take over; the metadata log is all it needs."""
        if self.controller is None:
            self.quorum.fail_over()
        else:
            self.controller.fail_over()
