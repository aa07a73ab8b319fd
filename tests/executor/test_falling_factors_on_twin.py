"""A falling replication factor is told first and needs consent, and costs no replica in sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import IllegalPlan
from kreassign.executor.cluster.requests import read_factors
from kreassign.model import ConfigChange, ConfigResource
from kreassign.operations.rollback import plan_rollback
from tests.executor.twin_runs import TwinRig


def refused(rig: TwinRig, targets: dict[int, tuple[int, ...]], **consent: bool) -> tuple[str, ...]:
    with pytest.raises(IllegalPlan) as refusal:
        rig.prepared(targets, **consent)
    return refusal.value.violations


def test_a_falling_factor_is_refused_without_consent(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2], [1, 2, 3], [0, 1]])
    told = refused(rig, {0: (1, 2), 1: (2, 3), 2: (3, 4)})
    assert told == (
        "replication factor of 2 partitions falls from 3 to 2: t-0, t-1",
        "if that is meant, say so with --allow-factor-change",
    )
    assert rig.run(rig.prepared({0: (1, 2), 1: (2, 3), 2: (3, 4)}, allows_factor_change=True)).state == "done"


def test_a_factor_below_min_insync_replicas_is_told_with_what_it_means(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1, 2]])
    rig.client.incremental_alter_configs({ConfigResource.topic("t"): [ConfigChange.set("min.insync.replicas", "2")]})
    falls, below, _ = refused(rig, {0: (0,)})
    assert falls == "replication factor of 1 partition falls from 3 to 1: t-0"
    assert below.startswith("topic t: min.insync.replicas 2 is more than the replication factor 1")


def test_a_rising_factor_needs_no_consent(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0]])
    assert rig.run(rig.prepared({0: (0, 1)})).state == "done"


def test_a_rollback_tells_the_factor_that_it_lowers(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0, 1]])
    back = plan_rollback(rig.client, rig.run(rig.prepared({0: (0, 1, 2)})))
    told = read_factors(rig.client, back.plan.replicas, back.expected).sentences
    assert told == ("replication factor of 1 partition falls from 3 to 2: t-0",)
