"""Pacing: which of the waiting moves start now, and what the others wait for."""

from kreassign.executor.scheduling.limits import (
    Candidate,
    DiskBudget,
    InFlight,
    Saturation,
    SaturationThreshold,
    find_cycle,
)
from kreassign.executor.scheduling.queue import (
    Choice,
    PriorityMerge,
    Queue,
    Waiting,
    add_left,
    choose,
    choose_from,
    ranking,
)
from kreassign.executor.scheduling.windows import Forecast, TimeLeft, forecast

__all__ = [
    "Candidate",
    "Choice",
    "DiskBudget",
    "Forecast",
    "InFlight",
    "PriorityMerge",
    "Queue",
    "Saturation",
    "SaturationThreshold",
    "TimeLeft",
    "Waiting",
    "add_left",
    "choose",
    "choose_from",
    "find_cycle",
    "forecast",
    "ranking",
]
