"""Partition reassignment for Apache Kafka, done right: connect, snapshot, plan, rehearse, run, verify, roll back.

Every use case of the command line is a function here; `docs/guides/use-from-python.md` shows a program. What a name
needs is imported when it is first used, so that `import kreassign` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kreassign.operations.api import (
        audit,
        cancel,
        change_pace,
        doctor,
        pause,
        plan,
        rehearse,
        release,
        report_page,
        resume,
        rollback,
        run,
        set_throttle,
        snapshot,
        status,
        verify,
        watch,
    )
    from kreassign.operations.connect import connect, connect_controllers
    from kreassign.operations.plan_tasks import (
        AddBrokers,
        BalanceLeaders,
        BalanceLogDirs,
        ChangeReplicationFactor,
        DemoteBrokers,
        DrainBrokers,
        DrainLogDirs,
        Rebalance,
        Repair,
        ReplaceBrokers,
        Restore,
        WhatIf,
    )
    from kreassign.operations.twin import serve_twin

__version__ = "0.1.0"

__all__ = [
    "AddBrokers",
    "BalanceLeaders",
    "BalanceLogDirs",
    "ChangeReplicationFactor",
    "DemoteBrokers",
    "DrainBrokers",
    "DrainLogDirs",
    "Rebalance",
    "Repair",
    "ReplaceBrokers",
    "Restore",
    "WhatIf",
    "audit",
    "cancel",
    "change_pace",
    "connect",
    "connect_controllers",
    "doctor",
    "pause",
    "plan",
    "rehearse",
    "release",
    "report_page",
    "resume",
    "rollback",
    "run",
    "serve_twin",
    "set_throttle",
    "snapshot",
    "status",
    "verify",
    "watch",
]

_CONNECT = "kreassign.operations.connect"
_TASKS = "kreassign.operations.plan_tasks"
_REST = "kreassign.operations.api"
_OTHERS = {"connect": _CONNECT, "connect_controllers": _CONNECT, "serve_twin": "kreassign.operations.twin"}


def __getattr__(name: str) -> Any:
    """The function or class of this name, imported now."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _OTHERS.get(name, _TASKS if name[0].isupper() else _REST)
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """What is offered, imported or not."""
    return [*__all__, "__version__"]
