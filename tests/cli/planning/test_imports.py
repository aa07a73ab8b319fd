"""`kreassign plan import`: what Cruise Control and topicmappr wrote becomes the plan that is kept beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kreassign.model.plan import parse_plan
from kreassign.operations.plan_files import read_plan_file
from tests.approved import DAYS, approve
from tests.cli.test_plan_tasks import cluster, flat, run

__all__ = ["cluster"]  # a fixture

GOLDEN = Path(__file__).parent / "imports"
"""In the form of `POST /rebalance?json=true&verbose=true` of Cruise Control 2.5, and of `topicmappr rebalance`."""


ENTRY = '{"topic":"t","partition":0,"replicas":[1]}'


@pytest.mark.parametrize("name", ["cruise_control", "topicmappr"])
def test_a_plan_of_another_tool_becomes_the_plan_kept_here(cluster: Path, tmp_path: Path, name: str) -> None:
    given = GOLDEN / name
    out = tmp_path / "plan.json"
    done = run(cluster, "import", given if given.is_dir() else given.with_suffix(".json"), "--out", out)
    assert done.exit_code == 0, done.output
    assert out.read_text() == (GOLDEN / f"{name}.plan.json").read_text()
    facts = read_plan_file(out).facts
    assert facts is not None
    assert facts.totals.moves == 2
    assert facts.totals.moved_bytes == 20_000_000


def test_what_cruise_control_wants_and_its_json_cannot_say_is_told(cluster: Path) -> None:
    done = run(cluster, "import", GOLDEN / "cruise_control.json")
    approve(done.stderr, "import-of-cruise-control", DAYS=DAYS, SNAPSHOT=cluster, FOLDER=GOLDEN)


def test_proposals_for_another_state_of_the_cluster_are_refused(cluster: Path, tmp_path: Path) -> None:
    stale = tmp_path / "stale.json"
    answer = json.loads((GOLDEN / "cruise_control.json").read_text())
    answer["proposals"][1]["oldReplicas"] = [1, 3]
    stale.write_text(json.dumps(answer))
    done = run(cluster, "import", stale, "--out", tmp_path / "plan.json")
    assert done.exit_code == 5
    assert "stale.json was made for another state of the cluster: 1 of 5 partitions" in done.output
    assert "orders-0 on 2,3, not 1,3; let its maker plan again" in done.output
    assert not (tmp_path / "plan.json").exists()


def test_old_replicas_in_another_order_are_the_same_state(cluster: Path, tmp_path: Path) -> None:
    turned = tmp_path / "turned.json"
    text = (GOLDEN / "cruise_control.json").read_text()
    turned.write_text(text.replace('"oldReplicas":[3,2]', '"oldReplicas":[2,3]'))
    assert run(cluster, "import", turned).exit_code == 0


def test_more_replicas_in_one_rack_are_told(cluster: Path, tmp_path: Path) -> None:
    """Brokers 2 and 4 share a rack."""
    plan = tmp_path / "near.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"orders","partition":1,"replicas":[4,2]}]}')
    assert "orders-1: more replicas in one rack than before" in flat(run(cluster, "import", plan).output)


def test_partitions_and_brokers_that_are_not_there_are_named_each(cluster: Path, tmp_path: Path) -> None:
    plan = tmp_path / "gone.json"
    entries = [{"topic": "gone", "partition": 0, "replicas": [1]}, {"topic": "orders", "partition": 0, "replicas": [9]}]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    done = run(cluster, "import", plan)
    assert done.exit_code == 2
    assert "gone-0: there is no topic gone" in done.output
    assert "9" in done.output


@pytest.mark.parametrize(("text", "words"), [
    ('{"progress":[{"operation":"Rebalance","operationProgress":[]}],"version":1}', "was still computing"),
    ('{"stackTrace":"java","errorMessage":"There are only 0 valid windows","version":1}', "only 0 valid windows"),
    ('{"summary":{"numReplicaMovements":1},"goalSummary":[],"version":1}', "json=true&verbose=true"),
    ("[{orders-0, oldLeader: 2, [2, 3] -> [4, 3]}]\n\nOptimization has 1 inter-broker replica moves", "to people"),
    ('{"version":1,"topics":[{"topic":"orders"}]}', "no array `partitions`"),
    ('{"version":1,"partitions":[{"topic":"orders","partition":0}]}', "is for kafka-leader-election"),
    (f'{{"version":1,"partitions":[{ENTRY},{ENTRY}]}}', "line 1: t-0 is named more than once"),
])  # fmt: skip
def test_what_is_no_plan_is_refused_with_its_file_and_what_to_do(
    cluster: Path, tmp_path: Path, text: str, words: str
) -> None:
    given = tmp_path / "given.json"
    given.write_text(text)
    done = run(cluster, "import", given)
    assert done.exit_code == 2
    assert str(given) in done.output
    assert words in done.output


def test_two_files_that_contradict_each_other_are_both_named(cluster: Path, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    shutil.copytree(GOLDEN / "topicmappr", maps)
    (maps / "users.json").write_text((maps / "users.json").read_text().replace("[3,4]", "[4,3]"))
    done = run(cluster, "import", maps)
    assert done.exit_code == 2
    assert "users.json: says users-0: 4,3, but rebalance.json says users-0: 3,4" in done.output


def test_a_directory_without_plans_is_told_and_facts_are_no_plan(cluster: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has a name that ends in .json" in run(cluster, "import", empty).output
    out = empty / "plan.json"
    assert run(cluster, "drain-brokers", "3", "--out", out).exit_code == 0
    again = tmp_path / "again.json"
    assert run(cluster, "import", empty, "--out", again).exit_code == 0
    assert read_plan_file(again).plan == read_plan_file(out).plan == parse_plan(out.read_text())
