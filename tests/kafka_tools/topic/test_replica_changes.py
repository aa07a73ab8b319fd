"""`kafka-topics --alter --replication-factor` and `--alter --replica-assignment`, which KIP-179 wanted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.kafka_tools.reassign_partitions import main as reassign_partitions
from kreassign.kafka_tools.topics import announced, by_factor, main
from kreassign.model import Partition, Topic, TopicPartition
from kreassign.model.throttle import move_map, rate_changes, topic_changes
from kreassign.model.topic_changes import BrokerView, TopicsView
from kreassign.twin.blueprint import PartitionPlan, TopicPlan, small_cluster
from kreassign.twin.cluster import Twin
from kreassign.twin.core import TwinSettings
from kreassign.twin.replication.partition_logs import Traffic
from kreassign.twin.version import DEFAULT
from testbed.waiting import wait_until
from tests.kafka_tools.served_twin import served

MEGABYTE = 10**6
A0 = TopicPartition("a", 0)


@pytest.fixture(params=[False, True], ids=["composed", "kip-179"])
def cluster(request):
    """Two topics on four brokers, b under way already; with and without the requests of KIP-179."""
    plans = (
        TopicPlan("a", (PartitionPlan((0, 1), Traffic(3 * MEGABYTE)), PartitionPlan((1, 2), Traffic(4 * MEGABYTE)))),
        TopicPlan("lone", (PartitionPlan((0,)),), {"min.insync.replicas": "2"}),
        TopicPlan("safe", (PartitionPlan((0, 1, 2)),), {"min.insync.replicas": "2"}),
        TopicPlan("b", (PartitionPlan((3, 0, 2), Traffic(10**12), isr=(0,), adding=(3,), removing=(2,)),)),
    )
    version = DEFAULT.with_kip_179() if request.param else DEFAULT
    asked = Twin(replace(small_cluster(4), topics=plans), TwinSettings(version))
    with served(asked) as address:
        yield asked, ("--bootstrap-server", address, "--alter")


@pytest.fixture
def run(capsys):
    def run_with(*words):
        code = main(list(words))
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return run_with


def replicas(asked, topic, partition=0):
    return asked.metadata.partition(TopicPartition(topic, partition)).replicas


def everything(asked):
    return {
        name: [state.replicas for state in topic.partitions.values()] for name, topic in asked.metadata.topics.items()
    }


def settle(asked, topic="a"):
    """Wait until the partitions of a topic are where they shall be; the twin goes on in real time."""
    partitions = asked.metadata.topics[topic].partitions
    keys = [TopicPartition(topic, number) for number in partitions]
    wait_until(lambda: asked.metadata.reassigning.isdisjoint(keys), what=f"{topic} at rest")


def rollback(out):
    """The JSON that leads back."""
    return out.splitlines()[2]


def test_more_replicas_are_announced_with_their_bytes_and_copied(run, cluster):
    asked, words = cluster
    code, out = run(*words, "--topic", "a", "--replication-factor", "3")

    assert code == 0
    assert "Replicas of 2 partition(s) change: 2 to be copied (7 MB), 0 to be deleted (0 B).\n" in out
    assert "Successfully started partition reassignments for a-0,a-1\n" in out
    assert "Data is copied in the background, without a throttle." in out
    settle(asked)
    for partition in (0, 1):
        target = replicas(asked, "a", partition)
        assert len(target) == 3
        assert f"a-{partition}: {partition},{partition + 1} -> {','.join(map(str, target))}\n" in out


@pytest.mark.parametrize(("sizes_bytes", "told"), [
    ({A0: 7 * MEGABYTE}, "2 to be copied (7 MB and 1 of unknown size), 0 to be deleted (0 B)"),
    ({}, "2 to be copied (2 of unknown size)"),
])  # fmt: skip
def test_copies_of_unknown_size_are_not_announced_as_empty(sizes_bytes: dict[TopicPartition, int], told: str) -> None:
    partitions = tuple(Partition(TopicPartition("a", number), (0,), (0,), 0) for number in (0, 1))
    view = TopicsView(
        {broker: BrokerView(broker) for broker in (0, 1)},
        {"a": Topic("a", None, is_internal=False, partitions=partitions)},
        sizes_bytes,
        min_in_sync={"a": 1},
    )
    assert told in announced(by_factor(view, ["a"], 2, is_forced=False))


def test_fewer_replicas_keep_the_leader_and_delete_the_others(run, cluster):
    asked, words = cluster
    code, out = run(*words, "--topic", "a", "--replication-factor", "1")
    settle(asked)

    assert (code, replicas(asked, "a", 0), replicas(asked, "a", 1)) == (0, (0,), (1,))
    assert "0 to be copied (0 B), 2 to be deleted (7 MB)." in out


def test_the_advice_to_go_back_works_and_leaves_others_alone(run, cluster, tmp_path, capsys):
    asked, words = cluster
    moves = move_map({}, {TopicPartition("a", 0): (2, 3)}, {TopicPartition("a", 0): (0, 1)})
    with AdminClient.connect(client_settings(bootstrap_servers=words[1])) as client:
        client.incremental_alter_configs(topic_changes(moves)).raise_if_any()
        client.incremental_alter_configs(rate_changes(range(4), 1_000)).raise_if_any()
    _code, out = run(*words, "--topic", "a", "--replica-assignment", "2:3,1:2")
    assert TopicPartition("a", 0) in asked.metadata.reassigning
    assert "--cancel --all" not in out  # it would stop everybody's moves, and clear everybody's throttles
    *_, title, advice = out.splitlines()
    assert title == "To go back, while it is under way or afterwards, save the JSON above as FILE:"

    file = tmp_path / "FILE"
    file.write_text(rollback(out))
    program, *arguments = advice.replace("FILE", str(file)).split()
    assert program == "kafka-reassign-partitions"
    assert reassign_partitions(arguments) == 0
    settle(asked)
    assert replicas(asked, "a") == (0, 1)
    assert asked.metadata.reassigning == {TopicPartition("b", 0)}


def test_an_assignment_by_hand_can_be_taken_back_as_printed(run, cluster, tmp_path, capsys):
    asked, words = cluster
    code, out = run(*words, "--topic", "a", "--replica-assignment", "3:0,1:2")
    assert code == 0
    assert "a-0: 0,1 -> 3,0\n" in out
    assert "a-1" not in out, "it is so already"
    settle(asked)
    assert replicas(asked, "a") == (3, 0)

    plan = tmp_path / "back.json"
    plan.write_text(rollback(out))
    address = words[1]
    arguments = ["--bootstrap-server", address, "--execute", "--additional", "--reassignment-json-file", str(plan)]
    assert reassign_partitions(arguments) == 0
    settle(asked)
    assert replicas(asked, "a") == (0, 1)


def test_a_dry_run_says_the_same_and_changes_nothing(run, cluster):
    asked, words = cluster
    before = everything(asked)
    code, dry = run(*words, "--topic", "a", "--replication-factor", "3", "--dry-run")

    assert (code, everything(asked)) == (0, before)
    assert dry.endswith("Nothing was changed. Without --dry-run this would be started.\n")
    _, done = run(*words, "--topic", "a", "--replication-factor", "3")
    announced = dry.rpartition("\n\n")[0]
    assert done.startswith(announced)
    assert json.loads(rollback(dry))["partitions"][0]["replicas"] == [0, 1]


def test_what_is_so_already_is_nothing_to_change(run, cluster):
    _, words = cluster
    said = "Nothing to change: every partition has these replicas already.\n"
    assert run(*words, "--topic", "a", "--replication-factor", "2") == (0, said)
    assert run(*words, "--topic", "a", "--replica-assignment", "0:1,1:2") == (0, said)


@pytest.mark.parametrize("options", [("--replication-factor", "1"), ("--replica-assignment", "0")])
def test_nothing_shrinks_below_min_insync_replicas_but_by_force(run, cluster, options):
    asked, words = cluster
    code, out = run(*words, "--topic", "safe", *options)
    assert (code, replicas(asked, "safe")) == (1, (0, 1, 2))
    assert "Replication factor 1 is below min.insync.replicas=2 of topic safe." in out

    assert run(*words, "--topic", "safe", *options, "--force")[0] == 0
    settle(asked, "safe")
    assert replicas(asked, "safe") == (0,)


@pytest.mark.parametrize("options", [("--replication-factor", "2"), ("--replica-assignment", "1")])
def test_no_producer_is_locked_out_but_by_force(run, cluster, options):
    asked, words = cluster
    code, out = run(*words, "--topic", "lone", *options)
    assert (code, replicas(asked, "lone")) == (1, (0,))
    assert "lone-0: producers with acks=all would be refused until a copy is in sync: 2 replicas count" in out
    assert "give --force" in out
    assert run(*words, "--topic", "lone", *options, "--force")[0] == 0


@pytest.mark.parametrize(
    ("topic", "options", "said"),
    [
        ("a|b", ("--replication-factor", "3"), "b: A partition reassignment is in progress: b-0."),
        ("a", ("--replication-factor", "9"), "a: Unable to replicate the partition 9 time(s)"),
        ("a", ("--replication-factor", "0"), "The replication factor must be between 1 and 32767 inclusive"),
        ("a", ("--replication-factor", "x"), "Cannot parse argument 'x' of option replication-factor"),
        ("a", ("--replica-assignment", "0:1,0:0"), "may not contain duplicate entries: 0"),
        ("a", ("--replica-assignment", "0:1"), "Topic a has 2 partition(s), but the replica assignment lists 1."),
        ("a", ("--replica-assignment", "0:1,1:77"), "a-1: The manual partition assignment includes broker 77, but no"),
        ("b", ("--replica-assignment", "0:1:2"), "b-0: A partition reassignment is in progress."),
        ("nowhere", ("--replication-factor", "3"), "Topic 'nowhere' does not exist as expected"),
    ],
)
def test_what_is_refused_changes_nothing_not_even_what_was_fine(run, cluster, topic, options, said):
    asked, words = cluster
    before = everything(asked)
    code, out = run(*words, "--topic", topic, *options)
    assert (code, everything(asked)) == (1, before)
    assert out.startswith("Error while executing topic command : ")
    assert said in out


def test_a_missing_topic_is_fine_if_asked(run, cluster):
    _, words = cluster
    assert run(*words, "--topic", "nowhere", "--replication-factor", "3", "--if-exists") == (0, "")
