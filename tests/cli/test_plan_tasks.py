"""Every planning task from the command line, on a small cluster given as a snapshot file."""

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.errors import InputError
from kreassign.executor.events import PlannedMove, RunStarted
from kreassign.executor.journal import Journal
from kreassign.model import Broker, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.requests import NewPartitions
from kreassign.model.snapshot import ClusterSnapshot, SnapshotBroker, SnapshotLogDir, SnapshotPartition, SnapshotTopic
from kreassign.model.throttle import NO_THROTTLE
from kreassign.operations.api import place_partitions, place_topic, plan
from kreassign.operations.plan import PlanRequest, SearchPlace
from kreassign.operations.plan_files import read_plan_file, write_plan
from kreassign.operations.plan_tasks import DrainBrokers, ReplaceBrokers
from kreassign.operations.snapshot_files import read_snapshot, write_snapshot
from tests.approved import DAYS, approve

MEGABYTE = 1_000_000
DIRS = ("/d1", "/d2")
Lists = dict[TopicPartition, tuple[int, ...]]


def partition(*replicas: int, directory: str = "/d1") -> SnapshotPartition:
    count = len(replicas)
    return SnapshotPartition(
        replicas, replicas, replicas[0], 1, (directory,) * count, (10 * MEGABYTE,) * count, write_bytes_per_s=100.0
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Brokers 1 to 4 in racks a, b; 4 is empty. Topics orders (8 partitions) and users (4), on 1 to 3."""
    # Full, and each a disk of its own.
    full = zip(DIRS, (500, 2 * MEGABYTE), strict=True)
    disks = tuple(SnapshotLogDir(path, 1000 * MEGABYTE, usable) for path, usable in full)
    hosts = [SnapshotBroker(Broker(number, "h", 9092, "ab"[number % 2]), disks) for number in (1, 2, 3, 4)]
    orders = tuple(partition(*((1, 2) if number % 2 else (2, 3))) for number in range(8))
    users = tuple(partition(3, 2) for _ in range(4))
    topics = (SnapshotTopic("orders", orders), SnapshotTopic("users", users))
    path = tmp_path / "cluster.json"
    write_snapshot(path, ClusterSnapshot(1_767_225_600_000, "c1", tuple(hosts), topics))
    return path


def run(cluster: Path, task: str, *arguments: str | Path) -> Result:
    return CliRunner().invoke(kreassign, ["plan", task, "--snapshot", str(cluster), *map(str, arguments)])


def flat(text: str) -> str:
    """Without the line ends of a narrow terminal."""
    return " ".join(text.split())


def planned(cluster: Path, task: str, *arguments: str | Path) -> tuple[Lists, Lists]:
    """The lists before and after, of the partitions that change."""
    out = cluster.with_name("plan.json")
    result = run(cluster, task, "--out", out, *arguments)
    assert result.exit_code == 0, result.output
    if not json.loads(out.read_text())["partitions"]:  # which nobody else would take for a plan
        return {}, {}
    found = read_plan_file(out)
    return found.expected, found.plan.replicas


def said(cluster: Path, task: str, *arguments: str | Path) -> dict[str, Any]:
    result = run(cluster, task, "--format", "json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_rebalance_of_one_topic_moves_no_other(cluster: Path) -> None:
    _, after = planned(cluster, "rebalance", "--topic", "orders")
    assert {name.topic for name in after} == {"orders"}
    _, without = planned(cluster, "rebalance", "--exclude-topics", "ord.*")
    assert {name.topic for name in without} == {"users"}


def test_a_band_and_goals_are_chosen_by_flags_or_file(cluster: Path) -> None:
    goals = cluster.with_name("goals.toml")
    goals.write_text('[[goals]]\nname = "leaders"\ntolerance = 50\n')
    assert [one["name"] for one in said(cluster, "rebalance", "--goals-file", goals)["goals"]] == ["leaders"]
    assert [one["name"] for one in said(cluster, "rebalance", "--goal", "disk=5", "--goal", "replicas")["goals"]] == [
        "disk",
        "replicas",
    ]


def test_topics_are_spread_by_flag_or_file(cluster: Path) -> None:
    by_flag = said(cluster, "rebalance", "--goal", "replicas", "--goal", "topic-spread=0")
    goals = cluster.with_name("spread.toml")
    goals.write_text("[[goals]]\nname = 'replicas'\n[[goals]]\nname = 'topic-spread'\ntolerance = 0\n")
    assert said(cluster, "rebalance", "--goals-file", goals)["plan_id"] == by_flag["plan_id"]
    assert said(cluster, "rebalance", "--goal", "replicas")["plan_id"] != by_flag["plan_id"]
    assert not [line for line in by_flag["remaining"] if line.startswith("topic ")]
    goals.write_text("[[goals]]\nname = 'topic-spread'\nweight = 2\n")
    refused = run(cluster, "rebalance", "--goals-file", goals)
    assert "goal topic-spread: unknown key 'weight'" in refused.stderr
    assert "'topic-spread=x' is not a goal" in run(cluster, "rebalance", "--goal", "topic-spread=x").stderr


def test_what_one_more_loss_would_bring_is_shown_before_and_after(cluster: Path) -> None:
    by_flag = said(cluster, "rebalance", "--goal", "leaders", "--goal", "failover=any")
    assert [(one["state"], one["goal"], one["limit"]) for one in by_flag["losses"]] == [
        ("before", "leaders", None),
        ("after", "leaders", None),
    ]
    goals = cluster.with_name("failover.toml")
    goals.write_text("[[goals]]\nname = 'leaders'\n[[goals]]\nname = 'failover'\ntolerance = 'any'\n")
    assert said(cluster, "rebalance", "--goals-file", goals)["plan_id"] == by_flag["plan_id"]
    shown = run(cluster, "rebalance", "--goal", "leaders", "--goal", "failover=20")
    assert "one more loss" in shown.stderr
    assert "losses" not in said(cluster, "rebalance")


def test_leaders_of_topics_are_spread_by_flag_or_file(cluster: Path) -> None:
    by_flag = said(cluster, "leaders", "--goal", "topic-leaders=0")
    assert by_flag["totals"]["moves"] == 0
    assert by_flag["topic_leaders"]["missed_after"] < by_flag["topic_leaders"]["missed_before"]
    goals = cluster.with_name("even.toml")
    goals.write_text("[[goals]]\nname = 'topic-leaders'\ntolerance = 0\n")
    assert said(cluster, "leaders", "--goals-file", goals)["plan_id"] == by_flag["plan_id"]
    assert "topics with uneven leaders: " in run(cluster, "leaders", "--goals-file", goals).stderr
    assert "topic_leaders" not in said(cluster, "leaders")


def test_coordinators_are_weighed_by_the_groups_that_a_file_names(cluster: Path) -> None:
    snapshot = read_snapshot(cluster)
    offsets = SnapshotTopic("__consumer_offsets", tuple(partition(1, 2) for _ in range(8)), {})
    write_snapshot(cluster, replace(snapshot, topics=(*snapshot.topics, offsets)))
    groups = cluster.with_name("groups.txt")
    groups.write_text("".join(f"group-{number}\n" for number in range(40)))
    found = said(cluster, "leaders", "--goal", "coordinators", "--groups", groups)
    loads = [(one["before"]["coordinators"], one["after"]["coordinators"]) for one in found["brokers"]]
    assert [before for before, _ in loads] == [40, 0, 0, 0]
    assert sum(after for _, after in loads) == 40
    assert max(after for _, after in loads) < 40
    refused = run(cluster, "leaders", "--goal", "coordinators")
    assert (refused.exit_code, "name it with --groups" in refused.stderr) == (2, True)


def test_replicas_go_only_onto_added_brokers(cluster: Path) -> None:
    before, after = planned(cluster, "add-brokers", "4")
    assert after
    assert all(set(after[name]) - set(before[name]) <= {4} for name in after)


def test_a_drained_broker_holds_nothing_and_only_its_partitions_change(cluster: Path) -> None:
    before, after = planned(cluster, "drain-brokers", "1")
    assert len(after) == 4
    assert all(1 in before[name] and 1 not in after[name] for name in after)


def test_a_replaced_broker_hands_over_its_places(cluster: Path) -> None:
    before, after = planned(cluster, "drain-brokers", "2", "--replace-with", "4", "--racks", "none")
    assert after == {name: tuple(4 if broker == 2 else broker for broker in old) for name, old in before.items()}
    assert len(after) == 12


def test_a_drained_directory_keeps_its_replicas_on_their_broker(cluster: Path) -> None:
    out = cluster.with_name("plan.json")
    assert run(cluster, "drain-dirs", "1:/d1", "--out", out).exit_code == 0
    found = read_plan_file(out).plan
    assert {(replica.broker, path) for replica, path in found.log_dirs.items()} == {(1, "/d2")}
    assert len(found) == 4


def test_directories_are_evened_out(cluster: Path) -> None:
    found = said(cluster, "disks")
    assert found["totals"]["log_dir_moves"] > 0
    assert found["totals"]["moves"] == 0


def test_a_factor_is_raised_for_a_topic(cluster: Path) -> None:
    _, after = planned(cluster, "replication-factor", "3", "--topic", "users")
    assert {name.topic for name in after} == {"users"}
    assert all(len(replicas) == 3 for replicas in after.values())


def test_leaders_and_demote_copy_nothing(cluster: Path) -> None:
    before, after = planned(cluster, "demote", "3")
    assert all(before[name][0] == 3 != after[name][0] and sorted(before[name]) == sorted(after[name]) for name in after)
    assert len(after) == 4
    assert said(cluster, "leaders")["totals"]["moves"] == 0


def test_repair_of_a_whole_cluster_has_nothing_to_do(cluster: Path) -> None:
    assert run(cluster, "repair", "--no-fix-racks").stderr.startswith("repair: nothing to do")


def test_the_lists_of_a_file_are_restored_if_they_can_be(cluster: Path) -> None:
    wanted = Plan((PartitionAssignment(TopicPartition("users", 0), (4, 2)),))
    file = cluster.with_name("before.json")
    write_plan(file, wanted, None)
    assert planned(cluster, "restore", file)[1] == wanted.replicas
    unknown = cluster.with_name("unknown.json")
    write_plan(unknown, Plan((PartitionAssignment(TopicPartition("gone", 0), (9,)),)), None)
    refused = run(cluster, "restore", unknown)
    assert refused.exit_code == 2
    assert "its topic gone is not here" in refused.stderr


def test_the_state_before_a_run_is_restored_from_its_journal(cluster: Path) -> None:
    moves = (PlannedMove(TopicPartition("users", 1), (2, 4), (3, 2), 0),)
    with Journal.create(
        cluster.with_name("state"), RunStarted(0, "20260101T000000Z-0001", "c1", moves, NO_THROTTLE, (1,))
    ):
        arguments = ("--run", "20260101T000000Z-0001", "--state-dir", cluster.with_name("state"))
        assert planned(cluster, "restore", *arguments)[1] == {TopicPartition("users", 1): (2, 4)}


def test_other_circumstances_are_planned_for(cluster: Path) -> None:
    found = said(cluster, "what-if", "--add-brokers", "1", "--traffic", "2", "--growth", "10", "--at", "2026-01-31")
    assert found["task"] == "what if 1 more broker, traffic x 2, 10.0% growth a month for 30 days"
    assert [one["broker"] for one in found["brokers"]] == [1, 2, 3, 4, 5]
    assert sum(one["before"]["disk"] for one in found["brokers"]) == pytest.approx(24 * 11 * MEGABYTE)


def test_a_drain_that_needs_room_says_what_it_moves_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rooms, sizes = {1: 1000, 2: 112, 3: 67}, {1: (80,), 2: (30, 10)}
    hosts = tuple(
        SnapshotBroker(Broker(number, "h", 9092, None), (SnapshotLogDir("/d1", room * MEGABYTE, 0),))
        for number, room in rooms.items()
    )
    held = tuple(
        SnapshotPartition((host,), (host,), host, 1, ("/d1",), (size * MEGABYTE,), write_bytes_per_s=100.0)
        for host, each in sizes.items()
        for size in each
    )
    path = tmp_path / "tight.json"
    write_snapshot(path, ClusterSnapshot(1_767_225_600_000, "c1", hosts, (SnapshotTopic("t", held),)))
    result = run(path, "drain-brokers", "1", "--out", "plan.json", "--explain", "t-1", "--explain", "t-2")
    approve(result.output, "plan-drain-that-needs-room", DAYS=DAYS)


def test_from_python_and_in_parts_a_forced_task_moves_as_little(cluster: Path) -> None:
    for parts in (1, 3):
        request = PlanRequest(search=SearchPlace(parts=parts))
        totals = plan(cluster, DrainBrokers((3,)), request=request).facts.totals
        assert (totals.moves, totals.moved_bytes, totals.gap) == (8, 80 * MEGABYTE, 0.0)


def test_the_brokers_needed_are_told(cluster: Path) -> None:
    assert said(cluster, "brokers-needed", "--at-most", "7.5")["brokers"] == 2
    approve(run(cluster, "brokers-needed").output, "plan-brokers-needed", DAYS=DAYS)
    told = said(cluster, "brokers-needed")
    assert (told["no_limit"], told["no_load"]) == (["net-in", "net-out", "cpu", "replicas", "leaders"], [])


def test_the_brokers_needed_name_resources_of_which_no_load_is_known(tmp_path: Path) -> None:
    hosts = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in (1, 2, 3))
    parts = tuple(replace(partition(1, 2), write_bytes_per_s=None) for _ in range(6))
    path, goals = tmp_path / "cluster.json", tmp_path / "goals.toml"
    write_snapshot(path, ClusterSnapshot(1, "c1", hosts, (SnapshotTopic("t", parts),)))
    goals.write_text('[capacity]\ndisk = "1GB"\nnet-in = "5MB/s"\n')
    text = run(path, "brokers-needed", "--goals-file", goals).output
    approve(text, "plan-brokers-needed-without-loads", DAYS=DAYS)
    told = said(path, "brokers-needed", "--goals-file", goals)
    assert told["no_limit"] == ["replicas", "leaders"]
    assert told["no_load"] == ["net-in", "net-out", "cpu"]


def test_every_limit_is_told_with_its_unit_and_who_says_so(cluster: Path, tmp_path: Path) -> None:
    measured = "measured: their file systems, 10% of them kept free, the default"
    text = run(cluster, "rebalance", "--out", tmp_path / "plan.json").output
    assert f"limit: disk 1.8 GB, 4 brokers {measured}" in flat(text)
    assert f"limit: disk 1.8 GB, 4 brokers {measured}" in flat(run(cluster, "brokers-needed").output)
    goals = tmp_path / "goals.toml"
    goals.write_text('disk-reserve = 20\n[capacity]\nnet-in = "5MB/s"\n[broker-capacity.2]\ndisk = "3GB"\n')
    facts = said(cluster, "rebalance", "--goals-file", goals)["limits"]
    assert [(one["goal"], one["unit"], one["brokers"], one["least"], one["most"]) for one in facts] == [
        ("disk", "B", 3, 1600 * MEGABYTE, 1600 * MEGABYTE),
        ("disk", "B", 1, 3000 * MEGABYTE, 3000 * MEGABYTE),
        ("net-in", "B/s", 4, 5 * MEGABYTE, 5 * MEGABYTE),
    ]
    assert [one["source"] for one in facts] == [
        "measured: their file systems, 20% of them kept free",
        "the goals file, for single brokers",
        "the goals file, for all brokers",
    ]
    assert said(cluster, "brokers-needed", "--goals-file", goals)["limits"] == facts


def test_brokers_without_limits_and_goals_without_loads_are_said_to_be_so(tmp_path: Path) -> None:
    """Without rates there is no traffic to balance; it does not count as 0."""
    hosts = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in (1, 2, 3))
    parts = tuple(replace(partition(1, 2), write_bytes_per_s=None) for _ in range(6))
    path = tmp_path / "cluster.json"
    write_snapshot(path, ClusterSnapshot(1, "c1", hosts, (SnapshotTopic("t", parts),)))
    text = flat(run(path, "rebalance", "--out", tmp_path / "plan.json").output)
    assert "limits: none of the brokers is known" in text
    assert "not balanced, no load is known: net-in, net-out, cpu" in text
    assert said(path, "rebalance")["unknown_goals"] == ["net-in", "net-out", "cpu"]


def test_a_topic_whose_partitions_are_of_unequal_size_is_named(tmp_path: Path) -> None:
    hosts = tuple(SnapshotBroker(Broker(number, "h", 9092), (SnapshotLogDir("/d"),)) for number in (1, 2, 3))
    large = replace(partition(1, 2), sizes_bytes=(70 * MEGABYTE,) * 2)
    even, uneven = tuple(partition(2, 3) for _ in range(3)), (partition(3, 1), large, partition(1, 3))
    path = tmp_path / "cluster.json"
    write_snapshot(
        path, ClusterSnapshot(1, "c1", hosts, (SnapshotTopic("clicks", uneven), SnapshotTopic("even", even)))
    )
    text = flat(run(path, "rebalance", "--out", tmp_path / "plan.json").output)
    told = "unequal partitions: clicks-1 has 70 MB, the 2 others of its topic 10 MB on the average"
    assert told in text
    fields = {"partition": "clicks-1", "size_bytes": 70 * MEGABYTE, "other_bytes": 10 * MEGABYTE, "partitions": 3}
    assert said(path, "rebalance")["uneven_topics"] == [fields]


def test_choices_are_listed_and_written(cluster: Path) -> None:
    found = said(cluster, "pareto", "--out-dir", cluster.with_name("plans"))["choices"]
    written = {path.name for path in cluster.with_name("plans").iterdir()}
    assert written == {f"{one['id']}{end}" for one in found for end in (".json", ".facts.json")}
    assert "leaders only" in run(cluster, "pareto").stdout


def test_a_budget_is_kept_and_what_remains_is_said(cluster: Path) -> None:
    found = said(cluster, "rebalance", "--budget-moves", "1")
    assert found["totals"]["moves"] == 1
    assert found["remaining"]
    assert said(cluster, "rebalance", "--fit-in", "11s", "--rate", "1MB/s")["prediction"]["seconds"] <= 11
    assert (
        said(cluster, "rebalance", "--max-leader-changes", "0", "--budget-bytes", "10MB")["totals"]["leader_changes"]
        == 0
    )


def test_a_budget_into_which_nothing_fits_is_named_as_the_cause(cluster: Path) -> None:
    shown = run(cluster, "rebalance", "--goal", "disk", "--fit-in", "1s", "--rate", "1MB/s").stderr
    assert shown.startswith("rebalance: nothing to do, for no change that fits into the budget brings brokers nearer")
    assert "nothing has to be copied" not in shown
    assert "it takes" not in shown


def test_a_plan_of_leaders_shows_a_goal_that_it_changes(cluster: Path) -> None:
    shown = run(cluster, "demote", "2", "--goal", "disk", "--goal", "leaders").stderr
    assert "\nleaders of brokers (" in shown
    assert "\ndisk of brokers (" not in shown


def test_why_a_partition_moves_or_stays_is_explained(cluster: Path) -> None:
    shown = run(cluster, "drain-brokers", "1", "--explain", "orders-1", "--explain", "users-0").stderr
    approve(shown, "plan-drain-explained", DAYS=DAYS, SNAPSHOT=cluster)


WRONG = [
    (("rebalance", "--topic", "order"), "there is no topic 'order' in this cluster; did you mean 'orders'?"),
    (("rebalance", "--topics", "x.*"), "no topic matches 'x.*'"),
    (("rebalance", "--goal", "dsk"), "there is no goal 'dsk'"),
    (("rebalance", "--exclude-brokers", "9"), "there is no broker 9 in this cluster; it has 1,2,3,4"),
    (("rebalance", "--exclude-brokers", "a"), "'a' is not a list of broker ids"),
    (("rebalance", "--fit-in", "4h"), "--fit-in needs --rate"),
    (
        ("rebalance", "--explain", "users-9"),
        "there is no partition users-9 in this cluster: topic users has partitions 0 to 3",
    ),
    (("rebalance", "--explain", "users"), "'users' is not a partition; write topic-partition"),
    (("add-brokers", "7"), "there is no broker 7"),
    (("drain-brokers", "1,2", "--replace-with", "4"), "--replace-with needs one successor for each broker"),
    (("drain-dirs", "d1"), "'d1' is not a log directory; write BROKER:PATH"),
    (("drain-dirs", "1:/x"), "broker 1 has no log directory /x; it has /d1, /d2"),
    (("replication-factor", "5"), "there are 4"),
    (("what-if", "--growth", "5"), "--growth needs --at"),
    (("what-if", "--at", "2020-01-01"), "2020-01-01 is before the snapshot was taken"),
    (("restore",), "specify either FILE or --run RUN_ID"),
    (("restore", "--run", "nope"), "there is no run nope"),
]


@pytest.mark.parametrize(
    ("words", "complaint"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_what_is_wrong_is_said_in_one_line(cluster: Path, words: tuple[str, ...], complaint: str) -> None:
    result = run(cluster, *words)
    assert result.exit_code == 2
    assert complaint in result.stderr.splitlines()[-1]


def test_a_goals_file_that_cannot_be_read_is_named(cluster: Path) -> None:
    goals = cluster.with_name("goals.toml")
    goals.write_text("racks = 7")
    result = run(cluster, "rebalance", "--goals-file", goals)
    assert result.exit_code == 2
    assert f"{goals}: racks: 7 is none of strict, even, none" in result.stderr


def test_a_failed_directory_is_repaired_on_other_brokers(cluster: Path) -> None:
    document = json.loads(cluster.read_text())
    next(one for one in document["brokers"] if one["id"] == 1)["log_dirs"][0]["is_offline"] = True
    for topic in document["topics"]:
        for one in topic["partitions"]:
            one["log_dirs"] = ["" if broker == 1 else DIRS[0] for broker in one["replicas"]]
    cluster.write_text(json.dumps(document))
    found = said(cluster, "rebalance")
    assert found["remaining"][0].startswith("broker 1 has lost copies with a log directory: 4 partitions")
    assert found["partitions"]
    assert all(1 not in one["replicas"] for one in found["partitions"])
    before, after = planned(cluster, "repair", "--no-fix-racks")
    assert len(after) == 4
    assert all(1 in before[name] and 1 not in after[name] for name in after)


def test_what_no_broker_has_is_told_while_the_rest_is_repaired(cluster: Path) -> None:
    document = json.loads(cluster.read_text())
    document["brokers"] = [one for one in document["brokers"] if one["id"] not in (1, 2)]
    cluster.write_text(json.dumps(document))
    found = said(cluster, "repair", "--no-fix-racks")
    remaining = [line for line in found["remaining"] if "no live broker has a copy" in line]
    assert len(remaining) == 4
    assert remaining[0].startswith("orders-1 stays on brokers ")
    assert len(found["partitions"]) == 8


def without_broker(cluster: Path, broker: int) -> None:
    document = json.loads(cluster.read_text())
    document["brokers"] = [one for one in document["brokers"] if one["id"] != broker]
    cluster.write_text(json.dumps(document))


def test_dead_brokers_are_repaired_or_drained(cluster: Path) -> None:
    without_broker(cluster, 1)
    before, after = planned(cluster, "repair", "--no-fix-racks")
    assert all(1 in before[name] and 1 not in after[name] for name in after)
    assert planned(cluster, "drain-brokers", "1")[1].keys() == after.keys()


def test_other_tasks_plan_around_dead_brokers_and_say_so(cluster: Path) -> None:
    without_broker(cluster, 1)
    found = said(cluster, "rebalance", "--racks", "none")
    told = (
        "broker 1 is not live: 4 partitions with a replica there are not touched; `kreassign plan repair` repairs them"
    )
    # It carries what it is left with; no band is missed there.
    assert [sentence for sentence in found["remaining"] if sentence.startswith("broker 1")] == [told]
    assert found["totals"]["moves"] > 0
    lists = {one["topic"] + str(one["partition"]): one["replicas"] for one in found["plan"]["partitions"]}
    assert all(1 not in replicas for replicas in lists.values())
    assert not {"orders1", "orders3", "orders5", "orders7"} & lists.keys()


def test_a_partition_that_a_task_must_change_is_repaired_with_it(cluster: Path) -> None:
    without_broker(cluster, 1)
    _, after = planned(cluster, "replication-factor", "2", "--topic", "orders")
    assert after == {}
    _, after = planned(cluster, "drain-brokers", "2", "--racks", "none")
    assert len(after) == 12
    assert all(set(replicas) <= {3, 4} for replicas in after.values())


def test_a_new_topic_goes_to_the_empty_broker_with_its_command(cluster: Path) -> None:
    words = ("--partitions", "2", "--replication-factor", "2", "--like", "orders")
    found = said(cluster, "new-topic", "clicks", *words)
    lists = [tuple(one["replicas"]) for one in found["plan"]["partitions"]]
    assert all(4 in one and len(set(one)) == 2 for one in lists)
    assert found["command"] == (
        f"kafka-topics --create --topic clicks --replica-assignment {':'.join(map(str, lists[0]))},"
        f"{':'.join(map(str, lists[1]))}"
    )
    assert found["rebalance_bytes"]["saved"] > 0
    out = cluster.with_name("new.json")
    shown = run(cluster, "new-topic", "clicks", *words, "--out", out)
    assert "new topic clicks: 2 partitions, 4 replicas; nothing that is there moves" in shown.stdout
    assert f"create with: {found['command']}\n" in shown.stdout
    assert list(read_plan_file(out).plan.replicas.values()) == lists
    assert read_plan_file(out).origin.cluster_id == found["plan"]["cluster_id"] == "c1"
    write_snapshot(cluster, replace(read_snapshot(cluster), cluster_id="c2"))
    strange = run(cluster, "import", out)
    assert (strange.exit_code, "is for cluster c1" in flat(strange.stderr)) == (2, True), strange.stderr
    assert [one.assignments for one in [place_topic(cluster, "clicks", 2, 2, expected="orders").new_topic]] == [
        tuple(lists)
    ]


def test_kafka_gets_the_present_lists_with_new_partitions(cluster: Path) -> None:
    found = said(cluster, "partitions", "users", "6")
    new = [one["partition"] for one in found["plan"]["partitions"]]
    assert new == [4, 5]
    assert found["command"].startswith("kafka-topics --alter --partitions 6 --topic users --replica-assignment ")
    assert len(found["command"].split()[-1].split(",")) == 6
    placement = place_partitions(cluster, "users", 6)
    assert placement.new_partitions == NewPartitions(6, placement.lists)


@pytest.mark.parametrize(("words", "told"), [
    (("new-topic", "orders", "--partitions", "1", "--replication-factor", "1"), "topic orders is there already"),
    (("new-topic", "a.b", "--partitions", "1", "--replication-factor", "1"), "topic a.b collides with topic a_b"),
    (("new-topic", "a_b", "--partitions", "1", "--replication-factor", "1"), "topic a_b is there already"),
    (("new-topic", "a b", "--partitions", "1", "--replication-factor", "1"), "cannot be a topic"),
    (("new-topic", "a", "--partitions", "1", "--replication-factor", "9"), "needs 9 brokers"),
    (("new-topic", "a", "--partitions", "1", "--replication-factor", "1", "--like", "b"), "there is no topic 'b'"),
    (("new-topic", "a", "--partitions", "1", "--replication-factor", "1", "--like", "t", "--size", "1"), "leave out"),
    (("new-topic", "a", "--partitions", "1", "--replication-factor", "1", "--rate", "1MB/s"), "--rate has no meaning"),
    (("partitions", "users", "4"), "has 4 partitions already"),
    (("partitions", "users", "10005"), "get 10,001 new partitions; a controller creates at most 10,000 per request"),
    (("new-topic", "a", "--partitions", "10000", "--replication-factor", "1"), "creates at most 9,999 per request"),
    (("partitions", "users", "2147483647"), "topic users would get 2,147,483,643 new partitions"),
    (("new-topic", "a", "--partitions", "2147483647", "--replication-factor", "1"), "2,147,483,647 new partitions"),
    (("partitions", "nope", "4"), "there is no topic 'nope'"),
])  # fmt: skip
def test_partitions_that_cannot_be_placed_are_refused_by_name(cluster: Path, words: tuple[str, ...], told: str) -> None:
    found = read_snapshot(cluster)
    write_snapshot(cluster, replace(found, topics=(*found.topics, SnapshotTopic("a_b", (partition(1),)))))
    refused = run(cluster, *words)
    assert (refused.exit_code, told in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize("words", [
    ("add-brokers", "4,4"),
    ("drain-brokers", "1,2,1"),
    ("drain-brokers", "1,1", "--replace-with", "3,4"),
    ("drain-brokers", "1,2", "--replace-with", "4,4"),
    ("demote", "2, 02"),
    ("rebalance", "--exclude-brokers", "2,2"),
    ("what-if", "--remove-brokers", "2,2"),
])  # fmt: skip
def test_a_broker_that_is_given_twice_is_refused(cluster: Path, words: tuple[str, ...]) -> None:
    """Of two successors of one broker, only the last would count."""
    refused = run(cluster, *words)
    assert refused.exit_code == 2
    assert re.search(r"broker \d is given twice; name each broker once", flat(refused.stderr)), refused.stderr


def test_a_replacement_names_each_broker_once(cluster: Path) -> None:
    with pytest.raises(InputError, match="broker 1 is given twice"):
        plan(cluster, ReplaceBrokers((1, 1), (3, 4)))


TO_COME = """
[broker-sets.payments]
brokers = [1, 2]
topics = ["payments-.*"]
[leader-racks]
"clicks-.*" = ["b"]
[consumer-racks."views-.*"]
a = 1.0
"""


def test_the_first_topic_of_a_pattern_is_placed_by_it(cluster: Path) -> None:
    goals = cluster.with_name("goals.toml")
    goals.write_text(TO_COME)
    words = ("--partitions", "4", "--replication-factor", "2", "--goals-file", goals)
    of_tenant = said(cluster, "new-topic", "payments-a", *words)["plan"]["partitions"]
    assert {broker for one in of_tenant for broker in one["replicas"]} <= {1, 2}
    of_rack = said(cluster, "new-topic", "clicks-a", *words)["plan"]["partitions"]
    assert {one["replicas"][0] for one in of_rack} <= {1, 3}


def test_a_pattern_without_a_topic_is_told_and_refuses_no_plan(cluster: Path) -> None:
    goals = cluster.with_name("goals.toml")
    goals.write_text(TO_COME)
    remaining = said(cluster, "rebalance", "--goals-file", goals)["remaining"]
    for key, pattern in (("broker-sets", "payments"), ("leader-racks", "clicks"), ("consumer-racks", "views")):
        assert any(f"goals.toml: {key}: no topic matches '{pattern}-.*'" in one for one in remaining), remaining


@pytest.mark.parametrize("content", [
    '[leader-racks]\n"clicks-.*" = ["z"]', '[consumer-racks."clicks-.*"]\nz = 1.0'
])  # fmt: skip
def test_a_rack_that_is_not_there_is_refused_for_topics_to_come(cluster: Path, content: str) -> None:
    goals = cluster.with_name("goals.toml")
    goals.write_text(content)
    refused = run(cluster, "rebalance", "--goals-file", goals)
    assert (refused.exit_code, "-racks: there is no rack 'z'" in flat(refused.stderr)) == (2, True), refused.stderr


def test_what_changing_leaders_saves_a_rebalance_is_told_if_asked(cluster: Path) -> None:
    (line,) = said(cluster, "leaders", "--goal", "leaders=0", "--savings")["explained"]
    assert line.startswith("a rebalance copies ")
    assert line.endswith(" less")
    assert said(cluster, "leaders")["explained"] == []


def test_what_is_copied_between_racks_and_what_it_costs_is_told(cluster: Path) -> None:
    found = said(cluster, "rebalance", "--rack-price", "2000", "--rack-price", "a:b=1000")
    assert sum(one["size_bytes"] for one in found["racks"]) == found["totals"]["moved_bytes"] > 0
    for one in found["racks"]:
        price = 0 if one["source"] == one["target"] else 1000 if one["source"] == "a" else 2000
        assert one["cost"] == pytest.approx(one["size_bytes"] / 1e9 * price)
    shown = run(cluster, "rebalance", "--rack-price", "2000").stderr
    assert "across racks: " in shown
    assert "which costs " in shown
    assert "which costs " not in run(cluster, "rebalance").stderr
    refused = run(cluster, "rebalance", "--rack-price", "a:x=1")
    assert refused.exit_code == 2
    assert "rack-prices or --rack-price: there is no rack 'x' in this cluster; it has a, b" in refused.stderr


# What comes next


@pytest.mark.parametrize(("words", "following"), [
    ("pareto", "plan pareto --snapshot {c} --out-dir plans"),
    ("pareto --out-dir {d}", "run {d}/a.json --dry-run --bootstrap-server HOST:PORT"),
    ("new-topic n --partitions 2 --replication-factor 2",
     "plan new-topic --snapshot {c} n --partitions 2 --replication-factor 2 --out placement.json"),
    ("partitions orders 9 --out {d}", "verify {d} --bootstrap-server HOST:PORT"),
])  # fmt: skip
def test_what_answers_with_several_plans_or_places_names_the_next_command(
    cluster: Path, tmp_path: Path, words: str, following: str
) -> None:
    task, *rest = words.format(d=tmp_path / "out").split()
    told = run(cluster, task, *rest)
    assert told.exit_code == 0, told.output
    first = told.stderr.partition("next: kreassign ")[2].splitlines()[0]
    pattern = re.escape(following.format(c=cluster, d=tmp_path / "out")).replace("/a\\.json", r"/[^/]+\.json")
    assert re.fullmatch(pattern, first)
    assert CliRunner().invoke(kreassign, [*first.split()[:2], "--help"]).exit_code == 0


def test_what_if_answers_with_a_summary_and_on_request_a_plan(cluster: Path) -> None:
    told = run(cluster, "what-if", "--add-brokers", "1")
    assert told.stdout.startswith("what if 1 more broker: ")
    assert '"version"' not in told.output
    assert "plan" in said(cluster, "what-if", "--add-brokers", "1")
    out = cluster.with_name("plan.json")
    assert run(cluster, "what-if", "--add-brokers", "1", "--out", out).exit_code == 0
    assert 5 in {broker for target in read_plan_file(out).plan.replicas.values() for broker in target}


# What goes on


class Seen(io.StringIO):
    """An error stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("words", "said"), [
    ("plan rebalance", "searching a plan"),
    ("plan brokers-needed", "computing how many brokers carry the load"),
    ("plan new-topic n --partitions 2 --replication-factor 2", "searching places for 2 partitions"),
    ("plan partitions orders 9", "searching places for partitions of orders"),
    ("rehearse PLAN --throttle 10MB/s", "rehearsing in virtual time"),
])  # fmt: skip
def test_whoever_looks_is_told_what_goes_on(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    plan_file = cluster.with_name("small.json")
    write_plan(plan_file, Plan((PartitionAssignment(TopicPartition("orders", 0), (4, 2)),)), None)
    typed = [str(plan_file) if word == "PLAN" else word for word in words.split()]
    seen = Seen()
    monkeypatch.setattr(sys, "stderr", seen)
    with pytest.raises(SystemExit) as ended:
        kreassign.main([*typed, "--snapshot", str(cluster)])
    assert ended.value.code == (5 if "rehearse" in words else 0), "the disks of this cluster are too full for a run"
    assert f"\x1b[2K{said}" in seen.getvalue()


def test_choices_bring_replicas_to_their_broker_set_as_a_rebalance_does(cluster: Path) -> None:
    goals = cluster.with_name("sets.toml")
    goals.write_text('[broker-sets.s]\nbrokers = [1, 4]\ntopics = ["users"]\n')
    words = ("--goal", "disk", "--racks", "none", "--goals-file", goals)
    whole = said(cluster, "rebalance", *words)["totals"]["moved_bytes"]
    assert whole
    assert whole in [one["moved_bytes"] for one in said(cluster, "pareto", *words)["choices"]]


def test_a_broker_that_is_down_and_to_be_filled_is_told(cluster: Path) -> None:
    document = json.loads(cluster.read_text())
    document["brokers"][3]["is_fenced"] = True
    cluster.write_text(json.dumps(document))
    remaining = said(cluster, "add-brokers", "4")["remaining"]
    assert "broker 4 gets nothing: it is not live; start it, then plan again" in remaining


def test_a_drained_directory_names_copies_of_which_none_is_known(cluster: Path) -> None:
    snapshot = read_snapshot(cluster)
    (orders, users) = snapshot.topics
    unknown = replace(users.partitions[0], log_dirs=(None, "/d1"))
    changed = replace(users, partitions=(unknown, *users.partitions[1:]))
    write_snapshot(cluster, replace(snapshot, topics=(orders, changed)))
    remaining = said(cluster, "drain-dirs", "3:/d1", "--between-brokers", "--racks", "none")["remaining"]
    assert any(one.startswith("broker 3 did not report in which log directory it has users-0") for one in remaining)


@pytest.mark.parametrize("words", [(), ("-o", "json")])
def test_a_printed_plan_names_its_cluster(cluster: Path, words: tuple[str, ...]) -> None:
    done = run(cluster, "drain-brokers", "2", "--racks", "none", *words)
    document = json.loads(done.stdout)
    assert (document["plan"] if words else document)["cluster_id"] == "c1"
