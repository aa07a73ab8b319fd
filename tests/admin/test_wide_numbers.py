"""Numbers and texts that no request can carry are refused by name, or answered, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getmembers, isfunction

import pytest

from kreassign.admin import AdminClient, ClientSettings, client_settings
from kreassign.errors import ClusterError, InputError
from kreassign.model import ConfigChange, ConfigResource, NewPartitions, NewTopic, TopicPartition, TopicPartitionReplica
from kreassign.model.pace import Cap, EndpointKind, Limit, Measure
from kreassign.model.requests import CommittedOffset, GroupCandidate, Membership
from kreassign.model.text import check_wait
from kreassign.model.throttle import AdaptiveThrottle, BrokerCapacity, BrokerRate, ThrottleRates
from kreassign.twin.cluster import Twin
from kreassign.twin.transport import TwinTransport
from tests.twin.asking import twin

FACTOR = 40_000
"""Too wide for a factor, not for a count."""
WIDE = (2**31, -(2**31) - 1, 2**63, 10**30)
FIRST = TopicPartition("orders", 0)
MEMBER = Membership("g", "i", "m", 1)
Ask = Callable[[AdminClient, int], object]


def of_orders(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


CALLS: dict[str, Ask] = {
    "a replica": lambda admin, wide: admin.alter_partition_reassignments({FIRST: (1, wide)}),
    "a partition": lambda admin, wide: admin.alter_partition_reassignments({of_orders(wide): (1, 2)}),
    "a cancelled partition": lambda admin, wide: admin.alter_partition_reassignments({of_orders(wide): None}),
    "a replaced target": lambda admin, wide: admin.replace_reassignments({FIRST: (1, wide)}),
    "a listed partition": lambda admin, wide: admin.list_partition_reassignments([of_orders(wide)]),
    "an elected partition": lambda admin, wide: admin.elect_leaders([of_orders(wide)]),
    "a preferred partition": lambda admin, wide: admin.elect_preferred_leaders([of_orders(wide)]),
    "a count of KIP-179": lambda admin, wide: admin.alter_partition_counts({"orders": wide}),
    "a factor of KIP-179": lambda admin, wide: admin.alter_replication_factors({"orders": wide}),
    "a replica of KIP-179": lambda admin, wide: admin.reassign_partitions({FIRST: (wide,)}),
    "a partition of KIP-179": lambda admin, wide: admin.reassign_partitions({of_orders(wide): (1,)}),
    "a status": lambda admin, wide: admin.replica_status([of_orders(wide)]),
    "a status of a broker": lambda admin, wide: admin.replica_status([FIRST], brokers={FIRST: [wide]}),
    "partitions of a topic": lambda admin, wide: admin.create_topics([NewTopic("new", wide, 1)]),
    "a factor of a topic": lambda admin, wide: admin.create_topics([NewTopic("new", 1, wide)]),
    "replicas of a topic": lambda admin, wide: admin.create_topics([NewTopic("new", assignments=((wide,),))]),
    "a total": lambda admin, wide: admin.create_partitions({"orders": NewPartitions(wide)}),
    "new replicas": lambda admin, wide: admin.create_partitions({"orders": NewPartitions(3, ((wide,),))}),
    "a broker's directories": lambda admin, wide: admin.describe_log_dirs([wide]),
    "a partition's directory": lambda admin, wide: admin.describe_log_dirs([0], partitions=[of_orders(wide)]),
    "a moved copy": lambda admin, wide: admin.alter_replica_log_dirs({TopicPartitionReplica(0, "orders", wide): "/a"}),
    "a copy's broker": lambda admin, wide: admin.alter_replica_log_dirs({TopicPartitionReplica(wide, *FIRST): "/a"}),
    "an offset's partition": lambda admin, wide: admin.list_offsets([of_orders(wide)]),
    "an unregistered broker": lambda admin, wide: admin.unregister_broker(wide),
    "a broker's settings": lambda admin, wide: admin.describe_configs([ConfigResource.broker(wide)]),
    "a broker's changed setting": lambda admin, wide: admin.incremental_alter_configs(
        {ConfigResource.broker(wide): [ConfigChange.set("log.cleaner.threads", "1")]}
    ),
    "a broker's versions": lambda admin, wide: admin.offered_versions([wide]),
    "a session timeout": lambda admin, wide: admin.join_group(GroupCandidate("g", "i", "p", "p", b"", wide)),
    "a generation": lambda admin, wide: admin.heartbeat(Membership("g", "i", "m", wide)),
    "a committed offset": lambda admin, wide: admin.commit_offsets(MEMBER, {FIRST: CommittedOffset(wide, "")}),
    "a committed partition": lambda admin, wide: admin.commit_offsets(
        MEMBER, {of_orders(wide): CommittedOffset(1, "")}
    ),
    "a fetched partition": lambda admin, wide: admin.fetch_offsets("g", [of_orders(wide)]),
    "a record's partition": lambda admin, wide: admin.produce(of_orders(wide), b"key", b"value"),
    "a record's offset": lambda admin, wide: admin.fetch(FIRST, wide),
    "a timeout": lambda admin, wide: admin.describe_cluster(timeout_ms=wide),
    "a timeout of a change": lambda admin, wide: admin.replace_reassignments({FIRST: (0, 1)}, timeout_ms=wide),
}


TAKE_NAMES = {
    "allowed_on_group", "allowed_operations", "check_reassignment_permission", "close", "delete_topics",
    "describe_group", "describe_topics", "expect_cluster", "has_quorum", "leave_group", "list_topics",
    "risky_overrides", "view_topics",
}  # fmt: skip
"""Calls without numbers but `timeout_ms`, which has its rows."""


def test_every_call_that_takes_numbers_is_tried() -> None:
    tried = {name for call in CALLS.values() for name in call.__code__.co_names}
    calls = {name for name, _ in getmembers(AdminClient, isfunction) if not name.startswith("_")}
    assert calls - tried == TAKE_NAMES


@pytest.mark.parametrize("name", CALLS)
def test_a_wide_number_is_refused_by_name(name: str) -> None:
    asked = twin({"orders": [[0, 1], [1, 2]]})
    before = replicas_of(asked)
    world = TwinTransport(asked)
    with AdminClient.connect(client_settings(bootstrap_servers="broker-0:9092"), clock=world, transport=world) as admin:
        for wide in (FACTOR, *WIDE) if "factor" in name else WIDE:
            outcome = outcome_of(lambda wide=wide: CALLS[name](admin, wide))
            assert not isinstance(outcome, InputError) or str(wide) in str(outcome)
    assert replicas_of(asked) == before


TEXTS: dict[str, Callable[[AdminClient, str], object]] = {
    "described topic": lambda admin, text: admin.describe_topics([text]),
    "created topic": lambda admin, text: admin.create_topics([NewTopic(text, 1, 1)]),
    "deleted topic": lambda admin, text: admin.delete_topics([text]),
    "topic that gets partitions": lambda admin, text: admin.create_partitions({text: NewPartitions(3)}),
    "topic of KIP-179": lambda admin, text: admin.alter_partition_counts({text: 3}),
    "moved topic": lambda admin, text: admin.alter_partition_reassignments({TopicPartition(text, 0): (1,)}),
    "listed topic": lambda admin, text: admin.list_partition_reassignments([TopicPartition(text, 0)]),
    "elected topic": lambda admin, text: admin.elect_leaders([TopicPartition(text, 0)]),
    "topic with settings": lambda admin, text: admin.describe_configs([ConfigResource.topic(text)]),
    "setting": lambda admin, text: admin.describe_configs([ConfigResource.topic("orders")], names=[text]),
    "changed setting": lambda admin, text: changed_config(admin, ConfigChange.set(text, "1")),
    "value": lambda admin, text: changed_config(admin, ConfigChange.set("leader.replication.throttled.replicas", text)),
    "directory": lambda admin, text: admin.alter_replica_log_dirs({TopicPartitionReplica(0, *FIRST): text}),
    "copied topic": lambda admin, text: admin.describe_log_dirs([0], partitions=[TopicPartition(text, 0)]),
    "topic with offsets": lambda admin, text: admin.list_offsets([TopicPartition(text, 0)]),
    "group": lambda admin, text: admin.describe_group(text),
}


def changed_config(admin: AdminClient, change: ConfigChange) -> object:
    """Change a setting of a broker, too: a call that is refused changes neither."""
    rate = ConfigChange.set("leader.replication.throttled.rate", "1")
    return admin.incremental_alter_configs({ConfigResource.broker(0): [rate], ConfigResource.topic("orders"): [change]})


@pytest.mark.parametrize(
    "text", ["x" * 32_768, "ü" * 16_384, "\udc80", "\udc80" * 32_768], ids=["ascii", "two bytes", "half", "halves"]
)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_no_request_carries_is_refused_at_once(name: str, text: str) -> None:
    """A broker closes the connection without a word, and a client that asks again looks as if it hangs."""
    asked = twin({"orders": [[0, 1], [1, 2]]})
    before, world = all_of(asked), TwinTransport(asked)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with (
        AdminClient.connect(settings, clock=world, transport=world) as admin,
        pytest.raises(InputError, match=r"at most 32,767|is not text in UTF-8"),
    ):
        TEXTS[name](admin, text)
    assert all_of(asked) == before


def all_of(asked: Twin) -> tuple[str, str, int]:
    """Topics and settings, and the time that has passed."""
    return replicas_of(asked), str(asked.metadata.configs), asked.now_ms


def test_no_part_of_an_election_is_sent_beside_a_wide_number() -> None:
    world, sent = TwinTransport(twin({"orders": [[0, 1]]})), list[int]()
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with (
        AdminClient.connect(settings, clock=world, transport=world) as admin,
        pytest.raises(InputError, match="orders-2147483648: the id 2147483648 is too large"),
    ):
        admin.elect_leaders(map(of_orders, [*range(5_000), 2**31]), confirm=lambda: sent.append(1))
    assert not sent


def outcome_of(call: Callable[[], object]) -> object:
    """The answer, or an error of ours: what is looked up first may be said not to be there."""
    try:
        return call()
    except (InputError, ClusterError) as error:
        return error


def replicas_of(asked: Twin) -> str:
    return str(asked.metadata.topics["orders"])


@pytest.mark.parametrize("name", ["request_timeout_ms", "api_timeout_ms", "connect_timeout_ms", "retry_backoff_ms"])
def test_a_timeout_beyond_kafkas_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 2147483648, and it must be at most 2147483647"):
        ClientSettings(bootstrap_servers=(("a", 1),), **{name: 2**31})


def test_a_timeout_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="request_timeout_ms is nan, and it must be at most"):
        ClientSettings(bootstrap_servers=(("a", 1),), request_timeout_ms=float("nan"))


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 2.0**63])
def test_a_wait_that_no_clock_holds_is_refused_by_name(seconds: float) -> None:
    with pytest.raises(InputError, match="poll_s is "):
        check_wait("poll_s", seconds)


def test_a_throttle_that_no_setting_holds_is_refused() -> None:
    for build in (
        lambda: ThrottleRates(2**63),
        lambda: BrokerRate(1, 2**63),
        lambda: AdaptiveThrottle(2**63),
        lambda: AdaptiveThrottle(5, (BrokerCapacity(1, 2**63),)),
        lambda: AdaptiveThrottle(5, floor_bytes_per_s=2**63),
    ):
        with pytest.raises(InputError, match=f"a throttle of {2**63} B/s is too large"):
            build()
    with pytest.raises(InputError, match="the id 2147483648 is too large"):
        BrokerRate(2**31, 5)


@pytest.mark.parametrize("most", [0, -1])
def test_a_limit_at_which_no_move_starts_is_refused(most: int) -> None:
    for build in (lambda: Cap(moves=most), lambda: Limit(EndpointKind.CLUSTER, Measure.BYTES, most)):
        with pytest.raises(InputError, match=f"with a limit of {most} nothing would ever start"):
            build()
