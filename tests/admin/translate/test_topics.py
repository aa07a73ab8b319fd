from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.call import Call
from kreassign.admin.translate import cluster
from kreassign.errors import Rejected
from kreassign.model import Batch, Broker, Cluster, NewPartitions, NewTopic, Partition, Topic, TopicPartition
from kreassign.wire import api
from kreassign.wire.api import Message
from tests.admin import answers
from tests.admin.values import NAMES, OUTCOMES, TIMEOUT_MS, as_read_by_us, as_seen_by_broker, topics, versions

TOPICS = st.lists(topics(), max_size=3, unique_by=lambda topic: topic.name)
CODES = st.dictionaries(NAMES, st.sampled_from([3, 17, 29]), max_size=2)
NODES = Cluster("id", 1, (Broker(1, "a", 9092),))
NAMED_OUTCOMES = st.dictionaries(NAMES, OUTCOMES, max_size=4)


def told_by_metadata(topic: Topic, version: int) -> Topic:
    """Facts about a topic in a Metadata answer of this version."""

    def told(partition: Partition) -> Partition:
        return replace(
            partition,
            leader_epoch=partition.leader_epoch if version >= 7 else -1,
            offline=partition.offline if version >= 5 else (),
            eligible_leaders=None,
            last_known_eligible_leaders=None,
        )

    return replace(
        topic, topic_id=topic.topic_id if version >= 10 else None, partitions=tuple(map(told, topic.partitions))
    )


def codes(batch: Batch[str, object]) -> dict[str, int]:
    return {name: error.code for name, error in batch.failed.items() if isinstance(error, Rejected)}


# Describing


@given(versions(api.METADATA))
def test_listing_asks_for_all_topics_and_creates_none(version: int) -> None:
    seen = as_seen_by_broker(cluster.list_topics(), version)
    assert seen.topics is None
    assert seen.allow_auto_topic_creation is False


@given(TOPICS, versions(api.METADATA))
def test_listing_tells_names_and_which_are_internal(found: list[Topic], version: int) -> None:
    names = as_read_by_us(cluster.list_topics(), version, answers.metadata(NODES, found))
    assert names == {topic.name: topic.is_internal for topic in found}


@given(st.none() | st.lists(NAMES, max_size=3), versions(api.METADATA))
def test_a_broker_reads_by_metadata_which_topics_are_wanted(names: list[str] | None, version: int) -> None:
    seen = as_seen_by_broker(cluster.describe_topics_by_metadata(names), version)
    assert (None if seen.topics is None else [topic.name for topic in seen.topics]) == names
    assert seen.allow_auto_topic_creation is False


@given(TOPICS, CODES, versions(api.METADATA))
def test_topics_are_read_from_metadata(found: list[Topic], failed: dict[str, int], version: int) -> None:
    failed = {name: code for name, code in failed.items() if name not in {topic.name for topic in found}}
    batch = as_read_by_us(cluster.describe_topics_by_metadata(None), version, answers.metadata(NODES, found, failed))
    assert batch.ok == {topic.name: told_by_metadata(topic, version) for topic in found}
    assert codes(batch) == failed


@given(st.none() | st.lists(NAMES, max_size=3), st.none() | st.builds(cluster.Cursor, NAMES, st.integers(0, 9)))
def test_a_broker_reads_which_page_of_topics_is_wanted(names: list[str] | None, cursor: cluster.Cursor | None) -> None:
    seen = as_seen_by_broker(cluster.describe_topic_page(names, cursor), 0)
    assert [topic.name for topic in seen.topics] == sorted(set(names or ()))
    assert seen.response_partition_limit == 2000
    if cursor is None:
        assert seen.cursor is None
    else:
        assert (seen.cursor.topic_name, seen.cursor.partition_index) == cursor


@given(TOPICS, CODES, st.none() | st.tuples(NAMES, st.integers(0, 9)))
def test_a_page_of_topics_is_read_whole(
    found: list[Topic], failed: dict[str, int], cursor: tuple[str, int] | None
) -> None:
    failed = {name: code for name, code in failed.items() if name not in {topic.name for topic in found}}
    page = as_read_by_us(cluster.describe_topic_page(None, None), 0, answers.topic_page(found, failed, cursor))
    assert page.topics.ok == {topic.name: topic for topic in found}
    assert codes(page.topics) == failed
    assert page.next_cursor == cursor


