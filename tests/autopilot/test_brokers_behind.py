"""Looks of the autopilot beside a broker that lags: it hides no brake, and makes no broker dead."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.autopilot.observation import Absent, Known
from kreassign.model import ConfigChange, ConfigResource
from kreassign.operations.autopilot_journal import BRAKE
from kreassign.operations.autopilot_looks import observe
from tests.executor.twin_runs import TwinRig

ALL = ConfigResource.all_brokers()


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    return TwinRig(tmp_path, [[0, 1], [1, 2]])


@pytest.mark.parametrize("behind", range(2))
def test_a_broker_that_lags_hides_no_brake(rig: TwinRig, behind: int) -> None:
    assert isinstance(observe(rig.client, 0).brake, Absent)
    rig.twin.views.hold_back(behind)
    rig.client.incremental_alter_configs({ALL: [ConfigChange.set(BRAKE, "true")]}).raise_if_any()
    assert isinstance(observe(rig.client, 0).brake, Known)


@pytest.mark.parametrize("behind", range(2))
def test_a_broker_that_lags_shows_no_other_as_dead(rig: TwinRig, behind: int) -> None:
    rig.twin.crash(3)
    rig.transport.sleep(60)
    brokers = observe(rig.client, 0).brokers
    assert isinstance(brokers, Known)
    assert [one.id for one in brokers.value if one.is_fenced] == [3]
    rig.twin.views.hold_back(behind)
    rig.twin.start(3)
    rig.transport.sleep(60)
    brokers = observe(rig.client, 0).brokers
    assert isinstance(brokers, Known)
    assert [one.id for one in brokers.value if one.is_fenced] == []
