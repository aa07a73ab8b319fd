"""Promises of a run about its cluster, once it is over and every fault is repaired: on a twin and on real Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kreassign.model import TopicPartition
from kreassign.model.run import ENDED, MoveStatus, RunHistory

THROTTLED, MOVING = "throttles left", "ended, and still moving"
RESIDUE = (THROTTLED, MOVING, "left on the lost broker")
"""How sentences begin that name what a run left behind; all others name what it said or did wrong."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """A run and its cluster afterwards.

    `moving` and `throttles` are what is left of the run, but for what others or lost brokers are to blame for.
    `is_moved_by_others` if others moved, deleted or recreated what the run moves; `is_harmless` if nothing happened
    that can make a move fail.
    """

    run: RunHistory
    replicas: Mapping[TopicPartition, tuple[int, ...]]
    moving: Sequence[TopicPartition] = ()
    throttles: Sequence[str] = ()
    is_moved_by_others: bool = False
    is_harmless: bool = False


def broken(after: Aftermath) -> Iterator[str]:
    """A sentence for each promise that was broken."""
    run = after.run
    if run.state not in ENDED:
        yield f"it is {run.state}"
    if after.moving:
        yield f"{MOVING}: {', '.join(map(str, sorted(after.moving)))}"
    if after.throttles:
        yield f"{THROTTLED}{'' if run.throttle_residue else ' and not named'}: {'; '.join(after.throttles)}"
    if not after.is_moved_by_others:
        yield from _misplaced(after)
    if run.state == "done" and (unfinished := sum(move.status != MoveStatus.COMPLETE for move in run.moves)):
        yield f"called done, and {unfinished} moves are not complete"
    if after.is_harmless and run.state != "done":
        yield f"{run.state}, and nothing happened that makes a move fail: {run.problems}"


def _misplaced(after: Aftermath) -> Iterator[str]:
    """Moves called complete are on their targets; those never sent are where they were, or where others put them."""
    for move in after.run.moves:
        partition = TopicPartition(move.topic, move.partition)
        present = after.replicas.get(partition)
        if move.status == MoveStatus.COMPLETE and present != move.target:
            yield f"called complete, and {partition} is on {present}, not on {move.target}"
        was_sent = move.status != MoveStatus.PLANNED and move.submitted_ms is not None
        if not was_sent and present is not None and present not in (move.original, move.target):
            yield f"never sent, and {partition} went from {move.original} to {present}"
