"""Faults of brokers, links, log directories, remote storage, responses, controllers and client machines.

Faults of one kind of target share a class, which begins with an underscore, for its check and its recovery.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.twin.api import refusals
from kreassign.twin.api.connection import AffectedResponses, Refused, RequestFault, ResponseFault
from kreassign.twin.cluster import Twin
from kreassign.wire import api


class Fault:
    """A fault. It does nothing if its target is broken already, or repaired already."""

    __slots__ = ()

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault; every twin can have the others."""

    def inject(self, twin: Twin) -> None:
        """Break the target."""
        raise NotImplementedError

    def recover(self, twin: Twin) -> None:
        """Repair the target, where that is part of the fault; the others stay, or are over by themselves."""


# Faults of brokers, of their metadata, and of the links between them.


def need_broker(twin: Twin, broker: int) -> None:
    """Raise InputError if the cluster has no such broker."""
    if broker not in twin.processes.ids:
        raise InputError(f"a fault names broker {broker}; the cluster has {list(twin.processes.ids)}")


def need_node(twin: Twin, node: int | None) -> None:
    """Raise InputError if the cluster has no such broker or controller; None stands for all of them."""
    if node is not None and node not in twin.controller.node_ids:
        need_broker(twin, node)


def start_if_down(twin: Twin, broker: int) -> None:
    """Start a broker unless it is running."""
    if not twin.processes.is_running(broker):
        twin.start(broker)


def restart(twin: Twin, broker: int) -> None:
    """Shut a broker down cleanly and start it again; a stopped broker is only started, a frozen one killed first."""
    if twin.processes.is_responsive(broker):
        twin.stop(broker)
    elif twin.processes.is_running(broker):
        twin.crash(broker)
    start_if_down(twin, broker)


@dataclass(frozen=True, slots=True)
class _BrokerFault(Fault):
    broker: int

    def check(self, twin: Twin) -> None:
        need_broker(twin, self.broker)

    def recover(self, twin: Twin) -> None:
        start_if_down(twin, self.broker)


@dataclass(frozen=True, slots=True)
class Crash(_BrokerFault):
    """Kill a broker; recovery starts it again."""

    def inject(self, twin: Twin) -> None:
        """Kill the broker, unless it is down already."""
        if twin.processes.is_running(self.broker):
            twin.crash(self.broker)


@dataclass(frozen=True, slots=True)
class Stop(_BrokerFault):
    """Shut a broker down cleanly; recovery starts it again."""

    def inject(self, twin: Twin) -> None:
        """Shut the broker down, unless it is down or frozen."""
        if twin.processes.is_responsive(self.broker):
            twin.stop(self.broker)


@dataclass(frozen=True, slots=True)
class Freeze(_BrokerFault):
    """Suspend a broker's process, so that requests to it hang; recovery lets it continue with its old metadata."""

    def inject(self, twin: Twin) -> None:
        """Suspend the broker, unless it is down or frozen already."""
        if twin.processes.is_responsive(self.broker):
            twin.freeze(self.broker)

    def recover(self, twin: Twin) -> None:
        """Let the broker continue, if it is still frozen."""
        if twin.processes.is_frozen(self.broker):
            twin.unfreeze(self.broker)


@dataclass(frozen=True, slots=True)
class Unregister(_BrokerFault):
    """Kill and unregister a broker; recovery starts it again, and it registers again."""

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        need_broker(twin, self.broker)
        if twin.version.uses_zookeeper:
            raise InputError("a fault unregisters a broker, which a cluster in ZooKeeper mode cannot; let it crash")

    def inject(self, twin: Twin) -> None:
        """Kill the broker, unless it is down, and unregister it."""
        if twin.processes.is_running(self.broker):
            twin.crash(self.broker)
        twin.unregister(self.broker)


@dataclass(frozen=True, slots=True)
class Stale(Fault):
    """Let a node read no new records of the metadata log, so that it answers from its old state.

    With `behind` it keeps reading, always so many records late. Of controllers, only the answers of inactive ones show
    that.
    """

    broker: int
    behind: int | None = None

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        need_node(twin, self.broker)
        if self.behind is not None and self.behind < 0:
            raise InputError(f"a broker cannot be {self.behind} records behind; give a number from 0 on")

    def inject(self, twin: Twin) -> None:
        """Hold the node back, unless it is frozen and reads nothing anyway."""
        if not twin.processes.is_frozen(self.broker):
            twin.views.hold_back(self.broker, self.behind)

    def recover(self, twin: Twin) -> None:
        """Bring the node up to date, unless it is frozen; then it catches up once it is unfrozen."""
        if not twin.processes.is_frozen(self.broker):
            twin.views.release(self.broker)


@dataclass(frozen=True, slots=True)
class Cut(_BrokerFault):
    """Cut two brokers off from each other; both still reach the controller and are reached by clients."""

    other: int

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        need_broker(twin, self.broker)
        need_broker(twin, self.other)
        if self.broker == self.other:
            raise InputError(f"there is no link between broker {self.broker} and itself to cut")

    def inject(self, twin: Twin) -> None:
        """Cut the link."""
        twin.replication.set_link(self.broker, self.other, is_cut=True)

    def recover(self, twin: Twin) -> None:
        """Restore the link."""
        twin.replication.set_link(self.broker, self.other, is_cut=False)


# Faults of log directories and of remote storage.
#
# A directory that was offline is used again only after its broker's next start.


def _need_dir(twin: Twin, broker: int, path: str) -> None:
    need_broker(twin, broker)
    known = [log_dir.path for log_dir in twin.metadata.brokers[broker].log_dirs]
    if path not in known:
        raise InputError(f"a fault names log directory {path} of broker {broker}, which has {known}")


