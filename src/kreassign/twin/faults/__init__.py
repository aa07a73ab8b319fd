"""Faults on command: what can break, how it is written down, drawn by lot, and made to happen in a twin's time."""

from kreassign.twin.faults.draw import draw_faults
from kreassign.twin.faults.plan import PlannedFault, schedule_faults
from kreassign.twin.faults.read import read_fault, read_faults

__all__ = ["PlannedFault", "draw_faults", "read_fault", "read_faults", "schedule_faults"]
