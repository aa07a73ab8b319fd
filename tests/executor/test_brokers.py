"""Steps that decommission and maintenance share."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import ClusterError, InputError
from kreassign.executor.brokers import Steps, read_brokers
from kreassign.executor.cluster.changes import Changed, change_configs
from kreassign.executor.cluster.requests import brokers_down
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from tests.executor.twin_runs import TwinRig, tp

SILENT, DENIED = ClusterError("nobody answers"), ClusterError("permission is missing")


def meet(errors: list[Exception | None], said: list[str]) -> None:
    steps = Steps(said.append, lambda: said.append("pause"))
    for number, error in enumerate(errors):
        with steps:
            steps.note(f"step {number}")
            if error is not None:
                raise error


@pytest.mark.parametrize("errors", [[None, SILENT], [None, SILENT, None, SILENT, None]])
def test_an_error_of_the_cluster_is_told_and_the_next_step_is_taken(errors: list[Exception | None]) -> None:
    said: list[str] = []
    meet(errors, said)
    told = [[f"step {number}", *([f"wait: {error}", "pause"] if error else [])] for number, error in enumerate(errors)]
    assert said == [word for words in told for word in words]


@pytest.mark.parametrize("error", [SILENT, DENIED])
def test_the_second_error_in_a_row_is_raised_whatever_it_says(error: ClusterError) -> None:
    said: list[str] = []
    with pytest.raises(ClusterError, match=str(error)):
        meet([None, SILENT, error], said)
    assert said == ["step 0", "step 1", f"wait: {SILENT}", "pause", "step 2"]


def test_an_error_in_the_first_step_is_raised_at_once() -> None:
    said: list[str] = []
    with pytest.raises(ClusterError):
        meet([SILENT], said)
    assert said == ["step 0"]


def test_what_does_not_come_from_the_cluster_is_raised_at_once() -> None:
    said: list[str] = []
    with pytest.raises(InputError):
        meet([None, InputError("a plan is needed")], said)
    assert said == ["step 0", "step 1"]


def test_a_step_that_is_taken_again_is_told_once() -> None:
    said: list[str] = []
    steps = Steps(said.append, lambda: None)
    for sentence in ("wait", "wait", "cordon", "wait"):
        steps.note(sentence)
    assert said == steps.taken == ["wait", "cordon", "wait"]


@pytest.mark.parametrize("behind", range(2))
def test_replicas_of_a_broker_are_seen_beside_one_that_lags(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    rig.twin.views.hold_back(behind)
    rig.client.alter_partition_reassignments({tp(0): (3, 1)}).raise_if_any()
    rig.transport.sleep(60)
    (found,) = read_brokers(rig.client, (3,)).brokers
    assert found.replicas == (tp(0),)


@pytest.mark.parametrize("behind", range(3))
def test_one_broker_alone_calls_no_broker_down(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    rig.restart_unseen(3, behind)
    (found,) = read_brokers(rig.client, (3,)).brokers
    assert (found.is_live, found.is_registered, found.is_seen_whole) == (True, True, True)
    resource = ConfigResource.broker(3)
    assert brokers_down(rig.port, [resource]) == ()
    rate = ConfigChange.set(LEADER_THROTTLED_RATE, "7")
    assert change_configs(rig.port, None, {resource: [rate]}) == Changed()
    assert rig.throttles == {f"{resource} {LEADER_THROTTLED_RATE}": "7"}


@pytest.mark.parametrize("behind", range(3))
def test_one_broker_alone_calls_no_broker_live(tmp_path: Path, behind: int) -> None:
    rig = TwinRig(tmp_path, [[0, 1], [1, 2]])
    rig.twin.views.hold_back(behind)
    rig.twin.stop(3)
    rig.transport.sleep(30)
    assert brokers_down(rig.port, [ConfigResource.broker(3)]) == (3,)
    assert read_brokers(rig.client, (3,)).live == {0, 1, 2, 4}


def test_the_only_broker_that_is_live_is_believed(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[0], [0]], brokers=2)
    rig.twin.stop(1)
    rig.transport.sleep(30)
    assert brokers_down(rig.port, [ConfigResource.broker(1)]) == (1,)
