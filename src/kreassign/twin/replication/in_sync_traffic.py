"""What replicas in sync use: sums that change when a partition does, so that idle replicas cost nothing.

Producers write to leaders, leaders send to followers in sync. This traffic goes first; copies share what it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.grown import grown


@dataclass(frozen=True, slots=True)
class Follower:
    """A replica in sync that is not the leader; broker and log directory by index."""

    broker: int
    log_dir: int
    is_throttled: bool


@dataclass(frozen=True, slots=True)
class PartitionTraffic:
    """What one partition uses now. `leader` and `leader_dir` are -1 when it has no leader.

    `rate` is what is written, `growth` by how much each copy becomes longer (bytes per second), `size` how long it is
    (bytes).
    """

    leader: int
    leader_dir: int
    leader_is_throttled: bool
    followers: tuple[Follower, ...]
    rate: float
    growth: float
    size: float


class InSyncTraffic:
    """The sums.

    By broker, bytes per second: `net_in`, `net_out`, and `leader_counted`, `follower_counted` for the part that
    counts against a throttle. Kafka counts the traffic of a throttled partition whoever it is for, though it slows
    only followers that are behind. By log directory: `write` (bytes per second), `size` (bytes), `growth` (bytes per
    second). By leader and follower: `followed`, how many partitions one has in sync with the other, and `sent`, how
    much is written to these.
    """

    def __init__(self) -> None:
        self.net_in = self.net_out = self.leader_counted = self.follower_counted = np.zeros(0)
        self.write = self.size = self.growth = np.zeros(0)
        self.followed: NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self.sent = np.zeros((0, 0))

    def grow(self, brokers: int, log_dirs: int) -> None:
        """Make room for so many brokers and log directories."""
        more, more_dirs = brokers - len(self.net_in), log_dirs - len(self.write)
        self.net_in, self.net_out, self.leader_counted, self.follower_counted = (
            grown(sums, more) for sums in (self.net_in, self.net_out, self.leader_counted, self.follower_counted)
        )
        self.write, self.size, self.growth = (grown(sums, more_dirs) for sums in (self.write, self.size, self.growth))
        self.followed = grown(self.followed, more)
        self.sent = grown(self.sent, more)

    def pass_time(self, milliseconds: int) -> None:
        """Let the copies in sync grow."""
        self.size += self.growth * (milliseconds / 1000)

    def add(self, use: PartitionTraffic) -> None:
        """A partition uses this from now on."""
        self._change(use, 1)

    def subtract(self, use: PartitionTraffic) -> None:
        """A partition no longer uses this."""
        self._change(use, -1)

    def _change(self, use: PartitionTraffic, sign: int) -> None:
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
