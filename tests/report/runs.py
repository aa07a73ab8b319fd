"""Runs and snapshots as plain values, for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kreassign.model.run import MoveHistory, MoveStatus, Phase, RunHistory
from kreassign.model.throttle import ThrottleRates
from kreassign.report.run_checks import SnapshotRows

STARTED_MS = 1_762_250_400_000
MB = 1_000_000


def a_move(
    topic: str,
    partition: int,
    original: tuple[int, ...],
    target: tuple[int, ...],
    submitted_ms: int | None = STARTED_MS,
    ended_ms: int | None = STARTED_MS + 10_000,
    bytes_copied: int = 100 * MB,
    problem: str | None = None,
) -> MoveHistory:
    """A move of a partition of 100 MB."""
    return MoveHistory(
        topic=topic, partition=partition, original=original, target=target,
        adding=tuple(sorted(set(target) - set(original))), size_bytes=100 * MB, submitted_ms=submitted_ms,
        ended_ms=ended_ms, bytes_copied=bytes_copied,
        status=MoveStatus.MOVING if ended_ms is None else MoveStatus.COMPLETE, problem=problem,
    )  # fmt: skip


def a_run(moves: tuple[MoveHistory, ...], throttle_bytes_per_s: int | None = None, **changes: Any) -> RunHistory:
    """A run of these moves that is done after 20 s, but for the changes."""
    run = RunHistory(
        run_id="r-1", cluster_id="c-1", started_ms=STARTED_MS, ended_ms=STARTED_MS + 20_000, state=Phase.DONE,
        rates=ThrottleRates(throttle_bytes_per_s), moves=moves, throttle_residue=(), problems=(),
    )  # fmt: skip
    return replace(run, **changes)


TWO_MOVES = (
    a_move("orders", 0, original=(1, 2), target=(3, 2)),
    a_move("orders", 1, original=(2, 1), target=(1, 2), ended_ms=STARTED_MS, bytes_copied=0),
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
