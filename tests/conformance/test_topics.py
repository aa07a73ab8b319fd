"""Creating, deleting and growing topics."""

from __future__ import annotations

import uuid

import pytest

from kreassign.wire import api
from tests.conformance.clusters import CONTROLLER, Answered, Cluster

Fields = dict[str, object]
DONE = Answered(0, None)
ILLEGAL = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
LISTS_ARE_BAD = "The manual partition assignment includes"


def new(name: str, partitions: int = 1, factor: int = 1, *lists: tuple[int, ...], **configs: str | None) -> Fields:
    """A topic to create."""
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [{"partition_index": place, "broker_ids": brokers} for place, brokers in enumerate(lists)],
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }


def placed(name: str, *lists: tuple[int, ...]) -> Fields:
    """A topic to create with these replica lists."""
    return new(name, -1, -1, *lists)


def create(cluster: Cluster, *topics: Fields, timeout_ms: int = 30_000, **options: object) -> dict[str, Answered]:
    """Code and text by topic."""
    answer = cluster.ask(api.CREATE_TOPICS, 7, topics=list(topics), timeout_ms=timeout_ms, **options)
    return {one.name: Answered(one.error_code, one.error_message) for one in answer.topics}


def delete(cluster: Cluster, *names: str, timeout_ms: int = 30_000) -> dict[str, Answered]:
    """Code and text by topic."""
    answer = cluster.ask(api.DELETE_TOPICS, 5, topic_names=list(names), timeout_ms=timeout_ms)
    return {one.name: Answered(one.error_code, one.error_message) for one in answer.responses}


def grow(
    cluster: Cluster,
    topic: str,
    count: int,
    *lists: tuple[int, ...],
    timeout_ms: int = 30_000,
    **options: object,
) -> Answered:
    """Code and text of a request for more partitions."""
    assignments = [{"broker_ids": brokers} for brokers in lists]
    entry = {"name": topic, "count": count, "assignments": assignments or None}
    (one,) = cluster.ask(api.CREATE_PARTITIONS, 3, topics=[entry], timeout_ms=timeout_ms, **options).results
    return Answered(one.error_code, one.error_message)


# Creating


def test_a_created_topic_is_described_in_the_answer(cluster: Cluster) -> None:
    entry = new(cluster.topic, 3, 2, retention_ms="5000")
    (one,) = cluster.ask(api.CREATE_TOPICS, 7, topics=[entry], timeout_ms=30_000).topics
    assert (one.error_code, one.error_message, one.topic_config_error_code) == (0, None, 0)
    assert (one.num_partitions, one.replication_factor, one.topic_id.int != 0) == (3, 2, True)
    shown = {config.name: (config.value, config.read_only, config.config_source) for config in one.configs}
    assert shown["retention.ms"] == ("5000", False, 1)
    assert shown["cleanup.policy"] == ("delete", False, 5)
    assert list(shown) == sorted(shown)


def test_defaults_are_asked_for_by_minus_one(cluster: Cluster) -> None:
    (one,) = cluster.ask(api.CREATE_TOPICS, 7, topics=[new(cluster.topic, -1, -1)], timeout_ms=30_000).topics
    assert (one.error_code, one.num_partitions, one.replication_factor) == (0, 1, 1)


def test_automatic_placement_uses_all_racks_and_many_leaders(cluster: Cluster) -> None:
    assert create(cluster, new(cluster.topic, 4, 3)) == {cluster.topic: DONE}
    cluster.until(lambda: cluster.topic in cluster.client.list_topics(), "the new topic")
    partitions = cluster.client.describe_topics([cluster.topic])[cluster.topic].partitions
    assert all({broker % 3 for broker in one.replicas} == {0, 1, 2} for one in partitions)
    assert len({one.leader for one in partitions}) >= 3


