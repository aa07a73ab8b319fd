"""Faults of brokers, links, log directories, remote storage, responses, controllers and client machines.

Each class fits `Fault`: `check` raises InputError where the twin cannot have the fault, `inject` breaks, `recover`
repairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.twin.api import refusals
from kreassign.twin.api.connection import AffectedResponses, Refused, RequestFault, ResponseFault
from kreassign.twin.cluster import Twin
from kreassign.wire import api

# Faults of brokers, of what they know, and of the links between them.


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


def restart(twin: Twin, broker: int) -> None:
    """Shut a broker down in order and start it again; one that is down is started, one that hangs is killed first."""
    if twin.processes.is_responsive(broker):
        twin.stop(broker)
    elif twin.processes.is_running(broker):
        twin.crash(broker)
    start_if_down(twin, broker)


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


# Faults of log directories, and of remote storage.
#
# A directory that was offline is used again only after its broker's next start.


def _need_dir(twin: Twin, broker: int, path: str) -> None:
    need_broker(twin, broker)
    known = [log_dir.path for log_dir in twin.metadata.brokers[broker].log_dirs]
    if path not in known:
        raise InputError(f"a fault names log directory {path} of broker {broker}, which has {known}")


def _repair(twin: Twin, broker: int, path: str) -> None:
    twin.repair_log_dir(broker, path)
    restart(twin, broker)


@dataclass(frozen=True, slots=True)
class Slow:
    """A log directory reads and writes at a part of its speed."""

    broker: int
    path: str
    factor: float

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        _need_dir(twin, self.broker, self.path)
        if not 0 < self.factor <= 1:
            raise InputError(f"a log directory cannot run at {self.factor} times its speed; give a part above 0")

    def inject(self, twin: Twin) -> None:
        """Slow it down."""
        twin.replication.slow_dir(self.broker, self.path, self.factor)

    def recover(self, twin: Twin) -> None:
        """Give it its own speed."""
        twin.replication.slow_dir(self.broker, self.path, 1.0)


@dataclass(frozen=True, slots=True)
class Fail:
    """A log directory goes offline. Afterwards it is repaired, with all its data, and its broker restarted."""

    broker: int
    path: str

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        _need_dir(twin, self.broker, self.path)

    def inject(self, twin: Twin) -> None:
        """Take it offline."""
        twin.fail_log_dir(self.broker, self.path)

    def recover(self, twin: Twin) -> None:
        """Repair it and restart the broker."""
        _repair(twin, self.broker, self.path)


@dataclass(frozen=True, slots=True)
class Fill:
    """Something that is not Kafka's fills a log directory, and the broker gives it up, as it does with any that fails.

    Afterwards there is room again, and the broker is restarted.
    """

    broker: int
    path: str

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        _need_dir(twin, self.broker, self.path)

    def inject(self, twin: Twin) -> None:
        """Fill it."""
        twin.replication.fill_dir(self.broker, self.path)

    def recover(self, twin: Twin) -> None:
        """Make room and restart the broker."""
        twin.replication.clear_dir(self.broker, self.path)
        _repair(twin, self.broker, self.path)


@dataclass(frozen=True, slots=True)
class CutRemote:
    """A broker cannot read remote storage: new copies of tiered topics do not begin there."""

    broker: int

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        need_broker(twin, self.broker)

    def inject(self, twin: Twin) -> None:
        """Cut it off."""
        twin.replication.cut_remote(self.broker)

    def recover(self, twin: Twin) -> None:
        """Let it read again."""
        twin.replication.restore_remote(self.broker)


# Faults of requests and responses on their way, of the metadata that answers are made from, and of the controller.


@dataclass(frozen=True, slots=True)
class AnswerFault:
    """A fault of the next request or response that matches, or (not `hits_once`) of all of them until it is over."""

    fault: ResponseFault | RequestFault
    affected: AffectedResponses
    hits_once: bool = True

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        node_id = self.affected.node_id
        if node_id is not None:
            need_node(twin, node_id)
        if isinstance(self.fault, Refused) and self.affected.api_key not in refusals.BY_KEY:
            raise InputError("a fault refuses requests that cannot be refused item by item; name another API")

    def inject(self, twin: Twin) -> None:
        """Activate it."""
        twin.response_faults.add(self.fault, self.affected, hits_once=self.hits_once)

    def recover(self, twin: Twin) -> None:
        """Deactivate it."""
        twin.response_faults.remove(self.fault, self.affected)


@dataclass(frozen=True, slots=True)
class FailOver:
    """Another controller takes over, between two requests."""

    def check(self, twin: Twin) -> None:
        """Every twin can have it."""

    def inject(self, twin: Twin) -> None:
        """Let the next controller take over."""
        twin.fail_over()

    def recover(self, twin: Twin) -> None:
        """Nothing to repair: the new controller stays."""


@dataclass(frozen=True, slots=True)
class StaleAnswers:
    """A node answers requests of one API from what it knew when this began, or always so many records late.

    Without a node all of them do. Its answers to other requests are up to date.
    """

    api_key: int
    node: int | None = None
    behind: int | None = None

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        if self.node is not None:
            need_node(twin, self.node)

    def inject(self, twin: Twin) -> None:
        """Hold its answers back."""
        twin.views.hold_back(self.node, self.behind, self.api_key)

    def recover(self, twin: Twin) -> None:
        """Let it answer from all that it knows."""
        twin.views.release(self.node, self.api_key)


@dataclass(frozen=True, slots=True)
class EmptyLists:
    """A controller that has just started, and has read nothing yet, answers what is being reassigned: nothing.

    That is what a list looks like, without an error, that an inactive controller gives. As `node` a broker stands for
    the controller to which it forwards; without any, all answers are such.
    """

    node: int | None = None

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        if self.node is not None:
            need_node(twin, self.node)

    def inject(self, twin: Twin) -> None:
        """Let the list be empty."""
        twin.views.forget(self.node, api.LIST_PARTITION_REASSIGNMENTS.key)

    def recover(self, twin: Twin) -> None:
        """Let the list be what it is."""
        twin.views.release(self.node, api.LIST_PARTITION_REASSIGNMENTS.key)


# Faults of the machine on which a client runs. They befall clients in the twin's own time (`TwinTransport`) only.
#
# A client on a socket has the clock of its own machine, which a twin cannot change.


@dataclass(frozen=True, slots=True)
class StepClock:
    """The wall clock jumps, back with a negative number; time itself goes on as before. Afterwards it jumps back."""

    by_ms: int

    def check(self, twin: Twin) -> None:
        """Every twin can have it."""

    def inject(self, twin: Twin) -> None:
        """Let it jump."""
        twin.client_clock.step(self.by_ms)

    def recover(self, twin: Twin) -> None:
        """Let it jump back."""
        twin.client_clock.step(-self.by_ms)


@dataclass(frozen=True, slots=True)
class Suspend:
    """The client's machine is suspended, as a virtual machine that is moved: the cluster goes on meanwhile.

    Its wall clock is right afterwards; its monotonic clock has not counted the time, as that of Linux does not.
    """

    for_ms: int

    def check(self, twin: Twin) -> None:
        """Every twin can have it."""

    def inject(self, twin: Twin) -> None:
        """Suspend it, as soon as it waits or asks something."""
        twin.client_clock.suspend(self.for_ms)

    def recover(self, twin: Twin) -> None:
        """Nothing to repair: it goes on by itself."""
