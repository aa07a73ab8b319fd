"""Faults at set times, and making them happen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kreassign.twin.cluster import Twin


class Fault(Protocol):
    """Something that can break. One that finds its victim broken already, or mended already, does nothing."""

    def check(self, twin: Twin) -> None:
        """InputError if it cannot befall this twin."""
        ...

    def inject(self, twin: Twin) -> None:
        """Break it."""
        ...

    def recover(self, twin: Twin) -> None:
        """Mend it."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault `at_ms` after the plan was made, for so long; None is for ever."""

    fault: Fault
    at_ms: int
    lasts_ms: int | None = None


def schedule_faults(twin: Twin, faults: Iterable[PlannedFault]) -> None:
    """Let faults happen, counted from now; InputError, and nothing happens, if one cannot befall this twin."""
    planned = tuple(faults)
    for one in planned:
        one.fault.check(twin)
    for one in planned:
        begins_ms = twin.now_ms + one.at_ms
        twin.schedule(begins_ms, partial(one.fault.inject, twin))
        if one.lasts_ms is not None:
            twin.schedule(begins_ms + one.lasts_ms, partial(one.fault.recover, twin))
