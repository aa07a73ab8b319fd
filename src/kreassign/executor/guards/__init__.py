"""What may stop a run: guards look at the health of the cluster and of the moves, and say what to do."""

from kreassign.executor.guards.health import Health, LogDirRoom, Troubled
from kreassign.executor.guards.settings import DEFAULTS, GuardName, GuardSetting, Reaction
from kreassign.executor.guards.verdicts import Circumstances, Verdict, evaluate

__all__ = [
    "DEFAULTS",
    "Circumstances",
    "GuardName",
    "GuardSetting",
    "Health",
    "LogDirRoom",
    "Reaction",
    "Troubled",
    "Verdict",
    "evaluate",
]
