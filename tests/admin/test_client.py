"""Calls of the client: splitting, paging, falling back. Over real sockets."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from kreassign import model
from kreassign.admin import AdminClient, client_settings
from kreassign.errors import OutcomeUnknown, ProtocolViolation, Rejected, Unreachable, Unsupported
from kreassign.model.error_codes import error_codes
from kreassign.twin.transport import TwinTransport
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from tests.admin import answers
from tests.admin.answers import some_topic
from tests.admin.listener import Deed, Listener, Reply, in_turn, join, partitions_of
from tests.logs import Logged
from tests.twin.asking import twin
from tests.wire.peer import Asked

ALTER, PAGE = api.ALTER_PARTITION_REASSIGNMENTS, api.DESCRIBE_TOPIC_PARTITIONS
T0, T1 = model.TopicPartition("t", 0), model.TopicPartition("t", 1)
KIP_860_TEXT = (
    "The broker does not support the AllowReplicationFactorChange option for the AlterPartitionReassignments API. "
    "Consider re-sending the request without the option or updating the server version"
)
Connect = Callable[..., AdminClient]
Listen = Callable[..., Listener]


def all_fine(asked: Asked) -> Reply:
    """Accept every reassignment that a request asks for."""
    return answers.altered(dict.fromkeys(partitions_of(asked), answers.FINE))


DOCUMENTED = {
    "alter_partition_reassignments": "3 31 38 39 85",
    "list_partition_reassignments": "31",
    "elect_leaders": "3 31 80 83 84",
    "elect_preferred_leaders": "3 31 80",
    "alter_partition_counts": "17 31 37",
    "alter_replication_factors": "17 31 38 60",
    "reassign_partitions": "17 25 31 39 60",
    "replica_status": "3 17 25 31 37",
}
"""The codes that a call of a KIP may come to, as its document and Kafka have them."""


@pytest.mark.parametrize("method", DOCUMENTED)
def test_the_documentation_of_a_call_names_its_errors(method: str) -> None:
    words = set(re.findall(r"[A-Z]+(?:_[A-Z]+)+", getattr(AdminClient, method).__doc__))
    codes = {known.code for known in error_codes().values() if known.name in words}
    assert sorted(codes) == [int(code) for code in DOCUMENTED[method].split()]


def test_the_documentation_exempts_cancels_from_the_guard() -> None:
    """KIP-860 adds to that of the call: "only thrown when … attempting to alter reassignments (not cancel)"."""
    text = " ".join((AdminClient.alter_partition_reassignments.__doc__ or "").split())
    assert "INVALID_REPLICATION_FACTOR only without `allow_replication_factor_change`, and never for a cancel" in text
    assert "`Unsupported` without `allow_replication_factor_change` where a broker does not know the option" in text


# Many reassignments


def many(count: int) -> dict[model.TopicPartition, tuple[int, ...] | None]:
    return {model.TopicPartition(f"t{number % 7}", number): (1, 2) for number in range(count)}


def test_a_call_of_more_than_5000_partitions_goes_in_several_requests(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = all_fine
    targets = many(12_001)
    batch = connect(node).alter_partition_reassignments(targets, warns_of_overrides=False)
    assert batch.ok.keys() == targets.keys()
    assert not batch.failed
    sent = [partitions_of(asked) for asked in node.asked if asked.api is ALTER]
    assert [len(part) for part in sent] == [5_000, 5_000, 2_001]
    assert [key for part in sent for key in part] == sorted(targets)


def test_elections_of_more_than_5000_partitions_go_in_several_requests(node: Listener, connect: Connect) -> None:
    def elect(asked: Asked) -> Reply:
        named = [(entry.topic, number) for entry in asked.message.topic_partitions for number in entry.partitions]
        return answers.elected({model.TopicPartition(*one): answers.FINE for one in named[:5_000]})

    node.answers[api.ELECT_LEADERS] = elect
    assert connect(node).elect_leaders(many(5_001)).ok.keys() == many(5_001).keys()
    assert connect(node).elect_leaders([]) == model.Batch()
    before = len(node.asked)
    assert len(connect(node).elect_leaders([*many(5_001), *many(5_001)])) == 5_001
    again = [asked.message for asked in node.asked[before:] if asked.api is api.ELECT_LEADERS]
    assert sum(len(entry.partitions) for message in again for entry in message.topic_partitions) == 5_001


def test_changes_of_more_than_5000_settings_go_in_several_requests() -> None:
    """A controller writes a record for each, and refuses a request of more than 10,000 as a whole."""
    world, sent = TwinTransport(twin()), list[int]()
    steps = [model.ConfigChange.set(name, "1") for name in ("retention.ms", "retention.bytes")]
    changes = {model.ConfigResource.topic(f"t{number}"): steps for number in range(2_501)}
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=world, transport=world) as admin:
        answered = admin.incremental_alter_configs(changes, confirm=lambda: sent.append(1))
    assert (answered.failed.keys(), len(sent)) == (changes.keys(), 2)


def test_topics_go_in_requests_that_a_controller_executes_as_a_whole(node: Listener, connect: Connect) -> None:
    apis = (api.CREATE_TOPICS, api.CREATE_PARTITIONS, api.DELETE_TOPICS)
    for one in apis:
        node.answers[one] = lambda asked: answers.named(
            asked.api, {topic.name: answers.FINE for topic in asked.message.topics}
        )
    new = [model.NewTopic(f"t{number}", 2_000, 1, configs={"retention.ms": "1"}) for number in range(5)]
    default = [model.NewTopic(f"d{number}") for number in range(50)]
    grown = {topic.name: model.NewPartitions(3_000) for topic in new[:2]}
    placed = {topic.name: model.NewPartitions(3_000, ((0,),)) for topic in new[2:]}
    old = [f"o{number}" for number in range(5_001)]
    client = connect(node)
    assert client.create_topics(new + default).ok.keys() == {topic.name for topic in new + default}
    assert client.create_partitions(grown | placed).ok.keys() == {topic.name for topic in new}
    assert client.delete_topics([*old, *old]).ok.keys() == set(old)
    sent = {one: [len(asked.message.topics) for asked in node.asked if asked.api is one] for one in apis}
    assert sent == {apis[0]: [2, 2, 30, 21], apis[1]: [1, 4], apis[2]: [5_000, 1]}


def test_partitions_refused_in_any_part_are_told_with_the_others(node: Listener, connect: Connect) -> None:
    def refuse_last(asked: Asked) -> Reply:
        *good, last = partitions_of(asked)
        return answers.altered(dict.fromkeys(good, answers.FINE) | {last: (39, f"broken {last}")})

    node.answers[ALTER] = refuse_last
    batch = connect(node).alter_partition_reassignments(many(5_002), warns_of_overrides=False)
    ordered = sorted(many(5_002))
    assert {key: error.message for key, error in batch.failed.items()} == {
        ordered[4_999]: f"broken {ordered[4_999]}",
        ordered[5_001]: f"broken {ordered[5_001]}",
    }
    assert len(batch.ok) == 5_000


def test_a_failed_part_fails_its_partitions_and_stops_the_rest(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = in_turn(all_fine, Deed.HANG_UP, all_fine)
    batch = connect(node).alter_partition_reassignments(many(15_000), warns_of_overrides=False)
    ordered = sorted(many(15_000))
    assert list(batch.ok) == ordered[:5_000]
    assert all(isinstance(batch.failed[key], OutcomeUnknown) for key in ordered[5_000:10_000])
    assert all(isinstance(batch.failed[key], Unreachable) for key in ordered[10_000:])
    assert "not sent, because an earlier part of the call failed" in str(batch.failed[ordered[-1]])
    assert node.times_asked(ALTER) == 2


def test_a_first_part_that_fails_fails_the_call(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = answers.altered({}, top=(31, None))
    with pytest.raises(Rejected):
        connect(node).alter_partition_reassignments(many(5_001), warns_of_overrides=False)
    assert node.times_asked(ALTER) == 1


# KIP-860


def test_a_guard_that_a_broker_lacks_is_refused_and_nothing_sent(node: Listener, connect: Connect) -> None:
    node.offer({ALTER: (0, 0)})
    with pytest.raises(Unsupported) as refused:
        connect(node).alter_partition_reassignments(
            {T0: (1,)}, allow_replication_factor_change=False, warns_of_overrides=False
        )
    assert str(refused.value) == KIP_860_TEXT
    assert node.times_asked(ALTER) == 0


def test_without_the_guard_an_old_broker_gets_version_0_silently(
    node: Listener, connect: Connect, logged: Logged
) -> None:
    node.offer({ALTER: (0, 0)})
    node.answers[ALTER] = all_fine
    assert connect(node).alter_partition_reassignments({T0: (1,)}, warns_of_overrides=False) == model.Batch({T0: None})
    assert [asked.version for asked in node.asked if asked.api is ALTER] == [0]
    assert not logged.warnings


@pytest.mark.parametrize("allowed", [True, False])
def test_a_broker_that_has_the_guard_is_told(allowed: bool, node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = all_fine
    connect(node).alter_partition_reassignments(
        {T0: (1,)}, allow_replication_factor_change=allowed, warns_of_overrides=False
    )
    assert [message.allow_replication_factor_change for message in node.messages(ALTER)] == [allowed]


# Pages of topics


def test_pages_are_joined_also_where_they_cut_a_topic(node: Listener, connect: Connect) -> None:
    first = answers.topic_page([some_topic("a", 0), some_topic("b", 0, 1)], {"gone": 3}, cursor=("b", 2))
    node.answers[PAGE] = in_turn(
        first,
        first,  # asked again, for a topic is not there
        answers.topic_page([some_topic("b", 2, 3)], cursor=("b", 4)),
        answers.topic_page([some_topic("b", 4), some_topic("c", 0)]),
    )
    batch = connect(node).describe_topics(["a", "b", "c", "gone"])
    assert dict(batch.ok) == {"a": some_topic("a", 0), "b": some_topic("b", 0, 1, 2, 3, 4), "c": some_topic("c", 0)}
    assert [*batch.failed] == ["gone"]
    asked = [([entry.name for entry in page.topics], page.cursor) for page in node.messages(PAGE)]
    assert [names for names, _ in asked[1:]] == [["a", "b", "c", "gone"], ["b", "c", "gone"], ["b", "c", "gone"]]
    assert [(page.topic_name, page.partition_index) for _, page in asked[2:]] == [("b", 2), ("b", 4)]


@pytest.mark.parametrize(("names", "second"), [
    (["a", "b"], answers.topic_page([], {"b": 3})),
    (["a", "b"], answers.topic_page([replace(some_topic("b", 2), topic_id=str(uuid.UUID(int=7)))])),
    (None, answers.topic_page([some_topic("c", 0)])),
], ids=["deleted", "created again", "deleted, and all are asked for"])  # fmt: skip
def test_a_topic_that_is_another_on_its_next_page_is_not_told_in_part(
    names: list[str] | None, second: Message, node: Listener, connect: Connect
) -> None:
    first = answers.topic_page([some_topic("a", 0), some_topic("b", 0, 1)], cursor=("b", 2))
    node.answers[PAGE] = in_turn(first, second, second)
    batch = connect(node).describe_topics(names)
    assert ([*batch.ok], [*batch.failed]) == (["a"] if names else ["a", "c"], ["b"])


def test_pages_that_lead_nowhere_are_refused(node: Listener, connect: Connect) -> None:
    page = answers.topic_page([some_topic("b", 0, 1)], cursor=("b", 2))
    node.answers[PAGE] = in_turn(page, page, page)
    with pytest.raises(ProtocolViolation, match="goes on at b-2, where it began"):
        connect(node).describe_topics(["b"])


def test_pages_of_all_topics_ask_for_all_each_time(node: Listener, connect: Connect) -> None:
    node.answers[PAGE] = in_turn(
        answers.topic_page([some_topic("a", 0)], cursor=("b", 0)), answers.topic_page([some_topic("b", 0)])
    )
    assert list(connect(node).describe_topics()) == ["a", "b"]
    assert [list(page.topics) for page in node.messages(PAGE)] == [[], []]


def test_a_broker_without_pages_is_asked_by_metadata(node: Listener, connect: Connect) -> None:
    cluster = join(node)
    node.offer({PAGE: None})
    node.answers[api.METADATA] = answers.metadata(cluster, [some_topic("a", 0, 1)], {"gone": 3})
    batch = connect(node).describe_topics(["a", "gone"])
    assert dict(batch.ok) == {"a": some_topic("a", 0, 1)}
    assert [*batch.failed] == ["gone"]
    assert node.times_asked(PAGE) == 0
    assert [entry.name for entry in node.messages(api.METADATA)[-1].topics] == ["a", "gone"]


def test_a_broker_without_describe_cluster_is_asked_by_metadata(node: Listener, connect: Connect) -> None:
    cluster = join(node)
    node.offer({api.DESCRIBE_CLUSTER: None})
    assert connect(node).describe_cluster() == cluster
    with pytest.raises(Unsupported, match=r"does not offer DescribeCluster \(API 60\)"):
        connect(node).describe_cluster(include_fenced=True)


def test_internal_topics_are_listed_on_demand(node: Listener, connect: Connect) -> None:
    cluster = join(node)
    internal = model.Topic("__consumer_offsets", None, True, ())
    node.answers[api.METADATA] = answers.metadata(cluster, [some_topic("b"), internal, some_topic("a")])
    client = connect(node)
    assert client.list_topics() == ("a", "b")
    assert client.list_topics(include_internal=True) == ("__consumer_offsets", "a", "b")


# Nothing to ask


NOTHING: list[Callable[[AdminClient], object]] = [
    lambda client: client.describe_topics([]),
    lambda client: client.create_topics([]),
    lambda client: client.delete_topics([]),
    lambda client: client.create_partitions({}),
    lambda client: client.alter_partition_reassignments({}),
    lambda client: client.list_partition_reassignments([]),
    lambda client: client.elect_leaders([]),
    lambda client: client.describe_configs([]),
    lambda client: client.incremental_alter_configs({}),
    lambda client: client.describe_log_dirs([]),
    lambda client: client.alter_replica_log_dirs({}),
    lambda client: client.list_offsets([]),
    lambda client: client.replica_status([]),
]


@pytest.mark.parametrize("call", NOTHING)
def test_nothing_is_asked_about_nothing(
    call: Callable[[AdminClient], object], node: Listener, connect: Connect
) -> None:
    assert not call(connect(node))
    assert not node.asked


TRIED_OUT: dict[Api, Callable[..., object]] = {
    api.CREATE_TOPICS: lambda client, **options: client.create_topics([model.NewTopic("t")], **options),
    api.CREATE_PARTITIONS: lambda client, **options: client.create_partitions({"t": model.NewPartitions(2)}, **options),
    api.INCREMENTAL_ALTER_CONFIGS: lambda client, **options: client.incremental_alter_configs(
        {model.ConfigResource.topic("t"): []}, **options
    ),
}


@pytest.mark.parametrize("changed", TRIED_OUT, ids=lambda entry: entry.name)
def test_validate_only_is_sent_when_it_is_asked_for_and_not_otherwise(
    changed: Api, node: Listener, connect: Connect
) -> None:
    node.answers |= {
        api.CREATE_TOPICS: answers.named(api.CREATE_TOPICS, {"t": answers.FINE}),
        api.CREATE_PARTITIONS: answers.named(api.CREATE_PARTITIONS, {"t": answers.FINE}),
        api.INCREMENTAL_ALTER_CONFIGS: answers.configs_altered({model.ConfigResource.topic("t"): answers.FINE}),
    }
    client = connect(node)
    TRIED_OUT[changed](client)
    TRIED_OUT[changed](client, validate_only=True)
    assert [message.validate_only for message in node.messages(changed)] == [False, True]
