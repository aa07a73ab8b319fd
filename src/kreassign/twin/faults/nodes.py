"""Faults of brokers, of what they know, and of the links between them."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.twin.cluster import Twin


def need_broker(twin: Twin, broker: int) -> None:
    """InputError if the cluster has no such broker."""
    if broker not in twin.processes.ids:
        raise InputError(f"a fault names broker {broker}; the cluster has {list(twin.processes.ids)}")


def need_node(twin: Twin, node: int) -> None:
    """InputError if the cluster has no such broker or controller."""
    if node not in twin.controller.node_ids:
        need_broker(twin, node)


def start_if_down(twin: Twin, broker: int) -> None:
    """Bring a broker back that is not running; one that is running stays as it is."""
    if not twin.processes.is_running(broker):
        twin.start(broker)


@dataclass(frozen=True, slots=True)
class Crash:
    """A broker is killed; afterwards it is started again."""

    broker: int

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_broker(twin, self.broker)

    def inject(self, twin: Twin) -> None:
        """Kill it, unless it is down already."""
        if twin.processes.is_running(self.broker):
            twin.crash(self.broker)

    def recover(self, twin: Twin) -> None:
        """Start it, unless something else has."""
        start_if_down(twin, self.broker)


@dataclass(frozen=True, slots=True)
class Stop:
    """A broker is shut down in order; afterwards it is started again."""

    broker: int

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_broker(twin, self.broker)

    def inject(self, twin: Twin) -> None:
        """Shut it down, unless it is down or frozen."""
        if twin.processes.is_responsive(self.broker):
            twin.stop(self.broker)

    def recover(self, twin: Twin) -> None:
        """Start it, unless something else has."""
        start_if_down(twin, self.broker)


@dataclass(frozen=True, slots=True)
class Freeze:
    """A broker's process is suspended, so that requests to it hang; afterwards it goes on from what it knew."""

    broker: int

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_broker(twin, self.broker)

    def inject(self, twin: Twin) -> None:
        """Suspend it, unless it is down or frozen already."""
        if twin.processes.is_responsive(self.broker):
            twin.freeze(self.broker)

    def recover(self, twin: Twin) -> None:
        """Let it go on, if it is still there."""
        if twin.processes.is_frozen(self.broker):
            twin.unfreeze(self.broker)


@dataclass(frozen=True, slots=True)
class Unregister:
    """A broker is killed and taken out of the cluster; afterwards it is started again, and registers again."""

    broker: int

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_broker(twin, self.broker)
        if twin.version.uses_zookeeper:
            raise InputError("a fault unregisters a broker, which a cluster in ZooKeeper mode cannot; let it crash")

    def inject(self, twin: Twin) -> None:
        """Kill it, unless it is down, and unregister it, unless it is gone already."""
        if twin.processes.is_running(self.broker):
            twin.crash(self.broker)
        twin.unregister(self.broker)

    def recover(self, twin: Twin) -> None:
        """Start it, unless something else has."""
        start_if_down(twin, self.broker)


@dataclass(frozen=True, slots=True)
class Stale:
    """A node reads no new records of the metadata log, so that it answers from what it knew.

    With `behind` it goes on reading, always so many records late. Of controllers that shows in what one answers that is
    not active.
    """

    broker: int
    behind: int | None = None

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_node(twin, self.broker)
        if self.behind is not None and self.behind < 0:
            raise InputError(f"a broker cannot be {self.behind} records behind; give a number from 0 on")

    def inject(self, twin: Twin) -> None:
        """Hold it back, unless it is frozen and reads nothing anyway."""
        if not twin.processes.is_frozen(self.broker):
            twin.views.hold_back(self.broker, self.behind)

    def recover(self, twin: Twin) -> None:
        """Let it know everything, unless it is frozen; then it reads on once it is thawed."""
        if not twin.processes.is_frozen(self.broker):
            twin.views.release(self.broker)


@dataclass(frozen=True, slots=True)
class Cut:
    """Two brokers cannot reach each other; both still reach the controller and are reached by clients."""

    broker: int
    other: int

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_broker(twin, self.broker)
        need_broker(twin, self.other)
        if self.broker == self.other:
            raise InputError(f"there is no link between broker {self.broker} and itself to cut")

    def inject(self, twin: Twin) -> None:
        """Cut the link."""
        twin.replication.cut_link(self.broker, self.other)

    def recover(self, twin: Twin) -> None:
        """Restore the link."""
        twin.replication.restore_link(self.broker, self.other)
