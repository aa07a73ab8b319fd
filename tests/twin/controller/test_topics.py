"""Topics that are created and deleted."""

from uuid import UUID

import pytest

from kreassign.model import TopicPartition
from kreassign.twin.controller.decision import ServerSettings, rules_of
from kreassign.twin.controller.topics import CreateTopics, TopicReference, WantedTopic, create_topics, delete_topics
from kreassign.twin.metadata import UNASSIGNED, ConfigChanged, PartitionCreated, TopicCreated
from tests.twin.controller.small_cluster import SmallCluster, random, topic_id

DONE = (0, None)
ILLEGAL = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
OR_CORDONED = " or some brokers have all their log directories cordoned"


def too_few(factor, brokers):
    return (
        f"The target replication factor of {factor} cannot be reached because only {brokers} broker(s) are registered"
    )


def create(cluster, *topics, **options):
    """Ask for topics; code and message by name, in the order of the answer."""
    answers = cluster.commit(create_topics, CreateTopics(topics, **options), random())
    return [(answer.name, (answer.outcome.code, answer.outcome.message)) for answer in answers]


def manual(name, *lists, **options):
    """A topic whose partitions are placed by hand."""
    return WantedTopic(name, assignments=tuple(enumerate(lists)), **options)


# Creating


def test_a_topic_is_created_where_chance_puts_it():
    cluster = SmallCluster()
    assert create(cluster, WantedTopic("foo", 12, 3)) == [("foo", DONE)]
    topic = cluster.metadata.topics["foo"]
    assert len(topic.partitions) == 12
    for partition in topic.partitions.values():
        assert len(set(partition.replicas)) == 3
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert {partition.leader for partition in topic.partitions.values()} == set(range(6))


def test_the_same_seed_gives_the_same_topics_with_ids_of_their_own():
    clusters = [SmallCluster(), SmallCluster()]
    for cluster in clusters:
        create(cluster, WantedTopic("foo", 3, 2), WantedTopic("bar", 3, 2))
    first, second = (cluster.metadata for cluster in clusters)
    assert first == second
    assert {UUID(topic.topic_id).version for topic in first.topics.values()} == {4}
    assert len(first.topic_names) == 2


def test_settings_come_before_partitions():
    wanted = manual("foo", (0,), configs=(("retention.ms", "5"),))
    decision = create_topics(SmallCluster().context, CreateTopics((wanted,)), random())
    assert [type(record) for record in decision.records] == [TopicCreated, ConfigChanged, PartitionCreated]


def test_counts_that_are_not_given_are_the_servers():
    cluster = SmallCluster(server=ServerSettings(partition_count=4, replication_factor=2))
    create(cluster, WantedTopic("foo"), WantedTopic("bar", partition_count=1), WantedTopic("baz", replication_factor=3))
    topics = cluster.metadata.topics.values()
    shapes = {topic.name: (len(topic.partitions), len(topic.partitions[0].replicas)) for topic in topics}
    assert shapes == {"foo": (4, 2), "bar": (1, 2), "baz": (4, 3)}


@pytest.mark.parametrize(("wanted", "code", "message"), [
    (WantedTopic("foo", 0, 0), 38, "Replication factor must be larger than 0, or -1 to use the default value."),
    (WantedTopic("foo", assignments=((0, (1,)), (0, (2,)))), 39,
     "Found multiple manual partition assignments for partition 0"),
    (WantedTopic("foo", assignments=((0, (1,)), (2, (2,)))), 39,
     "partitions should be a consecutive 0-based integer sequence"),
    (WantedTopic("old", 1, 1), 36, "Topic 'old' already exists."),
    (WantedTopic("a.b", 1, 1), 36, "Topic 'a.b' already exists."),
    (WantedTopic("foo", 1, 1, configs=(("retention.ms", None), ("a", None))), 40,
     "Null value not supported for topic configs: retention.ms,a"),
    (WantedTopic("__cluster_metadata", 1, 1), 42, "Creation of internal topic __cluster_metadata is prohibited."),
    (WantedTopic("secret", 1, 1), 29, "Authorization failed."),
])  # fmt: skip
def test_a_topic_that_cannot_be_created_does_not_stop_the_others(wanted, code, message):
    cluster = SmallCluster().topic("old", "0").topic("a.b", "0")
    answers = create(cluster, wanted, manual("fine", (0, 1)), denied=frozenset({"secret"}))
    assert dict(answers) == {wanted.name: (code, message), "fine": DONE}
    assert cluster.metadata.topics.keys() == {"old", "a.b", "fine"}


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "a-b", "__internal", "...", "a" * 249, "a\n"])
def test_a_name_has_letters_numbers_dots_underscores_and_hyphens(name):
    strange = f"Topic name is invalid: '{name}' {ILLEGAL}"
    made = create(SmallCluster().topic("a_b", "0"), manual(name, (0,)))
    assert made == [(name, (17, strange) if "\n" in name else DONE)]


def test_similar_names_in_one_request_do_not_collide():
    assert create(SmallCluster(), manual("a.b", (0,)), manual("a_b", (1,))) == [("a.b", DONE), ("a_b", DONE)]


