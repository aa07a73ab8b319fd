"""A controller that has just lost its place lists nothing: no throttle is cleared, and no move forgotten, for that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kreassign.clock import Clock
from kreassign.kafka_tools.command_line import TerseError
from kreassign.kafka_tools.reassign.actions import cancel, execute, verify
from kreassign.kafka_tools.reassign.requests import CancelRequest, ExecuteRequest, VerifyRequest
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from tests.executor.twin_runs import TwinRig, tp
from tests.kips.recorded_tool import client_of_a_replaced_controller

PLAN = Plan((PartitionAssignment(tp(0), (2, 3)),))


@pytest.fixture
def rig(tmp_path: Path) -> TwinRig:
    """A twin that moves t-0 under a throttle."""
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    throttle = ConfigChange.set(LEADER_THROTTLED_RATE, "1")
    rig.client.incremental_alter_configs({ConfigResource.broker(0): [throttle]}).raise_if_any()
    rig.client.alter_partition_reassignments({tp(0): (2, 3)}).raise_if_any()
    return rig


def do(rig: TwinRig, action: Callable[[ToolClient, Clock], None]) -> None:
    """Act for the tool, whose first list of moves is that of a controller that was replaced."""
    client, transport = client_of_a_replaced_controller(rig.twin)
    with client:
        action(ToolClient(client, through_controllers=False), transport)


def test_verify_clears_no_throttle_of_a_move(rig: TwinRig, capsys: pytest.CaptureFixture[str]) -> None:
    do(rig, lambda client, _: verify(client, VerifyRequest(PLAN, preserves_throttles=False)))
    assert "Reassignment of partition t-0 is still in progress." in capsys.readouterr().out
    assert len(rig.throttles) == 1


def test_cancel_forgets_no_move(rig: TwinRig) -> None:
    do(rig, lambda client, clock: cancel(client, CancelRequest(PLAN, preserves_throttles=False, timeout_ms=1), clock))
    assert rig.client.list_partition_reassignments() == {}
    assert rig.replicas[0] == (0, 1)


def test_execute_starts_nothing_beside_a_move(rig: TwinRig) -> None:
    plan = Plan((PartitionAssignment(tp(1), (3, 4)),))
    request = ExecuteRequest(
        plan, is_additional=False, throttle=-1, log_dir_throttle=-1, timeout_ms=1, allows_replication_factor_change=True
    )
    with pytest.raises(TerseError, match="existing partition assignment"):
        do(rig, lambda client, clock: execute(client, request, clock))
    assert rig.client.list_partition_reassignments().keys() == {tp(0)}
