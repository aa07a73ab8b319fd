"""Brokers that stop, die and come back. Each test stops and starts brokers of its own."""

from __future__ import annotations

import pytest

from kreassign.model import ConfigChange, ConfigResource, ElectionType, NewTopic, TopicPartition
from kreassign.wire import api
from tests.conformance.clusters import HELD_BYTES, NEWEST, Answered, Cluster, Move, RealKafka

both_releases = pytest.mark.releases(NEWEST, "3.9")
DONE = Answered(0, None)


def pages(cluster: Cluster, partition: TopicPartition) -> tuple[list[int] | None, list[int] | None, list[int]]:
    """Eligible leaders, the last known one, and replicas that are offline."""
    answer = cluster.ask(
        api.DESCRIBE_TOPIC_PARTITIONS,
        node=0,
        topics=[{"name": partition.topic}],
        response_partition_limit=10,
    )
    one = answer.topics[0].partitions[partition.partition]
    return one.eligible_leader_replicas, one.last_known_elr, one.offline_replicas


@both_releases
def test_a_broker_that_stops_hands_over_and_comes_back_in_sync(cluster: Cluster) -> None:
    led, followed = cluster.create((2, 0), (0, 2))
    cluster.backend.stop(2)
    cluster.becomes(led, (2, 0), {0}, 0, epoch=1)
    cluster.becomes(followed, (0, 2), {0}, 0, epoch=0)
    cluster.backend.start(2)
    cluster.becomes(led, (2, 0), {0, 2}, 0, epoch=1)
    cluster.becomes(followed, (0, 2), {0, 2}, 0, epoch=0)
    cluster.client.elect_leaders([led]).raise_if_any()
    cluster.becomes(led, (2, 0), {0, 2}, 2, epoch=2)


@both_releases
def test_a_broker_that_was_down_goes_on_with_a_copy_it_is_given_back(cluster: Cluster) -> None:
    kept, lost = cluster.create((0, 2), (0, 2))
    for partition in (kept, lost):
        cluster.backend.write(partition, HELD_BYTES)
    with cluster.throttled():
        cluster.backend.kill(2)
        cluster.becomes(kept, (0, 2), {0}, 0, epoch=0)
        for partition in (kept, lost):
            cluster.move(partition, 0)
            cluster.ends(partition)
        cluster.move(kept, 0, 2)
        cluster.backend.start(2)
        # Nothing is copied at one byte per second: it has all of the log.
        cluster.becomes(kept, (0, 2), {0, 2}, 0)
        cluster.move(lost, 0, 2)
        cluster.becomes(lost, (0, 2), {0}, 0)
        assert cluster.listed(lost) == Move((0, 2), (2,), ())


@both_releases
def test_a_dead_broker_leaves_after_its_session_and_returns_in_sync(cluster: Cluster) -> None:
    led, followed = cluster.create((2, 0), (0, 2))
    cluster.backend.kill(2)
    cluster.becomes(led, (2, 0), {0}, 0, epoch=1)
    cluster.becomes(followed, (0, 2), {0}, 0, epoch=0)
    cluster.backend.start(2)
    cluster.becomes(led, (2, 0), {0, 2}, 0)
    cluster.becomes(followed, (0, 2), {0, 2}, 0)


def test_a_dead_broker_is_registered_and_fenced(cluster: Cluster) -> None:
    cluster.only_down(3)
    answer = cluster.ask(api.DESCRIBE_CLUSTER, 2, include_fenced_brokers=True)
    assert {one.broker_id: one.is_fenced for one in answer.brokers} == {0: False, 1: False, 2: False, 3: True}
    assert {one.broker_id for one in cluster.ask(api.DESCRIBE_CLUSTER, 2).brokers} == {0, 1, 2}


def test_with_eligible_leaders_the_last_one_in_sync_leaves_too(cluster: Cluster) -> None:
    partition = cluster.create_one(2)
    cluster.backend.stop(2)
    cluster.becomes(partition, (2,), set(), -1)
    assert pages(cluster, partition) == ([2], [2], [2])
    cluster.backend.start(2)
    cluster.becomes(partition, (2,), {2}, 2)
    assert pages(cluster, partition) == ([], [], [])


