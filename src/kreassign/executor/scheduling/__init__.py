"""Pacing: which of the moves that wait start now, and what the others wait for."""

from kreassign.executor.scheduling.caps import InFlight
from kreassign.executor.scheduling.choice import choose, choose_in_turn
from kreassign.executor.scheduling.disk_admission import RESERVE, DiskBudget, find_cycle
from kreassign.executor.scheduling.forecast import Forecast, forecast
from kreassign.executor.scheduling.order import Order, add_left, ranking
from kreassign.executor.scheduling.pace import NO_LIMITS, Pace, PaceChange
from kreassign.executor.scheduling.priority_merge import PriorityMerge
from kreassign.executor.scheduling.queue import Queue
from kreassign.executor.scheduling.saturation import Saturation, SaturationThreshold
from kreassign.executor.scheduling.time_left import TimeLeft
from kreassign.executor.scheduling.values import Candidate, Cap, Caps, Choice, EndpointKind, Limit, Measure, Waiting
from kreassign.executor.scheduling.windows import AtWindowEnd, Schedule, Window

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
    "choose_in_turn",
    "find_cycle",
    "forecast",
    "ranking",
]
