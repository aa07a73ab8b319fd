"""Pacing: which of the moves that wait start now, and what the others wait for."""

from kreassign.executor.pacing.busy import Busy, Enough
from kreassign.executor.pacing.caps import InFlight
from kreassign.executor.pacing.choice import choose, choose_in_turn
from kreassign.executor.pacing.disks import RESERVE, Room, circle
from kreassign.executor.pacing.forecast import Forecast, forecast
from kreassign.executor.pacing.hours import AtEnd, Hours, Window
from kreassign.executor.pacing.order import Order, add_left, ranking
from kreassign.executor.pacing.pace import NO_LIMITS, Pace, PaceChange
from kreassign.executor.pacing.queue import Queue
from kreassign.executor.pacing.time_left import TimeLeft
from kreassign.executor.pacing.turns import Turns
from kreassign.executor.pacing.values import Candidate, Cap, Caps, Choice, End, Limit, Measure, Waiting

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
