"""Partition reassignment for Apache Kafka, done right: connect, snapshot, plan, rehearse, run, verify, roll back.

The use cases of the command line are functions here; `docs/guides/use-from-python.md` shows a program, and a table of
every command with its function, also of the few that are in `kreassign.operations` only. What a name needs is imported
when it is first used, so that `import kreassign` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kreassign.model.load import LoadNumber, SparkOptions
    from kreassign.operations.api import (
        audit,
        brokers_needed,
        cancel,
        change_pace,
        doctor,
        forget_brokers,
        forget_journal,
        pareto,
        pause,
        place_partitions,
        place_topic,
        plan,
        plan_page,
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
    from kreassign.operations.ingest import MetricStream, collect, import_metrics, import_samples, stream_metrics
    from kreassign.operations.plan_files import read_assignments, write_plan
    from kreassign.operations.plan_tasks import (
        AddBrokers,
        BalanceLeaders,
        BalanceLogDirs,
        ChangeReplicationFactor,
        DemoteBrokers,
        DrainBrokers,
        DrainLogDirs,
        ExpectedRates,
        Import,
        Rebalance,
        Repair,
        ReplaceBrokers,
        Restore,
        WhatIf,
    )
    from kreassign.operations.report import ReadingRequest, compare_readings, read_records
    from kreassign.operations.snapshot import SnapshotOutputs, store_snapshot
    from kreassign.operations.tables import DefinitionForm, compact_tables, define_tables, load, load_page, show_load
    from kreassign.operations.twin import serve_twin
    from kreassign.operations.verify import (
        check_placement,
        placement_of_cluster,
        placement_of_snapshot,
        read_placement,
        write_placement,
    )
    from kreassign.planner.tasks import TopicChoice

__version__ = "0.1.0"

__all__ = [
    "AddBrokers",
    "BalanceLeaders",
    "BalanceLogDirs",
    "ChangeReplicationFactor",
    "DefinitionForm",
    "DemoteBrokers",
    "DrainBrokers",
    "DrainLogDirs",
    "ExpectedRates",
    "Import",
    "LoadNumber",
    "MetricStream",
    "ReadingRequest",
    "Rebalance",
    "Repair",
    "ReplaceBrokers",
    "Restore",
    "SnapshotOutputs",
    "SparkOptions",
    "TopicChoice",
    "WhatIf",
    "audit",
    "brokers_needed",
    "cancel",
    "change_pace",
    "check_placement",
    "collect",
    "compact_tables",
    "compare_readings",
    "connect",
    "connect_controllers",
    "define_tables",
    "doctor",
    "forget_brokers",
    "forget_journal",
    "import_metrics",
    "import_samples",
    "load",
    "load_page",
    "pareto",
    "pause",
    "place_partitions",
    "place_topic",
    "placement_of_cluster",
    "placement_of_snapshot",
    "plan",
    "plan_page",
    "read_assignments",
    "read_placement",
    "read_records",
    "rehearse",
    "release",
    "report_page",
    "resume",
    "rollback",
    "run",
    "serve_twin",
    "set_throttle",
    "show_load",
    "snapshot",
    "status",
    "store_snapshot",
    "stream_metrics",
    "verify",
    "watch",
    "write_placement",
    "write_plan",
]

_MODULES = {
    name: module
    for module, names in {
        "model.load": "LoadNumber SparkOptions",
        "operations.connect": "connect connect_controllers",
        "operations.ingest": "MetricStream collect import_metrics import_samples stream_metrics",
        "operations.plan_files": "read_assignments write_plan",
        "operations.report": "ReadingRequest compare_readings read_records",
        "operations.snapshot": "SnapshotOutputs store_snapshot",
        "operations.tables": "DefinitionForm compact_tables define_tables load load_page show_load",
        "operations.twin": "serve_twin",
        "operations.verify": (
            "check_placement placement_of_cluster placement_of_snapshot read_placement write_placement"
        ),
        "planner.tasks": "TopicChoice",
    }.items()
    for name in names.split()
}
"""Module of each name that is in neither `operations.plan_tasks` (tasks) nor `operations.api` (functions)."""


def __getattr__(name: str) -> Any:
    """Import and return a name of `__all__`. Raises AttributeError for any other."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "operations.plan_tasks" if name[0].isupper() else "operations.api")
    return getattr(import_module(f"kreassign.{module}"), name)


def __dir__() -> list[str]:
    """The names of `__all__`, imported or not, and `__version__`."""
    return [*__all__, "__version__"]
