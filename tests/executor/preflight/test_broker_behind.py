"""Checks before a run beside a broker that lags: it shows the lists and settings from before others changed them."""

from __future__ import annotations

import pytest

from kreassign.executor.preflight import IllegalPlan, RunSettings, prepare, read_others
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanOrigin
from kreassign.model.throttle import LEADER_THROTTLED_REPLICAS
from tests.executor.twin_runs import TwinRig, tp

pytestmark = pytest.mark.parametrize("behind", range(3))

PLAN = Plan((PartitionAssignment(tp(0), (2, 1)),))


def test_a_list_that_others_changed_since_is_seen(rig: TwinRig, behind: int) -> None:
    topics = rig.client.describe_topics(["t"])
    ids = PlanOrigin(rig.twin.cluster_id, {"t": topics["t"].topic_id or ""})
    rig.twin.views.hold_back(behind)
    rig.client.alter_partition_reassignments({tp(0): (3, 1)}).raise_if_any()
    rig.transport.sleep(60)
    chosen = RunSettings("run-1", rig.transport.now_ms())
    with pytest.raises(IllegalPlan, match=r"t-0: .*\[3, 1\]"):
        prepare(rig.client, PLAN, chosen, expected={tp(0): (0, 1)}, origin=ids)


def test_a_throttle_that_others_set_is_seen(rig: TwinRig, behind: int) -> None:
    started = rig.prepared({0: (2, 1)})
    rig.twin.views.hold_back(behind)
    theirs = [ConfigChange.set(LEADER_THROTTLED_REPLICAS, "0:0")]
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): theirs}).raise_if_any()
    (setting,) = read_others(rig.client, started).settings
    assert (setting.key.name, setting.value) == (LEADER_THROTTLED_REPLICAS, "0:0")
