"""The twin: a simulated cluster with its nodes, their connections, and everything that an operator can do to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kreassign.errors import InputError
from kreassign.twin.access.endpoints import Address, Listener, Node
from kreassign.twin.api.connection import Connection
from kreassign.twin.api.response_faults import Reply, ResponseFaults
from kreassign.twin.blueprint import Blueprint, seeded_random
from kreassign.twin.brokers.lifecycle import BrokerLifecycle
from kreassign.twin.brokers.reports import DirectoryReports, report
from kreassign.twin.controller.configs import first_records
from kreassign.twin.controller.context import TIERED_SERVER
from kreassign.twin.controller.elections import elect_unclean_leaders, restore_preferred_leaders
from kreassign.twin.controller.port import ControllerPort
from kreassign.twin.core import MetadataLog, NoLog, TwinCore, TwinSettings
from kreassign.twin.kraft import KRaftController
from kreassign.twin.metadata.records import BrokerRegistered
from kreassign.twin.version import Endpoint
from kreassign.wire.frame import PREFIX_BYTES

CONTROLLER_PORT = 9093


class Twin(TwinCore):
    """A cluster in a box. Not thread-safe: callers take turns.

    With a `log` that has records the twin continues where they end. If it begins with tiered topics its brokers have
    remote storage, else where `settings.server` says so. `make_controller` is called with the core of the
    twin; without it the controllers are a KRaft quorum.
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
        # A log that is continued draws random numbers that were not drawn before.
        random = seeded_random(f"{settings.seed}:{len(records)}")
        super().__init__(blueprint.hardware, settings, log, random, make_controller)
        self.cluster_id = blueprint.cluster_id
        self.listener = Listener("PLAINTEXT")
        self.response_faults = ResponseFaults()
        reports = DirectoryReports(self)
        self.on_record = reports.note
        self._lifecycle = BrokerLifecycle(self, reports)
        self._connection_count = 0
        self.on_event = partial(report, self, self._lifecycle.fail_log_dir)
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
        """The active controller; in ZooKeeper mode a broker, or -1 while there is none."""
        return self.controller.active_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Brokers, running or not, and the controllers."""
        return (*self.processes.ids, *self.controller.node_ids)

    def endpoint(self, node_id: int) -> Endpoint:
        """Which kind of node this is."""
        return Endpoint.CONTROLLER if node_id in self.controller.node_ids else Endpoint.BROKER

    def is_running(self, node_id: int) -> bool:
        """Whether a node's process is up, so that clients can connect to it."""
        return node_id in self.controller.node_ids or self.processes.is_running(node_id)

    def is_frozen(self, node_id: int) -> bool:
        """Whether a node's process is suspended, so that requests wait."""
        return self.processes.is_frozen(node_id)

    def start_count(self, node_id: int) -> int:
        """How often a node was started; connections do not survive a restart."""
        return self.processes.start_count(node_id)

    def address(self, node_id: int, listener: Listener) -> Address:
        """Where a client finds a node: by the listener's own list, else as the broker registered."""
        found = listener.addresses.get(node_id)
        if found is not None:
            return found
        if node_id in self.controller.node_ids:
            return Address(f"controller-{node_id}", CONTROLLER_PORT)
        broker = self.metadata.brokers.get(node_id)
        # Whoever is behind still shows a broker that is not registered any more: nobody is there.
        return Address("", -1) if broker is None else Address(broker.host, broker.port)

    def node_at(self, address: tuple[str, int], listener: Listener) -> Node | None:
        """Which node listens at an address; None for none."""
        registered = (node_id for node_id in self.node_ids if self._has_address(node_id))
        found = (node_id for node_id in registered if self.address(node_id, listener) == address)
        return next((Node(node_id, self.endpoint(node_id), listener) for node_id in found), None)

    def _has_address(self, node_id: int) -> bool:
        return node_id in self.controller.node_ids or node_id in self.metadata.brokers

    # --- requests ---------------------------------------------------------------------------------------------

    def connect(self, node_id: int) -> Connection:
        """A new connection to a node, by the listener that every node has."""
        self._connection_count += 1
        node = Node(node_id, self.endpoint(node_id), self.listener)
        count = self._connection_count
        return Connection(self, node, f"node-{node_id}:0-in-process:{count}-0-{count}")

    def submit(self, node_id: int, frame: bytes) -> Reply:
        """The response to one frame on a connection of its own; `ProtocolViolation` where the node would close it."""
        return self.connect(node_id).answer(frame[PREFIX_BYTES:])

    # --- operators and failures -------------------------------------------------------------------------------

    def crash(self, broker_id: int) -> None:
        """Kill a broker. The controller notices when its session expires."""
        self._lifecycle.crash(broker_id)

    def stop(self, broker_id: int) -> None:
        """Shut a broker down in order: it hands over its leaderships, then stops, and the controller knows."""
        self._lifecycle.stop(broker_id)

    def start(self, broker_id: int) -> None:
        """Start a broker that is down; it is back in service after `start_up_ms`."""
        self._lifecycle.start(broker_id)

    def unregister(self, broker_id: int) -> None:
        """Take a broker out of the cluster, as `kafka-cluster unregister` does. Started again it registers again."""
        self.controller.unregister_broker(broker_id)

    def freeze(self, broker_id: int) -> None:
        """Suspend a broker's process; its session expires as if it had crashed."""
        self._lifecycle.freeze(broker_id)

    def unfreeze(self, broker_id: int) -> None:
        """Let a frozen process continue from what it knew."""
        self._lifecycle.unfreeze(broker_id)

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Take a log directory offline. A broker that has no other crashes."""
        self._lifecycle.fail_log_dir(broker_id, path)

    def repair_log_dir(self, broker_id: int, path: str) -> None:
        """Repair a log directory; its broker uses it after its next start."""
        self._lifecycle.repair_log_dir(broker_id, path)

    def fail_over(self) -> None:
        """Let another controller take over; the metadata log is all that it needs."""
        self.controller.fail_over()

    def restore_preferred_leaders(self) -> None:
        """Let preferred replicas lead again where they can.

        With `auto.leader.rebalance.enable` a real controller does so by itself every five minutes, the twin never.
        """
        while self.commit(restore_preferred_leaders(self.context)):
            pass

    def elect_unclean_leaders(self) -> None:
        """Let replicas that are out of sync lead partitions without a leader, in topics that allow it.

        A real controller does so by itself every five minutes (`unclean.leader.election.interval.ms`), the twin never.
        """
        while self.commit(elect_unclean_leaders(self.context)):
            pass
