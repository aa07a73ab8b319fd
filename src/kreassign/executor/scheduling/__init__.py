"""Pacing: which of the waiting moves start now, and what the others wait for."""

from kreassign.executor.scheduling.limits import (
    DiskBudget,
    InFlight,
    PacedMove,
    Saturation,
    SaturationThreshold,
    find_cycle,
)
from kreassign.executor.scheduling.queue import (
    NextMoves,
    PriorityMerge,
    Queue,
    WaitingMove,
    add_left,
    choose,
    choose_from,
    ranking,
)
from kreassign.executor.scheduling.windows import Forecast, TimeLeft, forecast

__all__ = [
    "DiskBudget",
    "Forecast",
    "InFlight",
    "NextMoves",
    "PacedMove",
    "PriorityMerge",
    "Queue",
    "Saturation",
    "SaturationThreshold",
    "TimeLeft",
    "WaitingMove",
    "add_left",
    "choose",
    "choose_from",
    "find_cycle",
    "forecast",
    "ranking",
]
