"""Pacing: which of the moves that wait start now, and what the others wait for."""

from kreassign.executor.scheduling.caps import InFlight
from kreassign.executor.scheduling.choice import choose, choose_in_turn
from kreassign.executor.scheduling.disk_admission import RESERVE, Room, circle
from kreassign.executor.scheduling.forecast import Forecast, forecast
from kreassign.executor.scheduling.order import Order, add_left, ranking
from kreassign.executor.scheduling.pace import NO_LIMITS, Pace, PaceChange
from kreassign.executor.scheduling.priority_merge import Turns
from kreassign.executor.scheduling.queue import Queue
from kreassign.executor.scheduling.saturation import Busy, Enough
from kreassign.executor.scheduling.time_left import TimeLeft
from kreassign.executor.scheduling.values import Candidate, Cap, Caps, Choice, End, Limit, Measure, Waiting
from kreassign.executor.scheduling.windows import AtEnd, Hours, Window

__all__ = [
    "NO_LIMITS",
    "RESERVE",
    "AtEnd",
    "Busy",
    "Candidate",
    "Cap",
    "Caps",
    "Choice",
    "End",
    "Enough",
    "Forecast",
    "Hours",
    "InFlight",
    "Limit",
    "Measure",
    "Order",
    "Pace",
    "PaceChange",
    "Queue",
    "Room",
    "TimeLeft",
    "Turns",
    "Waiting",
    "Window",
    "add_left",
    "choose",
    "choose_in_turn",
    "circle",
    "forecast",
    "ranking",
]
