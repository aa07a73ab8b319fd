"""A run on a twin with its moves, its settings and its incidents, as values.

The cluster and the settings follow from the seed or the scenario alone, so that a trial with fewer incidents or moves
is one of the same run: `minimised` leaves out what it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar, cast

from kreassign.executor import events
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.state import RunView
from kreassign.model.pace import NO_LIMITS, EndpointKind, Limit, Measure, Pace, PaceChange
from kreassign.model.plan import PartitionAssignment
from kreassign.model.throttle import AdaptiveThrottle, ThrottleRates
from kreassign.twin.faults import PlannedFault

MOST_ATTEMPTS = 200
PARTS: Mapping[str, int] = {"incidents": 0, "moves": 1}
Tried = TypeVar("Tried")


class Request(StrEnum):
    """A request to the run from another terminal."""

    HOLD = "hold"
    RELEASE = "release"
    CANCEL = "cancel"
    CANCEL_NOW = "cancel --now"
    FASTER = "throttle 200 MB/s"
    SLOWER = "throttle 2 MB/s"
    UNTHROTTLED = "throttle none"
    ADAPTIVE = "throttle auto"
    PACE = "pace --max-moves 1"


class Deed(StrEnum):
    """Deeds done to the process of the run, or to its lease."""

    DIE_WRITTEN = "dies right after it wrote"
    DIE_UNWRITTEN = "dies right before it writes"
    DIE = "dies in a state"
    FORGET = "dies, and a broker is given up"
    STOP = "asked to pause"
    LOSE_LEASE = "another run has the lease"


THROTTLES = frozenset({Request.FASTER, Request.SLOWER, Request.UNTHROTTLED, Request.ADAPTIVE})
"""Requests for another throttle."""
FAST = 200_000_000
REQUESTS: Mapping[Request, Callable[[int, int], events.Request]] = {
    Request.HOLD: events.HoldRequested,
    Request.RELEASE: events.ReleaseRequested,
    Request.CANCEL: partial(events.CancelRequested, is_now=False),
    Request.CANCEL_NOW: partial(events.CancelRequested, is_now=True),
    Request.FASTER: lambda at_ms, number: events.ThrottleRequested(at_ms, number, FAST),
    Request.SLOWER: lambda at_ms, number: events.ThrottleRequested(at_ms, number, 2_000_000),
    Request.UNTHROTTLED: lambda at_ms, number: events.ThrottleRequested(at_ms, number, None),
    Request.ADAPTIVE: lambda at_ms, number: events.ThrottleRequested(
        at_ms, number, None, adaptive=AdaptiveThrottle(FAST)
    ),
    Request.PACE: lambda at_ms, number: events.PaceRequested(
        at_ms, number, PaceChange(limits=(Limit(EndpointKind.CLUSTER, Measure.MOVES, 1),))
    ),
}

TICK_MS = 60_000
HURRY, DRAIN, ABANDON, LATEST = 0.25, 1.0, 2.0, 4.0
"""After so much of its patience the operator gives more throttle, cancels, cancels at once, and finds it broken."""

Happening = Request | Deed | PlannedFault

ONLY_IN_A_STATE = frozenset({Deed.DIE, Deed.FORGET})
"""Deeds between two events of a run."""
MOVED_BY_OTHERS = frozenset({"move", "cancel-moves", "recreate", "delete"})
SET_BY_OTHERS = frozenset({"set-throttles", "list-replica"})
HARMLESS = frozenset({"step-clock", "suspend", Deed.DIE_WRITTEN, Deed.DIE_UNWRITTEN, Deed.DIE, Deed.STOP})
"""Kinds of incidents after which a run has to end as if nothing had happened."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happens so long after the run began. Faults of the twin know how long they last.

    Where it names a `state`, it happens right after the run has entered it for this `entry`, counted from then on,
    before the next event; and not at all if the run never does.
    """

    at_ms: int
    what: Happening
    state: str = ""
    entry: int = 1

    @property
    def kind(self) -> str:
        return self.what.kind if isinstance(self.what, PlannedFault) else self.what.value

    @property
    def lasts_ms(self) -> int:
        """Duration; 0 for an incident that is over at once."""
        return self.what.lasts_ms or 0 if isinstance(self.what, PlannedFault) else 0

    def __str__(self) -> str:
        what = self.what
        shown = f"{what.kind} {what.values} for {what.lasts_ms} ms" if isinstance(what, PlannedFault) else what.value
        where = f", {self.state} for the {self.entry}. time" if self.state else ""
        return f"{self.at_ms} ms{where}: {shown}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the run, and its reach. The coordinator of its lease needs the offsets topic.

    An operator cancels a run that is not over so long after all trouble (`patience_ms`).
    """

    rates: ThrottleRates
    guards: Mapping[GuardName, Reaction] = field(default_factory=dict)
    pace: Pace = NO_LIMITS
    replans: bool = False
    has_lease: bool = False
    has_offsets_topic: bool = True
    reaches_controllers: bool = False
    keeps_snapshots: bool = False
    keeps_each_step: bool = False
    patience_ms: int = 2 * 3_600_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One run and what it has to stand, on the cluster of its seed or of a `scenario`."""

    seed: int
    moves: tuple[PartitionAssignment, ...]
    incidents: tuple[Incident, ...]
    scenario: str = ""

    @property
    def kinds(self) -> set[str]:
        return {incident.kind for incident in self.incidents}

    @property
    def over_ms(self) -> int:
        """End of all lasting incidents, without those that happen in a state."""
        return max((incident.at_ms + incident.lasts_ms for incident in self.incidents), default=0)

    def __str__(self) -> str:
        moves, incidents = (f"  move {move}" for move in self.moves), (f"  {incident}" for incident in self.incidents)
        return "\n".join([f"seed {self.seed}{self.scenario and f', {self.scenario}'}", *moves, *incidents])


def minimised(
    trial: Tried,
    goes_wrong: Callable[[Tried], bool],
    *,
    parts: Mapping[str, int] = PARTS,
    attempts: int = MOST_ATTEMPTS,
) -> Tried:
    """Leave out items of these parts (and of each keep some) as long as the trial still goes wrong, so many times.

    Big parts are left out first, then smaller ones, as in delta debugging.
    """
    left = attempts
    for part, least in parts.items():
        size = max(1, len(getattr(trial, part)) // 2)
        while size and left > 0:
            kept = getattr(trial, part)
            for begin in range(0, len(kept), size):
                fewer = kept[:begin] + kept[begin + size :]
                if len(fewer) < least or left <= 0:
                    continue
                left -= 1
                smaller = replace(cast(Any, trial), **{part: fewer})
                if goes_wrong(smaller):
                    trial = smaller
                    break
            else:
                size //= 2
            size = min(size, max(1, len(getattr(trial, part)) // 2)) if size else 0
    return trial


def answers(run: RunView, quiet_for_ms: int, patience_ms: int) -> Iterator[Request]:
    """The requests of an operator whose cluster has had no trouble for so long."""

    def is_due(mark: float) -> bool:
        return 0 < quiet_for_ms - mark * patience_ms <= TICK_MS

    if run.control.is_held:
        yield Request.RELEASE
    if is_due(HURRY) or is_due(DRAIN) or "foreign-throttle" in " ".join(map(str, run.verdicts)):
        yield Request.FASTER
    if is_due(DRAIN):
        yield Request.CANCEL
    if is_due(ABANDON):
        yield Request.CANCEL_NOW
