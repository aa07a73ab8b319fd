"""One cause, one sentence: every command says in the same words why a partition cannot move, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.executor.preflight import ClusterNow, violations
from kreassign.model import Broker, Cluster, OngoingReassignment, Partition, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan, not_live
from kreassign.model.reassignment import WAIT_OR_CANCEL
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.model.throttle import NO_THROTTLE
from kreassign.operations.plan_files import write_plan
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.planner.problem.holds import Hold

pytestmark = pytest.mark.thorough

T0 = TopicPartition("t", 0)
GB = 10**9
BROKERS = tuple(Broker(number, f"host-{number}", 9092) for number in range(4))
DIRS = tuple(SnapshotLogDir(path, 1_000 * GB, 900 * GB) for path in ("/a", "/b"))
DEAD = 9
UNTOUCHED = (
    "broker 9 is not live: 1 partition with a replica there is not touched; `kreassign plan repair` repairs them"
)

CAUSES: dict[Hold, tuple[dict[str, Any], tuple[str, ...]]] = {
    Hold.EXCLUDED: ({}, ("--exclude-topics", "t")),
    Hold.MOVING: ({"replicas": (0, 1, 2), "adding": (2,), "log_dirs": ("/a",) * 3, "sizes_bytes": (GB,) * 3}, ()),
    Hold.UNSIZED: ({"sizes_bytes": (None, None)}, ()),
    Hold.LEADERLESS: ({"leader": -1}, ()),
    Hold.OUT_OF_REACH: ({"replicas": (8, DEAD), "isr": (DEAD,), "leader": -1, "sizes_bytes": (None, None)}, ()),
}


def snapshot(path: Path, **different: Any) -> None:
    """Four brokers, and two topics of a partition on brokers 0 and 1; that of the first is different."""
    usual: dict[str, Any] = {
        "replicas": (0, 1), "isr": (0, 1), "leader": 0, "leader_epoch": 0, "log_dirs": ("/a", "/a"),
        "sizes_bytes": (GB, GB), "start_offset": 0, "end_offset": 100, "write_bytes_per_s": 0.0,
    }  # fmt: skip
    topics = [SnapshotTopic("t", (SnapshotPartition(**{**usual, **different}),))]
    topics.append(SnapshotTopic("u", (SnapshotPartition(**usual),)))
    brokers = tuple(SnapshotBroker(one, DIRS) for one in BROKERS)
    write_snapshot(path, ClusterSnapshot(1_000_000, "c", brokers, tuple(topics)))


def told(folder: Path, *words: str, to: tuple[int, ...] = (2, 3)) -> str:
    """Output of a command of `plan` on the snapshot, in one line; PLAN is a plan that moves t-0."""
    write_plan(folder / "plan.json", Plan((PartitionAssignment(T0, to),)), None)
    line = [str(folder / "plan.json") if word == "PLAN" else word for word in words]
    output = CliRunner().invoke(kreassign, ["plan", *line, "--snapshot", str(folder / "snapshot.json")]).output
    return " ".join(output.split())


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
@pytest.mark.parametrize("command", [
    ("import", "PLAN"), ("restore", "PLAN"), ("replication-factor", "1", "--allow-factor-change"),
    ("drain-brokers", "0"), ("what-if", "--remove-brokers", "0"),
], ids=lambda command: command[0])  # fmt: skip
def test_a_partition_that_must_stay_has_the_same_reason_everywhere(
    tmp_path: Path, command: tuple[str, ...], cause: Hold
) -> None:
    different, options = CAUSES[cause]
    snapshot(tmp_path / "snapshot.json", **different)
    if cause is Hold.OUT_OF_REACH:  # what brokers that run have is no cause of it
        command = tuple(str(DEAD) if word == "0" else word for word in command)
    output = told(tmp_path, *command, *options)
    assert f"({cause.why}); {cause.remedy}" in output


@pytest.mark.parametrize("command", [
    ("rebalance",), ("leaders",), ("add-brokers", "3"), ("demote", "0"), ("disks",),
], ids=lambda command: command[0])  # fmt: skip
def test_a_dead_broker_is_left_alone_in_the_same_words_everywhere(tmp_path: Path, command: tuple[str, ...]) -> None:
    snapshot(tmp_path / "snapshot.json", replicas=(0, DEAD), isr=(0,), log_dirs=("/a", None), sizes_bytes=(GB, None))
    assert UNTOUCHED in told(tmp_path, *command)


def refusals(partition: Partition, *to: int, ongoing: Mapping[TopicPartition, OngoingReassignment]) -> tuple[str, ...]:
    """Output of `run`, `rehearse` and rollbacks for a plan that moves t-0 there."""
    now = ClusterNow(Cluster("c", 0, BROKERS), {T0: partition}, ongoing)
    return violations(Plan((PartitionAssignment(T0, to),)), now, NO_THROTTLE)


def test_a_run_says_of_dead_brokers_and_moves_what_plans_say(tmp_path: Path) -> None:
    here = Partition(T0, (0, 1), (0, 1), 0)
    snapshot(tmp_path / "snapshot.json")
    dead = f"{T0}: {not_live(DEAD, range(4))}"
    assert refusals(here, 2, DEAD, ongoing={}) == (dead,)
    assert [dead in told(tmp_path, one, "PLAN", to=(2, DEAD)) for one in ("import", "restore")] == [True, True]
    (moving,) = refusals(here, 2, 3, ongoing={T0: OngoingReassignment((0, 1, 2), (2,), ())})
    assert Hold.MOVING.why in moving
    assert WAIT_OR_CANCEL in moving
    assert WAIT_OR_CANCEL in Hold.MOVING.remedy
