"""The first minutes of somebody who has a cluster and has read nothing: `kreassign` alone, and a plan from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.executor.events import RunStarted
from kreassign.executor.journal import Journal
from kreassign.operations.connect import connect
from kreassign.operations.plan_files import read_plan_file
from kreassign.twin.blueprint import PartitionPlan, TopicPlan
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.server import serving
from tests.approved import approve
from tests.executor.run_events import SUBMITTED
from tests.operations.test_table_inputs import tables
from tests.twin.asking import MEGABYTES, cluster

UNEVEN = [[0, 1]] * 8
PLAN = ("plan", "--measure-for", "0.1")


def invoke(*words: object) -> Result:
    return CliRunner().invoke(kreassign, [str(word) for word in words])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a cluster with four brokers, of which two have everything."""
    with serving(Twin(cluster({"t": UNEVEN}), TwinSettings()), speed=10.0) as thread:
        yield thread.bootstrap_servers


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KREASSIGN_BOOTSTRAP_SERVER", "KREASSIGN_DATA", "KREASSIGN_COMMAND_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


# `kreassign` alone


def test_alone_it_shows_the_journey_and_without_a_cluster_how_to_name_one() -> None:
    shown = invoke()
    assert shown.exit_code == 0
    assert max(map(len, shown.output.splitlines())) <= 80
    approve(shown.output, "alone-without-a-cluster")


