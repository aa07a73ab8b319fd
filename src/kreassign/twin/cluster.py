"""The twin: a simulated cluster, its nodes and connections, and every operator action on them.

`Twin` works with any controller that fits `ControllerPort`: `KRaftController` is here, the one of ZooKeeper mode in
`twin/zookeeper`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kreassign.errors import InputError
from kreassign.model import NO_LEADER, TopicPartition
from kreassign.twin.access import Listener, Node
from kreassign.twin.api.connection import Connection, Reply, ResponseFaults
from kreassign.twin.blueprint import Blueprint, seeded_random
from kreassign.twin.brokers import BrokerLifecycle, DirectoryReports, report_replica_event
from kreassign.twin.controller import leader_and_isr, topics
from kreassign.twin.controller.brokers import assign_directories, unregister
from kreassign.twin.controller.configs import AlterConfigs, ResourceOutcome, alter_configs, first_records
from kreassign.twin.controller.decision import TIERED_SERVER, Outcome
from kreassign.twin.controller.port import ControllerPort
from kreassign.twin.controller.reassignments import AlterReassignments, ReassignmentsAltered, alter_reassignments
from kreassign.twin.core import MetadataLog, NoLog, TwinCore, TwinSettings
from kreassign.twin.metadata import BrokerRegistered, Record
from kreassign.twin.version import Endpoint
from kreassign.wire.codec import PREFIX_BYTES

# The controllers in KRaft mode: a quorum whose members all have the metadata log; one is active.

FIRST_ID = 100


class KRaftController:
    """The active controller of a quorum. Others take over in the order of their ids, wrapping around after the last."""

    def __init__(self, core: TwinCore) -> None:
        first = max(FIRST_ID, max(core.processes.ids) + 1)
        self._core = core
        self._node_ids = tuple(range(first, first + core.settings.controller_count))
        self._active = first
        self._epoch = 1

    @property
    def active_id(self) -> int:
        """The id of the active controller."""
        return self._active

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of the quorum's members."""
        return self._node_ids

    @property
    def epoch(self) -> int:
        """The leader epoch of the quorum."""
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
        """Create topics; return the outcome of each."""
        return self._core.commit(topics.create_topics(self._core.context, command, self._core.random))

    def delete_topics(
        self, references: Sequence[topics.TopicReference], timeout_ms: int, denied: Collection[str]
    ) -> tuple[topics.TopicDeletion, ...]:
        """Delete topics, each by name or id; return the outcome of each."""
        return self._core.commit(topics.delete_topics(self._core.context, references, timeout_ms, denied))

    def create_partitions(self, command: topics.CreatePartitions) -> tuple[tuple[str, Outcome], ...]:
        """Add partitions; return the outcome by topic."""
        return self._core.commit(topics.create_partitions(self._core.context, command, self._core.random))

    def alter_configs(self, command: AlterConfigs) -> tuple[ResourceOutcome, ...]:
        """Change dynamic configuration; return the outcome of each resource."""
        return self._core.commit(alter_configs(self._core.context, command))

    def alter_reassignments(self, command: AlterReassignments) -> ReassignmentsAltered:
        """Start, override and cancel moves."""
        return self._core.commit(alter_reassignments(self._core.context, command))

    def elect_leaders(self, command: leader_and_isr.ElectLeaders) -> leader_and_isr.LeadersElected:
        """Elect leaders, preferred or unclean."""
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


# The cluster and its nodes.


