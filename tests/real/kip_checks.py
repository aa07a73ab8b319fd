"""Statements of the design documents about calls, on a cluster with a quorum and on one with ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kreassign.admin import AdminClient
from kreassign.clock import SystemClock
from kreassign.errors import ClusterError, Drifted, InputError, Rejected, Unsupported
from kreassign.kafka_tools.reassign.actions import cancel_all
from kreassign.kafka_tools.reassign.requests import CancelAllRequest
from kreassign.kafka_tools.reassign.tool_client import ToolClient
from kreassign.model import ConfigResource, OngoingReassignment, TopicPartition
from kreassign.model.plan import parse_plan
from kreassign.model.throttle import LEADER_THROTTLED_RATE
from testbed import Finished, KafkaCluster
from testbed.fork_server import fork_server
from testbed.records import load_topic
from testbed.waiting import wait_until
from tests.real.admin_checks import (
    client_of,
    created,
    held,
    partitions_of,
    refusal,
    wait_everywhere,
    wait_idle,
    wait_replicas,
)

RECORDS_BYTES = 8_000_000
ELECTIONS_AT_ONCE = 8


def tool(module: str, *words: str) -> Finished:
    """A tool of ours, in a process of its own."""
    name = f"kreassign.kafka_tools.{module}"
    return fork_server().run(name, *words, imports=[name])


# KIP-455


def each_wrong_target_has_the_code_of_the_document(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    """39 for lists that cannot be, 3 for what is not there, 85 where nothing moves; the good one is carried out."""
    keys = created(client, topic, *[(0, 1)] * 6)
    targets = dict(zip(keys, [(), (9, 1), (1, 1), (2, -1), None, (2, 1)], strict=True))
    missing, nowhere = TopicPartition(topic, 77), TopicPartition(f"{topic}-absent", 0)
    batch = client.alter_partition_reassignments({**targets, missing: (0,), nowhere: (0,)})
    assert [refusal(batch, key)[0] for key in (*keys[:5], missing, nowhere)] == [39, 39, 39, 39, 85, 3, 3]
    assert dict(batch.ok) == {keys[5]: None}
    wait_idle(client, *keys)
    wait_replicas(client, keys[5], (2, 1))
    assert [part.replicas for part in partitions_of(client, topic)[:5]] == [(0, 1)] * 5


def what_is_idle_or_not_there_is_not_listed(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    (idle,) = created(client, topic, (0, 1))
    assert client.list_partition_reassignments([idle, TopicPartition(topic, 7), TopicPartition("absent", 0)]) == {}


def a_listing_has_a_time_of_its_own(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    (idle,) = created(client, topic, (0, 1))
    assert client.list_partition_reassignments([idle], timeout_ms=20_000) == {}
    with pytest.raises(ClusterError):
        client.list_partition_reassignments([idle], timeout_ms=0)


def moves_are_independent_and_show_both_lists_until_they_end(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    """One is started and one taken back while another goes on; what moves has all of its replicas, old and new."""
    first, second = created(client, topic, (0, 1), (0, 1))
    load_topic(cluster.bootstrap_servers, topic, dict.fromkeys((0, 1), RECORDS_BYTES))
    with held(client, cluster, topic):
        client.alter_partition_reassignments({first: (2, 1)}).raise_if_any()
        client.alter_partition_reassignments({second: (1, 2)}).raise_if_any()
        found = client.list_partition_reassignments([first, second])
        assert found[first].replicas == (2, 1, 0)
        assert {key: (move.target, move.adding, move.removing) for key, move in found.items()} == {
            first: ((2, 1), (2,), (0,)),
            second: ((1, 2), (2,), (0,)),
        }
        wait_everywhere(client, topic, lambda found: found[0].replicas == (2, 1, 0), what="both lists")
        client.alter_partition_reassignments({second: None}).raise_if_any()
        assert set(client.list_partition_reassignments([first, second])) == {first}
    wait_idle(client, first)
    wait_replicas(client, first, (2, 1))
    # In the order of the move that was taken back, not in that from before.
    wait_replicas(client, second, (1, 0))


def a_plan_that_is_declined_sets_no_throttle(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    brokers = [ConfigResource.broker(broker) for broker in cluster.brokers]

    def rates() -> set[str | None]:
        described = client.describe_configs(brokers, names=[LEADER_THROTTLED_RATE]).raise_if_any()
        return {entry.value for found in described.values() for entry in found.values()}

    with held(client, cluster, topic):
        client.alter_partition_reassignments({partition: (2, 1)}).raise_if_any()
        wait_until(lambda: rates() == {"1"}, what="the rates of before")
        with TemporaryDirectory() as folder:
            plan = Path(folder, "plan.json")
            entry = {"topic": topic, "partition": 0, "replicas": [1, 0]}
            plan.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
            words = ("--execute", "--reassignment-json-file", str(plan), "--throttle", "7")
            done = tool("reassign_partitions", "--bootstrap-server", cluster.bootstrap_servers, *words)
        assert done.exit_code == 1
        assert done.stdout.startswith("Cannot execute because there is an existing partition assignment.")
        assert rates() == {"1"}
    wait_idle(client, partition)


# KIP-183


def preferred_leaders_are_elected_each_with_its_outcome(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    """Named twice is no error; when the answer is there the election has been held."""
    wrong, right = _led_by_the_wrong_one(client, topic)
    unknown = TopicPartition(topic, 9)
    result = client.elect_preferred_leaders([wrong, wrong, right, unknown], timeout_ms=20_000)
    assert refusal(client.elect_leaders([wrong]), wrong)[0] == 84
    result.partition_result(wrong)
    result.partition_result(right)
    for ask in (result.all, lambda: result.partition_result(unknown)):
        with pytest.raises(Rejected) as refused:
            ask()
        assert refused.value.code == 3
    assert result.partitions() == {wrong, right, unknown}
    with pytest.raises(InputError):
        result.partition_result(TopicPartition("absent", 0))


def none_elects_everywhere_and_names_who_needed_it(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    wrong, right = _led_by_the_wrong_one(client, topic)
    result = client.elect_preferred_leaders(None)
    result.partition_result(wrong)
    assert wrong in result.partitions()
    assert right not in result.partitions()


def of_elections_at_the_same_time_one_is_held(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    wrong, _right = _led_by_the_wrong_one(client, topic)

    def elect(_: int) -> bool:
        with client_of(cluster) as another:
            return not another.elect_leaders([wrong]).failed

    with ThreadPoolExecutor(ELECTIONS_AT_ONCE) as clients:
        assert sorted(clients.map(elect, range(ELECTIONS_AT_ONCE))) == [False] * (ELECTIONS_AT_ONCE - 1) + [True]
    wait_everywhere(client, topic, lambda found: found[0].leader == 1, what="leader 1")


def _led_by_the_wrong_one(client: AdminClient, topic: str) -> tuple[TopicPartition, TopicPartition]:
    """Partition 0 is led by its second replica, 1 by its first."""
    wrong, right = created(client, topic, (0, 1), (1, 2))
    client.alter_partition_reassignments({wrong: (1, 0)}).raise_if_any()
    wait_idle(client, wrong)
    wait_replicas(client, wrong, (1, 0))
    return wrong, right


# KIP-179


def a_move_that_was_started_is_seen_and_not_started_again(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    """The answer tells that it started; another is 60; views go by targets; `--progress` shows the copy on its way."""
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    with held(client, cluster, topic):
        client.reassign_partitions({partition: (2, 1)}).raise_if_any()
        assert client.list_partition_reassignments([partition])[partition].target == (2, 1)
        assert refusal(client.reassign_partitions({partition: (1, 0)}), partition)[0] == 60
        (copy,) = _progress(cluster)["moving"]
        assert (copy["topic"], copy["partition"], copy["broker"]) == (topic, 0, 2)
        assert copy["done_bytes"] < RECORDS_BYTES <= copy["done_bytes"] + copy["left_bytes"]
        loads = {one["broker"]: one for one in _told(cluster, "--progress", "--by-broker")["brokers"]}
        assert {broker: (load["in"]["copies"], load["out"]["copies"]) for broker, load in loads.items()} == {
            0: (0, 1),
            2: (1, 0),
        }
        assert 0 < loads[2]["in"]["left_bytes"] == loads[0]["out"]["left_bytes"] <= copy["left_bytes"]
    wait_idle(client, partition)
    wait_replicas(client, partition, (2, 1))
    assert _progress(cluster)["moving"] == []


def _progress(cluster: KafkaCluster) -> dict[str, list[dict[str, int]]]:
    return _told(cluster, "--progress")


def _told(cluster: KafkaCluster, *words: str) -> dict[str, Any]:
    done = tool("reassign_partitions", "--bootstrap-server", cluster.bootstrap_servers, *words, "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


# KIP-860


def what_is_not_as_expected_is_not_moved(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0, 1))
    with pytest.raises(Drifted, match=rf"{topic}-0: expected on 1,0, but it is on 0,1"):
        client.alter_partition_reassignments({partition: (2, 1)}, expected={partition: (1, 0)})
    assert partitions_of(client, topic)[0].replicas == (0, 1)
    client.alter_partition_reassignments({partition: (2, 1)}, expected={partition: (0, 1)}).raise_if_any()
    wait_idle(client, partition)
    wait_replicas(client, partition, (2, 1))


def a_description_from_during_a_move_passes_for_a_factor_unless_it_is_guarded(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    """The first example of KIP-860: described while it moves, listed when it has ended, moved to as many brokers.

    A throttle holds the move until the description has come, so that there is no race to win.
    """
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    with held(client, cluster, topic):
        client.alter_partition_reassignments({partition: (2, 3)}).raise_if_any()
        wait_everywhere(client, topic, lambda found: len(found[0].replicas) == 4, what="four replicas")
        seen = partitions_of(client, topic)[0].replicas
    wait_idle(client, partition)
    assert client.list_partition_reassignments([partition]) == {}
    target = tuple(sorted(seen))
    try:
        guarded = client.alter_partition_reassignments({partition: target}, allow_replication_factor_change=False)
    except Unsupported:  # before Kafka 4.1
        assert cluster.spec.mode == "zookeeper"
    else:
        assert refusal(guarded, partition) == (38, "The replication factor is changed from 2 to 4")
    # The controller has ended the move; the broker that describes it may hear of it later.
    wait_replicas(client, partition, (2, 3))
    client.alter_partition_reassignments({partition: target}).raise_if_any()
    wait_idle(client, partition)
    wait_replicas(client, partition, (0, 1, 2, 3))


def cancelling_everything_writes_the_plan_that_starts_it_again(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    first, second = created(client, topic, (0, 1), (1, 0))
    load_topic(cluster.bootstrap_servers, topic, dict.fromkeys((0, 1), RECORDS_BYTES))
    words = ("reassign_partitions", "--bootstrap-server", cluster.bootstrap_servers)
    with TemporaryDirectory() as folder:
        again = Path(folder) / "again.json"
        with held(client, cluster, topic):
            client.alter_partition_reassignments({first: (2, 1), second: (3, 0)}).raise_if_any()
            done = tool(*words, "--cancel", "--all", "--preserve-throttles", "--output", str(again))
            assert (done.exit_code, done.stderr) == (0, "")
            assert f"Successfully cancelled partition reassignments for: {first},{second}" in done.stdout
            wait_idle(client, first, second)
        assert parse_plan(again.read_text(encoding="utf-8")).replicas == {first: (2, 1), second: (3, 0)}
        assert tool(*words, "--execute", "--reassignment-json-file", str(again)).exit_code == 0
    wait_idle(client, first, second)
    wait_replicas(client, first, (2, 1))
    wait_replicas(client, second, (3, 0))


def a_plan_that_cancels_first_leads_back_while_a_move_is_under_way(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    """Without it, that plan would keep a partition of Kafka 4.3 on its way for ever."""
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    entry = {"topic": topic, "partition": 0, "replicas": [1, 0]}
    with TemporaryDirectory() as folder, held(client, cluster, topic):
        client.alter_partition_reassignments({partition: (2, 3)}).raise_if_any()
        plan = Path(folder) / "back.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}), encoding="utf-8")
        words = ("--execute", "--additional", "--cancel-first", "--reassignment-json-file", str(plan))
        done = tool("reassign_partitions", "--bootstrap-server", cluster.bootstrap_servers, *words)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Successfully cancelled partition reassignment for: {partition}\n")
        assert '"replicas":[0,1]' in done.stdout  # for the rollback, and not what was being added, too
        wait_idle(client, partition)  # though the throttle holds every copy
        wait_replicas(client, partition, (1, 0))


class _Interrupted(ToolClient):
    """A client in which somebody starts another move right after the listing."""

    def __init__(self, client: AdminClient, other: TopicPartition) -> None:
        super().__init__(client, through_controllers=False)
        self._admin = client
        self._other = other

    def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        found = super().reassignments(partitions)
        self._admin.alter_partition_reassignments({self._other: (3, 0)}).raise_if_any()
        return found


def what_starts_between_the_listing_and_the_cancelling_goes_on(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    first, second = created(client, topic, (0, 1), (1, 0))
    load_topic(cluster.bootstrap_servers, topic, dict.fromkeys((0, 1), RECORDS_BYTES))
    with held(client, cluster, topic):
        client.alter_partition_reassignments({first: (2, 1)}).raise_if_any()
        request = CancelAllRequest(preserves_throttles=True, timeout_ms=10_000, output=None)
        cancel_all(_Interrupted(client, second), request, SystemClock())
        wait_idle(client, first)
        assert client.list_partition_reassignments([first, second]).keys() == {second}
    wait_idle(client, second)
    wait_replicas(client, second, (3, 0))


def a_description_shows_what_is_added_and_removed(cluster: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0, 1))
    load_topic(cluster.bootstrap_servers, topic, {0: RECORDS_BYTES})
    words = ("topics", "--bootstrap-server", cluster.bootstrap_servers, "--describe", "--topic", topic)
    with held(client, cluster, topic):
        client.alter_partition_reassignments({partition: (2, 1)}).raise_if_any()
        wait_everywhere(client, topic, lambda found: len(found[0].replicas) == 3, what="three replicas")
        assert "Adding Replicas: 2\tRemoving Replicas: 0" in tool(*words).stdout
    wait_idle(client, partition)


# KIP-179


def a_status_can_be_given_a_time(_: KafkaCluster, client: AdminClient, topic: str) -> None:
    (partition,) = created(client, topic, (0, 1))
    found = client.replica_status([partition], timeout_ms=20_000)
    assert sorted(status.broker for status in found.ok[partition]) == [0, 1]


def a_new_replica_goes_to_a_new_rack_and_there_to_the_fewest_bytes(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    """Brokers 0 and 3 are in the rack that the topic is not in."""
    (heavy,) = created(client, f"{topic}-heavy", (0,))
    load_topic(cluster.bootstrap_servers, heavy.topic, {0: 2 * RECORDS_BYTES})
    (partition,) = created(client, topic, (1, 2))
    held_bytes = {
        broker: sum(copy.size_bytes for log_dir in dirs for copy in log_dir.replicas)
        for broker, dirs in client.describe_log_dirs([0, 3]).ok.items()
    }
    client.alter_replication_factors({topic: 3}).raise_if_any()
    wait_idle(client, partition)
    wait_replicas(client, partition, (1, 2, min(held_bytes, key=held_bytes.__getitem__)))


def who_is_out_of_sync_goes_first_then_from_the_rack_that_has_most(
    cluster: KafkaCluster, client: AdminClient, topic: str
) -> None:
    (crowded,) = created(client, f"{topic}-crowded", (0, 3, 1))
    client.alter_replication_factors({crowded.topic: 2}).raise_if_any()
    wait_idle(client, crowded)
    wait_replicas(client, crowded, (0, 1))
    (partition,) = created(client, topic, (0, 2, 1))
    cluster.brokers[2].stop()
    try:
        wait_until(lambda: sorted(partitions_of(client, topic)[0].isr) == [0, 1], what="broker 2 out of sync")
        client.alter_replication_factors({topic: 2}).raise_if_any()
        wait_replicas(client, partition, (0, 1))
    finally:
        cluster.brokers[2].start()
        cluster.wait_ready()


Check = Callable[[KafkaCluster, AdminClient, str], None]
CHECKS: tuple[Check, ...] = (
    each_wrong_target_has_the_code_of_the_document,
    what_is_idle_or_not_there_is_not_listed,
    a_listing_has_a_time_of_its_own,
    moves_are_independent_and_show_both_lists_until_they_end,
    a_plan_that_is_declined_sets_no_throttle,
    preferred_leaders_are_elected_each_with_its_outcome,
    none_elects_everywhere_and_names_who_needed_it,
    of_elections_at_the_same_time_one_is_held,
    a_move_that_was_started_is_seen_and_not_started_again,
    what_is_not_as_expected_is_not_moved,
    a_description_from_during_a_move_passes_for_a_factor_unless_it_is_guarded,
    cancelling_everything_writes_the_plan_that_starts_it_again,
    what_starts_between_the_listing_and_the_cancelling_goes_on,
    a_plan_that_cancels_first_leads_back_while_a_move_is_under_way,
    a_description_shows_what_is_added_and_removed,
    a_status_can_be_given_a_time,
    a_new_replica_goes_to_a_new_rack_and_there_to_the_fewest_bytes,
    who_is_out_of_sync_goes_first_then_from_the_rack_that_has_most,
)
