"""What replication has to do at a set time. Who does it looks whether it still makes sense."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.twin.replication.copies import CopyKey


@dataclass(frozen=True, slots=True)
class StartCopy:
    """A follower's first fetch is due."""

    key: CopyKey
    serial: int


@dataclass(frozen=True, slots=True)
class Join:
    """A leader may ask for a follower to be let into the ISR."""

    row: int
    broker: int


@dataclass(frozen=True, slots=True)
class ReviewLag:
    """A leader looks whether a member of the ISR is still behind."""

    key: CopyKey
    serial: int


@dataclass(frozen=True, slots=True)
class DeleteCopy:
    """The files of a removed copy are due to be deleted."""

    topic_partition: TopicPartition
    broker: int
    log_dir: int
    size: float


@dataclass(frozen=True, slots=True)
class ReachRetention:
    """A log is about to be as long as it may become."""

    row: int


Task = StartCopy | Join | ReviewLag | DeleteCopy | ReachRetention