@dataclass(frozen=True, slots=True)
class _DirFault(Fault):
    broker: int
    path: str

    def check(self, twin: Twin) -> None:
        _need_dir(twin, self.broker, self.path)

    def recover(self, twin: Twin) -> None:
        twin.repair_log_dir(self.broker, self.path)
        restart(twin, self.broker)


@dataclass(frozen=True, slots=True)
class Slow(_DirFault):
    """Slow a log directory down to a part of its speed."""

    factor: float

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        _need_dir(twin, self.broker, self.path)
        if not 0 < self.factor <= 1:
            raise InputError(f"a log directory cannot run at {self.factor} times its speed; give a part above 0")

    def inject(self, twin: Twin) -> None:
        """Slow the directory down."""
        twin.replication.slow_dir(self.broker, self.path, self.factor)

    def recover(self, twin: Twin) -> None:
        """Restore the speed of the directory."""
        twin.replication.slow_dir(self.broker, self.path, 1.0)


@dataclass(frozen=True, slots=True)
class Fail(_DirFault):
    """Take a log directory offline; recovery repairs it with all its data and restarts its broker."""

    def inject(self, twin: Twin) -> None:
        """Take the directory offline."""
        twin.fail_log_dir(self.broker, self.path)


@dataclass(frozen=True, slots=True)
class Fill(_DirFault):
    """Fill a log directory with foreign data; its broker takes the directory offline, as after any failure.

    Recovery frees the room and restarts the broker.
    """

    def inject(self, twin: Twin) -> None:
        """Fill the directory."""
        twin.replication.set_filled(self.broker, self.path, is_filled=True)

    def recover(self, twin: Twin) -> None:
        """Free the room and restart the broker."""
        twin.replication.set_filled(self.broker, self.path, is_filled=False)
        _DirFault.recover(self, twin)


@dataclass(frozen=True, slots=True)
class CutRemote(_BrokerFault):
    """Cut a broker off from remote storage: new copies of tiered topics do not begin there."""

    def inject(self, twin: Twin) -> None:
        """Cut the broker off."""
        twin.replication.set_remote(self.broker, is_cut=True)

    def recover(self, twin: Twin) -> None:
        """Reconnect the broker."""
        twin.replication.set_remote(self.broker, is_cut=False)


# Faults of requests and responses in transit, of the metadata behind answers, and of the controller.


@dataclass(frozen=True, slots=True)
class AnswerFault(Fault):
    """A fault of the next matching request or response, or (not `hits_once`) of all of them until recovery."""

    fault: ResponseFault | RequestFault
    affected: AffectedResponses
    hits_once: bool = True

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        need_node(twin, self.affected.node_id)
        if isinstance(self.fault, Refused) and self.affected.api_key not in refusals.BY_KEY:
            raise InputError("a fault refuses requests that cannot be refused item by item; name another API")

    def inject(self, twin: Twin) -> None:
        """Activate the fault."""
        twin.response_faults.add(self.fault, self.affected, hits_once=self.hits_once)

    def recover(self, twin: Twin) -> None:
        """Deactivate the fault."""
        twin.response_faults.remove(self.fault, self.affected)


@dataclass(frozen=True, slots=True)
class FailOver(Fault):
    """Let another controller take over, between two requests."""

    def inject(self, twin: Twin) -> None:
        """Let the next controller take over."""
        twin.fail_over()


@dataclass(frozen=True, slots=True)
class StaleAnswers(Fault):
    """Let a node answer requests of one API from its state at the start of the fault, or always so many records late.

    Without a node, all nodes do. Answers of other APIs are up to date.
    """

    api_key: int
    node: int | None = None
    behind: int | None = None

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        need_node(twin, self.node)

    def inject(self, twin: Twin) -> None:
        """Hold the answers back."""
        twin.views.hold_back(self.node, self.behind, self.api_key)

    def recover(self, twin: Twin) -> None:
        """Answer from up-to-date metadata again."""
        twin.views.release(self.node, self.api_key)


@dataclass(frozen=True, slots=True)
class EmptyLists(Fault):
    """ListPartitionReassignments returns an empty list, as before the metadata is loaded.

    An inactive controller answers so, without an error. If `node` is a broker, it stands for the controller to which it
    forwards; without a node, all answers are empty.
    """

    node: int | None = None

    def check(self, twin: Twin) -> None:
        """Raise InputError if this twin cannot have the fault."""
        need_node(twin, self.node)

    def inject(self, twin: Twin) -> None:
        """Return empty lists."""
        twin.views.forget(self.node, api.LIST_PARTITION_REASSIGNMENTS.key)

    def recover(self, twin: Twin) -> None:
        """Return the actual lists again."""
        twin.views.release(self.node, api.LIST_PARTITION_REASSIGNMENTS.key)


# Faults of the machine on which a client runs. They affect only clients in the twin's own time (`TwinTransport`).
#
# A client on a socket has the clock of its own machine, which a twin cannot change.


@dataclass(frozen=True, slots=True)
class StepClock(Fault):
    """The wall clock jumps (back if negative), while time itself goes on; recovery lets it jump back."""

    by_ms: int

    def inject(self, twin: Twin) -> None:
        """Let the clock jump."""
        twin.client_clock.step(self.by_ms)

    def recover(self, twin: Twin) -> None:
        """Let the clock jump back."""
        twin.client_clock.step(-self.by_ms)


@dataclass(frozen=True, slots=True)
class Suspend(Fault):
    """Suspend the client's machine, like a virtual machine that is migrated, while the cluster goes on.

    Its clocks are right afterwards: also the monotonic one counts the time, as CLOCK_BOOTTIME does on Linux.
    """

    for_ms: int

    def inject(self, twin: Twin) -> None:
        """Suspend the machine as soon as it waits or sends a request."""
        twin.client_clock.suspend(self.for_ms)
