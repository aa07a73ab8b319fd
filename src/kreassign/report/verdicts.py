"""PURE. Does the cluster match what the run promised? Checked with the history and the snapshot after the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from kreassign.model import TopicPartition
from kreassign.report.records import MoveRecord, Row, RunRecord, SnapshotRows
from kreassign.report.text import format_replicas

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
    found = _partitions(after) if after and is_later else None
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


def _partitions(snapshot: SnapshotRows) -> dict[TopicPartition, Row]:
    return {TopicPartition(row["topic"], row["partition"]): row for row in snapshot.partitions}


_CLUSTER_CHECKS: tuple[tuple[str, _Complaint], ...] = (
    ("Replicas are where the plan says, in its order", _wrong_order),
    ("All replicas of the moved partitions are in sync", _out_of_sync),
    ("The preferred leaders lead", _wrong_leader),
    ("No partition of the plan is still being reassigned", _still_moving),
)
