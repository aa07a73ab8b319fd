"""Moves between the log directories of a broker: a future copy is built beside the current one, then replaces it."""

from __future__ import annotations

from kreassign.twin.replication.alter_dir_threads import MoveQueue
from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.events import FutureCopyCaughtUp
from kreassign.twin.replication.replicas import Replicas


class DirectoryMoves:
    """The moves that run or wait; brokers and log directories by their index in the fleet."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._queue = MoveQueue()

    def alter(self, row: int, broker: int, log_dir: int) -> None:
        """Move the replica there. A move elsewhere is given up; its own directory only gives that up."""
        key = CopyKey(row, broker, is_future=True)
        copies, current = self._replicas.copies, self._replicas.dir_of(row, broker)
        if key in copies and int(copies.entry(key)["log_dir"]) == log_dir:
            return
        self.cancel(row, broker)
        if log_dir != current:
            self._begin(key, current, log_dir)

    def _begin(self, key: CopyKey, current: int, log_dir: int) -> None:
        replicas = self._replicas
        replicas.settle()
        start = replicas.start(CopyKey(key.row, key.broker))
        entry = replicas.copies.add(key, log_dir, start, start, replicas.now_ms)
        entry["source_dir"] = current
        replicas.log_counts[log_dir] += 1
        thread_count = len(replicas.fleet.dirs_of(key.broker))
        self._start(self._queue.add(key, replicas.logs.topic_partition(key.row), thread_count))

    def cancel(self, row: int, broker: int) -> None:
        """Give up the move of a replica, if there is one."""
        key = CopyKey(row, broker, is_future=True)
        if key not in self._replicas.copies:
            return
        replicas = self._replicas
        replicas.settle()
        entry = replicas.copies.entry(key)
        replicas.schedule_deletion(row, int(entry["log_dir"]), float(entry["position"] - entry["begin"]))
        self._forget(key)

    def finish(self, key: CopyKey) -> None:
        """Let a future copy that has caught up take the place of the current one."""
        replicas = self._replicas
        local = CopyKey(key.row, key.broker)
        with replicas.changing(key.row):
            current, target = replicas.dir_of(key.row, key.broker), int(replicas.copies.entry(key)["log_dir"])
            replicas.schedule_deletion(key.row, current, replicas.size(local))
            replicas.logs.displace(key.row, current, target)
            if local in replicas.copies:
                replicas.copies.entry(local)["log_dir"] = target
            self._forget(key)
        topic_partition, fleet = replicas.logs.topic_partition(key.row), replicas.fleet
        replicas.events.append(FutureCopyCaughtUp(topic_partition, fleet.broker_ids[key.broker], fleet.paths[target]))

    def fail(self, log_dir: int) -> None:
        """Give up all moves that read from or write to a directory."""
        live = self._replicas.copies.live
        concerned = live["is_future"] & ((live["log_dir"] == log_dir) | (live["source_dir"] == log_dir))
        for row, broker in zip(live["row"][concerned].tolist(), live["broker"][concerned].tolist(), strict=True):
            self.cancel(row, broker)

    def _forget(self, key: CopyKey) -> None:
        self._replicas.copies.remove(key)
        self._replicas.must_share = True
        self._start(self._queue.remove(key))

    def _start(self, key: CopyKey | None) -> None:
        if key is None:
            return
        self._replicas.copies.entry(key)["started"] = True
        self._replicas.must_share = True
