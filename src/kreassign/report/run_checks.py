"""Check a run's promises, by its history and the snapshot after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kreassign.model import TopicPartition
from kreassign.model.cluster import listed_ids
from kreassign.model.run import MoveHistory, RunHistory

Row = Mapping[str, Any]
"""A row of a snapshot table: column name → value."""


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Rows of one snapshot that the page needs."""

    taken_ms: int
    brokers: tuple[Row, ...]
    partitions: tuple[Row, ...]
    replicas: tuple[Row, ...]


_NO_SNAPSHOT = "no snapshot was taken after the run; take one with `kreassign snapshot --data DIR`"
_Complaint = Callable[[MoveHistory, Row], str | None]


class CheckResult(Enum):
    """Result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "not checked"


@dataclass(frozen=True, slots=True)
class Check:
    """A statement that should hold; `details` says where it does not, or why that is unknown."""

    statement: str
    outcome: CheckResult
    details: tuple[str, ...] = ()


def checks_of(run: RunHistory, after: SnapshotRows | None) -> tuple[Check, ...]:
    """All checks of a run, in the order in which a reader would ask."""
    return (_moves_complete(run), *_cluster_checks(run, after), _no_throttle_left(run))


def _cluster_checks(run: RunHistory, after: SnapshotRows | None) -> tuple[Check, ...]:
    """Checks that need a snapshot taken after the run's end."""
    if after is None or run.ended_ms is None or after.taken_ms < run.ended_ms:
        return tuple(Check(statement, CheckResult.UNKNOWN, (_NO_SNAPSHOT,)) for statement, _ in _CLUSTER_CHECKS)
    found = {TopicPartition(row["topic"], row["partition"]): row for row in after.partitions}
    return tuple(
        _check(statement, (_complaint_about(move, complaint, found) for move in run.moves))
        for statement, complaint in _CLUSTER_CHECKS
    )


def _complaint_about(move: MoveHistory, complaint: _Complaint, found: Mapping[TopicPartition, Row]) -> str | None:
    partition = move.topic_partition
    row = found.get(partition)
    text = "is not in the snapshot" if row is None else complaint(move, row)
    return text and f"{partition} {text}"


def _check(statement: str, complaints: Iterable[str | None]) -> Check:
    details = tuple(text for text in complaints if text)
    return Check(statement, CheckResult.FAILED if details else CheckResult.PASSED, details)


def _moves_complete(run: RunHistory) -> Check:
    check = _check("Every move completed", (_open_move(move) for move in run.moves))
    if run.ended_ms is None and check.outcome is CheckResult.FAILED:
        return Check(check.statement, CheckResult.UNKNOWN, ("the run has not ended", *check.details))
    return check


def _open_move(move: MoveHistory) -> str | None:
    if move.completed_ms is not None:
        return None
    state = "was not started" if move.submitted_ms is None else "is not complete"
    return f"{move.topic_partition} {state}" + (f": {move.problem}" if move.problem else "")


def _no_throttle_left(run: RunHistory) -> Check:
    statement = "No throttle is left behind"
    if run.ended_ms is None:
        return Check(statement, CheckResult.UNKNOWN, ("the run has not ended",))
    return _check(statement, run.throttle_residue)


def _out_of_sync(_: MoveHistory, row: Row) -> str | None:
    missing = tuple(sorted(set(row["replicas"]) - set(row["isr"])))
    return f"has {listed_ids(missing)} out of sync" if missing else None


_CLUSTER_CHECKS: tuple[tuple[str, _Complaint], ...] = (
    ("Replicas are where the plan says, in its order",
     lambda move, row: None if (shown := tuple(row["replicas"])) == move.target
     else f"is on {listed_ids(shown)}, not on {listed_ids(move.target)}"),
    ("All replicas of the moved partitions are in sync", _out_of_sync),
    ("The preferred leaders lead",
     lambda move, row: None if row["leader"] == move.target[0]
     else f"is led by {row['leader']}, not by {move.target[0]}"),
    ("No partition of the plan is still being reassigned",
     lambda _, row: "is still being reassigned" if row["adding"] or row["removing"] else None),
)  # fmt: skip
