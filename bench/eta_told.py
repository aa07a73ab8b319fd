"""Prediction of a run's end, and the paces with which it is asked for on the twin and on Kafka."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kreassign.model.pace import NO_LIMITS, EndpointKind, Limit, Measure, Pace, PaceChange
from kreassign.model.run import Interval

ALL_AT_ONCE = replace(NO_LIMITS, is_eager=True)


def at_most(moves: int) -> Pace:
    """Pace with at most so many moves at a time, in the whole cluster."""
    return NO_LIMITS.changed(PaceChange(limits=(Limit(EndpointKind.CLUSTER, Measure.MOVES, moves),)))


@dataclass(frozen=True, slots=True)
class Told:
    """Prediction at a time, in seconds since the first move was looked at."""

    at_s: float
    end: Interval | None
