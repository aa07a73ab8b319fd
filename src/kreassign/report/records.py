"""What the page of a run needs to know: rows of snapshots, and a run by the shape of its history.

Operations bring both; nothing here says where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Row = Mapping[str, Any]
"""A row of a snapshot table: column name → value."""


class MoveRecord(Protocol):
    """What is shown of the change of one partition."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def original(self) -> tuple[int, ...]:
        """Replica list before."""

    @property
    def target(self) -> tuple[int, ...]:
        """Target replica list."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that get a new copy."""

    @property
    def submitted_ms(self) -> int | None:
        """When it was submitted, ms since the epoch; None if it never was."""

    @property
    def completed_ms(self) -> int | None:
        """When it was seen to be complete, ms since the epoch; None if it was not."""

    @property
    def bytes_copied(self) -> int:
        """Bytes copied so far, to all new replicas together."""

    @property
    def problem(self) -> str | None:
        """What went wrong, if anything did."""


class RunRecord(Protocol):
    """What is shown of a run."""

    @property
    def run_id(self) -> str:
        """Name of the run."""

    @property
    def cluster_id(self) -> str:
        """Cluster of the run."""

    @property
    def started_ms(self) -> int:
        """When it began, ms since the epoch."""

    @property
    def ended_ms(self) -> int | None:
        """When it ended, ms since the epoch; None while it goes on."""

    @property
    def state(self) -> str:
        """State of the run in one word."""

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Throttle per broker, in bytes per second; None without one."""

    @property
    def was_throttle_kept(self) -> bool:
        """Whether nobody is known to have changed the throttle meanwhile."""

    @property
    def moves(self) -> Sequence[MoveRecord]:
        """Every change of a partition."""

    @property
    def throttle_residue(self) -> Sequence[str]:
        """Throttles that are still set, a sentence each."""

    @property
    def problems(self) -> Sequence[str]:
        """What went wrong, a sentence each."""


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """The rows of one snapshot that the page needs."""

    taken_ms: int
    brokers: tuple[Row, ...]
    partitions: tuple[Row, ...]
    replicas: tuple[Row, ...]
