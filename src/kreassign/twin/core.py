"""The core of a twin: metadata and its log, copies on brokers, broker processes, the clock, and a controller.

Every part of the twin depends on the core, the core on none of them. Metadata changes only by `commit`: the records of
a decision are written to the log, applied, and followed by the brokers. Time passes only by `advance_to`: replication
reports what happened to copies, and the brokers react.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TypeVar
from uuid import UUID

from kreassign.errors import ControllerMoved
from kreassign.model import NO_LEADER, TopicPartition
from kreassign.twin.access import HostPort, Listener, Permissions
from kreassign.twin.controller import leader_and_isr, topics
from kreassign.twin.controller.brokers import assign_directories, unregister
from kreassign.twin.controller.configs import AlterConfigs, ResourceOutcome, alter_configs
from kreassign.twin.controller.decision import ControllerContext, Decision, Outcome, ServerSettings
from kreassign.twin.controller.reassignments import AlterReassignments, ReassignmentsAltered, alter_reassignments
from kreassign.twin.groups import GroupCoordinator
from kreassign.twin.metadata import (
    ClusterMetadata,
    MetadataLog,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Record,
    StaleViews,
    TopicDeleted,
)
from kreassign.twin.replication.hardware import BrokerHardware, ReplicationSettings
from kreassign.twin.replication.replication import Replication
from kreassign.twin.replication.state import EventQueue, ReplicaEvent
from kreassign.twin.version import DEFAULT, KafkaVersion

# The clocks of a client's machine in the twin's own time. Its wall clock may be wrong; it may be suspended.


class ClientClock:
    """Offsets of the machine's clocks from the twin's time."""

    def __init__(self) -> None:
        self._stepped_ms = 0
        self._suspended_ms = 0

    def step(self, by_ms: int) -> None:
        """Let the wall clock jump."""
        self._stepped_ms += by_ms

    def suspend(self, for_ms: int) -> None:
        """Suspend the machine the next time it waits or sends a request."""
        self._suspended_ms += for_ms

    def take_suspension(self) -> int:
        """Return and clear the pending suspension in milliseconds; the caller lets that much time pass."""
        suspended_ms, self._suspended_ms = self._suspended_ms, 0
        return suspended_ms

    def wall_ms(self, twin_ms: int) -> int:
        """The time of the wall clock, in milliseconds."""
        return twin_ms + self._stepped_ms


# The state of the twin, its changes, and its time.

Answer = TypeVar("Answer")
CONTROLLER_PORT = 9093


@dataclass(frozen=True, slots=True)
class TwinSettings:
    """Settings of a twin, apart from the contents of its cluster. Times are in milliseconds.

    `seed` decides everything that is random. Without `permissions` every client may do everything. A broker that has
    been silent for `session_timeout_ms` is fenced; a broker takes `start_up_ms` to start, and after a freeze
    `catch_up_ms` to read the metadata records that it missed.
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


@dataclass(frozen=True, slots=True)
class Step:
    """The last change: records just applied together, or events that brokers have not reacted to yet.

    `before` has the former state of every partition of the records, None if it did not exist; `was_held` has the high
    watermark before the step of those that existed. `answer` is the response to the request that caused the records.
    """

    records: tuple[Record, ...] = ()
    events: tuple[ReplicaEvent, ...] = ()
    before: Mapping[TopicPartition, PartitionState | None] = field(default_factory=dict)
    was_held: Mapping[TopicPartition, int] = field(default_factory=dict)
    answer: object = None


