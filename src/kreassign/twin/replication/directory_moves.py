"""Moves between the log directories of a broker: a future copy is built beside the current one, then replaces it.

A broker has as many threads for such moves as log directories (`num.replica.alter.log.dirs.threads`). A partition
belongs to the thread that its name hashes to. A thread works on one partition until its copy has caught up, then on
the first of those that wait, by name.
"""

from __future__ import annotations

from typing import NamedTuple

from kreassign.model import TopicPartition
from kreassign.model.java_hash import combined_hash, share_of
from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.events import FutureCopyCaughtUp
from kreassign.twin.replication.replicas import Replicas


class Thread(NamedTuple):
    """One thread of one broker, by index."""

    broker: int
    number: int


class MoveQueue:
    """Moves between directories: those at work and those that wait."""

    def __init__(self) -> None:
        self._working: dict[Thread, CopyKey] = {}
        self._waiting: dict[Thread, dict[CopyKey, TopicPartition]] = {}
        self._threads: dict[CopyKey, Thread] = {}

    def add(self, key: CopyKey, topic_partition: TopicPartition, thread_count: int) -> CopyKey | None:
        """A move wants to begin; which move (this one or none) begins now."""
        thread = Thread(key.broker, thread_number(topic_partition, thread_count))
        self._threads[key] = thread
        self._waiting.setdefault(thread, {})[key] = topic_partition
        return None if thread in self._working else self._next(thread)

    def remove(self, key: CopyKey) -> CopyKey | None:
        """A move ended or was given up; which move begins instead, if any."""
        thread = self._threads.pop(key)
        if self._working.get(thread) == key:
            del self._working[thread]
            return self._next(thread)
        del self._waiting[thread][key]
        return None

    def _next(self, thread: Thread) -> CopyKey | None:
        waiting = self._waiting[thread]
        if not waiting:
            return None
        first = min(waiting, key=waiting.__getitem__)
        del waiting[first]
        self._working[thread] = first
        return first


class DirectoryMoves:
    """The moves that run or wait; brokers and log directories by their index in the fleet."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._queue = MoveQueue()

    def alter(self, row: int, broker: int, log_dir: int) -> None:
        """Move the replica there. A move elsewhere is given up; its own directory only gives that up."""
        key = CopyKey(row, broker, is_future=True)
        copies, current = self._replicas.state.copies, self._replicas.state.dir_of(row, broker)
        if key in copies and int(copies.entry(key)["log_dir"]) == log_dir:
            return
        self.cancel(row, broker)
        if log_dir != current:
            self._begin(key, current, log_dir)

    def _begin(self, key: CopyKey, current: int, log_dir: int) -> None:
        replicas = self._replicas
        replicas.positions.settle()
        start = replicas.positions.start(CopyKey(key.row, key.broker))
        entry = replicas.state.copies.add(key, log_dir, start, start, replicas.state.now_ms)
        entry["source_dir"] = current
        replicas.log_dirs.log_counts[log_dir] += 1
        thread_count = len(replicas.state.fleet.dirs_of(key.broker))
        self._start(self._queue.add(key, replicas.state.logs.topic_partition(key.row), thread_count))

    def cancel(self, row: int, broker: int) -> None:
        """Give up the move of a replica, if there is one."""
        key = CopyKey(row, broker, is_future=True)
        if key not in self._replicas.state.copies:
            return
        replicas = self._replicas
        replicas.positions.settle()
        entry = replicas.state.copies.entry(key)
        replicas.log_dirs.give_up(row, int(entry["log_dir"]), float(entry["position"] - entry["begin"]))
        self._forget(key)

    def finish(self, key: CopyKey) -> None:
        """Let a future copy that has caught up take the place of the current one."""
        replicas = self._replicas
        local = CopyKey(key.row, key.broker)
        with replicas.changing(key.row):
            current, target = (
                replicas.state.dir_of(key.row, key.broker),
                int(replicas.state.copies.entry(key)["log_dir"]),
            )
            replicas.log_dirs.give_up(key.row, current, replicas.positions.size(local))
            replicas.state.logs.displace(key.row, current, target)
            if local in replicas.state.copies:
                replicas.state.copies.entry(local)["log_dir"] = target
            self._forget(key)
        topic_partition, fleet = replicas.state.logs.topic_partition(key.row), replicas.state.fleet
        replicas.state.events.append(
            FutureCopyCaughtUp(topic_partition, fleet.broker_ids[key.broker], fleet.paths[target])
        )

    def fail(self, log_dir: int) -> None:
        """Give up all moves that read from or write to a directory."""
        live = self._replicas.state.copies.live
        concerned = live["is_future"] & ((live["log_dir"] == log_dir) | (live["source_dir"] == log_dir))
        for row, broker in zip(live["row"][concerned].tolist(), live["broker"][concerned].tolist(), strict=True):
            self.cancel(row, broker)

    def _forget(self, key: CopyKey) -> None:
        self._replicas.state.copies.remove(key)
        self._replicas.state.must_share = True
        self._start(self._queue.remove(key))

    def _start(self, key: CopyKey | None) -> None:
        if key is None:
            return
        self._replicas.state.copies.entry(key)["started"] = True
        self._replicas.state.must_share = True


def thread_number(topic_partition: TopicPartition, thread_count: int) -> int:
    """The thread of a partition: a hash of its name that is the same on every Java machine."""
    return share_of(combined_hash(topic_partition.topic, topic_partition.partition), thread_count)
