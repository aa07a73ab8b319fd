"""A cluster without topics, as it is when it is new."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.snapshot_files import write_snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    log_dirs = tuple(SnapshotLogDir(path, 10**12, 10**11, is_offline=False, is_cordoned=False) for path in ("/a", "/b"))
    brokers = tuple(SnapshotBroker(Broker(number, "host", 9092 + number), log_dirs, {}) for number in range(3))
    write_snapshot(tmp_path / "cluster.json", ClusterSnapshot(1_767_225_600_000, "cluster", brokers))
    return tmp_path / "cluster.json"


@pytest.mark.parametrize(
    "task",
    [
        (),
        ("rebalance",),
        ("drain-brokers", "1"),
        ("add-brokers", "2"),
        ("demote", "1"),
        ("leaders",),
        ("repair",),
        ("replication-factor", "2"),
        ("disks",),
        ("drain-dirs", "1:/a"),
        ("what-if", "--remove-brokers", "1"),
    ],
)
def test_a_cluster_without_topics_needs_no_plan(snapshot: Path, tmp_path: Path, task: tuple[str, ...]) -> None:
    words = ["plan", *task, "--snapshot", str(snapshot), "--out", str(tmp_path / "plan.json")]
    done = CliRunner().invoke(kreassign, words)
    assert done.exit_code == 0, done.output
    assert "nothing to do" in done.stdout
    assert json.loads((tmp_path / "plan.json").read_text()) == {
        "version": 1,
        "cluster_id": "cluster",
        "partitions": [],
    }


def test_the_first_topic_has_a_place_on_it(snapshot: Path, tmp_path: Path) -> None:
    words = ["new-topic", "first", "--partitions", "6", "--replication-factor", "2"]
    done = CliRunner().invoke(
        kreassign, ["plan", *words, "--snapshot", str(snapshot), "--out", str(tmp_path / "plan.json")]
    )
    assert done.exit_code == 0, done.output
    placed = [broker for one in read_plan_file(tmp_path / "plan.json").plan.assignments for broker in one.replicas]
    assert sorted(placed) == sorted([0, 1, 2] * 4)