class BrokerProcesses:
    """Broker processes: which of them run, which are frozen, and how often each was started."""

    def __init__(self, broker_ids: Iterable[int]) -> None:
        self._start_counts = dict.fromkeys(broker_ids, 1)
        self._running = set(self._start_counts)
        self._frozen: set[int] = set()

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of all brokers, running or not."""
        return tuple(sorted(self._start_counts))

    def is_running(self, broker_id: int) -> bool:
        """True if the process exists, frozen or not."""
        return broker_id in self._running

    def is_frozen(self, broker_id: int) -> bool:
        """True if the process is suspended: its connections stay open without answers."""
        return broker_id in self._frozen

    def is_responsive(self, broker_id: int) -> bool:
        """True if the process runs and is not frozen."""
        return broker_id in self._running and broker_id not in self._frozen

    def start_count(self, broker_id: int) -> int:
        """Number of starts of the process; 1 for nodes that are not brokers."""
        return self._start_counts.get(broker_id, 1)

    def start(self, broker_id: int) -> None:
        """Mark a broker as running, started once more."""
        self._start_counts[broker_id] += 1
        self._running.add(broker_id)

    def kill(self, broker_id: int) -> None:
        """Mark as not running."""
        self._running.discard(broker_id)
        self._frozen.discard(broker_id)

    def freeze(self, broker_id: int) -> None:
        """Mark as frozen."""
        self._frozen.add(broker_id)

    def unfreeze(self, broker_id: int) -> None:
        """Mark as no longer frozen."""
        self._frozen.discard(broker_id)


Observer = Callable[["TwinCore", Step], None]
"""Called after every step; it only reads."""


class TwinCore:
    """A cluster without its network. Not thread-safe: callers take turns.

    `make_controller` is called last, with this core. `on_event` is the brokers' reaction to an event of one of their
    copies, `on_record` their reaction to a record, given the former state of its partition; the builder of the cluster
    sets both, and its id.
    """

    cluster_id: str
    on_event: Callable[[ReplicaEvent], None]
    on_record: Callable[[Record, PartitionState | None], None]

    def __init__(
        self,
        hardware: Mapping[int, BrokerHardware],
        settings: TwinSettings,
        log: MetadataLog,
        random: Random,
        make_controller: Callable[[TwinCore], KRaftController],
    ) -> None:
        self.settings = settings
        self.random = random
        self.metadata = ClusterMetadata()
        self.views = StaleViews(self.metadata)
        self.processes = BrokerProcesses(hardware)
        self.client_clock = ClientClock()
        self.began_ms = 0
        self.groups = GroupCoordinator(lambda: str(UUID(int=random.getrandbits(128), version=4)))
        self.replication = Replication(hardware, settings.replication, settings.start_ms)
        self._log = log
        self._observers: list[Observer] = []
        self._timers: EventQueue[Callable[[], None]] = EventQueue()
        self.controller = make_controller(self)

    @property
    def version(self) -> KafkaVersion:
        """The release of Kafka that this twin simulates."""
        return self.settings.version

    @property
    def permissions(self) -> Permissions | None:
        """Access rules; None if every client may do everything."""
        return self.settings.permissions

    @property
    def context(self) -> ControllerContext:
        """The state on which the controller bases its decisions."""
        return ControllerContext(
            self.metadata,
            self.version.rules,
            self.settings.server,
            controllers=frozenset(self.controller.node_ids),
        )

    def metadata_of(self, node_id: int, api_key: int | None = None) -> ClusterMetadata:
        """The metadata that a node knows, or answers requests of one API from: all of it, unless the node lags."""
        return self.views.of(node_id, api_key)

    def forwarded_metadata_of(self, broker_id: int, api_key: int) -> ClusterMetadata:
        """The metadata from which requests of one API that a broker forwards to the controller are answered."""
        held_back = self.views.of_answers(broker_id, api_key)
        return self.views.of(self.controller.active_id) if held_back is None else held_back

    # --- nodes ------------------------------------------------------------------------------------------------

    def is_running(self, node_id: int) -> bool:
        """True if a node's process is up, so that clients can connect to it."""
        return node_id in self.controller.node_ids or self.processes.is_running(node_id)

    def address(self, node_id: int, listener: Listener) -> HostPort:
        """The address of a node for clients: from the listener's list, else as the broker registered."""
        found = listener.addresses.get(node_id)
        if found is not None:
            return found
        if node_id in self.controller.node_ids:
            return HostPort(f"controller-{node_id}", CONTROLLER_PORT)
        broker = self.metadata.brokers.get(node_id)
        # A node that lags still knows an unregistered broker: its address is empty.
        return HostPort("", -1) if broker is None else HostPort(broker.host, broker.port)

    # --- changes ----------------------------------------------------------------------------------------------

    def commit(self, decision: Decision[Answer]) -> Answer:
        """Write a decision's records to the log, apply them, and return its answer."""
        if decision.records:
            self._log.append(decision.records)
            self._apply(decision)
        return decision.answer

    def apply(self, records: tuple[Record, ...]) -> None:
        """Apply records that are in the log already."""
        if records:
            self._apply(Decision(records, None))

    def _apply(self, decision: Decision[Answer]) -> None:
        step = self._step(decision) if self._observers else None
        self.controller.before_apply(decision.records)
        for record in decision.records:
            before = self.metadata.partition(record.topic_partition) if isinstance(record, PartitionChanged) else None
            self.metadata.apply(record)
            self.replication.apply(record, self.metadata)
            self.on_record(record, before)
        self.views.apply(decision.records)
        self._notify(step)
        self.controller.after_apply(decision.records)

    # --- observers --------------------------------------------------------------------------------------------

    def watch(self, observer: Observer) -> None:
        """Call an observer after every step from now on; it cannot be removed."""
        self._observers.append(observer)

    def _notify(self, step: Step | None) -> None:
        if step is not None:
            for observer in self._observers:
                observer(self, step)

    def _step(self, decision: Decision[Answer]) -> Step:
        before = dict(self._affected(decision.records))
        watermarks = ((key, self.replication.readings.held_offset(key)) for key, state in before.items() if state)
        was_held = {key: offset for key, offset in watermarks if offset is not None}
        return Step(decision.records, before=before, was_held=was_held, answer=decision.answer)

    def _affected(self, records: Iterable[Record]) -> Iterator[tuple[TopicPartition, PartitionState | None]]:
        """The partitions of these records, as they are now."""
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
        """The virtual time in milliseconds."""
        return self.replication.now_ms

    @property
    def wall_ms(self) -> int:
        """The time that brokers report to clients: since 1970, if the server has set when the twin began."""
        return self.now_ms + self.began_ms

    def next_event_ms(self) -> int | None:
        """Time of the next event if no request comes before; None if there is none."""
        times = (self._timers.next_ms, self.replication.next_event_ms())
        return min((time for time in times if time is not None), default=None)

    @property
    def is_copying(self) -> bool:
        """True if any copy is catching up."""
        return self.replication.is_copying

    def schedule(self, due_ms: int, action: Callable[[], None]) -> None:
        """Run an action at `due_ms`; as soon as time passes, if that is in the past."""
        self._timers.add(due_ms, action)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with all events in it."""
        self.advance_to(self.now_ms + milliseconds)

    def advance_to(self, to_ms: int) -> None:
        """Let time pass until `to_ms`; does nothing if that is past already."""
        while self.now_ms <= to_ms:
            due_ms = self._timers.next_ms
            limit_ms = to_ms if due_ms is None else min(to_ms, max(due_ms, self.now_ms))
            if events := self.replication.advance(limit_ms):
                self._notify(Step(events=events))
                for event in events:
                    self._try(partial(self.on_event, event))
            elif action := self._timers.take(self.now_ms):
                self._try(action)
            elif self.now_ms == to_ms:
                return

    def _try(self, action: Callable[[], None]) -> None:
        """Run an action that has no caller to answer. If this controller was deposed, its successor does the work."""
        with suppress(ControllerMoved):
            action()


# The controller. Handlers change the cluster only through it.

FIRST_CONTROLLER_ID = 100


class KRaftController:
    """The active controller of a quorum whose members all have the metadata log; its methods are those of any mode.

    Others take over in the order of their ids, wrapping around after the last. `ZooKeeperController` is the one of
    ZooKeeper mode.
    """

    def __init__(self, core: TwinCore) -> None:
        self._core = core
        first = max(FIRST_CONTROLLER_ID, max(core.processes.ids) + 1)
        self._node_ids = tuple(range(first, first + core.settings.controller_count))
        self._active = first
        self._epoch = 1

    @property
    def active_id(self) -> int:
        """The id of the active controller; -1 while there is none."""
        return self._active

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of controllers that are not brokers."""
        return self._node_ids

    @property
    def epoch(self) -> int:
        """Number of controllers elected so far."""
        return self._epoch

    def takes_requests_at(self, node_id: int) -> bool:
        """True if a node accepts requests: brokers forward them to the active controller; other controllers refuse."""
        return node_id == self._active or node_id not in self._node_ids

    def advertised_id(self, live_brokers: Sequence[int]) -> int:
        """A live broker drawn at random: clients of brokers cannot reach controllers."""
        return self._core.random.choice(live_brokers) if live_brokers else NO_LEADER

    def fail_over(self) -> None:
        """Make the next controller the active one; a single one resigns and is elected again."""
        self._active = self._node_ids[(self._node_ids.index(self._active) + 1) % len(self._node_ids)]
        self._epoch += 1

    # --- requests ---------------------------------------------------------------------------------------------

    def create_topics(self, command: topics.CreateTopics) -> tuple[topics.TopicCreation, ...]:
        """Create topics; each has its own outcome."""
        return self._core.commit(topics.create_topics(self._core.context, command, self._core.random))

    def delete_topics(
        self, references: Sequence[topics.TopicReference], timeout_ms: int, denied: Collection[str]
    ) -> tuple[topics.TopicDeletion, ...]:
        """Delete topics, each by name or id, apart from the `denied` ones; each has its own outcome."""
        return self._core.commit(topics.delete_topics(self._core.context, references, timeout_ms, denied))

    def create_partitions(self, command: topics.CreatePartitions) -> tuple[tuple[str, Outcome], ...]:
        """Add partitions; each topic has its own outcome."""
        return self._core.commit(topics.create_partitions(self._core.context, command, self._core.random))

    def alter_configs(self, command: AlterConfigs) -> tuple[ResourceOutcome, ...]:
        """Change dynamic configuration; each resource has its own outcome."""
        return self._core.commit(alter_configs(self._core.context, command))

    def alter_reassignments(self, command: AlterReassignments) -> ReassignmentsAltered:
        """Start, override and cancel moves; each partition has its own outcome."""
        return self._core.commit(alter_reassignments(self._core.context, command))

    def elect_leaders(self, command: leader_and_isr.ElectLeaders) -> leader_and_isr.LeadersElected:
        """Elect leaders, preferred or unclean; each partition has its own outcome."""
        return self._core.commit(leader_and_isr.elect_leaders(self._core.context, command))

    def unregister_broker(self, broker_id: int) -> Outcome:
        """Unregister a broker, which removes it from the cluster."""
        return self._core.commit(unregister(self._core.context, broker_id))

    def assign_directories(self, broker_id: int, directories: Mapping[TopicPartition, str]) -> None:
        """Store the directory ids of a broker's replicas (KIP-858)."""
        self._core.commit(assign_directories(self._core.context, broker_id, directories))

    # --- records ----------------------------------------------------------------------------------------------

    def before_apply(self, records: tuple[Record, ...]) -> None:
        """Nothing to do: brokers read the metadata log themselves."""

    def after_apply(self, records: tuple[Record, ...]) -> None:
        """Nothing to do: brokers read the metadata log themselves."""
