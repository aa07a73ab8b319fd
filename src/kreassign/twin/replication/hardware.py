"""The machines of brokers: network and log directories, each as if it had a disk to itself.

`BrokerHardware` describes one broker; `Fleet` has all of them as arrays, with what is broken at the moment. Brokers and
log directories have indices, given as they are installed and never taken back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kreassign.errors import InputError
from kreassign.twin.replication.grown import grown
from kreassign.twin.replication.throttles import NO_LIMIT

TEN_GIGABIT = 1_250_000_000
"""Bytes per second of a ten gigabit network."""
TWO_TERABYTES = 2_000_000_000_000
FAST_DISK = 500_000_000
"""Bytes per second that an ordinary solid state disk reads or writes in a row."""


@dataclass(frozen=True, slots=True)
class LogDirHardware:
    """One log directory, as if it had a disk to itself: bytes it holds, bytes per second it reads and writes."""

    path: str
    capacity_bytes: int = TWO_TERABYTES
    read_bytes_per_s: float = FAST_DISK
    write_bytes_per_s: float = FAST_DISK

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise InputError(f"log directory {self.path!r} is not an absolute path")
        _refuse_nothing(
            f"log directory {self.path}", self.capacity_bytes, self.read_bytes_per_s, self.write_bytes_per_s
        )


@dataclass(frozen=True, slots=True)
class BrokerHardware:
    """One broker: its log directories in the order of its configuration, and its network in bytes per second."""

    log_dirs: tuple[LogDirHardware, ...]
    net_in_bytes_per_s: float = TEN_GIGABIT
    net_out_bytes_per_s: float = TEN_GIGABIT

    def __post_init__(self) -> None:
        _refuse_nothing("the network of a broker", self.net_in_bytes_per_s, self.net_out_bytes_per_s)
        paths = [log_dir.path for log_dir in self.log_dirs]
        if not paths or len(set(paths)) != len(paths):
            raise InputError(f"a broker needs log directories, each named once; given: {paths}")


def _refuse_nothing(what: str, *amounts: float) -> None:
    if not all(0 < amount < float("inf") for amount in amounts):
        raise InputError(f"{what} needs sizes and speeds above zero and finite; given: {list(amounts)}")


class Fleet:
    """All brokers and log directories.

    Arrays by broker: `net_in`, `net_out`, `leader_limit`, `follower_limit`, `dir_limit` (bytes per second; the limits
    are the configured throttles), `up`, `has_remote` (reaches remote storage), `cut` (both brokers: no traffic between
    them). By log directory: `read`,
    `write` (bytes per second), `capacity` (bytes), `failed`, `full`, `cordoned`, `owner` (its broker; one longer than
    the others, so that no directory, -1, has no owner, -1).
    """

    def __init__(self) -> None:
        self.broker_ids: list[int] = []
        self.paths: list[str] = []
        self._brokers: dict[int, int] = {}
        self._dirs: dict[tuple[int, str], int] = {}
        self._dirs_of: list[range] = []
        self._owners: list[int] = []
        self.net_in = self.net_out = np.zeros(0)
        self.leader_limit = self.follower_limit = self.dir_limit = np.zeros(0)
        self.up = self.has_remote = np.zeros(0, np.bool_)
        self.cut: NDArray[np.bool_] = np.zeros((0, 0), np.bool_)
        self.read = self.write = self.capacity = np.zeros(0)
        self._full_read = self._full_write = self._full_capacity = np.zeros(0)
        self.failed = self.full = self.cordoned = np.zeros(0, np.bool_)
        self.owner: NDArray[np.int32] = np.array([-1], np.int32)

    def install(self, broker: int, hardware: BrokerHardware) -> int:
        """Add a broker that is up; its index."""
        if broker in self._brokers:
            raise InputError(f"broker {broker} has its hardware already")
        index = len(self.broker_ids)
        self._brokers[broker] = index
        self.broker_ids.append(broker)
        self.net_in = np.append(self.net_in, hardware.net_in_bytes_per_s)
        self.net_out = np.append(self.net_out, hardware.net_out_bytes_per_s)
        self.leader_limit = np.append(self.leader_limit, NO_LIMIT)
        self.follower_limit = np.append(self.follower_limit, NO_LIMIT)
        self.dir_limit = np.append(self.dir_limit, NO_LIMIT)
        self.up = np.append(self.up, True)
        self.has_remote = np.append(self.has_remote, True)
        self.cut = grown(self.cut, 1)
        self._install_dirs(index, hardware)
        return index

    def _install_dirs(self, broker: int, hardware: BrokerHardware) -> None:
        first, added = len(self.paths), len(hardware.log_dirs)
        self._dirs_of.append(range(first, first + added))
        for log_dir in hardware.log_dirs:
            self._dirs[broker, log_dir.path] = len(self.paths)
            self.paths.append(log_dir.path)
            self._owners.append(broker)
        self._full_read = np.append(self._full_read, [log_dir.read_bytes_per_s for log_dir in hardware.log_dirs])
        self._full_write = np.append(self._full_write, [log_dir.write_bytes_per_s for log_dir in hardware.log_dirs])
        self.read = np.append(self.read, self._full_read[first:])
        self.write = np.append(self.write, self._full_write[first:])
        capacities = [float(log_dir.capacity_bytes) for log_dir in hardware.log_dirs]
        self._full_capacity = np.append(self._full_capacity, capacities)
        self.capacity = np.append(self.capacity, capacities)
        self.failed, self.full, self.cordoned = (
            np.append(flags, np.zeros(added, np.bool_)) for flags in (self.failed, self.full, self.cordoned)
        )
        self.owner = np.concatenate([self.owner[:-1], np.full(added, broker, np.int32), self.owner[-1:]])

    def broker(self, broker: int) -> int:
        """The index of a broker; InputError if no hardware was given for it."""
        index = self._brokers.get(broker)
        if index is None:
            raise InputError(f"broker {broker} has no hardware in the twin; install it first")
        return index

    def find_broker(self, broker: int) -> int | None:
        """The index of a broker; None if no hardware was given for it."""
        return self._brokers.get(broker)

    def find_dir(self, broker: int, path: str) -> int | None:
        """The index of a log directory of a broker (by index); None if the broker has no such directory."""
        return self._dirs.get((broker, path))

    def log_dir(self, broker: int, path: str) -> int:
        """The index of a log directory of a broker (by id); InputError if there is none."""
        found = self.find_dir(self.broker(broker), path)
        if found is None:
            known = [self.paths[log_dir] for log_dir in self.dirs_of(self.broker(broker))]
            raise InputError(f"broker {broker} has no log directory {path}; it has {known}")
        return found

    def dirs_of(self, broker: int) -> range:
        """Indices of the log directories of a broker (by index), in the order of its configuration."""
        return self._dirs_of[broker]

    def owner_of(self, log_dir: int) -> int:
        """The broker (by index) that a log directory belongs to."""
        return self._owners[log_dir]

    def is_writable(self, log_dir: int) -> bool:
        """Whether a log directory takes writes."""
        return not (self.failed[log_dir] or self.full[log_dir])

    def slow(self, log_dir: int, factor: float) -> None:
        """Let a log directory run at a part of its speed; 1.0 restores it."""
        if not 0 < factor <= 1:
            raise InputError(f"a log directory cannot run at {factor} times its speed; give a part above 0, at most 1")
        self.read[log_dir] = self._full_read[log_dir] * factor
        self.write[log_dir] = self._full_write[log_dir] * factor

    def occupy(self, log_dir: int, *, is_occupied: bool) -> None:
        """Let something else take all the room of a log directory, or go away again."""
        self.capacity[log_dir] = 0.0 if is_occupied else self._full_capacity[log_dir]

    def cordon(self, broker: int, text: str | None) -> None:
        """Take over the value of `cordoned.log.dirs`: paths, or `*` for all of them."""
        paths = {path.strip() for path in (text or "").split(",")}
        for log_dir in self.dirs_of(broker):
            self.cordoned[log_dir] = "*" in paths or self.paths[log_dir] in paths
