"""What a run needs of whoever plans its moves again: a protocol, for planning is not the executor's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kreassign.executor.events import NewTarget, Refusal
from kreassign.executor.instructions import ReplanMoves

NOBODY = "nobody here can plan"


@dataclass(frozen=True, slots=True)
class Replanned:
    """New targets, checked against the cluster as a plan is, and moves for which there is none, with the reason."""

    targets: tuple[NewTarget, ...] = ()
    refused: tuple[Refusal, ...] = ()


class Replanner(Protocol):
    """Finds other destinations for moves whose own are lost."""

    def __call__(self, question: ReplanMoves) -> Replanned:
        """Each of the moves is in the answer once. Changes nothing. Raises ClusterError."""
        ...


def no_replanner(question: ReplanMoves) -> Replanned:
    """Finds nothing."""
    return Replanned(refused=tuple(Refusal(move.topic_partition, NOBODY) for move in question.moves))
