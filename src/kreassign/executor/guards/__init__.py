"""What may stop a run: guards judge the health of the cluster and of the moves, and say what to do."""

from kreassign.executor.guards.health import Health, LogDirSpace, Troubled
from kreassign.executor.guards.settings import DEFAULTS, GuardName, GuardSetting, Reaction
from kreassign.executor.guards.verdicts import GuardInputs, Verdict, evaluate

__all__ = [
    "DEFAULTS",
    "GuardInputs",
    "GuardName",
    "GuardSetting",
    "Health",
    "LogDirSpace",
    "Reaction",
    "Troubled",
    "Verdict",
    "evaluate",
]
