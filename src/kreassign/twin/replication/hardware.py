"""Hardware of brokers, the limits on it, and its use by the replicas in sync.

`BrokerHardware` describes one broker: network and log directories, each as if it had a disk to itself. `Fleet` has all
of them as arrays, with their present failures. Brokers and log directories have indices, in the order of their ids and
of their configuration. Rates are bytes per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kreassign.errors import InputError
from kreassign.twin.metadata import cordoned_paths

# Constants of replication: Kafka's own settings, and measurements of real brokers.


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """Settings of replication apart from hardware; times in milliseconds.

    `quota_window_ms` is `replication.quota.window.num` × `replication.quota.window.size.seconds`: the window over which
    brokers measure a throttle. `fetch_bytes` is `replica.fetch.max.bytes`, `response_bytes` is
    `replica.fetch.response.max.bytes`, `fetch_backoff_ms` is `replica.fetch.backoff.ms`. `batch_bytes` is the mean size
    of the batches in the logs, as long as producers' default `batch.size`. Their effect on throttles is computed in
    `copy_rates.py`; `python -m bench twin-calibration` compares it with real brokers.

    `fetch_wait_ms` is `replica.fetch.wait.max.ms`: a follower that waits for records of a leader asks for a new
    partition only when that wait is over. `fetch_start_ms` lies between the controller's decision and a follower's
    first fetch, `join_ms` between its last fetch and the leader's request to add it to the ISR: together the 0.1 s in
    which the quickest moves of an empty partition end. A request that is not granted is repeated every `fetch_wait_ms`.

    `lag_time_max_ms` is `replica.lag.time.max.ms`, checked every half of it. `deletion_delay_ms` is
    `file.delete.delay.ms`: the bytes of a removed copy take room for that long. `full_slack_bytes` must become free on
    a full log directory before its writes continue.
    """

    quota_window_ms: int = 11_000
    fetch_bytes: int = 1_048_576
    response_bytes: int = 10_485_760
    fetch_backoff_ms: int = 1000
    batch_bytes: int = 16_384
    fetch_wait_ms: int = 500
    fetch_start_ms: int = 80
    join_ms: int = 20
    lag_time_max_ms: int = 30_000
    deletion_delay_ms: int = 60_000
    full_slack_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        waits = (self.fetch_start_ms, self.join_ms, self.fetch_backoff_ms, self.deletion_delay_ms)
        if min(waits) < 0 or self.fetch_wait_ms <= 0 or self.lag_time_max_ms <= 1 or self.quota_window_ms <= 0:
            raise InputError(f"replication cannot wait for less than no time: {self}")
        if min(self.fetch_bytes, self.response_bytes, self.batch_bytes, self.full_slack_bytes) < 0:
            raise InputError(f"replication cannot handle fewer than no bytes: {self}")


# Replication throttles as brokers read them from the configuration (KIP-73).

NO_LIMIT = float("inf")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """The replicas in a topic's throttle list: pairs of partition and broker, or all of the topic."""

    pairs: frozenset[tuple[int, int]] = frozenset()
    everything: bool = False

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Parse `partition:broker` pairs or `*`; None is an unset list. The controller checked the form."""
        if text is None or text.strip() != "*":
            items = (item.partition(":") for item in (text or "").split(",") if item.strip())
            return cls(frozenset((int(partition), int(broker)) for partition, _, broker in items))
        return cls(everything=True)

    def holds(self, partition: int, broker: int) -> bool:
        """True if the list contains this replica."""
        return self.everything or (partition, broker) in self.pairs

    def differs(self, other: ThrottledReplicas) -> frozenset[int] | None:
        """Partitions for which the two lists may differ; None for any partition."""
        if self.everything or other.everything:
            return frozenset() if self == other else None
        return frozenset(partition for partition, _ in self.pairs ^ other.pairs)


NOBODY = ThrottledReplicas()


@dataclass(frozen=True, slots=True)
class TopicThrottle:
    """The two throttle lists of a topic: replicas limited in sending (leaders) and in receiving (followers)."""

    leaders: ThrottledReplicas = NOBODY
    followers: ThrottledReplicas = NOBODY


UNTHROTTLED = TopicThrottle()


def parse_rate(text: str | None) -> float:
    """Parse a broker's rate in bytes per second; infinite if it is not set."""
    return NO_LIMIT if text is None else float(int(text))


