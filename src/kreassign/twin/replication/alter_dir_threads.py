"""Whose turn it is among the moves between the log directories of a broker.

A broker has as many threads for such moves as log directories (`num.replica.alter.log.dirs.threads`). A partition
belongs to the thread that its name hashes to, and a thread works on one partition until its copy has caught up, then
on the least of those that wait.
"""

from __future__ import annotations

from typing import NamedTuple

from kreassign.model import TopicPartition
from kreassign.twin.replication.copies import CopyKey

_WORD = 1 << 32
_HASH_FACTOR = 31


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


def thread_number(topic_partition: TopicPartition, thread_count: int) -> int:
    """The thread of a partition: a hash of its name that is the same on every Java machine."""
    value = 0
    units = topic_partition.topic.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (_HASH_FACTOR * value + (high << 8 | low)) % _WORD
    signed = (_HASH_FACTOR * value + topic_partition.partition) % _WORD
    if signed >= _WORD // 2:
        signed -= _WORD
    # Java has no positive counterpart of its least integer, and Kafka takes 0 for it.
    return (0 if signed == -_WORD // 2 else abs(signed)) % thread_count
