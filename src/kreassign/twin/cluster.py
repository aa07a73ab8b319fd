"""The twin: metadata, controller, brokers and their copies, joined in one time.

Whatever changes the metadata goes through `carry_out`: a decision's records are written to the log, applied, and
followed by the brokers. Whatever time brings goes through `advance`: brokers tell what happened to their copies, and
the controller decides what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, assert_never

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.twin.agenda import Agenda
from kreassign.twin.blueprint import Blueprint, seeded
from kreassign.twin.controller.brokers import (
    NO_EPOCH,
    Registration,
    begin_shutdown,
    fail_log_dir,
    fence,
    register,
    unfence,
)
from kreassign.twin.controller.configs import first_records
from kreassign.twin.controller.decision import Decision
from kreassign.twin.controller.directories import assign_directories
from kreassign.twin.controller.isr import AlterIsr, Member, ProposedIsr, alter_isr
from kreassign.twin.controller.situation import ServerSettings, Situation
from kreassign.twin.conversation import Conversation, Reply
from kreassign.twin.endpoints import Address, Listener, Node
from kreassign.twin.metadata import ClusterMetadata
from kreassign.twin.permissions import Permissions
from kreassign.twin.records import Record
from kreassign.twin.replica_events import (
    CopyDeleted,
    FutureCopyCaughtUp,
    LogDirFull,
    ReplicaCaughtUp,
    ReplicaEvent,
    ReplicaFellBehind,
    ReplicaPlaced,
)
from kreassign.twin.replication import Replication
from kreassign.twin.replication_settings import ReplicationSettings
from kreassign.twin.store.memory import MemoryLog
from kreassign.twin.version import DEFAULT, Endpoint, KafkaVersion
from kreassign.wire.frame import PREFIX_BYTES

Answer = TypeVar("Answer")

FIRST_CONTROLLER_ID = 100
CONTROLLER_PORT = 9093


@dataclass(frozen=True, slots=True)
class TwinSettings:
    """How a twin behaves apart from what it is made of.

    `seed` decides everything that is drawn by lot. Without `permissions` everybody may do everything. After
    `session_timeout_ms` without a sign of life a broker is fenced; `start_up_ms` is how long one takes to come back.
    """

    version: KafkaVersion = DEFAULT
    seed: int = 0
    start_ms: int = 0
    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    permissions: Permissions | None = None
    session_timeout_ms: int = 9_000
    start_up_ms: int = 1_000


class MetadataLog(Protocol):
    """Where the records are kept."""

    def append(self, records: Iterable[Record]) -> None:
        """Write records, all of them or none."""
        ...

    def read(self) -> Iterator[Record]:
        """All records from the first."""
        ...


@dataclass(frozen=True, slots=True)
class _SessionEnds:
    broker_id: int


@dataclass(frozen=True, slots=True)
class _StartEnds:
    broker_id: int
    life: int


_Task = _SessionEnds | _StartEnds


class Twin:
    """A cluster in a box. Not safe for several threads at once; whoever shares it takes turns."""

    def __init__(
        self, blueprint: Blueprint, settings: TwinSettings | None = None, log: MetadataLog | None = None
    ) -> None:
        self.settings = settings or TwinSettings()
        self.cluster_id = blueprint.cluster_id
        self.metadata = ClusterMetadata()
        self.controller_id = max(FIRST_CONTROLLER_ID, max(broker.id for broker in blueprint.brokers) + 1)
        self.listener = Listener("PLAINTEXT")
        self.watchers: list[Callable[[Twin], None]] = []
        self._log: MetadataLog = MemoryLog() if log is None else log
        self._agenda: Agenda[_Task] = Agenda()
        self._lives = {broker.id: 1 for broker in blueprint.brokers}
        self._running = set(self._lives)
        self._clean_epochs: dict[int, int] = {}
        self._session_ends_ms: dict[int, int] = {}
        self._conversations = 0
        self.replication = Replication(blueprint.hardware, self.settings.replication, self.settings.start_ms)
        self._begin(blueprint)

    def _begin(self, blueprint: Blueprint) -> None:
        records = list(self._log.read())
        is_new = not records
        # A log that is taken up again goes on drawing where nobody has drawn before.
        self.random = seeded(f"{self.settings.seed}:{len(records)}")
        if is_new:
            records = [*first_records(self.situation), *blueprint.records(self.random)]
            self._log.append(records)
        for record in records:
            self.metadata.apply(record)
        if strangers := self.metadata.brokers.keys() ^ self._lives.keys():
            raise InputError(f"the metadata log is of other brokers than this cluster has: {sorted(strangers)}")
        self.replication.load(self.metadata, blueprint.traffic, blueprint.held_bytes)
        for broker in [broker for broker in self.metadata.brokers.values() if broker.fenced]:
            self._clean_epochs[broker.broker_id] = broker.broker_epoch
            self._halt(broker.broker_id)
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
    def situation(self) -> Situation:
        """What the controller decides upon."""
        return Situation(
            self.metadata,
            self.version.rules,
            self.settings.server,
            controllers=frozenset({self.controller_id}),
        )

    def metadata_of(self, node_id: int) -> ClusterMetadata:
        """What a node knows. At present every broker learns of a record at once."""
        del node_id
        return self.metadata

    # --- nodes ------------------------------------------------------------------------------------------------

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Brokers, running or not, and the controller."""
        return (*sorted(self._lives), self.controller_id)

    def endpoint(self, node_id: int) -> Endpoint:
        """Which kind of node this is."""
        return Endpoint.CONTROLLER if node_id == self.controller_id else Endpoint.BROKER

    def is_running(self, node_id: int) -> bool:
        """Whether a node's process is up, so that it can be talked to."""
        return node_id == self.controller_id or node_id in self._running

    def lives(self, node_id: int) -> int:
        """How often a node has been started; connections do not outlast a life."""
        return self._lives.get(node_id, 1)

    def address(self, node_id: int, listener: Listener) -> Address:
        """Where a client finds a node: by the listener's own list, else as the broker registered."""
        found = listener.addresses.get(node_id)
        if found is not None:
            return found
        if node_id == self.controller_id:
            return Address(f"controller-{node_id}", CONTROLLER_PORT)
        broker = self.metadata.brokers[node_id]
        return Address(broker.host, broker.port)

    def node_at(self, address: tuple[str, int], listener: Listener) -> Node | None:
        """Which node listens there; None for nobody."""
        registered = (node_id for node_id in self.node_ids if self._has_address(node_id))
        found = (node_id for node_id in registered if self.address(node_id, listener) == address)
        return next((Node(node_id, self.endpoint(node_id), listener) for node_id in found), None)

    def _has_address(self, node_id: int) -> bool:
        return node_id == self.controller_id or node_id in self.metadata.brokers

    # --- requests ---------------------------------------------------------------------------------------------

    def converse(self, node_id: int) -> Conversation:
        """A new connection to a node, by the listener that every node has."""
        self._conversations += 1
        node = Node(node_id, self.endpoint(node_id), self.listener)
        return Conversation(self, node, f"node-{node_id}:0-in-process:{self._conversations}-0-{self._conversations}")

    def submit(self, node_id: int, frame: bytes) -> Reply:
        """The answer to one frame on a connection of its own; `ProtocolViolation` where the node would hang up."""
        return self.converse(node_id).answer(frame[PREFIX_BYTES:])

    def carry_out(self, decision: Decision[Answer]) -> Answer:
        """Write what was decided, let it happen, and return the answer."""
        if decision.records:
            self._log.append(decision.records)
            for record in decision.records:
                self.metadata.apply(record)
                self.replication.follow(record, self.metadata)
            self._stepped()
        return decision.answer

    def _stepped(self) -> None:
        for watcher in self.watchers:
            watcher(self)

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """What time it is."""
        return self.replication.now_ms

    def next_event_ms(self) -> int | None:
        """When something happens next if nobody asks for anything until then; None for never."""
        times = (self._agenda.next_ms, self.replication.next_event_ms())
        return min((time for time in times if time is not None), default=None)

    @property
    def is_copying(self) -> bool:
        """Whether any copy is on its way and comes closer."""
        return self.replication.is_copying

    def advance(self, milliseconds: int) -> None:
        """Let so much time pass, with everything that happens in it."""
        self.advance_to(self.now_ms + milliseconds)

    def advance_to(self, to_ms: int) -> None:
        """Let time pass until then; nothing happens if it is past already."""
        while self.now_ms <= to_ms:
            due_ms = self._agenda.next_ms
            limit_ms = to_ms if due_ms is None else min(to_ms, max(due_ms, self.now_ms))
            if events := self.replication.advance(limit_ms):
                for event in events:
                    self._answer(event)
                self._stepped()
            elif task := self._agenda.take(self.now_ms):
                self._do(task)
            elif self.now_ms == to_ms:
                return

    def _answer(self, event: ReplicaEvent) -> None:
        match event:
            case ReplicaCaughtUp(topic_partition, broker_id):
                self._propose_isr(topic_partition, joining=broker_id)
            case ReplicaFellBehind(topic_partition, broker_id):
                self._propose_isr(topic_partition, leaving=broker_id)
            case ReplicaPlaced(topic_partition, broker_id, path) | FutureCopyCaughtUp(topic_partition, broker_id, path):
                self._assign(topic_partition, broker_id, path)
            case LogDirFull(broker_id, path):
                self.fail_log_dir(broker_id, path)
            case CopyDeleted():
                pass
            case _:
                assert_never(event)

    def _propose_isr(self, key: TopicPartition, joining: int | None = None, leaving: int | None = None) -> None:
        """Let the leader of a partition ask for another ISR, as AlterPartition does."""
        partition = self.metadata.partition(key)
        if partition is None or partition.leader not in self.metadata.brokers:
            return
        brokers = [broker for broker in partition.isr if broker not in (joining, leaving)]
        if joining is not None:
            brokers.append(joining)
        proposed = ProposedIsr(
            self.metadata.topics[key.topic].topic_id,
            key.partition,
            partition.leader_epoch,
            partition.partition_epoch,
            tuple(Member(broker) for broker in brokers),
        )
        leader = self.metadata.brokers[partition.leader]
        self.carry_out(alter_isr(self.situation, AlterIsr(leader.broker_id, leader.broker_epoch, (proposed,))))

    def _assign(self, key: TopicPartition, broker_id: int, path: str) -> None:
        """Let a broker tell the controller in which directory a replica is."""
        broker = self.metadata.brokers.get(broker_id)
        if broker is not None:
            (directory,) = (log_dir.directory_id for log_dir in broker.log_dirs if log_dir.path == path)
            self.carry_out(assign_directories(self.situation, broker_id, {key: directory}))

    # --- brokers that stop, start and break -------------------------------------------------------------------

    def crash(self, broker_id: int) -> None:
        """Kill a broker. The controller notices when its session is over."""
        self._halt(broker_id)
        if broker_id not in self._session_ends_ms and not self.metadata.brokers[broker_id].fenced:
            self._session_ends_ms[broker_id] = self.now_ms + self.settings.session_timeout_ms
            self._agenda.add(self._session_ends_ms[broker_id], _SessionEnds(broker_id))

    def stop(self, broker_id: int) -> None:
        """Shut a broker down in order: it hands over what it leads, then goes, and the controller knows."""
        self._known(broker_id)
        self.carry_out(begin_shutdown(self.situation, broker_id))
        self._clean_epochs[broker_id] = self.metadata.brokers[broker_id].broker_epoch
        self._halt(broker_id)
        self.carry_out(fence(self.situation, broker_id))

    def start(self, broker_id: int) -> None:
        """Start a broker that is down; it is back in service after `start_up_ms`."""
        self._known(broker_id)
        if broker_id in self._running:
            raise InputError(f"broker {broker_id} is running; stop it first")
        self._lives[broker_id] += 1
        self._running.add(broker_id)
        self._agenda.add(self.now_ms + self.settings.start_up_ms, _StartEnds(broker_id, self._lives[broker_id]))

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Take a log directory offline; its broker tells the controller at once. One without any other is gone."""
        self._known(broker_id)
        self.replication.fail_dir(broker_id, path)
        (directory,) = (
            log_dir.directory_id for log_dir in self.metadata.brokers[broker_id].log_dirs if log_dir.path == path
        )
        self.carry_out(fail_log_dir(self.situation, broker_id, directory))
        broker = self.metadata.brokers[broker_id]
        if broker_id in self._running and len(broker.failed_dirs) == len(broker.log_dirs):
            self.crash(broker_id)

    def _halt(self, broker_id: int) -> None:
        self._known(broker_id)
        if broker_id not in self._running:
            raise InputError(f"broker {broker_id} is down already")
        self._running.discard(broker_id)
        self.replication.crash(broker_id)

    def _known(self, broker_id: int) -> None:
        if broker_id not in self._lives or broker_id not in self.metadata.brokers:
            raise InputError(f"there is no broker {broker_id}; there are {sorted(self.metadata.brokers)}")

    def _do(self, task: _Task) -> None:
        match task:
            case _SessionEnds(broker_id):
                del self._session_ends_ms[broker_id]
                if broker_id in self.metadata.brokers:
                    self.carry_out(fence(self.situation, broker_id))
            case _StartEnds(broker_id, life):
                if broker_id in self._running and self._lives[broker_id] == life:
                    self._return(broker_id)
            case _:
                assert_never(task)

    def _return(self, broker_id: int) -> None:
        known = self.metadata.brokers.get(broker_id)
        if known is None:
            return
        if broker_id in self._session_ends_ms:
            # The controller takes nobody in under the id of a broker that it believes to be alive.
            self._agenda.add(self._session_ends_ms[broker_id], _StartEnds(broker_id, self._lives[broker_id]))
            return
        registration = Registration(
            broker_id,
            known.host,
            known.port,
            known.rack,
            known.log_dirs,
            previous_epoch=self._clean_epochs.pop(broker_id, NO_EPOCH),
        )
        self.carry_out(register(self.situation, registration))
        self.replication.restore(broker_id)
        self.carry_out(unfence(self.situation, broker_id))
