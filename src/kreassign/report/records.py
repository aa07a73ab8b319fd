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
    def size_bytes(self) -> int:
        """Size of one copy before the run."""

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


class ArrivalRecord(Protocol):
    """How much of one copy had arrived at a time, and from which leader."""

    @property
    def at_ms(self) -> int:
        """When that was seen, ms since the epoch."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def broker(self) -> int:
        """Who receives the copy."""

    @property
    def source(self) -> int:
        """Who sends it."""

    @property
    def done_bytes(self) -> int:
        """Bytes that had arrived."""


class EtaRecord(Protocol):
    """What was expected at a time; of all moves together where there is no topic."""

    @property
    def at_ms(self) -> int:
        """When it was said, ms since the epoch."""

    @property
    def topic(self) -> str | None:
        """Of which topic; None of all moves."""

    @property
    def eta_s(self) -> float:
        """Seconds from then to the expected end."""


class BreachRecord(Protocol):
    """What a guard said, and how long."""

    @property
    def guard(self) -> str:
        """Name of the guard."""

    @property
    def reaction(self) -> str:
        """What the run did about it."""

    @property
    def seen(self) -> str:
        """What was seen."""

    @property
    def advice(self) -> str:
        """What to do about it."""

    @property
    def from_ms(self) -> int:
        """Since when, ms since the epoch."""

    @property
    def until_ms(self) -> int | None:
        """Until when; None where it was not over."""


class MarkRecord(Protocol):
    """Something that explains why a run went as it did."""

    @property
    def at_ms(self) -> int:
        """When it happened, ms since the epoch."""

    @property
    def kind(self) -> str:
        """What it was, in a word."""

    @property
    def text(self) -> str:
        """What it was, in a sentence."""


class ThrottleStepRecord(Protocol):
    """The throttle of one broker from then on."""

    @property
    def at_ms(self) -> int:
        """Since when, ms since the epoch."""

    @property
    def broker(self) -> int:
        """Of which broker."""

    @property
    def bytes_per_s(self) -> int | None:
        """How much it may send and receive; None for no limit."""


class InSyncRecord(Protocol):
    """How many partitions were in trouble; None where nobody looked."""

    @property
    def at_ms(self) -> int:
        """When, ms since the epoch."""

    @property
    def moving(self) -> int:
        """Of the run, with a replica out of sync that the run does not add."""

    @property
    def under_replicated(self) -> int | None:
        """Of the cluster, with a replica out of sync."""

    @property
    def under_min_isr(self) -> int | None:
        """Of the cluster, that producers with acks=all cannot write to."""

    @property
    def offline(self) -> int | None:
        """Of the cluster, without a leader."""


class LogLineRecord(Protocol):
    """A line of the log of a run."""

    @property
    def at_ms(self) -> int:
        """When, ms since the epoch."""

    @property
    def text(self) -> str:
        """What happened, in a sentence."""


@dataclass(frozen=True, slots=True)
class RunTrail:
    """All that happened in a run, each part in the order of time; `more_lines` of the log are left out.

    `planned_s` is what the plan was to take at its throttle; None where it had none.
    """

    arrivals: Sequence[ArrivalRecord]
    etas: Sequence[EtaRecord]
    breaches: Sequence[BreachRecord]
    marks: Sequence[MarkRecord]
    throttle: Sequence[ThrottleStepRecord]
    in_sync: Sequence[InSyncRecord]
    log: Sequence[LogLineRecord]
    more_lines: int = 0
    planned_s: float | None = None


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """The rows of one snapshot that the page needs."""

    taken_ms: int
    brokers: tuple[Row, ...]
    partitions: tuple[Row, ...]
    replicas: tuple[Row, ...]