@pytest.mark.releases("3.9")
def test_without_eligible_leaders_the_last_one_in_sync_stays(cluster: Cluster) -> None:
    partition = cluster.create_one(2)
    cluster.backend.stop(2)
    cluster.becomes(partition, (2,), {2}, -1)
    assert pages(cluster, partition) == (None, None, [2]) or pages(cluster, partition) == ([], [], [2])
    cluster.backend.start(2)
    cluster.becomes(partition, (2,), {2}, 2)


def test_elections_with_dead_brokers_say_why_not(cluster: Cluster) -> None:
    led, alone = cluster.create((3, 0), (3, 0))
    cluster.move(alone, 3)
    cluster.only_down(3)
    cluster.becomes(led, (3, 0), {0}, 0)
    cluster.becomes(alone, (3,), set(), -1)
    unfit = Answered(80, "The preferred leader was not available.")
    nobody = Answered(83, "Eligible topic partition leaders are not available.")
    assert elected(cluster, ElectionType.PREFERRED, led, alone) == {led: unfit, alone: unfit}
    assert elected(cluster, ElectionType.UNCLEAN, alone) == {alone: nobody}
    assert elected(cluster, ElectionType.UNCLEAN, led)[led].code == 84


def elected(cluster: Cluster, kind: ElectionType, *partitions: TopicPartition) -> dict[TopicPartition, Answered]:
    asked = [{"topic": topic, "partitions": [number]} for topic, number in partitions]
    answer = cluster.ask(api.ELECT_LEADERS, 2, election_type=int(kind), topic_partitions=asked, timeout_ms=30_000)
    return {
        TopicPartition(topic.topic, one.partition_id): Answered(one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def test_an_unclean_election_takes_who_is_alive(cluster: Cluster) -> None:
    partition = cluster.create_one(3, 2)
    cluster.only_down(2)
    cluster.becomes(partition, (3, 2), {3}, 3)
    cluster.only_down(2, 3)
    cluster.becomes(partition, (3, 2), set(), -1)
    cluster.backend.start(2)
    cluster.until(lambda: 2 in cluster.client.describe_cluster().broker_ids, "broker 2 back")
    cluster.becomes(partition, (3, 2), set(), -1)
    assert elected(cluster, ElectionType.UNCLEAN, partition) == {partition: DONE}
    cluster.becomes(partition, (3, 2), {2}, 2)
    cluster.only_down()
    cluster.becomes(partition, (3, 2), {2, 3}, 2)


def test_a_move_to_a_dead_broker_ends_when_it_comes_back(cluster: Cluster) -> None:
    cluster.only_down(3)
    partition = cluster.create_one(1, 0)
    cluster.move(partition, 3, 1)
    assert cluster.listed(partition) == Move((3, 1, 0), (3,), (0,))
    cluster.only_down()
    cluster.ends(partition)
    cluster.becomes(partition, (3, 1), {1, 3}, 1, epoch=1)


def test_a_cancel_needs_a_replica_in_sync_or_unclean_elections(
    cluster: Cluster,
) -> None:
    cluster.only_down(3)
    partition = cluster.create_one(2)
    cluster.move(partition, 0, 3)
    cluster.becomes(partition, (0, 3, 2), {0, 2}, 2)
    cluster.only_down(2, 3)
    cluster.becomes(partition, (0, 3, 2), {0}, 0)
    text = (
        f"Unable to revert partition assignment for {partition.topic}:0 because it would require an unclean leader "
        "election."
    )
    assert cluster.cancel(partition) == (39, text)
    allow = [ConfigChange.set("unclean.leader.election.enable", "true")]
    cluster.client.incremental_alter_configs({ConfigResource.topic(partition.topic): allow}).raise_if_any()
    assert cluster.cancel(partition) == DONE
    cluster.becomes(partition, (2,), {2}, -1)


def test_a_stuck_move_stays_stuck_when_all_brokers_are_back(cluster: Cluster) -> None:
    cluster.only_down(3)
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 2, 3)
    cluster.move(partition, 0, 1)
    cluster.only_down()
    cluster.becomes(partition, (0, 1, 2, 3), {0, 1, 2, 3}, 0)
    assert cluster.listed(partition) == Move((0, 1, 2, 3), (2, 3), (2, 3))
    assert cluster.cancel(partition) == DONE
    cluster.becomes(partition, (0, 1), {0, 1}, 0)


def test_topics_are_created_on_dead_brokers_if_one_replica_lives(cluster: Cluster) -> None:
    cluster.only_down(3)
    assert cluster.client.create_topics([NewTopic(f"{cluster.topic}-dead", assignments=((3,),))]).failed
    refused = cluster.client.create_topics([NewTopic(f"{cluster.topic}-dead", assignments=((3,),))])
    assert refused.failed[f"{cluster.topic}-dead"].message == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown."
    )
    partition = cluster.create_one(3, 1)
    cluster.becomes(partition, (3, 1), {1}, 1)