@pytest.mark.parametrize(("name", "text"), [
    ("", "Topic name is invalid: the empty string is not allowed"),
    (".", "Topic name is invalid: '.' is not allowed"),
    ("..", "Topic name is invalid: '..' is not allowed"),
    ("x" * 250, f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249"),
    ("a b", f"Topic name is invalid: 'a b' {ILLEGAL}"),
    ("ä", f"Topic name is invalid: 'ä' {ILLEGAL}"),
])  # fmt: skip
def test_names_that_no_topic_can_have_are_refused(cluster: Cluster, name: str, text: str) -> None:
    assert create(cluster, new(name)) == {name: (17, text)}


def test_a_name_is_taken_once(cluster: Cluster) -> None:
    cluster.create((0,))
    assert create(cluster, new(cluster.topic)) == {cluster.topic: (36, f"Topic '{cluster.topic}' already exists.")}


def test_dots_and_underscores_count_as_the_same(cluster: Cluster) -> None:
    dotted, underscored = f"{cluster.topic}.x", f"{cluster.topic}_x"
    assert create(cluster, new(dotted)) == {dotted: DONE}
    text = f"Topic '{underscored}' collides with existing topic: {dotted}"
    assert create(cluster, new(underscored)) == {underscored: (17, text)}


def test_a_topic_named_twice_in_one_request_is_refused_once(cluster: Cluster) -> None:
    assert create(cluster, new(cluster.topic), new(cluster.topic)) == {cluster.topic: (42, "Duplicate topic name.")}


@pytest.mark.parametrize(("partitions", "factor", "code", "text"), [
    (0, 1, 37, "Number of partitions was set to an invalid non-positive value."),
    (-2, 1, 37, "Number of partitions was set to an invalid non-positive value."),
    (1, 0, 38, "Replication factor must be larger than 0, or -1 to use the default value."),
    (1, -2, 38, "Replication factor must be larger than 0, or -1 to use the default value."),
    (1, 9, 38, ("Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached "
               "because only 4 broker(s) are registered or some brokers have all their log directories cordoned.")),
])  # fmt: skip
def test_numbers_that_cannot_be_are_refused(
    cluster: Cluster, partitions: int, factor: int, code: int, text: str
) -> None:
    assert create(cluster, new(cluster.topic, partitions, factor)) == {cluster.topic: (code, text)}


@pytest.mark.parametrize(("lists", "text"), [
    (((),), f"{LISTS_ARE_BAD} an empty replica list."),
    (((0, 9),), f"{LISTS_ARE_BAD} broker 9, but no such broker is registered."),
    (((1, 1),), f"{LISTS_ARE_BAD} the broker 1 more than once."),
    (((0, 1), (2,)), (f"{LISTS_ARE_BAD} a partition with 1 replica(s), but this is not consistent with previous "
                     "partitions, which have 2 replica(s).")),
])  # fmt: skip
def test_replica_lists_that_cannot_be_are_refused(
    cluster: Cluster, lists: tuple[tuple[int, ...], ...], text: str
) -> None:
    assert create(cluster, placed(cluster.topic, *lists)) == {cluster.topic: (39, text)}


@pytest.mark.parametrize(("partitions", "factor", "text"), [
    (-1, 2, "A manual partition assignment was specified, but replication factor was not set to -1."),
    (1, -1, "A manual partition assignment was specified, but numPartitions was not set to -1."),
])  # fmt: skip
def test_lists_and_numbers_exclude_each_other(cluster: Cluster, partitions: int, factor: int, text: str) -> None:
    assert create(cluster, new(cluster.topic, partitions, factor, (0, 1))) == {cluster.topic: (42, text)}


@pytest.mark.parametrize(("settings", "text"), [
    ({"zzz": "1"}, "Unknown topic config name: zzz"),
    ({"retention_ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    ({"min_insync_replicas": "0"},
     "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"),
    ({"cleanup_policy": "burn"},
     "Invalid value burn for configuration cleanup.policy: String must be one of: compact, delete"),
    ({"retention_ms": None}, "Null value not supported for topic configs: retention.ms"),
    ({"leader_replication_throttled_replicas": "0-1"},
     ("Invalid value [0-1] for configuration leader.replication.throttled.replicas: "
     "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
     "[partitionId]:[brokerId],[partitionId]:[brokerId],...")),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused(cluster: Cluster, settings: dict[str, str | None], text: str) -> None:
    assert create(cluster, new(cluster.topic, 1, 1, **settings)) == {cluster.topic: (40, text)}


def test_trying_out_answers_as_creating_does_and_creates_nothing(cluster: Cluster) -> None:
    assert create(cluster, new(cluster.topic), new("."), validate_only=True) == {
        cluster.topic: DONE,
        ".": (17, "Topic name is invalid: '.' is not allowed"),
    }
    assert create(cluster, new(cluster.topic)) == {cluster.topic: DONE}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_creating_without_time_does_nothing(cluster: Cluster, timeout_ms: int) -> None:
    assert create(cluster, new(cluster.topic), timeout_ms=timeout_ms)[cluster.topic].code == 7
    assert create(cluster, new(cluster.topic)) == {cluster.topic: DONE}


@pytest.mark.parametrize(("count", "code"), [(9_998, 0), (10_000, 44)])
def test_so_many_partitions_are_too_many_for_one_request(cluster: Cluster, count: int, code: int) -> None:
    (answer,) = create(cluster, new(cluster.topic, count), validate_only=True).values()
    assert answer.code == code
    if code:
        assert answer.text == "Unable to perform excessively large batch operation."


def test_the_controller_creates_topics_too(cluster: Cluster) -> None:
    answer = cluster.ask(api.CREATE_TOPICS, 7, node=CONTROLLER, topics=[new(cluster.topic)], timeout_ms=30_000)
    assert [one.error_code for one in answer.topics] == [0]


# Deleting


def test_deleted_topics_are_gone(cluster: Cluster) -> None:
    cluster.create((0, 1))
    assert delete(cluster, cluster.topic, "nope") == {
        cluster.topic: DONE,
        "nope": (3, "This server does not host this topic-partition."),
    }
    cluster.until(lambda: cluster.topic not in cluster.client.list_topics(), "a topic gone")
    assert delete(cluster, cluster.topic)[cluster.topic].code == 3


def test_a_topic_named_twice_is_not_deleted(cluster: Cluster) -> None:
    cluster.create((0,))
    assert delete(cluster, cluster.topic, cluster.topic) == {cluster.topic: (42, "Duplicate topic name.")}
    assert delete(cluster, cluster.topic) == {cluster.topic: DONE}


def test_topics_are_deleted_by_id(cluster: Cluster) -> None:
    partition = cluster.create_one(0)
    topic_id = uuid.UUID(str(cluster.client.describe_topics([partition.topic])[partition.topic].topic_id))
    states = [{"name": None, "topic_id": each} for each in (topic_id, uuid.UUID(int=5))]
    answer = cluster.ask(api.DELETE_TOPICS, 6, topics=states, timeout_ms=30_000)
    assert {one.topic_id: (one.name, one.error_code, one.error_message) for one in answer.responses} == {
        topic_id: (cluster.topic, 0, None),
        uuid.UUID(int=5): (None, 100, "This server does not host this topic ID."),
    }


def test_a_topic_is_deleted_by_name_or_by_id_not_by_both_or_neither(cluster: Cluster) -> None:
    partition = cluster.create_one(0)
    topic_id = uuid.UUID(str(cluster.client.describe_topics([partition.topic])[partition.topic].topic_id))
    for state, text in (
        (
            {"name": cluster.topic, "topic_id": topic_id},
            "You may not specify both topic name and topic id.",
        ),
        ({"name": None, "topic_id": uuid.UUID(int=0)}, "Neither topic name nor id were specified."),
    ):
        (one,) = cluster.ask(api.DELETE_TOPICS, 6, topics=[state], timeout_ms=30_000).responses
        assert (one.error_code, one.error_message) == (42, text)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_deleting_without_time_does_nothing(cluster: Cluster, timeout_ms: int) -> None:
    cluster.create((0,))
    assert delete(cluster, cluster.topic, timeout_ms=timeout_ms)[cluster.topic].code == 7
    assert delete(cluster, cluster.topic) == {cluster.topic: DONE}


# Growing


def test_topics_grow_by_hand_and_by_themselves(cluster: Cluster) -> None:
    (first,) = cluster.create((0, 1))
    assert grow(cluster, cluster.topic, 2, (2, 3)) == DONE
    assert grow(cluster, cluster.topic, 4) == DONE
    cluster.until(lambda: cluster.shown(first._replace(partition=3)) is not None, "four partitions")
    cluster.becomes(first._replace(partition=1), (2, 3), {2, 3}, 2)
    for number in (2, 3):
        found = cluster.shown(first._replace(partition=number))
        assert found is not None
        assert len(set(found.replicas)) == 2


@pytest.mark.parametrize(("count", "lists", "code", "text"), [
    (2, (), 37, "Topic already has 2 partition(s)."),
    (2, ((0, 1),), 37, "Topic already has 2 partition(s)."),
    (1, (), 37, "The topic {topic} currently has 2 partition(s); 1 would not be an increase."),
    (0, (), 37, "The topic {topic} currently has 2 partition(s); 0 would not be an increase."),
    (4, ((0, 1),), 39, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
    (3, ((0, 1), (1, 2)), 39, "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified."),
    (3, ((0,),), 39, (f"{LISTS_ARE_BAD} a partition with 1 replica(s), but this is not consistent with previous "
                     "partitions, which have 2 replica(s).")),
    (3, ((0, 9),), 39, f"{LISTS_ARE_BAD} broker 9, but no such broker is registered."),
    (3, ((1, 1),), 39, f"{LISTS_ARE_BAD} the broker 1 more than once."),
    (3, ((),), 39, f"{LISTS_ARE_BAD} an empty replica list."),
])  # fmt: skip
def test_growth_that_cannot_be_is_refused(
    cluster: Cluster, count: int, lists: tuple[tuple[int, ...], ...], code: int, text: str
) -> None:
    cluster.create((0, 1), (1, 2))
    assert grow(cluster, cluster.topic, count, *lists) == (code, text.replace("{topic}", cluster.topic))


def test_an_unknown_topic_does_not_grow_and_no_words_are_lost_on_it(cluster: Cluster) -> None:
    assert grow(cluster, "nope", 2) == (3, None)


def test_trying_out_growth_changes_nothing(cluster: Cluster) -> None:
    cluster.create((0,))
    assert grow(cluster, cluster.topic, 2, validate_only=True) == DONE
    assert grow(cluster, cluster.topic, 2) == DONE


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_growing_without_time_does_nothing(cluster: Cluster, timeout_ms: int) -> None:
    cluster.create((0,))
    assert grow(cluster, cluster.topic, 2, timeout_ms=timeout_ms).code == 7
    assert grow(cluster, cluster.topic, 2) == DONE


def test_a_topic_that_shall_grow_twice_is_refused_once(cluster: Cluster) -> None:
    cluster.create((0,))
    entry = {"name": cluster.topic, "count": 3, "assignments": None}
    answer = cluster.ask(api.CREATE_PARTITIONS, 3, topics=[entry, entry], timeout_ms=30_000)
    assert [(one.name, one.error_code, one.error_message) for one in answer.results] == [
        (cluster.topic, 42, "Duplicate topic name.")
    ]


@pytest.mark.parametrize(("count", "model"), [(2, 0), (3, 2), (4, 2), (5, 0), (6, 5), (9, 5), (10, 0), (14, 13)])
def test_new_partitions_get_as_many_replicas_as_a_certain_other_one_has(
    cluster: Cluster, count: int, model: int
) -> None:
    partitions = cluster.create(*[(0,)] * count)
    cluster.move(partitions[model], 0, 1)
    cluster.ends(partitions[model])
    assert grow(cluster, cluster.topic, count + 1, (2, 3), validate_only=True) == DONE
    refused = grow(cluster, cluster.topic, count + 1, (2,), validate_only=True)
    assert (refused.code, (refused.text or "").endswith("which have 2 replica(s).")) == (39, True)
