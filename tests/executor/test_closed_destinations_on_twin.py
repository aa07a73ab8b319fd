"""Brokers that are closed to copies while a run is held: moves that need one wait, and the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.executor.brokers import CORDONED_LOG_DIRS
from kreassign.executor.events import HoldRequested, ReleaseRequested, SubmissionIntended
from kreassign.model import ConfigResource
from tests.executor.test_foreign_throttle_on_twin import change
from tests.executor.twin_runs import TwinRig, tp

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("release", "closed", "waits"), [("4.3", 3, {1}), ("4.4", 3, {1}), ("4.3", 1, ()), ("4.4", 1, {0})]
)
def test_moves_that_need_a_cordoned_broker_wait_alone(
    tmp_path: Path, release: str, closed: int, waits: set[int]
) -> None:
    """Kafka 4.4 takes no changed list that keeps a replica on such a broker, either."""
    rig = TwinRig(tmp_path, [[0, 1], [4, 0], [0, 4]], release=release)
    rig.end_within(600)
    targets = {0: (2, 1), 1: (3, 0), 2: (2, 4)}
    broker = ConfigResource.broker(closed)
    rig.after(5, lambda: change(rig, broker, CORDONED_LOG_DIRS, "*"))
    rig.ask_after(20, ReleaseRequested)
    rig.after(120, lambda: change(rig, broker, CORDONED_LOG_DIRS, None))
    found = rig.run(rig.prepared(targets), lambda number: HoldRequested(0, number))
    late = [event for event in rig.seen if isinstance(event, SubmissionIntended) and event.at_ms > 110_000]
    assert {name for event in late for name in event.partitions} == set(map(tp, waits))
    assert (found.state, rig.replicas) == ("done", targets)
