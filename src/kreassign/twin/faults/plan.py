"""Faults at set times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kreassign.twin.cluster import Twin


class Fault(Protocol):
    """Something that can break. It does nothing if its target is broken already, or repaired already."""

    def check(self, twin: Twin) -> None:
        """InputError if this twin cannot have it."""
        ...

    def inject(self, twin: Twin) -> None:
        """Break it."""
        ...

    def recover(self, twin: Twin) -> None:
        """Repair it."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault `at_ms` after the plan was made, for so long; None is for ever."""

    fault: Fault
    at_ms: int
    lasts_ms: int | None = None


def schedule_faults(twin: Twin, faults: Iterable[PlannedFault]) -> None:
    """Schedule faults, counted from now; InputError, and nothing is scheduled, if this twin cannot have one of them."""
    planned = tuple(faults)
    for one in planned:
        one.fault.check(twin)
    for one in planned:
        begins_ms = twin.now_ms + one.at_ms
        twin.schedule(begins_ms, partial(one.fault.inject, twin))
        if one.lasts_ms is not None:
            twin.schedule(begins_ms + one.lasts_ms, partial(one.fault.recover, twin))
