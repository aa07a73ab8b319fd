"""Fault injection: what can break, its notation, random faults, and when they happen."""

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