def test_kreassign_alone_shows_the_cluster_and_that_a_plan_is_next(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", address)
    approve(invoke().output, "alone-with-a-cluster", SERVER=address)


def test_kreassign_alone_shows_an_open_run_and_how_to_go_on(own_state: Path) -> None:
    first, *rest = SUBMITTED
    assert isinstance(first, RunStarted)
    with Journal.create(own_state, first) as journal:
        for event in rest:
            journal.append(event)
        approve(invoke().output, "alone-with-a-run")
    approve(invoke().output, "alone-with-an-interrupted-run", STATE=own_state)


def test_why_the_cluster_cannot_be_asked_is_said_after_the_journey(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=NONE")
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", "localhost:1")
    monkeypatch.setenv("KREASSIGN_COMMAND_CONFIG", str(tmp_path / "client.properties"))
    shown = invoke()
    assert shown.exit_code == 0
    assert "\ncluster at localhost:1: " in shown.stdout
    assert "security.protocol" in shown.stdout


def test_kreassign_alone_shows_no_run_of_another_cluster(
    address: str, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", address)
    first = SUBMITTED[0]
    assert isinstance(first, RunStarted)
    with Journal.create(own_state, first):
        shown = invoke()
        assert "run run-1" not in shown.output
        assert "\n1 run of other clusters or unknown ones: kreassign status --all\n" in shown.stdout
        for command in ("status", "pause", "cancel", "resume"):
            refused = invoke(command)
            assert refused.exit_code == 2
            assert "there is no run of cluster " in refused.stderr
    with connect(address) as client:
        here = client.describe_cluster().cluster_id
    with Journal.create(own_state, replace(first, run_id="run-0", cluster_id=here)):
        assert "\nrun run-0: " in invoke().stdout
        assert invoke("status").stdout.startswith("run run-0: ")


# A plan from the cluster


def test_a_plan_is_made_from_the_cluster_itself(address: str, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    made = invoke(*PLAN, "--bootstrap-server", address, "--out", out)
    assert made.exit_code == 0, made.output
    approve(made.stderr, "plan-from-a-cluster", PLAN=out, SERVER=address)
    assert made.stdout.splitlines()[1].startswith("loads: measured for 0.1 s only, ")
    assert "doubtful" not in made.stdout
    found = read_plan_file(out)
    with connect(address) as client:
        assert {broker for target in found.plan.replicas.values() for broker in target} >= {2, 3}
        assert found.facts is not None
        assert found.facts.cluster_id == client.describe_cluster().cluster_id
    assert found.facts.loads is not None
    assert (found.facts.loads.source, found.facts.loads.measured_for_s) == ("cluster", 0.1)


def test_an_empty_cluster_is_called_so() -> None:
    with serving(Twin(cluster({}), TwinSettings()), speed=10.0) as thread:
        looked = invoke("doctor", "--measure-for", "0", "--bootstrap-server", thread.bootstrap_servers)
        made = invoke(*PLAN, "--bootstrap-server", thread.bootstrap_servers)
    assert looked.stdout.endswith("\nthere is no topic that this client may see\nno faults\n")
    assert "rebalance: nothing to do, for the cluster has no partition that this client may see\n" in made.stderr
    assert "no load is known" not in made.output


def test_loads_of_seconds_are_refused_where_load_is_required(address: str, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    refused = invoke(*PLAN, "--bootstrap-server", address, "--require-load", "--out", out)
    assert refused.exit_code == 2
    assert "the loads were measured for 0.1 s only; measure for longer, with `--measure-for 60`" in refused.stderr
    assert not out.exists()


def test_placement_comes_from_the_cluster_and_loads_from_tables(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("KREASSIGN_DATA", str(data))
    without = invoke("plan")
    assert (without.exit_code, "DIR has loads only: specify --bootstrap-server" in without.stderr) == (2, True)
    monkeypatch.setenv("KREASSIGN_BOOTSTRAP_SERVER", address)
    live = invoke(*PLAN, "--format", "json")
    assert json.loads(live.stdout)["loads"]["source"] == "cluster"
    fallen_back = invoke("plan", "--format", "json", "--measure-for", "0")
    assert json.loads(fallen_back.stdout)["loads"]["source"] == "cluster"
    assert invoke("plan", "--data", data).exit_code == 6
    with connect(address) as client:
        here = client.describe_cluster().cluster_id
    tables(data, {"t": [(2, 3)] * 8, "gone": [(0,)]}, here, knows_ids=False)
    told = json.loads(invoke("plan", "--format", "json").stdout)
    assert (told["loads"]["source"], told["loads"]["gone"], told["loads"]["partitions"]) == ("mean", 1, 8)
    assert told["loads"]["placed_ms"] > told["loads"]["taken_ms"]
    assert {one["broker"]: one["before"]["replicas"] for one in told["brokers"]} == {0: 8, 1: 8, 2: 0, 3: 0}
    shown = invoke("plan", "--out", tmp_path / "plan.json").stdout
    assert "\nplacement: read 20" in shown
    assert "\nloads: mean, samples until 2025-12-31 23-" in shown
    then = json.loads(invoke("plan", "--as-of", "last", "--format", "json").stdout)
    assert {one["broker"]: one["before"]["replicas"] for one in then["brokers"]} == {0: 1, 1: 0, 2: 8, 3: 8}


@pytest.mark.parametrize(("words", "said"), [
    (("--data", ".", "--measure-for", "1"), "the loads are those of --data or measured"),
    (("--as-of", "last", "--bootstrap-server", "here:1"), "made from one of --as-of and --bootstrap-server"),
    (("--as-of", "last"), "specify --data DIR"),
    ((), "specify --bootstrap-server for the cluster as it is, or --snapshot FILE"),
])  # fmt: skip
def test_sources_that_exclude_each_other_are_refused(words: tuple[str, ...], said: str) -> None:
    refused = invoke("plan", *words)
    assert (refused.exit_code, said in refused.stderr) == (2, True), refused.output


def test_another_cluster_than_the_one_in_force_is_refused(address: str) -> None:
    refused = invoke(*PLAN, "--bootstrap-server", address, "--cluster", "other")
    assert (refused.exit_code, "--cluster names cluster other, and this is cluster twin" in refused.stderr) == (
        2,
        True,
    ), refused.output


def test_the_cluster_has_no_other_load_than_its_present_one(address: str) -> None:
    refused = invoke(*PLAN, "--bootstrap-server", address, "--by", "p95")
    assert (refused.exit_code, "specify --data DIR" in refused.stderr) == (2, True)


def test_plan_disks_shows_what_each_log_directory_gives_and_takes(tmp_path: Path) -> None:
    full = PartitionPlan((0, 1), Traffic(size_bytes=MEGABYTES), paths=("/data/0/d0", "/data/1/d0"))
    twin = Twin(replace(cluster(), topics=(TopicPlan("t", (full,) * 4),)), TwinSettings())
    words = ("plan", "disks", "--measure-for", "0", "--out", tmp_path / "plan.json")
    with serving(twin, speed=1.0) as thread:
        made = invoke(*words, "--bootstrap-server", thread.bootstrap_servers)
    assert made.exit_code == 0, made.output
    lines = made.stdout.splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("broker  log directory"))
    approve(lines[head : head + 5], "plan-within-brokers")
