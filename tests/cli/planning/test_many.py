"""Many plans at once, and one plan in parts, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.model import Broker
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan_files import read_plan_file
from kreassign.operations.snapshot_files import read_snapshot, write_snapshot

MEGABYTE = 1_000_000


def snapshot(folder: Path, cluster: str, brokers: int = 4) -> Path:
    """Twelve partitions on the first two brokers."""
    lists = [(1, 2) if number % 2 else (2, 1) for number in range(12)]
    partitions = [
        SnapshotPartition(one, one, one[0], 1, ("/d",) * 2, (10 * MEGABYTE,) * 2, write_bytes_per_s=100.0)
        for one in lists
    ]
    hosts = [SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in range(1, brokers + 1)]
    path = folder / f"{cluster}.json"
    topics = (SnapshotTopic("orders", tuple(partitions)),)
    write_snapshot(path, ClusterSnapshot(1_767_225_600_000, cluster, tuple(hosts), topics))
    return path


def plan(*arguments: str | Path) -> Result:
    return CliRunner().invoke(kreassign, ["plan", *map(str, arguments)])


@pytest.fixture
def fleet(tmp_path: Path) -> list[Path]:
    return [snapshot(tmp_path, "c1"), snapshot(tmp_path, "c2", brokers=6), snapshot(tmp_path, "c3", brokers=2)]


def test_every_cluster_of_a_fleet_gets_its_plan(fleet: list[Path], tmp_path: Path) -> None:
    found = plan("fleet", *fleet, "--out-dir", tmp_path / "plans", "--format", "json")
    assert found.exit_code == 0, found.output
    rows = {row["cluster"]: row for row in json.loads(found.stdout)["plans"]}
    assert {name: row["moved_bytes"] // MEGABYTE for name, row in rows.items()} == {"c1": 120, "c2": 160, "c3": 0}
    alone = tmp_path / "alone.json"
    plan("rebalance", "--snapshot", fleet[1], "--out", alone)
    assert read_plan_file(tmp_path / "plans" / "c2.json").plan == read_plan_file(alone).plan


def test_a_cluster_without_a_plan_does_not_keep_the_others_from_theirs(fleet: list[Path]) -> None:
    goals = fleet[0].with_name("goals.toml")
    goals.write_text("[least-topic-leaders]\norders = 3\n")
    found = plan("fleet", *fleet, "--goals-file", goals)
    assert found.exit_code == 1
    assert "c2: no plan: " in found.output
    assert "c3: no plan" not in found.output


@pytest.mark.parametrize("words", [
    "rebalance --snapshot {} --by peak", "rebalance --snapshot {} --measure-for 1s", "rebalance --snapshot {} --seed 3",
    "rebalance --snapshot {} --conf spark.cores.max=4",
    "pareto --snapshot {} --out p", "pareto --snapshot {} --explain t-0",
    "brokers-needed --snapshot {} --out p", "fleet {} --snapshot {}", "fleet {} --cluster c1", "fleet {} --explain t-0",
    "fleet {} --bootstrap-server localhost:1", "fleet {} --out p", "fleet {} --current-out p",
])  # fmt: skip
def test_an_option_that_a_task_does_not_use_is_refused_by_name(fleet: list[Path], words: str) -> None:
    told = plan(*words.replace("{}", str(fleet[0])).split())
    option = words.rpartition(" --")[2].split(" ")[0]
    assert (told.exit_code, told.stdout, f"--{option} " in told.stderr) == (2, "", True), told.output


def test_a_fleet_writes_each_cluster_once_and_into_its_directory(fleet: list[Path], tmp_path: Path) -> None:
    twice = plan("fleet", fleet[0], fleet[0])
    assert (twice.exit_code, "cluster c1 is given 2 times" in twice.stderr) == (2, True)
    strange = snapshot(tmp_path, "c4")
    write_snapshot(strange, replace(read_snapshot(strange), cluster_id="../c4"))
    told = plan("fleet", strange, "--out-dir", tmp_path / "plans")
    assert (told.exit_code, "the id of cluster '../c4' is no name of a plan file" in told.stderr) == (2, True)


def test_without_clusters_there_is_nothing_to_plan() -> None:
    found = plan("fleet")
    assert found.exit_code == 2
    assert "specify snapshot files, or --data DIR and --as-of last" in found.output


def test_one_plan_in_parts_is_the_same_every_time_and_legal(fleet: list[Path]) -> None:
    found = [plan("rebalance", "--snapshot", fleet[0], "--parts", "3").stdout for _ in range(2)]
    assert found[0] == found[1]
    assert len(json.loads(found[0])["partitions"]) >= 12 * 2 // 4
