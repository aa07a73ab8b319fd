"""A run as a machine: from facts to orders."""

from kreassign.executor.state.execution import AT_REST, ENDED, Ending, Execution, Instructions, Phase
from kreassign.executor.state.replaying import Replay
from kreassign.executor.state.table import TRANSITIONS, can_stop, handle, hears

__all__ = [
    "AT_REST",
    "ENDED",
    "TRANSITIONS",
    "Ending",
    "Execution",
    "Instructions",
    "Phase",
    "Replay",
    "can_stop",
    "handle",
    "hears",
]
