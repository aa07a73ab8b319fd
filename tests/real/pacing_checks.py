"""KIP-1335 as a user of the tool sees it, and as it must hold on a cluster with a quorum and on one with ZooKeeper."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError
from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.plan import parse_plan
from kreassign.model.throttle import FOLLOWER_THROTTLED_REPLICAS, LEADER_THROTTLED_REPLICAS, clear_broker_changes
from testbed import Finished, KafkaCluster
from testbed.records import load_topic
from testbed.waiting import wait_until
from tests.real.admin_checks import created, held, partitions_of, wait_idle, wait_replicas
from tests.real.kip_checks import RECORDS_BYTES, Check, tool

Targets = Mapping[TopicPartition, tuple[int, ...]]


def paced(cluster: KafkaCluster, targets: Targets, *options: str, poll_ms: int | None = 100) -> Finished:
    """Our tool with this plan, written down in the wrong order."""
    with TemporaryDirectory() as folder:
        return executed(cluster, written(Path(folder), targets), *options, poll_ms=poll_ms)


def written(folder: Path, targets: Targets) -> Path:
    """The plan in a file, in the wrong order."""
    entries = [
        {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
        for key, replicas in reversed(targets.items())
    ]
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
    return plan


def executed(cluster: KafkaCluster, plan: Path, *options: str, poll_ms: int | None = 100) -> Finished:
    """Our tool with the plan of a file."""
    interval = () if poll_ms is None else ("--reassignment-poll-interval-ms", str(poll_ms))
    return tool(
        "reassign_partitions", "--bootstrap-server", cluster.bootstrap_servers, "--execute",
        "--reassignment-json-file", str(plan), *interval, *options,
    )  # fmt: skip


def started(done: Finished) -> list[str]:
    """Output of the tool about each step."""
    return [line for line in done.stdout.splitlines() if line.startswith("Started partition reassignment")]


def partitions_started(done: Finished) -> list[str]:
    """The partitions of all steps, in the order in which they were started."""
    return [name for line in started(done) for name in line.partition(" for ")[2].partition(" (")[0].split(",")]


@contextmanager
def slow(cluster: KafkaCluster, client: AdminClient, topic: str) -> Iterator[TopicPartition]:
    """A partition on 0 and 1 that does not move while the block runs."""
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES}, value_bytes=(20_000, 20_000))
    with held(client, cluster, topic):
        yield partition
    wait_idle(client, partition)


@contextmanager
def running(cluster: KafkaCluster, targets: Targets, *options: str) -> Iterator[Future[Finished]]:
    """The tool, while something else is done."""
    with ThreadPoolExecutor(1) as threads:
        yield threads.submit(paced, cluster, targets, *options)


def wait_listed(client: AdminClient, partition: TopicPartition) -> None:
    wait_until(lambda: bool(client.list_partition_reassignments([partition])), what=f"{partition} moving")


def size_0_is_one_request_and_the_texts_of_old(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    keys = created(client, topic, *[(0, 1)] * 3)
    done = paced(cluster, dict.fromkeys(keys, (2, 1)), "--reassignment-batch-size", "0", poll_ms=None)
    assert (done.exit_code, done.stderr, started(done)) == (0, "", [])
    assert done.stdout.endswith(f"Successfully started partition reassignments for {','.join(map(str, keys))}\n")
    wait_idle(client, *keys)
    for key in keys:
        wait_replicas(client, key, (2, 1))


def ten_partitions_in_batches_of_three(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    """Each has two replicas that move, and counts one."""
    keys = created(client, topic, *[(0, 1)] * 10)
    done = paced(cluster, dict.fromkeys(keys, (2, 3)), "--reassignment-batch-size", "3")
    assert (done.exit_code, done.stderr) == (0, "")
    batches = [",".join(map(str, keys[first : first + 3])) for first in (0, 3, 6)]
    assert started(done) == [
        f"Started partition reassignments for {batches[0]} (3 of 10)",
        f"Started partition reassignments for {batches[1]} (6 of 10)",
        f"Started partition reassignments for {batches[2]} (9 of 10)",
        f"Started partition reassignment for {keys[9]} (10 of 10)",
    ]
    assert done.stdout.endswith(f"Successfully started partition reassignments for {','.join(map(str, keys))}\n")
    wait_idle(client, *keys)
    for key in keys:
        wait_replicas(client, key, (2, 3))


def incrementally_a_slow_partition_holds_up_no_other(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    """By two: the slow one takes one place all the time, the others one after the other use the second."""
    keys = created(client, f"{topic}-b", *[(0, 1)] * 4)
    with slow(cluster, client, f"{topic}-a") as first:
        targets = {first: (2, 1)} | dict.fromkeys(keys, (2, 3))
        most = 0
        with running(cluster, targets, "--reassignment-batch-size", "2", "--incremental") as tool_run:
            while not tool_run.done():
                most = max(most, len(client.list_partition_reassignments()))
        done = tool_run.result()
        assert (done.exit_code, done.stderr) == (0, "")
        assert most == 2
        assert first in client.list_partition_reassignments([first])
    wait_idle(client, *keys)
    assert partitions_started(done) == [str(first), *map(str, keys)]


def the_last_batch_is_not_waited_for(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    keys = created(client, f"{topic}-a", *[(0, 1)] * 2)
    with slow(cluster, client, f"{topic}-b") as last:
        done = paced(cluster, dict.fromkeys((*keys, last), (2, 1)), "--reassignment-batch-size", "2")
        assert (done.exit_code, len(started(done))) == (0, 2)
        assert client.list_partition_reassignments().keys() == {last}


def between_two_batches_lies_at_least_the_interval(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    keys = created(client, topic, *[(0, 1)] * 3)
    before = time.monotonic()
    done = paced(cluster, dict.fromkeys(keys, (2, 1)), "--reassignment-batch-size", "2", poll_ms=2_000)
    assert (done.exit_code, len(started(done))) == (0, 2)
    assert time.monotonic() - before >= 2
    wait_idle(client, *keys)


def a_refused_batch_ends_the_tool_which_names_what_was_not_submitted(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    keys = created(client, f"{topic}-b", (0, 1), (0, 1))
    with slow(cluster, client, f"{topic}-a") as first:
        targets = dict.fromkeys((first, *keys), (2, 1))
        with running(cluster, targets, "--reassignment-batch-size", "1") as tool_run:
            wait_listed(client, first)
            client.delete_topics([f"{topic}-b"]).raise_if_any()
            wait_until(lambda: _is_gone(client, f"{topic}-b"), what="the topic deleted")
            client.incremental_alter_configs(clear_broker_changes(cluster.brokers)).raise_if_any()
        done = tool_run.result()
    assert done.exit_code == 1
    story = (done.stdout + done.stderr).splitlines()
    position = story.index("Error reassigning partition(s):")
    assert story[position + 1].startswith(f"{keys[0]}: ")
    assert f"Not submitted: {keys[1]}" in story
    wait_replicas(client, first, (2, 1))


def a_partition_that_someone_else_moved_away_ends_the_tool(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    (other,) = created(client, f"{topic}-b", (0, 1))
    with slow(cluster, client, f"{topic}-a") as first:
        with running(cluster, {first: (2, 1), other: (2, 1)}, "--reassignment-batch-size", "1") as tool_run:
            wait_listed(client, first)
            client.alter_partition_reassignments({first: (3, 1)}, warns_of_overrides=False).raise_if_any()
            client.incremental_alter_configs(clear_broker_changes(cluster.brokers)).raise_if_any()
        done = tool_run.result()
    assert done.exit_code == 1
    assert (
        f"There is no active reassignment of partition {first}, but replica set is 3,1 rather than 2,1.\n"
        f"Not submitted: {other}\n"
    ) in done.stdout + done.stderr
    assert partitions_of(client, other.topic)[0].replicas == (0, 1)


def a_deadline_ends_the_wait(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (other,) = created(client, f"{topic}-b", (0, 1))
    with slow(cluster, client, f"{topic}-a") as first:
        done = paced(
            cluster, {first: (2, 1), other: (2, 1)},
            "--reassignment-batch-size", "1", "--reassignment-wait-timeout-ms", "1500",
        )  # fmt: skip
        assert done.exit_code == 1
        assert (
            f"Timed out after 1500 ms waiting for reassignment to complete: {first}\nNot submitted: {other}\n"
        ) in done.stdout + done.stderr
        assert partitions_of(client, other.topic)[0].replicas == (0, 1)


def what_was_not_submitted_is_in_a_file_that_starts_it(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (other,) = created(client, f"{topic}-b", (0, 1))
    with TemporaryDirectory() as folder:
        with slow(cluster, client, f"{topic}-a") as first:
            plan = written(Path(folder), {first: (2, 1), other: (2, 1)})
            done = executed(cluster, plan, "--reassignment-batch-size", "1", "--reassignment-wait-timeout-ms", "1500")
        rest = plan.with_name("plan.not-submitted.json")
        assert done.exit_code == 1
        assert f"What was not submitted (1 of 2 partitions) is in {rest}\n" in done.stderr
        assert parse_plan(rest.read_text(encoding="utf-8")).replicas == {other: (2, 1)}
        assert partitions_of(client, other.topic)[0].replicas == (0, 1)
        again = executed(cluster, rest, "--reassignment-batch-size", "1")
        assert (again.exit_code, again.stderr, partitions_started(again)) == (0, "", [str(other)])
        assert sorted(path.name for path in Path(folder).iterdir()) == ["plan.json", rest.name]
    wait_idle(client, other)
    wait_replicas(client, other, (2, 1))


def replicas_out_of_sync_are_waited_for_where_that_is_asked(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    """Broker 3 was away while records came, and fetches them at next to nothing: nothing moves, and it is behind."""
    (first,), others = created(client, f"{topic}-a", (0, 3)), created(client, f"{topic}-b", (0, 1), (0, 1))
    away = cluster.brokers[3]
    options = ("--reassignment-batch-size", "1", "--reassignment-wait-timeout-ms", "3000")
    try:
        with held(client, cluster, first.topic):
            away.stop()
            load_topic(cluster.bootstrap_servers, first.topic, {0: RECORDS_BYTES}, value_bytes=(20_000, 20_000))
            away.start()
            cluster.wait_ready()
            strict = paced(cluster, {first: (0, 3), others[0]: (2, 1)}, *options, "--reassignment-require-isr")
            assert strict.exit_code == 1
            story = strict.stdout + strict.stderr
            assert f"{first}: not in sync: 3\nNot submitted: {others[0]}\n" in story
            loose = paced(cluster, {first: (0, 3), others[1]: (2, 1)}, *options)
            assert loose.exit_code == 0
            assert f"the reassignment of {first} is complete, but its replica on 3 is not in sync" in loose.stderr
    finally:
        if not away.is_running:
            away.start()
            cluster.wait_ready()
    wait_idle(client, first, *others)
    patient = ("--reassignment-batch-size", "1", "--reassignment-require-isr")
    done = paced(cluster, {first: (0, 3), others[0]: (2, 1)}, *patient)
    assert (done.exit_code, partitions_started(done)) == (0, [str(first), str(others[0])])
    assert set(partitions_of(client, first.topic)[0].isr) == {0, 3}
    wait_idle(client, others[0])


def throttles_are_set_once_over_the_whole_plan(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    keys = created(client, topic, *[(0, 1)] * 3)
    options = ("--reassignment-batch-size", "1", "--throttle", "50000000")
    done = paced(cluster, dict.fromkeys(keys, (2, 1)), *options)
    assert done.exit_code == 0
    assert done.stdout.count("The inter-broker throttle limit was set to 50000000 B/s") == 1
    owner = ConfigResource.topic(topic)
    names = (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)
    values = client.describe_configs([owner], names=names)[owner]
    assert [values[name].value for name in names] == ["0:0,0:1,1:0,1:1,2:0,2:1", "0:2,1:2,2:2"]
    client.incremental_alter_configs(
        clear_broker_changes(cluster.brokers) | {owner: [ConfigChange.delete(name) for name in names]}
    ).raise_if_any()
    wait_idle(client, *keys)


def others_that_move_refuse_the_plan_or_are_warned_of(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    keys = created(client, f"{topic}-b", (0, 1), (0, 1))
    with slow(cluster, client, f"{topic}-a") as first:
        client.alter_partition_reassignments({first: (2, 1)}).raise_if_any()
        refused = paced(cluster, {keys[0]: (2, 1)}, "--reassignment-batch-size", "1")
        assert refused.exit_code == 1
        assert "existing partition assignment" in refused.stdout + refused.stderr
        options = ("--reassignment-batch-size", "1", "--additional")
        beside = paced(cluster, {keys[0]: (2, 1)}, *options)
        assert (beside.exit_code, beside.stderr) == (0, "")
        warned = paced(cluster, {keys[1]: (2, 1)}, *options, "--reassignment-warn-others")
        assert warned.exit_code == 0
        assert "in progress, which --reassignment-batch-size does not count" in warned.stderr
        assert str(first) in warned.stderr
    wait_idle(client, *keys)


def _is_gone(client: AdminClient, topic: str) -> bool:
    try:
        return topic not in client.describe_topics([topic]).ok
    except ClusterError:
        return True


PACING_CHECKS: tuple[Check, ...] = (
    size_0_is_one_request_and_the_texts_of_old,
    ten_partitions_in_batches_of_three,
    incrementally_a_slow_partition_holds_up_no_other,
    the_last_batch_is_not_waited_for,
    between_two_batches_lies_at_least_the_interval,
    a_refused_batch_ends_the_tool_which_names_what_was_not_submitted,
    a_partition_that_someone_else_moved_away_ends_the_tool,
    a_deadline_ends_the_wait,
    what_was_not_submitted_is_in_a_file_that_starts_it,
    replicas_out_of_sync_are_waited_for_where_that_is_asked,
    throttles_are_set_once_over_the_whole_plan,
    others_that_move_refuse_the_plan_or_are_warned_of,
)