def test_too_many_partitions_are_refused_as_a_whole():
    excess = (44, "Excessively large number of partitions per request.")
    answers = create(SmallCluster(), WantedTopic("foo", 9_999, 1), WantedTopic("bar", 2, 1), WantedTopic("baz", -5, 1))
    assert answers == [("foo", excess), ("bar", excess), ("baz", excess)]


def test_partitions_by_default_and_by_hand_count_towards_the_limit():
    many = SmallCluster(server=ServerSettings(partition_count=5_001, replication_factor=1))
    excess = (44, "Excessively large number of partitions per request.")
    assert create(many, WantedTopic("foo"), WantedTopic("bar")) == [("foo", excess), ("bar", excess)]
    assert create(many, WantedTopic("foo"), WantedTopic("bar", 1), validate_only=True) == [("foo", DONE), ("bar", DONE)]
    by_hand = manual("bar", (0,), (1,))
    assert create(SmallCluster(), WantedTopic("foo", 9_999, 1), by_hand) == [("foo", excess), ("bar", excess)]
    # 10,000 and nothing are not too many; it is their records that are.
    at_most = create(SmallCluster(), WantedTopic("foo", 10_000, 1), WantedTopic("bar", -5, 1))
    assert {message for _, (_, message) in at_most} == {"Unable to perform excessively large batch operation."}


def test_partitions_and_topic_together_must_stay_below_the_record_limit():
    wanted = manual("foo", *[(0,)] * 10_000)
    decision = create_topics(SmallCluster().context, CreateTopics((wanted,)), random())
    assert decision.records == ()
    assert decision.answer[0].outcome.message == "Unable to perform excessively large batch operation."


def test_a_topic_is_created_tiered_where_servers_are():
    tiered = manual("foo", (0,), configs=(("remote.storage.enable", "true"),))
    disabled = (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )
    assert create(SmallCluster(), tiered) == [("foo", (40, disabled))]
    server = ServerSettings(static={"remote.log.storage.system.enable": "true"})
    assert create(SmallCluster(server=server), tiered) == [("foo", DONE)]


# Who is in sync at first


@pytest.mark.parametrize(("options", "after"), [
    ({"dead": (4, 5)}, "2 4 5 / 2 / - / - / 2"),
    ({"dead": (2,)}, "2 4 5 / 4 5 / - / - / 4"),
    ({"stopping": (2, 4)}, "2 4 5 / 5 / - / - / 5"),
])  # fmt: skip
def test_only_active_brokers_are_in_sync_at_first(options, after):
    cluster = SmallCluster(**options)
    create(cluster, manual("foo", (2, 4, 5)))
    assert cluster.state() == after


@pytest.mark.parametrize(("options", "reason"), [
    ({"dead": range(6)}, "All brokers are currently fenced, or have all their log directories cordoned."),
    ({"dead": range(6), "rules": rules_of("4.2")}, "All brokers are currently fenced."),
    ({"brokers": (0, 1), "rules": rules_of("4.2")}, f"{too_few(3, 2)}."),
    ({"stopping": (0, 1, 2, 3)}, f"{too_few(3, 2)}{OR_CORDONED}."),
])  # fmt: skip
def test_automatic_placement_needs_brokers(options, reason):
    cluster = SmallCluster(**options)
    expected = (38, f"Unable to replicate the partition 3 time(s): {reason}")
    assert create(cluster, WantedTopic("foo", 1, 3)) == [("foo", expected)]


def test_directories_are_known_where_a_broker_has_only_one():
    for log_dirs, directory in ((1, "dir 0.0"), (2, UNASSIGNED)):
        cluster = SmallCluster(log_dirs=log_dirs)
        create(cluster, manual("foo", (0,)))
        assert cluster.partition().directories == (directory,)


# Deleting


def delete(cluster, *references, **options):
    answers = cluster.commit(delete_topics, references, *options.values())
    return [(answer.name, answer.topic_id, answer.outcome.code, answer.outcome.message) for answer in answers]


def test_deleting_ends_moves_and_forgets_settings():
    cluster = SmallCluster().topic("foo", "2 3 0 1 / 0 1 / 2 3 / 0 1 / 0").topic("bar", "0 / 0 / - / - / -")
    cluster.configure("foo", "retention.ms", "5")
    assert delete(cluster, TopicReference("foo"), TopicReference("bar")) == [
        ("foo", topic_id("foo"), 0, None),
        ("bar", topic_id("bar"), 0, None),
    ]
    assert cluster.ongoing() == {}
    assert cluster.metadata.topics == cluster.metadata.configs == cluster.metadata.hosted == {}
    assert cluster.metadata.leaderless == set()
    assert cluster.metadata.partition(TopicPartition("foo", 0)) is None
    assert cluster.alter("0").message == "Unable to find a topic named foo."


FOO, FOO_ID = TopicReference("foo"), TopicReference(topic_id=topic_id("foo"))


@pytest.mark.parametrize(("references", "answers"), [
    ([FOO_ID, FOO_ID], [(None, topic_id("foo"), 42, "Duplicate topic id.")]),
    ([FOO_ID, FOO], [("foo", topic_id("foo"), 42, "The provided topic name maps to an ID that was already supplied.")]),
])  # fmt: skip
def test_what_cannot_be_deleted_is_refused(references, answers):
    cluster = SmallCluster().topic("foo", "0")
    assert delete(cluster, *references) == answers
    assert cluster.metadata.topics.keys() == {"foo"}
