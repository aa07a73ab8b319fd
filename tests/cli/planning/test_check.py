"""`kreassign plan check` against a twin on real ports: its exit code, and how each partition drifts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.model import TopicPartition
from kreassign.operations.connect import connect
from kreassign.operations.snapshot import SnapshotOutputs, store_snapshot
from kreassign.twin.access import ANONYMOUS, CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Allow, Permissions
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from tests.approved import approve
from tests.twin.asking import cluster

TOPICS = {"orders": [[0, 1], [1, 2]], "users": [[2, 3]]}


@pytest.fixture
def server() -> Iterator[str]:
    with serving(Twin(cluster(TOPICS), TwinSettings()), speed=1.0) as thread:
        yield thread.bootstrap_servers


@pytest.fixture
def placement(server: str, tmp_path: Path) -> Path:
    """Placement of the cluster, as `--update` writes it."""
    path = tmp_path / "placement.json"
    done = check(server, path, "--update")
    assert (done.exit_code, done.output) == (0, f"placement of 3 partitions written to {path}\n")
    return path


def check(server: str, *words: object) -> Result:
    return CliRunner().invoke(kreassign, ["plan", "check", *map(str, words), "--bootstrap-server", server])


def found(server: str, *words: object) -> tuple[int, list[tuple[str, int, str]]]:
    done = check(server, *words, "-o", "json")
    document = json.loads(done.stdout)
    return done.exit_code, [(one["topic"], one["partition"], one["kind"]) for one in document["findings"]]


def declare(path: Path, number: int, **fields: Any) -> None:
    document = json.loads(path.read_text())
    document["partitions"][number] |= fields
    path.write_text(json.dumps(document))


def test_a_cluster_that_is_as_it_was_written_down_passes(server: str, placement: Path) -> None:
    done = check(server, placement)
    assert (done.exit_code, done.stdout) == (0, "3 declared partitions: all as declared\n")
    assert [line.count("topic") for line in placement.read_text().splitlines()] == [0, 1, 1, 1, 0]
    other = CliRunner().invoke(kreassign, ["plan", f"--check={placement}", "--bootstrap-server", server])
    assert other.output == done.output


def test_what_differs_is_told_partition_by_partition_and_the_check_fails(server: str, placement: Path) -> None:
    declare(placement, 0, replicas=[0, 3])
    declare(placement, 1, replicas=[2, 1])
    done = check(server, placement)
    assert done.exit_code == 1
    approve(done.output, "check", PLACEMENT=placement, SERVER=server)
    assert found(server, placement) == (1, [("orders", 0, "replicas"), ("orders", 1, "order")])
    assert found(server, placement, "--topics", "users") == (0, [])
    comment = check(server, placement, "-o", "markdown")
    assert comment.exit_code == 1
    approve(comment.stdout, "check-as-markdown")


def test_the_plan_that_the_check_names_brings_the_cluster_back(server: str, placement: Path, tmp_path: Path) -> None:
    declare(placement, 0, replicas=[0, 3])
    plan, state = tmp_path / "plan.json", ["--state-dir", str(tmp_path / "state")]
    ways = [
        ["plan", "import", str(placement), "--out", str(plan), "--measure-for", "0"],
        ["run", str(plan), "--yes", "--measure-for", "0", "--poll-interval", "0.1", *state],
    ]
    for words in ways:
        done = CliRunner().invoke(kreassign, [*words, "--bootstrap-server", server])
        assert done.exit_code == 0, done.output
    assert found(server, placement) == (0, [])


def test_a_move_under_way_is_drift_with_its_target(tmp_path: Path) -> None:
    placement = tmp_path / "placement.json"
    with serving(Twin(cluster(TOPICS, size_bytes=10**12), TwinSettings()), speed=1.0) as thread:
        server = thread.bootstrap_servers
        assert check(server, placement, "--update").exit_code == 0
        with connect(server) as client:
            client.alter_partition_reassignments({TopicPartition("users", 0): (2, 0)}).raise_if_any()
        done = check(server, placement)
        assert done.exit_code == 1
        assert "users-0: is on 2,0, declared on 2,3: broker 3 missing, broker 0 not declared; it is" in done.stdout
        declare(placement, 2, replicas=[2, 0])
        assert found(server, placement) == (1, [("users", 0, "moving")])


def test_partitions_and_topics_on_one_side_only(server: str, placement: Path) -> None:
    document = json.loads(placement.read_text())
    document["partitions"] = [document["partitions"][0], {"topic": "gone", "partition": 0, "replicas": [1]}]
    placement.write_text(json.dumps(document))
    done = check(server, placement)
    assert done.exit_code == 1
    approve(done.output, "check-of-one-side", PLACEMENT=placement, SERVER=server)
    assert "plan import" not in done.stderr, "which could not plan for a partition that is not there"
    assert found(server, placement, "--topics", "users") == (0, [])
    assert check(server, placement, "--topics", "users", "--strict").exit_code == 1


def test_a_log_directory_that_is_declared_is_compared(server: str, placement: Path) -> None:
    with connect(server) as client:
        dirs = client.describe_log_dirs([0]).raise_if_any()[0]
    (here,) = (one for one in dirs for copy in one.replicas if copy.topic_partition == ("orders", 0))
    declare(placement, 0, log_dirs=[here.path, "any"])
    assert found(server, placement) == (0, [])
    declare(placement, 0, log_dirs=["/elsewhere", "any"])
    done = check(server, placement)
    assert done.exit_code == 1
    assert f"orders-0: on broker 0 it is in {here.path}, declared in /elsewhere" in done.stdout


def test_a_directory_of_placements_is_compared_with_a_snapshot(server: str, placement: Path, tmp_path: Path) -> None:
    folder, whole = tmp_path / "placements", tmp_path / "cluster.json.gz"
    folder.mkdir()
    for topic in TOPICS:
        assert check(server, folder / f"{topic}.json", "--update", "--topics", topic).exit_code == 0
    assert found(server, folder) == (0, [])
    with connect(server) as client:
        store_snapshot(client, SnapshotOutputs(None, whole, 0))
    declare(folder / "users.json", 0, replicas=[3, 2])
    done = CliRunner().invoke(kreassign, ["plan", "check", str(folder), "--snapshot", str(whole)])
    assert done.exit_code == 1
    assert "users-0: is on 2,3, declared on 3,2" in done.stdout


@pytest.mark.parametrize(("words", "said"), [
    (("missing.json",), "there is no file missing.json; `kreassign plan check missing.json --update` writes one"),
    (("a.json", "b.json", "--update"), "--update writes one file"),
])  # fmt: skip
def test_what_cannot_be_checked_is_said(server: str, words: tuple[str, ...], said: str) -> None:
    done = check(server, *words)
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(("replicas", "said"), [
    ([1, 1], "broker 1 is named more than once"), ([], "the list of replicas is empty")
])  # fmt: skip
def test_a_placement_that_no_cluster_can_have_is_refused(
    server: str, placement: Path, replicas: list[int], said: str
) -> None:
    declare(placement, 0, replicas=replicas)
    done = check(server, placement)
    assert done.exit_code == 2
    assert said in done.output


def test_without_a_cluster_and_a_snapshot_it_says_what_to_specify(placement: Path) -> None:
    done = CliRunner().invoke(kreassign, ["plan", "check", str(placement)])
    assert done.exit_code == 2
    assert "specify --bootstrap-server for the cluster as it is, or --snapshot FILE" in done.output


def test_a_placement_of_another_cluster_is_one_sentence(server: str, placement: Path) -> None:
    document = {"partitions": [{"topic": f"gone-{number}", "partition": 0, "replicas": [1]} for number in range(300)]}
    placement.write_text(json.dumps(document))
    done = check(server, placement)
    assert done.exit_code == 1
    said = "none of its 300 topics is here (cluster id twin); check which cluster it was made for"
    assert done.stdout.startswith(f"{said}\n")
    assert "--update" not in done.stdout
    assert "gone-7:" not in done.stdout
    assert len(found(server, placement)[1]) == 300
    for verb in ("import", "restore"):
        words = ["plan", verb, str(placement), "--bootstrap-server", server, "--measure-for", "0"]
        refused = CliRunner().invoke(kreassign, words)
        assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_an_update_keeps_a_file_of_which_a_topic_is_hidden(placement: Path) -> None:
    """Who may see one topic only, and updates what another wrote, takes no topic from it."""
    before = placement.read_text()
    seen = {Allow(ANONYMOUS, one) for one in CLUSTER_OPERATIONS}
    seen |= {Allow(ANONYMOUS, one, "users") for one in TOPIC_OPERATIONS}
    settings = TwinSettings(permissions=Permissions(frozenset(seen)))
    with serving(Twin(cluster(TOPICS), settings), speed=1.0) as thread:
        done = check(thread.bootstrap_servers, placement, "--update")
        assert (done.exit_code, "orders" in done.stderr) == (4, True), done.output
        assert placement.read_text() == before
        assert check(thread.bootstrap_servers, placement, "--update", "--topics", "users").exit_code == 0
    assert "orders" not in placement.read_text()


def test_a_pattern_that_matches_nothing_is_refused(server: str, placement: Path) -> None:
    done = check(server, placement, "--topics", "order")
    said = "no topic matches order, neither one that is declared nor one of the cluster; did you mean 'orders'?"
    assert (done.exit_code, done.output) == (2, f"error: {said}\n")


@pytest.mark.parametrize(("content", "said"), [
    ('{"version":1,"partitions":[]}', "it names no partition"),
    ("{old}<<<<<<< HEAD\n{old}", "line 6 is a conflict marker of Git; resolve the conflict first"),
    ("{old}{old}", "a second document begins in line 6; a file holds one document"),
])  # fmt: skip
def test_half_a_placement_is_refused(server: str, placement: Path, content: str, said: str) -> None:
    placement.write_text(content.replace("{old}", placement.read_text()))
    done = check(server, placement)
    assert (done.exit_code, said in done.output) == (2, True)


def test_an_update_by_a_name_that_no_topic_has_replaces_nothing(server: str, placement: Path) -> None:
    before = placement.read_text()
    done = check(server, placement, "--update", "--topics", "odrers")
    assert (done.exit_code, placement.read_text()) == (2, before)
    assert "no topic matches odrers" in done.stderr


def test_an_update_by_a_topic_that_was_deleted_declares_it_no_longer(server: str, placement: Path) -> None:
    with connect(server) as client:
        client.delete_topics(["orders"]).raise_if_any()
    done = check(server, placement, "--update", "--topics", "orders")
    assert (done.exit_code, done.output) == (0, f"placement of 0 partitions written to {placement}\n")
    assert "orders" not in placement.read_text()


def test_an_update_declares_log_directories_again(server: str, placement: Path) -> None:
    """Those of partitions that declared one, as they are now; the cluster of the file stays named."""
    with connect(server) as client:
        dirs = client.describe_log_dirs([0]).raise_if_any()[0]
        cluster_id = client.describe_cluster().cluster_id
    (here,) = (one for one in dirs for copy in one.replicas if copy.topic_partition == ("orders", 0))
    declare(placement, 0, log_dirs=["/elsewhere", "any"])
    placement.write_text(json.dumps({**json.loads(placement.read_text()), "cluster_id": cluster_id}))
    assert check(server, placement, "--update").exit_code == 0
    document = json.loads(placement.read_text())
    assert [one.get("log_dirs") for one in document["partitions"]] == [[here.path, "any"], None, None]
    assert document["cluster_id"] == cluster_id


def test_an_update_from_another_cluster_is_refused(server: str, placement: Path) -> None:
    text = json.dumps({**json.loads(placement.read_text()), "cluster_id": "another"})
    placement.write_text(text)
    done = check(server, placement, "--update")
    assert (done.exit_code, placement.read_text()) == (2, text)
    assert "the placement is for cluster another, and this is cluster " in done.stderr
