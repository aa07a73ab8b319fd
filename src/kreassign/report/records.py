"""Input of the page of a run: rows of snapshots, the run's history, and checks of both.

Operations supply rows and history; nothing here depends on their source.
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
    """The change of one partition, as the page shows it."""

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
        """Time of submission, ms since the epoch; None if not submitted."""

    @property
    def completed_ms(self) -> int | None:
        """Time when it was seen complete, ms since the epoch; None if it was not."""

    @property
    def bytes_copied(self) -> int:
        """Bytes copied so far, summed over all new replicas."""

    @property
    def problem(self) -> str | None:
        """The move's problem, if it had any."""


class RunRecord(Protocol):
    """A run, as the page shows it."""

    @property
    def run_id(self) -> str:
        """Id of the run."""

    @property
    def cluster_id(self) -> str:
        """Id of the run's cluster."""

    @property
    def started_ms(self) -> int:
        """Start, ms since the epoch."""

    @property
    def ended_ms(self) -> int | None:
        """End, ms since the epoch; None while the run continues."""

    @property
    def state(self) -> str:
        """State of the run, in one word."""

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Throttle per broker, in bytes per second; None if unthrottled."""

    @property
    def was_throttle_kept(self) -> bool:
        """True unless another party is known to have changed the throttle meanwhile."""

    @property
    def moves(self) -> Sequence[MoveRecord]:
        """Changes of all partitions."""

    @property
    def throttle_residue(self) -> Sequence[str]:
        """Throttles still set, one sentence each."""

    @property
    def problems(self) -> Sequence[str]:
        """Problems of the run, one sentence each."""


class ArrivalRecord(Protocol):
    """Progress of one copy at a time, with its leader."""

    @property
    def at_ms(self) -> int:
        """Time of the observation, ms since the epoch."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def broker(self) -> int:
        """Id of the broker that receives the copy."""

    @property
    def source(self) -> int:
        """Id of the broker that sends it."""

    @property
    def done_bytes(self) -> int:
        """Bytes received so far."""


class EtaRecord(Protocol):
    """Prediction at a time; for all moves together if it has no topic."""

    @property
    def at_ms(self) -> int:
        """Time of the prediction, ms since the epoch."""

    @property
    def topic(self) -> str | None:
        """Its topic; None for all moves."""

    @property
    def eta_s(self) -> float:
        """Seconds from `at_ms` to the predicted end."""


class BreachRecord(Protocol):
    """Breach of a guard, with its duration."""

    @property
    def guard(self) -> str:
        """Name of the guard."""

    @property
    def reaction(self) -> str:
        """Reaction of the run."""

    @property
    def seen(self) -> str:
        """Observation that broke the guard."""

    @property
    def advice(self) -> str:
        """Advice to the operator."""

    @property
    def from_ms(self) -> int:
        """Start of the breach, ms since the epoch."""

    @property
    def until_ms(self) -> int | None:
        """End of the breach, ms since the epoch; None if it lasted."""


class MarkRecord(Protocol):
    """An event that explains the course of a run."""

    @property
    def at_ms(self) -> int:
        """Time of the event, ms since the epoch."""

    @property
    def kind(self) -> str:
        """Kind of the event, in a word."""

    @property
    def text(self) -> str:
        """The event in a sentence."""


class ThrottleStepRecord(Protocol):
    """Throttle of one broker from a time on."""

    @property
    def at_ms(self) -> int:
        """Start, ms since the epoch."""

    @property
    def broker(self) -> int:
        """Id of the broker."""

    @property
    def bytes_per_s(self) -> int | None:
        """Limit for sending and for receiving, in bytes per second; None for no limit."""


class InSyncRecord(Protocol):
    """Numbers of partitions in trouble; None if not observed."""

    @property
    def at_ms(self) -> int:
        """Time of the observation, ms since the epoch."""

    @property
    def moving(self) -> int:
        """Partitions of the run with an out-of-sync replica that the run does not add."""

    @property
    def under_replicated(self) -> int | None:
        """Partitions of the cluster with an out-of-sync replica."""

    @property
    def under_min_isr(self) -> int | None:
        """Partitions of the cluster that producers with acks=all cannot write to."""

    @property
    def offline(self) -> int | None:
        """Partitions of the cluster without a leader."""


class LogLineRecord(Protocol):
    """Line of a run's log."""

    @property
    def at_ms(self) -> int:
        """Time of the line, ms since the epoch."""

    @property
    def text(self) -> str:
        """The event in a sentence."""


@dataclass(frozen=True, slots=True)
class RunTrail:
    """History of a run, each part in order of time; `more_lines` of the log are left out.

    `planned_s` is the planned duration at the plan's throttle; None without one.
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
    """Rows of one snapshot that the page needs."""

    taken_ms: int
    brokers: tuple[Row, ...]
    partitions: tuple[Row, ...]
    replicas: tuple[Row, ...]


# Checks of a run's promises, by its history and the snapshot after it. Pure.

_NO_SNAPSHOT = "no snapshot was taken after the run; take one with `kreassign snapshot`"
_Complaint = Callable[[MoveRecord, Row], str | None]


class Outcome(Enum):
    """Result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "not checked"


@dataclass(frozen=True, slots=True)
class Check:
    """A statement that should hold; `details` says where it does not, or why that is unknown."""

    statement: str
    outcome: Outcome
    details: tuple[str, ...] = ()


def checks_of(run: RunRecord, after: SnapshotRows | None) -> tuple[Check, ...]:
    """All checks of a run, in the order in which a reader would ask."""
    return (_moves_complete(run), *_cluster_checks(run, after), _no_throttle_left(run))


def _cluster_checks(run: RunRecord, after: SnapshotRows | None) -> tuple[Check, ...]:
    """Checks that need a snapshot taken after the run's end."""
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