# Brokers and their log directories.

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
    """All brokers and log directories, as arrays.

    Arrays by broker: `net_in`, `net_out`, `leader_limit`, `follower_limit`, `dir_limit` (bytes per second; the limits
    are the configured throttles), `up`, `has_remote` (reaches remote storage), `cut` (both brokers: no traffic between
    them). By log directory: `read`, `write` (bytes per second), `capacity` (bytes), `failed`, `full`, `cordoned`,
    `owner` (its broker; one entry longer than the others, so that no directory, -1, has no owner, -1).
    """

    def __init__(self, hardware: Mapping[int, BrokerHardware]) -> None:
        self.broker_ids = sorted(hardware)
        brokers = [hardware[broker_id] for broker_id in self.broker_ids]
        log_dirs = [log_dir for broker in brokers for log_dir in broker.log_dirs]
        self.paths = [log_dir.path for log_dir in log_dirs]
        self._brokers = {broker_id: broker for broker, broker_id in enumerate(self.broker_ids)}
        ends = accumulate(len(broker.log_dirs) for broker in brokers)
        self._dirs_of = [range(end - len(broker.log_dirs), end) for broker, end in zip(brokers, ends, strict=True)]
        self._owners = [index for index, broker in enumerate(brokers) for _ in broker.log_dirs]
        self._dirs = {place: log_dir for log_dir, place in enumerate(zip(self._owners, self.paths, strict=True))}
        self.net_in = np.array([broker.net_in_bytes_per_s for broker in brokers], np.float64)
        self.net_out = np.array([broker.net_out_bytes_per_s for broker in brokers], np.float64)
        self.leader_limit, self.follower_limit, self.dir_limit = (np.full(len(brokers), NO_LIMIT) for _ in range(3))
        self.up, self.has_remote = (np.ones(len(brokers), np.bool_) for _ in range(2))
        self.cut: NDArray[np.bool_] = np.zeros((len(brokers), len(brokers)), np.bool_)
        self._full_read = np.array([log_dir.read_bytes_per_s for log_dir in log_dirs], np.float64)
        self._full_write = np.array([log_dir.write_bytes_per_s for log_dir in log_dirs], np.float64)
        self._full_capacity = np.array([log_dir.capacity_bytes for log_dir in log_dirs], np.float64)
        self.read, self.write = self._full_read.copy(), self._full_write.copy()
        self.capacity = self._full_capacity.copy()
        self.failed, self.full, self.cordoned = (np.zeros(len(log_dirs), np.bool_) for _ in range(3))
        self.owner: NDArray[np.int32] = np.array([*self._owners, -1], np.int32)

    def broker(self, broker: int) -> int:
        """The index of a broker; InputError if no hardware was given for it."""
        index = self._brokers.get(broker)
        if index is None:
            raise InputError(f"broker {broker} has no hardware in the twin")
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
        """True if a log directory accepts writes: it is neither failed nor full."""
        return not (self.failed[log_dir] or self.full[log_dir])

    def slow(self, log_dir: int, factor: float) -> None:
        """Let a log directory run at a part of its speed; 1.0 restores it."""
        if not 0 < factor <= 1:
            raise InputError(f"a log directory cannot run at {factor} times its speed; give a part above 0, at most 1")
        self.read[log_dir] = self._full_read[log_dir] * factor
        self.write[log_dir] = self._full_write[log_dir] * factor

    def occupy(self, log_dir: int, *, is_occupied: bool) -> None:
        """Let something else take all the room of a log directory, or free it again."""
        self.capacity[log_dir] = 0.0 if is_occupied else self._full_capacity[log_dir]

    def cordon(self, broker: int, text: str | None) -> None:
        """Apply a value of `cordoned.log.dirs`: paths, or `*` for all directories of the broker."""
        paths = cordoned_paths(text)
        for log_dir in self.dirs_of(broker):
            self.cordoned[log_dir] = "*" in paths or self.paths[log_dir] in paths


# Traffic of replicas in sync: sums that change only with a partition, so that idle replicas cost nothing. Producers
# write to leaders, leaders send to followers in sync. This traffic goes first; copies share the rest.


@dataclass(frozen=True, slots=True)
class Follower:
    """A replica in sync that is not the leader; broker and log directory by index."""

    broker: int
    log_dir: int
    is_throttled: bool


@dataclass(frozen=True, slots=True)
class PartitionTraffic:
    """The present usage of a partition. `leader` and `leader_dir` are -1 when it has no leader.

    `rate` is written bytes per second, `growth` the bytes per second that each copy gains, `size` its length in bytes.
    """

    leader: int
    leader_dir: int
    leader_is_throttled: bool
    followers: tuple[Follower, ...]
    rate: float
    growth: float
    size: float


class InSyncTraffic:
    """Sums of the traffic of replicas in sync.

    By broker, bytes per second: `net_in`, `net_out`, and `leader_counted`, `follower_counted` for the part that counts
    against a throttle. Kafka counts all traffic of a throttled partition, though it slows only followers that are
    behind. By log directory: `write` (bytes per second), `size` (bytes), `growth` (bytes per second). By leader and
    follower: `followed`, the number of partitions in sync, and `sent`, the bytes per second written to these.
    """

    def __init__(self, brokers: int, log_dirs: int) -> None:
        self.net_in, self.net_out = np.zeros(brokers), np.zeros(brokers)
        self.leader_counted, self.follower_counted = np.zeros(brokers), np.zeros(brokers)
        self.write, self.size, self.growth = (np.zeros(log_dirs) for _ in range(3))
        self.followed: NDArray[np.int32] = np.zeros((brokers, brokers), np.int32)
        self.sent = np.zeros((brokers, brokers))

    def pass_time(self, milliseconds: int) -> None:
        """Let the copies in sync grow for so many milliseconds."""
        self.size += self.growth * (milliseconds / 1000)

    def add(self, use: PartitionTraffic, sign: int = 1) -> None:
        """Add the usage of a partition to the sums, or (sign -1) subtract it."""
        rate = sign * use.rate
        for follower in use.followers:
            self._change_copy(follower.log_dir, use, sign)
            if use.leader >= 0:
                self.followed[use.leader, follower.broker] += sign
                self._change_traffic(follower, use, rate)
        if use.leader_dir >= 0:
            self._change_copy(use.leader_dir, use, sign)
        if use.leader >= 0:
            self.net_in[use.leader] += rate

    def _change_copy(self, log_dir: int, use: PartitionTraffic, sign: int) -> None:
        self.size[log_dir] += sign * use.size
        if use.rate:
            self.write[log_dir] += sign * use.rate
            self.growth[log_dir] += sign * use.growth

    def _change_traffic(self, follower: Follower, use: PartitionTraffic, rate: float) -> None:
        if rate == 0:
            return
        self.net_out[use.leader] += rate
        self.net_in[follower.broker] += rate
        self.sent[use.leader, follower.broker] += rate
        if use.leader_is_throttled:
            self.leader_counted[use.leader] += rate
        if follower.is_throttled:
            self.follower_counted[follower.broker] += rate
