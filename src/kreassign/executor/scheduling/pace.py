"""How a run is paced: the order and the hours of its moves, the limits of what is in flight, and how they change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kreassign.errors import InputError
from kreassign.executor.scheduling.disk_admission import RESERVE
from kreassign.executor.scheduling.limits import Caps, Limit
from kreassign.executor.scheduling.queue import Order
from kreassign.executor.scheduling.windows import Schedule

ELECTIONS_PER_STEP = 100
"""Leaders that change between two waits: their clients look for the new leader at the same time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a run keeps to; it is in the journal, so that a resumed run keeps it too.

    An eager run starts all that the limits allow; others start only what keeps brokers busy.
    A stepwise one gives each partition one new replica at a time. `disk_reserve` is the part of every log directory
    that stays free, from 0 to below 1. Raises InputError.
    """

    order: Order = Order.MAKESPAN
    caps: Caps = field(default_factory=Caps)
    elections_per_step: int = ELECTIONS_PER_STEP
    hours: Schedule = field(default_factory=Schedule)
    disk_reserve: float = RESERVE
    is_eager: bool = False
    is_stepwise: bool = False

    def __post_init__(self) -> None:
        _check_reserve(self.disk_reserve)

    def changed(self, change: PaceChange) -> Pace:
        """The same with what the change names."""
        return replace(
            self,
            order=change.order or self.order,
            caps=self.caps.limited(change.limits),
            elections_per_step=change.elections_per_step or self.elections_per_step,
            is_eager=self.is_eager if change.is_eager is None else change.is_eager,
            hours=change.hours or self.hours,
            disk_reserve=self.disk_reserve if change.disk_reserve is None else change.disk_reserve,
        )


@dataclass(frozen=True, slots=True)
class PaceChange:
    """What to change from now on; None and an empty tuple leave a field as it is."""

    order: Order | None = None
    limits: tuple[Limit, ...] = ()
    elections_per_step: int | None = None
    hours: Schedule | None = None
    disk_reserve: float | None = None
    is_eager: bool | None = None

    def __post_init__(self) -> None:
        if self.disk_reserve is not None:
            _check_reserve(self.disk_reserve)


def _check_reserve(part: float) -> None:
    if not 0 <= part < 1:
        raise InputError(
            f"{part} is no disk reserve: it is a part of each log directory, from 0 to below 1, such as 0.05"
        )


NO_LIMITS = Pace()
