"""PURE. How a run is, in words: the same ones in `status`, in a live view and on the page."""

from __future__ import annotations

_AS_IT_IS = frozenset({"awaiting lease", "unreadable"})
"""States that no process is missing of."""


def run_state(state: str, *, is_active: bool, is_held: bool, has_ended: bool, in_flight: int) -> str:
    """What an operator paused is paused, though moves that are in flight go on; a run without a process was left.

    `state` is the phase of the run.
    """
    if has_ended or state in _AS_IT_IS:
        return state
    if is_held or state == "paused":
        if not in_flight:
            return "paused"
        return f"paused, {in_flight} move{'s' if in_flight > 1 else ''} in flight go{'' if in_flight > 1 else 'es'} on"
    return state if is_active else f"{state} (its process is gone)"
