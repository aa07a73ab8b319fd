"""From a cluster, as it is now, to the problem that the tasks begin with: without tables, without Spark, in seconds."""

from __future__ import annotations

from dataclasses import replace

from kreassign.admin import AdminClient
from kreassign.clock import Clock, SystemClock
from kreassign.model.load_basis import MEASURED_S
from kreassign.operations.plan_inputs import Inputs, inputs_of_columns
from kreassign.operations.snapshot import observe, whole_columns_of
from kreassign.operations.warnings import Warn, warn_program
from kreassign.planner.problem.policy import PlanPolicy

SYSTEM_CLOCK = SystemClock()


def inputs_of_cluster(
    client: AdminClient,
    policy: PlanPolicy,
    *,
    measure_for_s: float = MEASURED_S,
    clock: Clock = SYSTEM_CLOCK,
    warn: Warn = warn_program,
) -> Inputs:
    """What the planner needs, from a cluster whose write rates are measured for so long. Raises ClusterError."""
    seen = observe(client, clock.now_ms(), warn)
    columns = whole_columns_of(client, seen, clock, measure_for_s, warn)
    found = inputs_of_columns(columns, policy, seen.snapshot_id)
    return replace(found, loads=replace(found.loads, source="cluster", measured_for_s=measure_for_s))
