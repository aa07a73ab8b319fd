import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kreassign as kreassign_api
from kreassign.cli.main import kreassign
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import plan_id
from kreassign.operations.plan_files import approval_of, approval_path, read_plan_file, request_path, write_plan
from kreassign.operations.plan_files import approve as approve_plan
from kreassign.pipeline.tables.parquet import read_rows
from kreassign.pipeline.tables.parquet import write_rows as add_rows
from kreassign.pipeline.tables.schemas import PLAN_INPUTS
from tests.approved import DAYS, approve
from tests.cli.commands.test_confirm import at_terminal
from tests.pipeline.clusters import UNKNOWN_LOADS
from tests.pipeline.finished_load import write_rows
from tests.pipeline.load_tables import write_brokers

MEGABYTE = 1_000_000


def tables(data: Path, *partitions: tuple[list[int], int | None], cluster: str = "c1", **changes: Any) -> None:
    """Brokers 0 to 2, and partitions t-0, t-1, … from (replicas, size in MB), as one snapshot."""
    snapshot = {"snapshot_id": f"s-{cluster}", "cluster_id": cluster}
    rows = [
        {**snapshot, **UNKNOWN_LOADS, "topic": "t", "partition": number, "broker": broker, "position": position,
         "is_leader": position == 0, "is_reassigning": False, "size_bytes": None if size is None else size * MEGABYTE,
         "write_bytes_per_s": None, "coverage": "no samples", **changes}
        for number, (replicas, size) in enumerate(partitions)
        for position, broker in enumerate(replicas)
    ]  # fmt: skip
    write_brokers(data, 3, cluster, **snapshot)
    write_rows(data, PLAN_INPUTS, rows, file_stem=cluster)


UNEVEN = [([0], 10), ([0], 10), ([0], 10), ([1], 10), ([1], 10), ([1], 10)]


