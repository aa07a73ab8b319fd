"""What can happen to a run in a trial, and when, or in which state: requests, deeds, faults of the twin. Values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kreassign.twin.faults import PlannedFault


class Request(StrEnum):
    """What another terminal asks of the run."""

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
    """What happens to the process of the run, or to its lease."""

    DIE_WRITTEN = "dies right after it wrote"
    DIE_UNWRITTEN = "dies right before it writes"
    DIE = "dies in a state"
    FORGET = "dies, and a broker is given up"
    STOP = "asked to pause"
    LOSE_LEASE = "another run has the lease"


Happening = Request | Deed | PlannedFault

ONLY_IN_A_STATE = frozenset({Deed.DIE, Deed.FORGET})
"""Deeds that can only be done between two events of a run."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happens so long after the run began. Faults of the twin say themselves how long they last.

    Where it names a `state`, it happens right after the run has entered that for this `entry`, counted from then on;
    before its next event, and not at all if it never does.
    """

    at_ms: int
    what: Happening
    state: str = ""
    entry: int = 1

    @property
    def kind(self) -> str:
        """What it is counted as."""
        if isinstance(self.what, PlannedFault):
            fault = self.what.fault
            return type(getattr(fault, "fault", fault)).__name__
        return self.what.value

    @property
    def lasts_ms(self) -> int:
        """How long it goes on; 0 for what is over at once."""
        return self.what.lasts_ms or 0 if isinstance(self.what, PlannedFault) else 0

    def __str__(self) -> str:
        what = self.what
        shown = f"{what.fault} for {what.lasts_ms} ms" if isinstance(what, PlannedFault) else what.value
        where = f", {self.state} for the {self.entry}. time" if self.state else ""
        return f"{self.at_ms} ms{where}: {shown}"