def test_partitions_come_in_the_order_of_their_numbers() -> None:
    partitions = tuple(Partition(TopicPartition("t", number), (1,), (1,), 1) for number in (2, 0, 1))
    batch = as_read_by_us(
        cluster.describe_topics_by_metadata(["t"]), 12, answers.metadata(NODES, [Topic("t", None, False, partitions)])
    )
    assert [partition.topic_partition.partition for partition in batch["t"].partitions] == [0, 1, 2]


def test_an_unknown_partition_is_refused_like_an_unknown_topic() -> None:
    error = cluster.unknown_partition(TopicPartition("t", 9))
    assert (error.code, error.name) == (3, "UNKNOWN_TOPIC_OR_PARTITION")
    assert "topic t has no partition 9" in str(error)


# Changing


@pytest.mark.parametrize("version", range(api.CREATE_TOPICS.min_version, api.CREATE_TOPICS.max_version + 1))
@pytest.mark.parametrize("validate_only", [True, False])
def test_a_broker_reads_the_topics_to_create(version: int, validate_only: bool) -> None:
    wanted = [NewTopic("a", 3, 2, configs={"k": "v"}), NewTopic("b", assignments=((1, 2), (2, 3)))]
    seen = as_seen_by_broker(cluster.create_topics(wanted, validate_only=validate_only), version)
    assert (seen.timeout_ms, seen.validate_only) == (TIMEOUT_MS, validate_only)
    assert [read_new_topic(topic) for topic in seen.topics] == [
        ("a", 3, 2, {}, {"k": "v"}),
        ("b", -1, -1, {0: [1, 2], 1: [2, 3]}, {}),
    ]


def read_new_topic(topic: Message) -> tuple[object, ...]:
    assignments = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    configs = {config.name: config.value for config in topic.configs}
    return topic.name, topic.num_partitions, topic.replication_factor, assignments, configs


@given(st.lists(NAMES, max_size=4, unique=True), versions(api.DELETE_TOPICS))
def test_a_broker_reads_the_topics_to_delete(names: list[str], version: int) -> None:
    seen = as_seen_by_broker(cluster.delete_topics(names), version)
    read = [topic.name for topic in seen.topics] if version >= 6 else list(seen.topic_names)
    assert (read, seen.timeout_ms) == (names, TIMEOUT_MS)


@pytest.mark.parametrize("version", range(api.CREATE_PARTITIONS.min_version, api.CREATE_PARTITIONS.max_version + 1))
@pytest.mark.parametrize("validate_only", [True, False])
def test_a_broker_reads_how_topics_shall_grow(version: int, validate_only: bool) -> None:
    requested = {"a": NewPartitions(5), "b": NewPartitions(3, ((1, 2),))}
    seen = as_seen_by_broker(cluster.create_partitions(requested, validate_only=validate_only), version)
    assert (seen.timeout_ms, seen.validate_only) == (TIMEOUT_MS, validate_only)
    a, b = seen.topics
    assert (a.name, a.count, a.assignments) == ("a", 5, None)
    assert (b.name, b.count, [list(entry.broker_ids) for entry in b.assignments]) == ("b", 3, [[1, 2]])


def creation(names: list[str]) -> Call[Batch[str, None]]:
    return cluster.create_topics([NewTopic(name) for name in names], validate_only=False)


def growth(names: list[str]) -> Call[Batch[str, None]]:
    return cluster.create_partitions({name: NewPartitions(2) for name in names}, validate_only=False)


CHANGES = [creation, cluster.delete_topics, growth]


@pytest.mark.parametrize("change", CHANGES, ids=["create", "delete", "grow"])
@given(data=st.data())
def test_every_topic_gets_its_own_outcome(change: object, data: st.DataObject) -> None:
    assert callable(change)
    outcomes = data.draw(NAMED_OUTCOMES)
    call = change(list(outcomes))
    version = data.draw(versions(call.api))
    batch = as_read_by_us(call, version, answers.named(call.api, outcomes))
    assert dict.fromkeys(batch.ok, 0) | codes(batch) == {name: code for name, (code, _) in outcomes.items()}


@pytest.mark.parametrize("change", CHANGES, ids=["create", "delete", "grow"])
def test_a_wrong_controller_says_so_for_every_topic(change: object) -> None:
    assert callable(change)
    call = change(["a", "b"])
    assert call.is_write
    assert list(call.routing_codes(answers.named(call.api, {"a": (41, None), "b": (41, None)}))) == [41, 41]
