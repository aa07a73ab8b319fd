"""Electing leaders while all brokers are up, and what is refused."""

from __future__ import annotations

import pytest

from kreassign.model import TopicPartition
from kreassign.wire import api
from tests.conformance.clusters import CONTROLLER, NEWEST, Answered, Cluster

both_releases = pytest.mark.releases(NEWEST, "3.9")
PREFERRED, UNCLEAN = 0, 1
DONE = Answered(0, None)
NOT_NEEDED = Answered(84, "Leader election not needed for topic partition.")
Results = list[tuple[str, list[tuple[int, Answered]]]]


def elect(
    cluster: Cluster,
    *asked: tuple[str, tuple[int, ...]],
    kind: int = PREFERRED,
    timeout_ms: int = 30_000,
    version: int = 2,
    node: int = 0,
) -> tuple[int, Results]:
    """The code at the top, and the outcomes in the order of the answer."""
    answer = cluster.ask(
        api.ELECT_LEADERS,
        version,
        node=node,
        election_type=kind,
        topic_partitions=[{"topic": topic, "partitions": numbers} for topic, numbers in asked],
        timeout_ms=timeout_ms,
    )
    return answer.error_code, results(answer.replica_election_results)


def results(found: list[api.Message]) -> Results:
    return [
        (
            one.topic,
            [(each.partition_id, Answered(each.error_code, each.error_message)) for each in one.partition_result],
        )
        for one in found
    ]


def led_by_the_wrong_one(cluster: Cluster) -> TopicPartition:
    """A partition that its second replica leads."""
    partition = cluster.create_one(0, 1)
    cluster.move(partition, 1, 0)
    cluster.becomes(partition, (1, 0), {0, 1}, 0)
    return partition


@both_releases
def test_the_first_replica_becomes_leader(cluster: Cluster) -> None:
    partition = led_by_the_wrong_one(cluster)
    assert elect(cluster, (partition.topic, (0,))) == (0, [(partition.topic, [(0, DONE)])])
    cluster.becomes(partition, (1, 0), {0, 1}, 1, epoch=1)


def test_the_controller_elects_too(cluster: Cluster) -> None:
    partition = led_by_the_wrong_one(cluster)
    assert elect(cluster, (partition.topic, (0,)), node=CONTROLLER) == (0, [(partition.topic, [(0, DONE)])])
    cluster.becomes(partition, (1, 0), {0, 1}, 1)


@both_releases
@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_no_election_is_held_where_none_is_needed(cluster: Cluster, kind: int) -> None:
    partition = cluster.create_one(0, 1)
    assert elect(cluster, (partition.topic, (0,)), kind=kind) == (0, [(partition.topic, [(0, NOT_NEEDED)])])


@both_releases
def test_what_is_not_there_is_refused_by_name(cluster: Cluster) -> None:
    partition = cluster.create_one(0, 1)
    assert elect(cluster, (partition.topic, (9, -1)), ("nope", (0,))) == (
        0,
        [
            (
                partition.topic,
                [
                    (9, Answered(3, f"No such partition as {partition.topic}-9")),
                    (-1, Answered(3, f"No such partition as {partition.topic}--1")),
                ],
            ),
            ("nope", [(0, Answered(3, "No such topic as nope"))]),
        ],
    )


def test_what_is_asked_for_twice_is_answered_twice(cluster: Cluster) -> None:
    partition = led_by_the_wrong_one(cluster)
    code, found = elect(cluster, (partition.topic, (0, 0)), (partition.topic, (0,)))
    assert code == 0
    assert [(topic, [number for number, _ in outcomes]) for topic, outcomes in found] == [
        (partition.topic, [0, 0]),
        (partition.topic, [0]),
    ]
    assert found[0][1][0][1] == DONE


@both_releases
@pytest.mark.parametrize("kind", [2, -1])
def test_an_unknown_kind_of_election_is_refused_at_the_top_and_everywhere(cluster: Cluster, kind: int) -> None:
    partition = cluster.create_one(0, 1)
    refused = Answered(42, f"Unknown election type {kind}")
    assert elect(cluster, (partition.topic, (0, 9)), kind=kind) == (
        42,
        [(partition.topic, [(0, refused), (9, refused)])],
    )


def test_an_unknown_kind_of_election_of_everything_has_no_results(cluster: Cluster) -> None:
    answer = cluster.ask(api.ELECT_LEADERS, 2, election_type=2, topic_partitions=None, timeout_ms=5_000)
    assert (answer.error_code, answer.replica_election_results) == (42, [])


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_an_election_without_time_is_not_held(cluster: Cluster, timeout_ms: int) -> None:
    partition = led_by_the_wrong_one(cluster)
    late = (7, [(partition.topic, [(0, Answered(7, None))])])
    assert elect(cluster, (partition.topic, (0,)), timeout_ms=timeout_ms) == late
    cluster.becomes(partition, (1, 0), {0, 1}, 0)


def test_an_empty_list_elects_nobody(cluster: Cluster) -> None:
    assert elect(cluster) == (0, [])


def test_a_topic_without_partitions_is_echoed_even_if_it_is_unknown(cluster: Cluster) -> None:
    assert elect(cluster, ("nope", ())) == (0, [("nope", [])])


def test_null_elects_everywhere_and_tells_only_what_was_elected(cluster: Cluster) -> None:
    partition = led_by_the_wrong_one(cluster)
    answer = cluster.ask(api.ELECT_LEADERS, 2, election_type=PREFERRED, topic_partitions=None, timeout_ms=30_000)
    assert answer.error_code == 0
    found = dict(results(answer.replica_election_results))
    assert found[partition.topic] == [(0, DONE)]
    answer = cluster.ask(api.ELECT_LEADERS, 2, election_type=PREFERRED, topic_partitions=None, timeout_ms=30_000)
    assert dict(results(answer.replica_election_results))[partition.topic] == []


def test_version_0_knows_only_the_preferred_election(cluster: Cluster) -> None:
    partition = led_by_the_wrong_one(cluster)
    answer = cluster.ask(
        api.ELECT_LEADERS, 0, topic_partitions=[{"topic": partition.topic, "partitions": [0, 9]}], timeout_ms=30_000
    )
    assert results(answer.replica_election_results) == [
        (partition.topic, [(0, DONE), (9, Answered(3, f"No such partition as {partition.topic}-9"))])
    ]
