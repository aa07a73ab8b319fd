"""Split a stepwise move: one new replica at a time, each step a separate reassignment.

Of a plan from [1,2,3] to [4,5,6] the steps lead to [1,2,4], [1,5,4] and [4,5,6]. Each of them adds one replica and
drops one, so that a partition is copied to one broker at a time, and KIP-455 drops the old replica only when the new
one is in sync. The first replica, which is the preferred leader, is dropped last; the last step makes the order of
the plan. Steps follow from the move alone: a process that resumes the run finds itself between the same ones.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from kreassign.executor.events import PlannedMove
from kreassign.model import Reassignment


def move_steps(move: PlannedMove) -> tuple[PlannedMove, ...]:
    """Split a move into its steps, at least one.

    Where the plan adds more replicas than it drops, the first steps only add; where it drops more, the last one
    drops those.
    """
    adding, leaving = move.reassignment.adding_in_order, [*move.reassignment.removing_in_order]
    lists = [move.original]
    more = len(adding) - len(leaving)
    for number, new in enumerate(adding[:-1]):
        current = list(lists[-1])
        if number >= more:
            current[current.index(leaving.pop())] = new
        else:
            current.append(new)
        lists.append(tuple(current))
    lists.append(move.target)
    return tuple(_step(move, begin, end) for begin, end in pairwise(lists))


def brokers_between(move: PlannedMove) -> frozenset[int]:
    """Brokers in the lists that a stepwise move sends before that of its target."""
    return frozenset(broker for step in move_steps(move)[:-1] for broker in step.target)


def _step(move: PlannedMove, begin: tuple[int, ...], end: tuple[int, ...]) -> PlannedMove:
    """Step with the directory of the copy that it adds; copies that only change theirs do so in the last step."""
    adding = Reassignment(begin, end).adding
    log_dirs = (target for target in move.log_dirs if target.broker in adding or (end == move.target and target.before))
    return replace(move, original=begin, target=end, log_dirs=tuple(log_dirs))
