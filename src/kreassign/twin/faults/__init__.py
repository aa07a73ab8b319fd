"""Fault injection: the kinds of faults, their notation, random faults, and schedules."""

from kreassign.twin.faults.schedule import (
    PlannedFault,
    draw_faults,
    fault_by_hand,
    inject,
    read_fault,
    read_faults,
    recover,
    schedule_faults,
)

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