def test_a_stopped_broker_gets_replicas_where_others_are_too_few(cluster: Cluster) -> None:
    cluster.only_down(3)
    wide = NewTopic(cluster.topic, 1, len(cluster.brokers))
    assert cluster.client.create_topics([wide], validate_only=True).failed == {}


def test_replicas_that_left_stay_eligible_where_too_few_are_in_sync(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 2, min_insync_replicas="2")
    cluster.only_down(2)
    cluster.becomes(partition, (0, 2), {0}, 0)
    assert pages(cluster, partition) == ([2], [], [2])
    cluster.only_down()
    cluster.becomes(partition, (0, 2), {0, 2}, 0)
    assert pages(cluster, partition) == ([], [], [])


def test_removed_replicas_stay_eligible_below_the_least_isr(cluster: Cluster) -> None:
    # The first partition keeps its replicas, which bound the least ISR.
    _, partition = cluster.create((0, 1, 2), (0, 1, 2), min_insync_replicas="2")
    cluster.move(partition, 0)
    cluster.becomes(partition, (0,), {0}, 0)
    assert cluster.listed(partition) is None
    assert sorted(pages(cluster, partition)[0] or []) == [1, 2]


def let_directories_be_told(cluster: Cluster) -> None:
    """Let so much time pass that brokers have told where they put new replicas, which no answer shows."""
    cluster.backend.pass_time(1.0)


@pytest.mark.parametrize("is_long", [False, True])
def test_replicas_that_left_are_forgotten_once_directories_are_told(cluster: Cluster, *, is_long: bool) -> None:
    partition = cluster.create_one(1, 0, min_insync_replicas="3")
    let_directories_be_told(cluster)
    if is_long:
        cluster.backend.write(partition, HELD_BYTES)
        with cluster.throttled():
            cluster.move(partition, 1, 3)
            let_directories_be_told(cluster)
            assert cluster.listed(partition) == Move((1, 3, 0), (3,), (0,))
    else:
        cluster.move(partition, 1, 3)
    cluster.becomes(partition, (1, 3), {1, 3}, 1)
    if is_long or not isinstance(cluster.backend, RealKafka):
        # A real broker may tell its directory before a short move ends, or after: then it is as in the next test.
        cluster.until(lambda: pages(cluster, partition)[0] == [], "nobody eligible any more")


def test_replicas_that_left_stay_eligible_if_directories_were_told(cluster: Cluster) -> None:
    partition = cluster.create_one(3, min_insync_replicas="3")
    let_directories_be_told(cluster)
    cluster.backend.kill(0)
    cluster.until(lambda: 0 not in cluster.client.describe_cluster().broker_ids, "broker 0 fenced")
    assert cluster.alter({partition: (0, 2)}, node=1) == {partition: DONE}
    let_directories_be_told(cluster)
    cluster.only_down()
    cluster.becomes(partition, (0, 2), {0, 2}, 0)
    let_directories_be_told(cluster)
    # A real broker that comes back tells its directories beside the end of the move, before it or after.
    may_be_later = [] if isinstance(cluster.backend, RealKafka) else [3]
    assert pages(cluster, partition)[0] in ([3], may_be_later)


def test_a_formerly_eligible_replica_cannot_be_added_without_an_isr(
    cluster: Cluster,
) -> None:
    _, partition = cluster.create((0, 1), (3, 1), min_insync_replicas="2")
    cluster.move(partition, 3)
    cluster.becomes(partition, (3,), {3}, 3)
    assert pages(cluster, partition)[0] == [1]
    cluster.only_down(3)
    cluster.becomes(partition, (3,), set(), -1)
    assert cluster.alter({partition: (3, 1)}) == {partition: Answered(-1, None)}
    assert cluster.alter({partition: (1,)}) == {partition: Answered(-1, None)}
    assert cluster.alter({partition: (3, 2)}) == {partition: DONE}
    assert cluster.listed(partition) == Move((3, 2), (2,), ())
