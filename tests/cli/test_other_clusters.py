"""Files and records that name a cluster, given to every command that reads them: another cluster's are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.executor.events import RunStarted
from kreassign.executor.journal import Journal
from kreassign.model import Broker, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import PlanFacts, Totals, plan_id
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.operations.plan_files import facts_path, write_plan
from kreassign.operations.snapshot_files import write_snapshot
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.server import serving
from tests.executor.run_events import SUBMITTED
from tests.twin.asking import cluster

HERE = "twin"
Make = Callable[[Path, str], Path]
PLAN = Plan((PartitionAssignment(TopicPartition("t", 0), (1, 0)),))
PLACED = SnapshotTopic("t", (SnapshotPartition((0, 1), (0, 1), 0, 1, ("/d", "/d"), (10, 10)),))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Twin(cluster({"t": [[0, 1]]}), TwinSettings()), speed=10.0) as thread:
        yield thread.bootstrap_servers


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KREASSIGN_BOOTSTRAP_SERVER", "KREASSIGN_DATA", "KREASSIGN_COMMAND_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def snapshot(path: Path, cluster_id: str = HERE) -> Path:
    dirs = (SnapshotLogDir("/d", 1000, 500),)
    brokers = tuple(SnapshotBroker(Broker(one, f"h{one}", 9092), dirs) for one in (0, 1))
    write_snapshot(path, ClusterSnapshot(1_767_225_600_000, cluster_id, brokers, (PLACED,)))
    return path


def with_facts(path: Path, cluster_id: str) -> Path:
    write_plan(path, PLAN, PlanFacts(plan_id(PLAN), "h", "rebalance", Totals(0, 0, 0), cluster_id=cluster_id))
    return path


def alone(path: Path, cluster_id: str) -> Path:
    facts_path(with_facts(path, cluster_id)).unlink()
    return path


def current(path: Path, cluster_id: str) -> Path:
    words = ["plan", "leaders", "--snapshot", str(snapshot(path.with_name("other.json"), cluster_id))]
    result = CliRunner().invoke(kreassign, [*words, "--current-out", str(path)])
    assert result.exit_code == 0, result.output
    write_plan(path, PLAN, cluster_id)
    return path


def journal(path: Path, cluster_id: str) -> Path:
    started = SUBMITTED[0]
    assert isinstance(started, RunStarted)
    with Journal.create(path.with_name("state"), replace(started, cluster_id=cluster_id)) as written:
        return written.path


PLANS = {"plan with facts": with_facts, "plan alone": alone, "replicas of before": current}
OF_PLANS = (
    "run {file} --yes {at}",
    "run {file} --dry-run {at}",
    "run {plain} --expect-current {file} --yes {at}",
    "verify {file} {at}",
    "plan import {file} {at} --measure-for 0",
    "plan import {file} --snapshot {here}",
    "plan restore {file} --snapshot {here}",
    "plan check {file} --snapshot {here}",
    "plan check {file} {at}",
    "rehearse {file} --snapshot {here}",
)
OF_SNAPSHOTS = ("plan --snapshot {file} --cluster twin", "rehearse {ours} --snapshot {file}")
OF_JOURNALS = (
    *(f"{word} run-1 {{at}}" for word in ("status", "watch", "pause", "resume", "cancel", "verify")),
    "throttle run-1 1MB/s {at}",
    "pace run-1 --max-moves 5 {at}",
    "rollback run-1 --yes {at}",
    "report --run run-1 {at}",
    "audit run run-1 --data {folder} {at}",
    "plan restore --run run-1 --snapshot {here}",
    "plan restore --run {file} --snapshot {here}",
    "rollback {file} --yes {at}",
)
TABLE = [
    *((kind, make, line) for kind, make in PLANS.items() for line in OF_PLANS),
    *(("snapshot", snapshot, line) for line in OF_SNAPSHOTS),
    *(("journal", journal, line) for line in OF_JOURNALS),
]


def invoke(line: str, file: Path, address: str) -> Result:
    folder = file.parent if file.suffix == ".json" else file.parent.parent.parent
    plain = folder / "plain.json"
    write_plan(plain, PLAN, None)
    names = {
        "file": file,
        "plain": plain,
        "here": snapshot(folder / "here.json"),
        "ours": with_facts(folder / "ours.json", HERE),
        "folder": folder,
        "at": f"--bootstrap-server {address}",
    }
    return CliRunner().invoke(kreassign, [word for part in line.split() for word in part.format(**names).split()])


@pytest.mark.parametrize(("make", "line"), [row[1:] for row in TABLE], ids=[f"{row[0]}: {row[2]}" for row in TABLE])
def test_what_is_of_another_cluster_is_refused(tmp_path: Path, address: str, make: Make, line: str) -> None:
    result = invoke(line, make(tmp_path / "file.json", "elsewhere"), address)
    assert result.exit_code == 2, (result.output, result.exception)
    one, other = (HERE, "elsewhere") if "{ours}" in line else ("elsewhere", HERE)
    assert f" cluster {one}, and this is cluster {other}: check which of the two is meant" in result.stderr


@pytest.mark.parametrize("line", ["run {plain} --dry-run {at}", "plan import {plain} --snapshot {here}",
                                  "plan restore {plain} --snapshot {here}"])  # fmt: skip
def test_a_plan_that_names_no_cluster_is_said_to_name_none(tmp_path: Path, address: str, line: str) -> None:
    result = invoke(line, with_facts(tmp_path / "file.json", HERE), address)
    assert result.exit_code == 0, result.output
    assert "not known, so its topics are compared by name only" in " ".join(result.output.split())


@pytest.mark.parametrize("line", OF_PLANS)
def test_what_is_of_this_cluster_is_not_refused(tmp_path: Path, address: str, line: str) -> None:
    assert "which of the two" not in invoke(line, with_facts(tmp_path / "file.json", HERE), address).output


def test_facts_of_another_cluster_than_their_plan_are_refused(tmp_path: Path) -> None:
    with_facts(tmp_path / "plan.json", "elsewhere")
    write_plan(tmp_path / "other.json", PLAN, HERE)
    (tmp_path / "other.json").replace(tmp_path / "plan.json")
    result = CliRunner().invoke(kreassign, ["approve", str(tmp_path / "plan.json")])
    assert (result.exit_code, "plan.facts.json: the plan beside it is for cluster twin" in result.stderr) == (2, True)


# Flags name the cluster whose run is meant.


@pytest.mark.parametrize("words", ["status", "status last", "watch"])
def test_the_run_is_that_of_the_cluster_at_the_address(tmp_path: Path, address: str, words: str) -> None:
    journal(tmp_path / "file.json", HERE)
    started = SUBMITTED[0]
    assert isinstance(started, RunStarted)
    with Journal.create(tmp_path / "state", replace(started, run_id="run-2", cluster_id="elsewhere")):
        pass
    result = invoke(f"{words} {{at}}", tmp_path / "file.json", address)
    assert (result.exit_code, "run run-1" in result.output) == (0, True), result.output


@pytest.mark.parametrize("word", ["status", "pause", "resume"])
def test_a_named_run_is_not_shown_for_a_cluster_that_does_not_answer(tmp_path: Path, word: str) -> None:
    journal(tmp_path / "file.json", HERE)
    (tmp_path / "client.properties").write_text("security.protocol=NONE\nbootstrap.servers=localhost:1")
    words = [word, "run-1", "--command-config", str(tmp_path / "client.properties")]
    result = CliRunner().invoke(kreassign, words)
    way = "so whether run run-1 is of it is not known; correct the address (what only shows the run needs none)"
    assert (result.exit_code, way in result.stderr) == (2, True), result.output
