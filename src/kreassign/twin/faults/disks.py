"""Faults of log directories, and of remote storage.

A directory that was offline is used again only after its broker's next start.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.twin.cluster import Twin
from kreassign.twin.faults.nodes import need_broker, start_if_down


def _need_dir(twin: Twin, broker: int, path: str) -> None:
    need_broker(twin, broker)
    known = [log_dir.path for log_dir in twin.metadata.brokers[broker].log_dirs]
    if path not in known:
        raise InputError(f"a fault names log directory {path} of broker {broker}, which has {known}")


def _repair(twin: Twin, broker: int, path: str) -> None:
    twin.repair_log_dir(broker, path)
    if twin.processes.is_responsive(broker):
        twin.stop(broker)
    elif twin.processes.is_running(broker):
        twin.crash(broker)
    start_if_down(twin, broker)


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
