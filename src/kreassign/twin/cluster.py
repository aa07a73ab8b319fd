"""The twin: a simulated cluster, its nodes and connections, and every operator action on them.

`Twin` works with the controller of either mode: `core.KRaftController`, or that of `twin/zookeeper`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kreassign.errors import InputError
from kreassign.twin.access import Listener, Node
from kreassign.twin.api.connection import Connection, Reply, ResponseFaults
from kreassign.twin.blueprint import Blueprint, seeded_random
from kreassign.twin.brokers import BrokerLifecycle
from kreassign.twin.controller import leader_and_isr
from kreassign.twin.controller.configs import first_records
from kreassign.twin.controller.decision import TIERED_SERVER
from kreassign.twin.core import KRaftController, TwinCore, TwinSettings
from kreassign.twin.metadata import BrokerRegistered, MetadataLog
from kreassign.twin.version import Endpoint
from kreassign.wire.codec import PREFIX_BYTES

# The cluster and its nodes.


class Twin(BrokerLifecycle):
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
        make_controller: Callable[[TwinCore], KRaftController] = KRaftController,
    ) -> None:
        settings, log = settings or TwinSettings(), MetadataLog() if log is None else log
        if blueprint.has_tiered_topics:
            settings = replace(settings, server=settings.server.with_static(TIERED_SERVER, "true"))
        records = list(log.read())
        # A continued log must not draw the same random numbers again.
        random = seeded_random(f"{settings.seed}:{len(records)}")
        super().__init__(blueprint.hardware, settings, log, random, make_controller)
        self.cluster_id = blueprint.cluster_id
        self.listener = Listener("PLAINTEXT")
        self.response_faults = ResponseFaults()
        self._connection_count = 0
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
        self.load_brokers(registrations)
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

    def unregister(self, broker_id: int) -> None:
        """Unregister a broker, as `kafka-cluster unregister` does. After a start it registers again."""
        self.controller.unregister_broker(broker_id)

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