class Twin(TwinCore):
    """A simulated cluster. Not thread-safe: callers take turns.

    With a `log` that has records the twin continues from its end. If it begins with tiered topics its brokers have
    remote storage, else where `settings.server` says so. `make_controller` is called with the core of the twin; without
    it the controllers are a KRaft quorum.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        settings: TwinSettings | None = None,
        log: MetadataLog | None = None,
        make_controller: Callable[[TwinCore], ControllerPort] = KRaftController,
    ) -> None:
        settings, log = settings or TwinSettings(), NoLog() if log is None else log
        if blueprint.has_tiered_topics:
            settings = replace(settings, server=settings.server.with_static(TIERED_SERVER, "true"))
        records = list(log.read())
        # A continued log must not draw the same random numbers again.
        random = seeded_random(f"{settings.seed}:{len(records)}")
        super().__init__(blueprint.hardware, settings, log, random, make_controller)
        self.cluster_id = blueprint.cluster_id
        self.listener = Listener("PLAINTEXT")
        self.response_faults = ResponseFaults()
        reports = DirectoryReports(self)
        self.on_record = reports.note
        self._lifecycle = BrokerLifecycle(self, reports)
        self._connection_count = 0
        self.on_event = partial(report_replica_event, self, self._lifecycle.fail_log_dir)
        is_new = not records
        if is_new:
            records = [*first_records(self.context), *blueprint.records(random)]
            log.append(records)
        for record in records:
            self.metadata.apply(record)
        registrations = {record.broker_id: record for record in records if isinstance(record, BrokerRegistered)}
        if unknown := registrations.keys() ^ set(self.processes.ids):
            raise InputError(f"the metadata log is of other brokers than this cluster has: {sorted(unknown)}")
        self.replication.load(self.metadata, blueprint.traffic, blueprint.held_bytes)
        self._lifecycle.load(registrations)
        for replica, path in blueprint.directory_moves.items() if is_new else ():
            self.replication.alter_log_dir(replica.topic_partition, replica.broker, path)

    # --- nodes ------------------------------------------------------------------------------------------------

    @property
    def controller_id(self) -> int:
        """The id of the active controller; in ZooKeeper mode a broker, or -1 while there is none."""
        return self.controller.active_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of all brokers, running or not, and of the controllers."""
        return (*self.processes.ids, *self.controller.node_ids)

    def endpoint(self, node_id: int) -> Endpoint:
        """Kind of endpoint of a node: broker or controller."""
        return Endpoint.CONTROLLER if node_id in self.controller.node_ids else Endpoint.BROKER

    def is_frozen(self, node_id: int) -> bool:
        """True if a node's process is suspended, so that requests wait."""
        return self.processes.is_frozen(node_id)

    def start_count(self, node_id: int) -> int:
        """Number of starts of a node; connections do not survive a restart."""
        return self.processes.start_count(node_id)

    def node_at(self, address: tuple[str, int], listener: Listener) -> Node | None:
        """The node that listens at an address; None if there is none."""
        known = {*self.metadata.brokers, *self.controller.node_ids}
        found = (
            node_id for node_id in self.node_ids if node_id in known and self.address(node_id, listener) == address
        )
        return next((Node(node_id, self.endpoint(node_id), listener) for node_id in found), None)

    # --- requests ---------------------------------------------------------------------------------------------

    def connect(self, node_id: int) -> Connection:
        """Open a connection to a node, on the listener that every node has."""
        self._connection_count += 1
        node = Node(node_id, self.endpoint(node_id), self.listener)
        count = self._connection_count
        return Connection(self, self.response_faults, node, f"node-{node_id}:0-in-process:{count}-0-{count}")

    def submit(self, node_id: int, frame: bytes) -> Reply:
        """Answer one frame on a connection of its own; raises `ProtocolViolation` where the node would close it."""
        return self.connect(node_id).answer(frame[PREFIX_BYTES:])

    # --- operators and failures -------------------------------------------------------------------------------

    def crash(self, broker_id: int) -> None:
        """Kill a broker. The controller notices when its session expires."""
        self._lifecycle.crash(broker_id)

    def stop(self, broker_id: int) -> None:
        """Shut a broker down cleanly: it hands over its leaderships, then stops, and the controller is informed."""
        self._lifecycle.stop(broker_id)

    def start(self, broker_id: int) -> None:
        """Start a broker that is down; it is back in service after `start_up_ms`."""
        self._lifecycle.start(broker_id)

    def unregister(self, broker_id: int) -> None:
        """Unregister a broker, as `kafka-cluster unregister` does. After a start it registers again."""
        self.controller.unregister_broker(broker_id)

    def freeze(self, broker_id: int) -> None:
        """Suspend a broker's process; its session expires as if it had crashed."""
        self._lifecycle.freeze(broker_id)

    def unfreeze(self, broker_id: int) -> None:
        """Let a frozen process continue with the metadata that it had."""
        self._lifecycle.unfreeze(broker_id)

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Take a log directory offline. A broker without another directory crashes."""
        self._lifecycle.fail_log_dir(broker_id, path)

    def repair_log_dir(self, broker_id: int, path: str) -> None:
        """Repair a log directory; its broker uses it after its next start."""
        self._lifecycle.repair_log_dir(broker_id, path)

    def fail_over(self) -> None:
        """Let another controller take over; it needs only the metadata log."""
        self.controller.fail_over()

    def restore_preferred_leaders(self) -> None:
        """Let preferred replicas lead again where they can.

        With `auto.leader.rebalance.enable` a real controller does so every five minutes, the twin never.
        """
        while self.commit(leader_and_isr.restore_preferred_leaders(self.context)):
            pass

    def elect_unclean_leaders(self) -> None:
        """Let replicas that are out of sync lead partitions without a leader, in topics that allow it.

        A real controller does so every five minutes (`unclean.leader.election.interval.ms`), the twin never.
        """
        while self.commit(leader_and_isr.elect_unclean_leaders(self.context)):
            pass
