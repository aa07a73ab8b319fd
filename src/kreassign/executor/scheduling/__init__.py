"""Pacing: which of the moves that wait start now, and what the others wait for."""

from kreassign.executor.scheduling.candidate import Candidate, EndpointKind
from kreassign.executor.scheduling.choice import Choice, Waiting, choose, choose_from
from kreassign.executor.scheduling.disk_admission import RESERVE, DiskBudget, find_cycle
from kreassign.executor.scheduling.limits import Cap, Caps, InFlight, Limit, Measure, Saturation, SaturationThreshold
from kreassign.executor.scheduling.pace import NO_LIMITS, Pace, PaceChange
from kreassign.executor.scheduling.queue import Order, PriorityMerge, Queue, add_left, ranking
from kreassign.executor.scheduling.windows import AtWindowEnd, Forecast, Schedule, TimeLeft, Window, forecast

__all__ = [
    "NO_LIMITS",
    "RESERVE",
    "AtWindowEnd",
    "Candidate",
    "Cap",
    "Caps",
    "Choice",
    "DiskBudget",
    "EndpointKind",
    "Forecast",
    "InFlight",
    "Limit",
    "Measure",
    "Order",
    "Pace",
    "PaceChange",
    "PriorityMerge",
    "Queue",
    "Saturation",
    "SaturationThreshold",
    "Schedule",
    "TimeLeft",
    "Waiting",
    "Window",
    "add_left",
    "choose",
    "choose_from",
    "find_cycle",
    "forecast",
    "ranking",
]
