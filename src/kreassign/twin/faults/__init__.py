"""Fault injection: what can break, its notation, random faults, and when they happen."""

from kreassign.twin.faults.by_hand import fault_by_hand, inject, recover
from kreassign.twin.faults.draw import draw_faults
from kreassign.twin.faults.plan import PlannedFault, schedule_faults
from kreassign.twin.faults.read import read_fault, read_faults

__all__ = [
    "PlannedFault",
    "draw_faults",
    "fault_by_hand",
    "inject",
    "read_fault",
    "read_faults",
    "recover",
    "schedule_faults",
]
