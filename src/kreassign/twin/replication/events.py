"""What happens to copies on brokers: past tense, each with the replica it is about.

Replication only reports; what follows from it (a change of the ISR, a new directory in the metadata) is for the brokers
and the controller to decide, and comes back as records.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class ReplicaCaughtUp:
    """A copy outside the ISR reached the high watermark: its leader wants it in.

    Reported again while the copy stays caught up and outside.
    """

    topic_partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True, order=True)
class ReplicaFellBehind:
    """A member of the ISR has been behind for longer than the allowed lag: its leader wants it out.

    Reported again while it stays behind and a member.
    """

    topic_partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True, order=True)
class CopyDeleted:
    """The bytes of a removed copy left the disk."""

    topic_partition: TopicPartition
    broker: int
    path: str


@dataclass(frozen=True, slots=True, order=True)
class FutureCopyCaughtUp:
    """A move between log directories ended: the copy is now in the one named here."""

    topic_partition: TopicPartition
    broker: int
    path: str


@dataclass(frozen=True, slots=True, order=True)
class LogDirFull:
    """A log directory has no room left. Writes to it stop until something is deleted.

    A real broker gives the whole directory up then; a twin that wants the same answers with `fail_dir`.
    """

    broker: int
    path: str


ReplicaEvent = ReplicaCaughtUp | ReplicaFellBehind | CopyDeleted | FutureCopyCaughtUp | LogDirFull
