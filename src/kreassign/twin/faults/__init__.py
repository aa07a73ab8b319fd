"""Fault injection: what can break, its notation, random faults, and when they happen."""

from kreassign.twin.faults.draw import draw_faults
from kreassign.twin.faults.plan import PlannedFault, schedule_faults
from kreassign.twin.faults.read import read_fault, read_faults

__all__ = ["PlannedFault", "draw_faults", "read_fault", "read_faults", "schedule_faults"]
