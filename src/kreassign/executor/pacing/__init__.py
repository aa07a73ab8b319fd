"""Pacing: which of the moves that wait start now, and what the others wait for."""

from kreassign.executor.pacing.choice import choose
from kreassign.executor.pacing.disks import Room
from kreassign.executor.pacing.order import Order
from kreassign.executor.pacing.values import Candidate, Cap, Caps, Choice, Waiting

__all__ = ["Candidate", "Cap", "Caps", "Choice", "Order", "Room", "Waiting", "choose"]
