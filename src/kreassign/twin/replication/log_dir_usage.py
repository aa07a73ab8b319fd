"""What log directories hold: how many logs and bytes, which of them wait for deletion, and where new copies go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kreassign.model import TopicPartition
from kreassign.twin.replication.grown import grown
from kreassign.twin.replication.state import ReplicationState
from kreassign.twin.replication.timers import DeleteCopy


class LogDirUsage:
    """The occupancy of log directories.

    `log_counts` is how many logs each one has, `to_be_deleted` the bytes that wait for deletion. `wanted` is where
    brokers have to put copies that they do not have yet (AlterReplicaLogDirs).
    """

    def __init__(self, state: ReplicationState) -> None:
        self.log_counts: list[int] = []
        self.to_be_deleted = np.zeros(0)
        self.wanted: dict[tuple[TopicPartition, int], int] = {}
        self._state = state
        self._waiting_for_broker: list[DeleteCopy] = []

    def grow(self) -> None:
        """Make room for what was added to the fleet."""
        more = len(self._state.fleet.paths) - len(self.to_be_deleted)
        self.to_be_deleted = grown(self.to_be_deleted, more)
        self.log_counts += [0] * more

    def used_bytes(self) -> NDArray[np.float64]:
        """Bytes in each log directory, those to be deleted included. Positions must be settled."""
        live = self._state.copies.live
        sizes = live["position"] - live["begin"]
        copied = np.bincount(live["log_dir"], sizes, len(self._state.fleet.paths))
        return self._state.in_sync_traffic.size + self.to_be_deleted + copied

    def choose(self, broker: int) -> int:
        """The log directory in which a broker would make the next copy: the one with the fewest logs."""
        fleet = self._state.fleet
        dirs = fleet.dirs_of(broker)
        healthy = [log_dir for log_dir in dirs if not fleet.failed[log_dir]] or [dirs[0]]
        # A broker whose directories are all cordoned takes the replica all the same, in its first.
        open_dirs = [log_dir for log_dir in healthy if not fleet.cordoned[log_dir]] or [healthy[0]]
        return min(open_dirs, key=self.log_counts.__getitem__)

    def place(self, row: int, broker: int, log_dir: int | None) -> int:
        """Put a copy into this log directory, or where its broker chooses; the directory."""
        state = self._state
        if log_dir is None:
            topic_partition = state.logs.topic_partition(row)
            log_dir = self.wanted.pop((topic_partition, broker), None)
            if log_dir is None or state.fleet.failed[log_dir]:
                log_dir = self.choose(broker)
        state.logs.place(row, log_dir)
        self.log_counts[log_dir] += 1
        return log_dir

    def give_up(self, row: int, log_dir: int, size: float) -> None:
        """Remove a log from a directory; its bytes take room until they are deleted."""
        state, broker = self._state, self._state.fleet.owner_of(log_dir)
        self.log_counts[log_dir] -= 1
        self.to_be_deleted[log_dir] += size
        task = DeleteCopy(state.logs.topic_partition(row), state.broker_id(broker), log_dir, size)
        if state.fleet.up[broker]:
            state.timers.add(state.now_ms + state.settings.deletion_delay_ms, task)
        else:
            self._waiting_for_broker.append(task)

    def schedule_deletions(self) -> None:
        """Let brokers that are back find the logs that were removed while they were down."""
        state, waiting = self._state, self._waiting_for_broker
        self._waiting_for_broker = []
        for task in waiting:
            if state.fleet.up[state.fleet.owner_of(task.log_dir)]:
                state.timers.add(state.now_ms + state.settings.deletion_delay_ms, task)
            else:
                self._waiting_for_broker.append(task)