def plan(data: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(kreassign, ["plan", "--data", str(data), "--as-of", "last", *map(str, arguments)])


def test_a_plan_is_kafkas_json_and_fills_the_empty_broker(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    result = plan(tmp_path, "--out", tmp_path / "plan.json", "--current-out", tmp_path / "current.json")
    assert result.exit_code == 0, result.output
    found = read_plan_file(tmp_path / "plan.json").plan
    assert list(found.replicas.values()) == [(2,), (2,)]
    assert json.loads((tmp_path / "plan.json").read_text())["version"] == 1
    current = read_plan_file(tmp_path / "current.json").plan.replicas
    assert current.keys() == found.replicas.keys()
    assert sorted(current.values()) == [(0,), (1,)]


def test_an_approved_plan_is_not_replaced_by_another(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    out = tmp_path / "plan.json"
    assert plan(tmp_path, "--out", out).exit_code == 0
    approved = plan_id(read_plan_file(out).plan)
    approve_plan(out, approved, "ann", "", 1)
    assert plan(tmp_path, "--out", out).exit_code == 0, "the same plan again"
    back = plan(tmp_path, "--out", tmp_path / "other.json", "--current-out", out)
    assert (back.exit_code, (tmp_path / "other.json").exists()) == (2, False)
    drain = ["plan", "drain-brokers", "0", "--data", str(tmp_path), "--as-of", "last", "--out", str(out)]
    words = CliRunner().invoke(kreassign, drain)
    assert words.exit_code == 2
    assert f"{out} is not replaced: ann approved plan {approved} there" in words.stderr
    assert f"`kreassign approve {out} --revoke`" in words.stderr
    assert approval_of(out) is not None
    assert plan_id(read_plan_file(out).plan) == approved


def test_a_revoke_takes_back_approvals_that_cannot_be_read(tmp_path: Path) -> None:
    plan_file = tmp_path / "plan.json"
    write_plan(plan_file, Plan((PartitionAssignment(TopicPartition("t", 0), (1, 2)),)), None)
    for beside in (approval_path(plan_file), request_path(plan_file)):
        beside.write_text("{}")
    assert CliRunner().invoke(kreassign, ["approve", str(plan_file), "--revoke"]).exit_code == 0
    assert [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_a_fleet_replaces_no_approved_plan(tmp_path: Path) -> None:
    for cluster in ("c1", "c2"):
        tables(tmp_path, *UNEVEN, cluster=cluster)
    folder = tmp_path / "plans"
    folder.mkdir()
    other = Plan((PartitionAssignment(TopicPartition("t", 0), (1, 2)),))
    write_plan(folder / "c2.json", other, None)
    approve_plan(folder / "c2.json", plan_id(other), "ann", "", 1)
    fleet = ["plan", "fleet", "--data", str(tmp_path), "--as-of", "last", "--out-dir", str(folder)]
    assert "c2.json is not replaced: ann approved" in CliRunner().invoke(kreassign, fleet).stderr
    assert not (folder / "c1.json").exists()


@pytest.mark.parametrize(("current", "both"), [
    ("plan.json", "plan.json"),
    ("{folder}/plan.json", "plan.json"),
    ("sub/../plan.json", "plan.json"),
    ("linked/plan.json", "plan.json"),
    ("link.json", "plan.json"),
    ("plan", "plan.facts.json"),
    ("plan.facts.json", "plan.facts.json"),
    ("plan.approval.json", "plan.approval.json"),
    ("plan.request.json", "plan.request.json"),
])  # fmt: skip
def test_a_plan_and_the_way_back_are_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, current: str, both: str
) -> None:
    """And so are the files beside each: a plan that lost its facts would run without its checks."""
    tables(tmp_path / "data", *UNEVEN)
    monkeypatch.chdir(tmp_path)
    for link, target in (("linked", tmp_path), ("link.json", "plan.json")):
        Path(link).symlink_to(target)
    Path("sub").mkdir()
    before = sorted(one.name for one in tmp_path.iterdir())
    given = current.format(folder=tmp_path)
    done = plan(tmp_path / "data", "--out", "plan.json", "--current-out", given)
    said = f"--out and --current-out both write {tmp_path / both}; give them different names"
    assert (done.exit_code, said in done.stderr) == (2, True), done.output
    assert sorted(one.name for one in tmp_path.iterdir()) == before
    turned = plan(tmp_path / "data", "--out", given, "--current-out", "plan.json")
    assert (turned.exit_code, said in turned.stderr) == (2, True), turned.output


def test_a_fleet_writes_no_plan_where_facts_of_another_belong(tmp_path: Path) -> None:
    for cluster in ("c1", "c1.facts"):
        tables(tmp_path, *UNEVEN, cluster=cluster)
    folder = tmp_path / "plans"
    fleet = ["plan", "fleet", "--data", str(tmp_path), "--as-of", "last", "--out-dir", str(folder)]
    done = CliRunner().invoke(kreassign, fleet)
    assert (done.exit_code, "the id of cluster 'c1.facts' is no name of a plan file" in done.stderr) == (2, True)
    assert not folder.exists()


def test_a_plan_uses_the_last_load_or_the_one_of_a_given_time(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    even = [dict(each) for each in read_rows(tmp_path, PLAN_INPUTS)]
    for number, each in enumerate(even):
        each["broker"] = number % 3
    write_rows(tmp_path, PLAN_INPUTS, even, file_stem="c1", load_ms=60_000)
    unfinished = [each | {"broker": 2} for each in even]
    add_rows(tmp_path, PLAN_INPUTS, unfinished, file_stem="c1")
    moved = {
        words: json.loads(plan(tmp_path, "--format", "json", *words).stdout)["plan"]["partitions"]
        for words in ((), ("--as-of", "1970-01-01T00:01"), ("--as-of", "1970-01-01T01:00:59+01:00"), ("--as-of", "1"))
    }
    assert [len(partitions) for partitions in moved.values()] == [0, 0, 2, 2]
    assert len(kreassign_api.plan(tmp_path, as_of=59_999).plan) == 2
    refused = plan(tmp_path, "--as-of", "1969-12-31")
    assert refused.exit_code == 6
    assert f"no load of {tmp_path} had begun by 1969-12-31 00:00:00Z, the first began at 1970-01-01" in refused.stderr
    file = tmp_path / "cluster.json"
    file.touch()
    both = CliRunner().invoke(kreassign, ["plan", "--snapshot", str(file), "--as-of", "2027-01-31"])
    assert (both.exit_code, "a plan is made from one of --snapshot and --as-of" in both.stderr) == (2, True)


def test_without_a_finished_load_there_is_no_plan(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    shutil.rmtree(tmp_path / "loads")
    result = plan(tmp_path)
    assert result.exit_code == 6
    assert f"no load that made table plan_inputs in {tmp_path} was finished; run `kreassign load`" in result.stderr


def test_the_summary_tells_bytes_bound_gap_and_brokers_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tables(tmp_path, *UNEVEN)
    options = ("--out", "plan.json", "--max-load-age", "none")
    shown = plan(tmp_path, *options).output
    approve(shown, "plan", DAYS=DAYS)
    assert max(len(line) for line in shown.splitlines() if "plan.json" not in line) <= 80, "a path has any length"
    approve(plan(tmp_path, *options, "--wide").output, "plan-wide", DAYS=DAYS)


def test_without_a_file_the_plan_alone_is_on_stdout(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    result = plan(tmp_path)
    assert len(json.loads(result.stdout)["partitions"]) == 2
    assert "lower bound: " in result.stderr


def test_the_summary_as_json_has_the_facts_and_the_plan(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    found = json.loads(plan(tmp_path, "--format", "json", "--rate", "1MB/s", "--explain", "t-0").stdout)
    assert found["totals"]["moved_bytes"] == 20 * MEGABYTE
    assert found["brokers"][2]["after"]["disk"] == 20 * MEGABYTE
    assert found["prediction"]["seconds"] == 20.0
    assert found["remaining"] == []
    assert found["goals"][0] == {
        "name": "disk",
        "before": {"least": 0.0, "most": 1.5},
        "after": {"least": 1.0, "most": 1.0},
    }
    assert len(found["plan"]["partitions"]) == found["changed_partitions"] == 2
    assert found["explained"][0].startswith("t-0 ")


def test_the_facts_beside_the_plan_expect_the_present_state(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    plan(tmp_path, "--out", tmp_path / "plan.json")
    found = read_plan_file(tmp_path / "plan.json")
    assert found.facts is not None
    assert (found.facts.task, found.facts.cluster_id, found.facts.snapshot_id) == ("rebalance", "c1", "s-c1")
    assert found.expected.keys() == found.plan.replicas.keys()
    assert all(fact.reasons for fact in found.facts.partitions)


def test_the_same_tables_give_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    for name in ("one", "two"):
        plan(tmp_path, "--out", tmp_path / f"{name}.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert (tmp_path / "one.facts.json").read_bytes() == (tmp_path / "two.facts.json").read_bytes()


def test_from_load_names_the_same_tables_as_data(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    from_load = CliRunner().invoke(kreassign, ["plan", "--from-load", str(tmp_path), "--as-of", "last"])
    assert from_load.exit_code == 0, from_load.output
    assert from_load.stdout == plan(tmp_path).stdout


def test_what_is_being_moved_or_has_no_known_size_is_left_alone(tmp_path: Path) -> None:
    tables(tmp_path / "moving", *UNEVEN, is_reassigning=True)
    assert json.loads(plan(tmp_path / "moving").stdout)["partitions"] == []
    tables(tmp_path / "unknown", *[(replicas, None) for replicas, _ in UNEVEN])
    assert json.loads(plan(tmp_path / "unknown").stdout)["partitions"] == []


def test_an_even_cluster_needs_no_plan_and_says_so(tmp_path: Path) -> None:
    tables(tmp_path, ([0], 10), ([1], 10), ([2], 10))
    result = plan(tmp_path, "--out", tmp_path / "plan.json")
    assert result.exit_code == 0
    assert result.stdout.startswith("rebalance: nothing to do, for all brokers are within their bands\n")
    assert json.loads((tmp_path / "plan.json").read_text())["partitions"] == []


def test_several_clusters_in_the_tables_need_a_choice(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN, cluster="c1")
    tables(tmp_path, ([0], 10), cluster="c2")
    assert plan(tmp_path).exit_code == 2
    assert "choose with --cluster one of c1, c2" in plan(tmp_path).stderr
    chosen = plan(tmp_path, "--cluster", "c1")
    assert {TopicPartition(entry["topic"], entry["partition"]) for entry in json.loads(chosen.stdout)["partitions"]}
    assert plan(tmp_path, "--cluster", "c9").exit_code == 6


def test_missing_tables_name_the_command_that_makes_them(tmp_path: Path) -> None:
    result = plan(tmp_path)
    assert result.exit_code == 6
    assert "correct the name, or fill it with `kreassign collect`" in result.stderr


@pytest.mark.thorough
def test_at_a_terminal_the_passes_of_the_search_are_shown_while_they_run(tmp_path: Path) -> None:
    tables(tmp_path, *UNEVEN)
    code, shown = at_terminal(
        ["plan", "--data", str(tmp_path), "--as-of", "last", "--out", str(tmp_path / "plan.json")]
    )
    assert code == 0, shown
    lines = shown.split("\r\x1b[2K")
    assert lines[1:3] == ["searching a plan", "searching a plan: forced changes"]
    assert lines[-2] == "checking the plan, and finding the reason of each change"
    assert lines[-1].startswith("rebalance: "), "the result takes its place"
