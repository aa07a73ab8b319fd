"""Runs and snapshots as plain values, for the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kreassign.report.records import SnapshotRows

STARTED_MS = 1_762_250_400_000
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Move:
    """A move of a partition in the shape that the page reads."""

    topic: str
    partition: int
    original: tuple[int, ...]
    target: tuple[int, ...]
    submitted_ms: int | None = STARTED_MS
    completed_ms: int | None = STARTED_MS + 10_000
    bytes_copied: int = 100 * MB
    problem: str | None = None
    size_bytes: int = 100 * MB

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.target) - set(self.original)))


@dataclass(frozen=True, slots=True)
class Run:
    """A run in the shape that the page reads."""

    moves: tuple[Move, ...]
    run_id: str = "r-1"
    cluster_id: str = "c-1"
    started_ms: int = STARTED_MS
    ended_ms: int | None = STARTED_MS + 20_000
    state: str = "done"
    throttle_bytes_per_s: int | None = None
    was_throttle_kept: bool = True
    throttle_residue: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


TWO_MOVES = (
    Move("orders", 0, original=(1, 2), target=(3, 2)),
    Move("orders", 1, original=(2, 1), target=(1, 2), completed_ms=STARTED_MS, bytes_copied=0),
)


def partition(number: int, replicas: tuple[int, ...], **changes: Any) -> dict[str, Any]:
    """A row of table `partitions` that is as it should be, but for the changes."""
    row = {"topic": "orders", "partition": number, "replicas": list(replicas), "isr": list(replicas)}
    return row | {"leader": replicas[0], "adding": [], "removing": []} | changes


def snapshot(taken_ms: int, *partitions: dict[str, Any], size_bytes: int | None = 100 * MB) -> SnapshotRows:
    """Brokers 1 (rack a), 2 and 3 with these partitions, all copies of one size."""
    brokers = tuple({"broker": broker, "rack": "a" if broker == 1 else None} for broker in (1, 2, 3))
    replicas = tuple(
        {
            "topic": row["topic"],
            "partition": row["partition"],
            "broker": broker,
            "is_leader": broker == row["leader"],
            "size_bytes": size_bytes,
        }
        for row in partitions
        for broker in row["replicas"]
    )
    return SnapshotRows(taken_ms, brokers, partitions, replicas)


BEFORE = snapshot(STARTED_MS - 5000, partition(0, (1, 2)), partition(1, (2, 1)))
AFTER = snapshot(STARTED_MS + 30_000, partition(0, (3, 2)), partition(1, (1, 2)))
