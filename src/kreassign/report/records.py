"""What the page of a run needs to know: rows of snapshots, a run by the shape of its history, and verdicts on both.

Operations bring rows and history; nothing here says where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from kreassign.model import TopicPartition
from kreassign.report.text import format_replicas

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


# PURE. Does the cluster match what the run promised? Checked with the history and the snapshot after the run.

_NO_SNAPSHOT = "no snapshot was taken after the run; take one with `kreassign snapshot`"
_Complaint = Callable[[MoveRecord, Row], str | None]


class Outcome(Enum):
    """What a check found."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "not checked"


@dataclass(frozen=True, slots=True)
class Check:
    """A statement that should hold; `details` says where it does not, or why it is not known."""

    statement: str
    outcome: Outcome
    details: tuple[str, ...] = ()


def checks_of(run: RunRecord, after: SnapshotRows | None) -> tuple[Check, ...]:
    """Every check of a run, in the order in which a reader would ask."""
    return (_moves_complete(run), *_cluster_checks(run, after), _no_throttle_left(run))


def _cluster_checks(run: RunRecord, after: SnapshotRows | None) -> tuple[Check, ...]:
    """The checks that need a snapshot which was begun after the run had ended."""
    is_later = after is not None and run.ended_ms is not None and after.taken_ms >= run.ended_ms
    rows = after.partitions if after and is_later else None
    found = None if rows is None else {TopicPartition(row["topic"], row["partition"]): row for row in rows}
    return tuple(_cluster_check(statement, complaint, run, found) for statement, complaint in _CLUSTER_CHECKS)


def _cluster_check(
    statement: str, complaint: _Complaint, run: RunRecord, found: Mapping[TopicPartition, Row] | None
) -> Check:
    if found is None:
        return Check(statement, Outcome.UNKNOWN, (_NO_SNAPSHOT,))
    return _check(statement, (_complaint_about(move, complaint, found) for move in run.moves))


def _complaint_about(move: MoveRecord, complaint: _Complaint, found: Mapping[TopicPartition, Row]) -> str | None:
    partition = TopicPartition(move.topic, move.partition)
    row = found.get(partition)
    text = "is not in the snapshot" if row is None else complaint(move, row)
    return text and f"{partition} {text}"


def _check(statement: str, complaints: Iterable[str | None]) -> Check:
    details = tuple(text for text in complaints if text)
    return Check(statement, Outcome.FAILED if details else Outcome.PASSED, details)


def _moves_complete(run: RunRecord) -> Check:
    check = _check("Every move completed", (_open_move(move) for move in run.moves))
    if run.ended_ms is None and check.outcome is Outcome.FAILED:
        return Check(check.statement, Outcome.UNKNOWN, ("the run has not ended", *check.details))
    return check


def _open_move(move: MoveRecord) -> str | None:
    if move.completed_ms is not None:
        return None
    state = "was not started" if move.submitted_ms is None else "is not complete"
    return f"{TopicPartition(move.topic, move.partition)} {state}" + (f": {move.problem}" if move.problem else "")


def _no_throttle_left(run: RunRecord) -> Check:
    statement = "No throttle is left behind"
    if run.ended_ms is None:
        return Check(statement, Outcome.UNKNOWN, ("the run has not ended",))
    return _check(statement, run.throttle_residue)


def _wrong_order(move: MoveRecord, row: Row) -> str | None:
    shown = tuple(row["replicas"])
    return None if shown == move.target else f"is on {format_replicas(shown)}, not on {format_replicas(move.target)}"


def _out_of_sync(_: MoveRecord, row: Row) -> str | None:
    missing = tuple(sorted(set(row["replicas"]) - set(row["isr"])))
    return f"has {format_replicas(missing)} out of sync" if missing else None


def _wrong_leader(move: MoveRecord, row: Row) -> str | None:
    preferred = move.target[0]
    return None if row["leader"] == preferred else f"is led by {row['leader']}, not by {preferred}"


def _still_moving(_: MoveRecord, row: Row) -> str | None:
    return "is still being reassigned" if row["adding"] or row["removing"] else None


_CLUSTER_CHECKS: tuple[tuple[str, _Complaint], ...] = (
    ("Replicas are where the plan says, in its order", _wrong_order),
    ("All replicas of the moved partitions are in sync", _out_of_sync),
    ("The preferred leaders lead", _wrong_leader),
    ("No partition of the plan is still being reassigned", _still_moving),
)
