"""Node of each call and the retries, over real sockets with nodes that misbehave on purpose."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kreassign import model
from kreassign.admin import Address, AdminClient, ClientSettings
from kreassign.clock import VirtualClock
from kreassign.errors import InputError, OutcomeUnknown, ProtocolViolation, Rejected, Unreachable, Unsupported
from kreassign.wire import api
from kreassign.wire.api import Api
from testbed.waiting import PATIENCE_S
from tests.admin import answers
from tests.admin.conftest import RETRY_BACKOFF_MS, SILENCE_MS
from tests.admin.listener import EVERYTHING, Deed, Listener, Reply, in_turn, join, joined
from tests.logs import Logged
from tests.wire.peer import Asked, write_response

ALTER, LIST, LOG_DIRS = api.ALTER_PARTITION_REASSIGNMENTS, api.LIST_PARTITION_REASSIGNMENTS, api.DESCRIBE_LOG_DIRS
T0 = model.TopicPartition("t", 0)
MOVES = {T0: model.OngoingReassignment((1, 2), (1,), ())}
LISTED = answers.listed(MOVES)
DONE = answers.altered({T0: answers.FINE})
CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, REQUEST_TIMED_OUT = 31, 41, 7

Connect = Callable[..., AdminClient]
Listen = Callable[..., Listener]


def log_dirs(path: str) -> object:
    return answers.log_dirs([model.LogDir(path, None, 10, 5, False, ())])


def alter(client: AdminClient, **options: object) -> object:
    return client.alter_partition_reassignments({T0: (1, 2)}, warns_of_overrides=False, **options)


# Sent once, sent again


def test_a_write_that_met_silence_is_never_sent_twice(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = in_turn(Deed.STAY_SILENT, DONE)
    with pytest.raises(OutcomeUnknown, match=r"did not answer within 1\.0 s"):
        alter(connect(node, request_timeout_ms=SILENCE_MS))
    assert node.times_asked(ALTER) == 1


WRITES: dict[Api, Callable[[AdminClient], object]] = {
    ALTER: alter,
    api.ELECT_LEADERS: lambda client: client.elect_leaders([T0]),
    api.CREATE_TOPICS: lambda client: client.create_topics([model.NewTopic("t")]),
    api.DELETE_TOPICS: lambda client: client.delete_topics(["t"]),
    api.INCREMENTAL_ALTER_CONFIGS: lambda client: client.incremental_alter_configs(
        {model.ConfigResource.topic("t"): [model.ConfigChange.delete("k")]}
    ).raise_if_any(),
}


@pytest.mark.parametrize("written", WRITES, ids=lambda entry: entry.name)
def test_no_kind_of_write_is_sent_twice(written: Api, node: Listener, connect: Connect) -> None:
    with pytest.raises(OutcomeUnknown):
        WRITES[written](connect(node))
    assert node.times_asked(written) == 1


def test_a_read_without_an_answer_is_asked_again(node: Listener, connect: Connect) -> None:
    node.answers[LIST] = in_turn(Deed.HANG_UP, Deed.HANG_UP, LISTED)
    assert connect(node).list_partition_reassignments() == MOVES
    assert node.times_asked(LIST) == 3


def test_a_read_that_any_node_can_answer_goes_to_another_one(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    first.answers[api.DESCRIBE_CLUSTER] = Deed.HANG_UP
    assert len(connect(first, second).describe_cluster().brokers) == 2
    assert (first.times_asked(api.DESCRIBE_CLUSTER), second.times_asked(api.DESCRIBE_CLUSTER)) == (1, 1)


def test_another_node_is_asked_before_a_topic_is_believed_gone(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    page = api.DESCRIBE_TOPIC_PARTITIONS
    first.answers[page] = answers.topic_page([], {"t": 3})
    second.answers[page] = answers.topic_page([answers.some_topic("t", 0)])
    assert [*connect(first, second).describe_topics(["t"]).ok] == ["t"]
    assert (first.times_asked(page), second.times_asked(page)) == (1, 1)


def test_what_one_node_knows_is_there_though_another_does_not_know_it_yet(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    page = api.DESCRIBE_TOPIC_PARTITIONS
    first.answers[page] = answers.topic_page([answers.some_topic("t", 0)], {"gone": 3})
    second.answers[page] = answers.topic_page([], {"t": 3, "gone": 3})
    found = connect(first, second).describe_topics(["t", "gone"])
    assert ([*found.ok], [*found.failed]) == (["t"], ["gone"])


def test_two_nodes_that_know_of_no_topic_are_believed(listen: Listen, connect: Connect) -> None:
    nodes = [listen(), listen()]
    join(*nodes)
    for node in nodes:
        node.answers[api.DESCRIBE_TOPIC_PARTITIONS] = answers.topic_page([])
    assert connect(*nodes).describe_topics() == model.Batch()
    assert [node.times_asked(api.DESCRIBE_TOPIC_PARTITIONS) for node in nodes] == [1, 1]


def test_an_empty_list_of_moves_is_put_to_another_broker(listen: Listen, connect: Connect) -> None:
    """With KRaft, the first may forward to a controller that is not active any more, and has read no move."""
    first, second = joined(listen)
    first.answers[LIST], second.answers[LIST] = answers.listed({}), LISTED
    assert connect(first, second).list_partition_reassignments() == MOVES
    assert (first.times_asked(LIST), second.times_asked(LIST)) == (1, 1)


def test_a_second_broker_that_refuses_does_not_take_an_empty_list_back(listen: Listen, connect: Connect) -> None:
    first, second = joined(listen)
    first.answers[LIST] = answers.listed({})
    second.answers[LIST] = answers.listed({}, top=(CLUSTER_AUTHORIZATION_FAILED, None))
    assert connect(first, second).list_partition_reassignments() == {}
    assert second.times_asked(LIST) == 1


def test_an_empty_list_is_believed_where_only_the_controller_answers(listen: Listen, connect: Connect) -> None:
    controller, other = joined(listen)
    controller.answers[LIST] = answers.listed({})
    other.answers[LIST] = answers.listed({}, top=(NOT_CONTROLLER, None))
    assert connect(other, controller).list_partition_reassignments() == {}
    assert (controller.times_asked(LIST), other.times_asked(LIST)) == (1, 1)


def test_trying_again_ends_with_the_time_of_the_call(node: Listener, connect: Connect) -> None:
    node.answers[LIST] = Deed.HANG_UP
    with pytest.raises(OutcomeUnknown):
        connect(node, retry_backoff_ms=30_000).list_partition_reassignments(timeout_ms=100_000)
    assert node.times_asked(LIST) == 4


def test_a_listing_that_timed_out_at_a_broker_is_asked_again(node: Listener, connect: Connect) -> None:
    node.answers |= {
        LIST: in_turn(answers.listed({}, (REQUEST_TIMED_OUT, None)), LISTED),
        ALTER: answers.altered({}, (REQUEST_TIMED_OUT, None)),
    }
    client = connect(node)
    assert client.list_partition_reassignments() == MOVES
    with pytest.raises(OutcomeUnknown):
        alter(client).raise_if_any()
    assert (node.times_asked(LIST), node.times_asked(ALTER)) == (2, 1)


def test_the_controller_gets_most_of_the_time_that_is_left(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = DONE
    alter(connect(node), timeout_ms=30_000)
    (message,) = node.messages(ALTER)
    assert message.timeout_ms == 28_000


def test_a_closed_idle_connection_is_opened_again_silently(node: Listener, connect: Connect) -> None:
    node.answers |= {LIST: LISTED, ALTER: DONE}
    client = connect(node)
    for write in range(1, 4):
        client.list_partition_reassignments()
        node.close_connections()
        assert len(alter(client).ok) == 1
        assert node.times_asked(ALTER) == write


def test_one_connection_serves_many_calls(node: Listener, connect: Connect) -> None:
    node.answers[LIST] = LISTED
    client = connect(node)
    for _ in range(5):
        client.list_partition_reassignments()
    assert len(node.connections) == 1
    assert node.times_asked(api.API_VERSIONS) == 1


def test_an_answer_to_another_request_ends_the_connection(node: Listener, connect: Connect) -> None:
    def answer_another(asked: Asked) -> bytes:
        return write_response(asked, LISTED, correlation_id=asked.correlation_id + 1)

    node.answers[LIST] = in_turn(answer_another, LISTED)
    client = connect(node)
    with pytest.raises(ProtocolViolation, match="expected the answer to request"):
        client.list_partition_reassignments()
    assert client.list_partition_reassignments() == MOVES
    assert len(node.connections) == 2


# The controller


def moving_controller(listen: Listen, asked: Api, refusal: Reply, answer: Reply) -> tuple[Listener, Listener]:
    """Two nodes; the first is the controller until it is asked, and refuses that as the second is it by then."""
    old, new = joined(listen, controller=0)

    def moved(_asked: Asked) -> Reply:
        join(old, new, controller=1)
        return refusal

    old.answers[asked], new.answers[asked] = moved, answer
    return old, new


WRONG = answers.altered({T0: (NOT_CONTROLLER, None)}, top=(NOT_CONTROLLER, None))


def test_the_wrong_controller_is_left_for_the_right_one(listen: Listen, connect: Connect) -> None:
    old, new = moving_controller(listen, ALTER, WRONG, DONE)
    assert dict(alter(connect(old)).ok) == {T0: None}
    assert (old.times_asked(ALTER), new.times_asked(ALTER)) == (1, 1)
    # Looked up twice at the old one; the new one said on connecting to which cluster it belongs.
    assert (old.times_asked(api.METADATA), new.times_asked(api.METADATA)) == (2, 1)


def test_a_change_is_confirmed_before_each_time_that_it_is_sent(listen: Listen, connect: Connect) -> None:
    old, new = moving_controller(listen, ALTER, WRONG, DONE)
    left = [2]

    def confirm() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise InputError("no lease any more")

    assert dict(alter(connect(old), confirm=confirm).ok) == {T0: None}
    assert left == [0]
    with pytest.raises(InputError, match="no lease any more"):
        alter(connect(new), confirm=confirm)
    assert (old.times_asked(ALTER), new.times_asked(ALTER)) == (1, 1)


def test_a_controller_that_stays_wrong_is_reported_when_time_is_up(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = answers.altered({}, top=(NOT_CONTROLLER, None))
    with pytest.raises(Rejected, match="This is not the correct controller for this cluster") as refused:
        alter(connect(node, retry_backoff_ms=30_000), timeout_ms=100_000)
    assert refused.value.code == NOT_CONTROLLER
    assert node.times_asked(ALTER) == 4


def test_a_wrong_controller_for_each_partition_is_left_too(listen: Listen, connect: Connect) -> None:
    refusal, done = answers.elected({T0: (NOT_CONTROLLER, None)}), answers.elected({T0: answers.FINE})
    old, _ = moving_controller(listen, api.ELECT_LEADERS, refusal, done)
    assert dict(connect(old).elect_leaders([T0]).ok) == {T0: None}


@pytest.mark.parametrize("silent_to", [api.API_VERSIONS, LIST])
def test_a_broker_that_hangs_and_is_named_as_the_controller_is_asked_once(
    silent_to: Api, listen: Listen, connect: Connect
) -> None:
    other, hanging = joined(listen, controller=1)
    other.answers[LIST] = hanging.answers[LIST] = LISTED
    hanging.answers[silent_to] = Deed.STAY_SILENT
    assert connect(other, request_timeout_ms=SILENCE_MS).list_partition_reassignments() == MOVES
    assert (hanging.times_asked(silent_to), other.times_asked(LIST)) == (1, 1)


def test_a_change_goes_past_a_broker_that_hangs_before_it_could_be_sent(listen: Listen, connect: Connect) -> None:
    other, hanging = joined(listen, controller=1)
    other.answers[ALTER] = hanging.answers[ALTER] = DONE
    hanging.answers[api.API_VERSIONS] = Deed.STAY_SILENT
    assert dict(alter(connect(other, request_timeout_ms=SILENCE_MS)).ok) == {T0: None}
    assert (hanging.times_asked(ALTER), other.times_asked(ALTER)) == (0, 1)


def test_a_controller_that_nobody_stands_in_for_is_asked_again(listen: Listen, connect: Connect) -> None:
    other, controller = joined(listen, controller=1)
    other.answers[LIST] = answers.listed({}, top=(NOT_CONTROLLER, None))
    controller.answers[LIST] = in_turn(Deed.STAY_SILENT, LISTED)
    assert connect(other, request_timeout_ms=SILENCE_MS).list_partition_reassignments() == MOVES
    assert (controller.times_asked(LIST), other.times_asked(LIST)) == (2, 1)


def test_that_the_controller_hangs_is_told_not_that_another_broker_is_none(listen: Listen, connect: Connect) -> None:
    other, controller = joined(listen, controller=1)
    other.answers[LIST] = answers.listed({}, top=(NOT_CONTROLLER, None))
    controller.answers[LIST] = Deed.STAY_SILENT
    with pytest.raises(OutcomeUnknown, match=f"{controller.address} did not answer"):
        connect(other, request_timeout_ms=SILENCE_MS).list_partition_reassignments(timeout_ms=2 * RETRY_BACKOFF_MS)


def test_any_other_refusal_is_the_answer(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = answers.altered({T0: (31, "no")}, top=(31, "no"))
    with pytest.raises(Rejected, match="no"):
        alter(connect(node))
    assert node.times_asked(ALTER) == 1


# Nodes


def test_a_cluster_that_is_down_is_said_to_be_down_with_every_address(listen: Listen, connect: Connect) -> None:
    first, second = listen(), listen()
    client = connect(first, second)
    first.close()
    second.close()
    with pytest.raises(Unreachable) as down:
        client.list_topics()
    text = str(down.value)
    assert "no node of the cluster can be reached" in text
    (addresses,) = re.findall("could not connect to (.*): connection refused", text)
    assert sorted(addresses.split(", ")) == sorted(str(node.address) for node in (first, second))
    assert "security.protocol" in text


def test_a_call_gives_a_cluster_up_early_that_is_down(listen: Listen) -> None:
    node, clock = listen(), VirtualClock()
    node.close()
    settings = ClientSettings(bootstrap_servers=(node.address,), api_timeout_ms=60_000)
    with (
        AdminClient.connect(settings, clock=clock) as client,
        pytest.raises(Unreachable, match="no node of the cluster"),
    ):
        client.list_topics()
    assert 4 < clock.monotonic_s() < 6


def test_the_second_bootstrap_address_serves_when_the_first_is_down(listen: Listen, connect: Connect) -> None:
    dead, alive = listen(), listen()
    join(alive)
    alive.answers[LIST] = LISTED
    dead.close()
    assert connect(dead, alive).list_partition_reassignments() == MOVES


def hanging(listen: Listen) -> Listener:
    node = listen()
    node.answers[api.API_VERSIONS] = Deed.STAY_SILENT
    return node


def test_a_first_address_that_hangs_does_not_keep_the_next_waiting(
    listen: Listen, connect: Connect, logged: Logged
) -> None:
    silent, alive = hanging(listen), listen()
    join(alive)
    alive.answers[LIST] = LISTED
    assert connect(silent, alive).list_partition_reassignments() == MOVES
    assert silent.times_asked(api.API_VERSIONS) == 1
    assert logged.messages == [f"passed over: {silent.address} has not answered yet"]
    silent.wait_until_left()


def test_addresses_that_all_hang_share_the_time_of_one_connection(listen: Listen, logged: Logged) -> None:
    """Each of seven is asked, and what is awaited is told meanwhile."""
    nodes = [hanging(listen) for _ in range(7)]
    settings = ClientSettings(tuple(node.address for node in nodes), connect_timeout_ms=3 * SILENCE_MS)
    with AdminClient.connect(settings) as client, pytest.raises(Unreachable) as down:
        client.describe_cluster()
    assert [node.times_asked(api.API_VERSIONS) > 0 for node in nodes] == [True] * len(nodes)
    assert all(str(node.address) in str(down.value) for node in nodes)
    assert logged.messages[0].startswith("waiting up to ")
    assert str(nodes[0].address) in logged.messages[0]


def in_tls(listen: Listen) -> Address:
    node = listen()
    node.answers[api.API_VERSIONS] = b"\x15\x03\x03\x00\x02\x02\x46"
    return node.address


def closed(listen: Listen) -> Address:
    node = listen()
    node.close()
    return node.address


BAD_ENTRIES: dict[str, tuple[Callable[[Listen], Address], str]] = {
    "another protocol": (in_tls, "it looks like TLS"),
    "wrong port": (closed, "connection refused"),
    "unresolvable": (lambda _listen: Address("no-such-host.invalid", 9092), "does not resolve"),
}


@pytest.mark.parametrize("bad", BAD_ENTRIES)
def test_a_bad_bootstrap_entry_is_named_and_the_next_one_asked(
    bad: str, listen: Listen, connect: Connect, logged: Logged
) -> None:
    make, words = BAD_ENTRIES[bad]
    alive = listen()
    join(alive)
    alive.answers[LIST] = LISTED
    address = make(listen)
    client = connect(bootstrap_servers=(address, alive.address))
    assert client.list_partition_reassignments() == MOVES
    (warning,) = logged.messages
    assert str(address) in warning
    assert words in warning


def test_entries_that_are_no_kafka_are_all_named_at_once(listen: Listen, connect: Connect) -> None:
    first, second = in_tls(listen), in_tls(listen)
    with pytest.raises(ProtocolViolation) as wrong:
        connect(bootstrap_servers=(first, second)).list_topics()
    assert str(first) in str(wrong.value)
    assert str(second) in str(wrong.value)


def test_a_cluster_that_goes_away_during_a_call_is_given_up_soon(listen: Listen) -> None:
    nodes, clock = [listen(), listen()], VirtualClock()
    join(*nodes)

    def go_away(_asked: Asked) -> Reply:
        for node in nodes:
            node.go_away()
        return Deed.HANG_UP

    for node in nodes:
        node.answers[LIST] = go_away
    settings = ClientSettings(bootstrap_servers=tuple(node.address for node in nodes), api_timeout_ms=60_000)
    with (
        AdminClient.connect(settings, clock=clock) as client,
        pytest.raises(Unreachable, match="no node of the cluster can be reached"),
    ):
        client.list_partition_reassignments()
    assert clock.monotonic_s() < 10


# Addresses that nodes name


@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("host", ["kafka-0.invalid", "127.0.0.1"])
@pytest.mark.parametrize("ask", [AdminClient.describe_cluster, AdminClient.list_partition_reassignments, alter])
def test_a_listener_out_of_reach_is_named_with_who_named_it(
    ask: Callable[[AdminClient], object], host: str, brokers: int, listen: Listen
) -> None:
    node, clock = listen(), VirtualClock()
    port = closed(listen).port
    named = model.Cluster("id", 0, tuple(model.Broker(number, host, port) for number in range(brokers)))
    node.answers[api.METADATA] = answers.metadata(named)
    settings = ClientSettings(bootstrap_servers=(node.address,), api_timeout_ms=60_000)
    with AdminClient.connect(settings, clock=clock) as client, pytest.raises(Unreachable) as silent:
        ask(client)
    text = str(silent.value)
    assert f"{node.address} answered and tells clients to go to {host}:{port}, which cannot be reached: " in text
    assert "advertised.listeners" in text
    assert clock.monotonic_s() < 10


def test_one_listener_out_of_reach_costs_only_its_broker(listen: Listen) -> None:
    node, clock = listen(), VirtualClock()
    gone = closed(listen)
    named = model.Cluster("id", 0, (model.Broker(0, *node.address), model.Broker(1, *gone)))
    node.answers |= {api.METADATA: answers.metadata(named), LOG_DIRS: log_dirs("/a")}
    settings = ClientSettings(bootstrap_servers=(node.address,), api_timeout_ms=60_000)
    with AdminClient.connect(settings, clock=clock) as client:
        batch = client.describe_log_dirs([0, 1])
    assert list(batch.ok) == [0]
    assert f"{node.address} answered and tells clients to go to {gone}" in str(batch.failed[1])
    assert clock.monotonic_s() < 10


@pytest.mark.parametrize("host", ["", None])
def test_a_node_without_a_host_is_no_answer(host: str | None, node: Listener, connect: Connect) -> None:
    node.answers[api.METADATA] = answers.metadata(model.Cluster("id", 0, (model.Broker(0, host, 9092),)))
    with pytest.raises(ProtocolViolation, match=f"{node.address}: .*node 0 has no host"):
        connect(node).list_topics()


def test_an_unlisted_broker_is_looked_up_again_before_it_is_given_up(listen: Listen, connect: Connect) -> None:
    first, added = listen(), listen()
    join(first)
    client = connect(first)
    client.describe_cluster()
    join(first, added)
    added.answers[LOG_DIRS] = log_dirs("/added")
    assert client.describe_log_dirs([1])[1][0].path == "/added"
    error = client.describe_log_dirs([7]).failed[7]
    assert isinstance(error, Unreachable)
    assert "broker 7 is not among those that the cluster lists (0,1)" in str(error)


def test_a_read_at_a_broker_that_is_gone_ends_after_one_fresh_look(node: Listener, connect: Connect) -> None:
    assert isinstance(connect(node).describe_log_dirs([7]).failed[7], Unreachable)
    assert node.times_asked(api.METADATA) == 2


def test_a_change_at_a_broker_that_is_gone_waits_for_it_to_come_back(listen: Listen, connect: Connect) -> None:
    first, coming = listen(), listen()
    both = join(first, coming)
    alone = answers.metadata(join(first))
    first.answers[api.METADATA] = in_turn(alone, alone, alone, alone, answers.metadata(both))
    resource = model.ConfigResource.broker(1)
    coming.answers[api.INCREMENTAL_ALTER_CONFIGS] = answers.configs_altered({resource: answers.FINE})
    assert dict(connect(first).incremental_alter_configs({resource: []}).ok) == {resource: None}
    assert first.times_asked(api.METADATA) == 5


def test_all_log_dirs_are_those_of_the_brokers_of_today(listen: Listen, connect: Connect) -> None:
    first, added = listen(), listen()
    join(first)
    first.answers[LOG_DIRS], added.answers[LOG_DIRS] = log_dirs("/first"), log_dirs("/added")
    client = connect(first)
    assert list(client.describe_log_dirs()) == [0]
    join(first, added)
    assert list(client.describe_log_dirs()) == [0, 1]


# Many nodes at once


@pytest.mark.parametrize(("silent_to", "error"), [(LOG_DIRS, OutcomeUnknown), (api.API_VERSIONS, Unreachable)])
def test_a_hanging_broker_costs_one_timeout_and_the_others_answer(
    silent_to: Api, error: type[Exception], listen: Listen, connect: Connect
) -> None:
    nodes = [listen() for _ in range(4)]
    join(*nodes)
    for number, node in enumerate(nodes):
        node.answers[LOG_DIRS] = log_dirs(f"/{number}")
    nodes[2].answers[silent_to] = Deed.STAY_SILENT
    batch = connect(nodes[0], request_timeout_ms=SILENCE_MS).describe_log_dirs()
    assert {broker: found[0].path for broker, found in batch.ok.items()} == {0: "/0", 1: "/1", 3: "/3"}
    assert isinstance(batch.failed[2], error)
    assert nodes[2].times_asked(silent_to) == 1


def test_brokers_are_asked_at_the_same_time(listen: Listen, connect: Connect) -> None:
    nodes = [listen() for _ in range(4)]
    join(*nodes)
    # Nobody answers before all were asked: one after the other would never end.
    everybody = threading.Barrier(len(nodes))

    def answer(_asked: Asked) -> Reply:
        everybody.wait(PATIENCE_S)
        return log_dirs("/a")

    for node in nodes:
        node.answers[LOG_DIRS] = answer
    assert len(connect(*nodes).describe_log_dirs().ok) == 4


def test_what_was_wrong_is_told_also_when_the_last_try_runs_out_of_time(listen: Listen, connect: Connect) -> None:
    alive, dead = listen(), listen()
    cluster = join(alive, dead)
    alive.answers[LOG_DIRS] = log_dirs("/a")
    alive.answers[api.METADATA] = in_turn(answers.metadata(cluster), Deed.STAY_SILENT)
    dead.close()
    batch = connect(alive, retry_backoff_ms=1_000).describe_log_dirs([1], timeout_ms=2_000)
    assert alive.times_asked(api.METADATA) == 2
    assert "connection refused" in str(batch.failed[1])


def holding(node: Listener) -> tuple[threading.Event, threading.Event]:
    """A node that holds a listing from the first event on, until the second is set."""
    arrived, release = threading.Event(), threading.Event()

    def wait(_asked: Asked) -> Reply:
        arrived.set()
        release.wait(PATIENCE_S)
        return LISTED

    node.answers[LIST] = wait
    return arrived, release


def test_a_node_that_is_busy_with_a_hanging_call_is_passed_by(listen: Listen, connect: Connect) -> None:
    hanging, free = joined(listen)
    arrived, release = holding(hanging)
    client = connect(hanging, free)
    with ThreadPoolExecutor(1) as threads:
        blocked = threads.submit(client.list_partition_reassignments)
        assert arrived.wait(PATIENCE_S)
        assert len(client.describe_cluster().brokers) == 2
        assert not blocked.done()
        release.set()
        assert blocked.result(PATIENCE_S) == MOVES
    assert free.times_asked(api.DESCRIBE_CLUSTER) == 1


def test_waiting_for_a_busy_node_ends_with_the_time_of_the_call(node: Listener, connect: Connect) -> None:
    arrived, release = holding(node)
    client = connect(node)
    with ThreadPoolExecutor(1) as threads:
        blocked = threads.submit(client.list_partition_reassignments)
        assert arrived.wait(PATIENCE_S)
        with pytest.raises(Unreachable, match=f"{node.address} is still busy with another call"):
            alter(client, timeout_ms=200)
        release.set()
        blocked.result(PATIENCE_S)
    assert node.times_asked(ALTER) == 0


def test_many_threads_may_share_a_client(node: Listener, connect: Connect) -> None:
    ongoing = {T0: model.OngoingReassignment((1, 2), (1,), ())}
    node.answers[LIST] = answers.listed(ongoing)
    client = connect(node)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: client.list_partition_reassignments(), range(64)))
    assert found == [ongoing] * 64


def silenced(node: Listener, asked: Api) -> threading.Event:
    """Let a node stay silent to these requests; return the event that one has arrived."""
    arrived = threading.Event()

    def stay(_asked: Asked) -> Reply:
        arrived.set()
        return Deed.STAY_SILENT

    node.answers[asked] = stay
    return arrived


def test_closing_ends_calls_under_way_and_later_ones(node: Listener, connect: Connect) -> None:
    arrived = silenced(node, LIST)
    client = connect(node)
    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(client.list_partition_reassignments)
        assert arrived.wait(PATIENCE_S)
        client.close()
        assert isinstance(hanging.exception(PATIENCE_S), OutcomeUnknown)
    with pytest.raises(Unreachable, match="the client is closed"):
        client.list_partition_reassignments()
    assert node.times_asked(LIST) == 1


def test_closing_ends_a_connection_that_is_being_opened(node: Listener, connect: Connect) -> None:
    arrived = silenced(node, api.API_VERSIONS)
    client = connect(node)
    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(client.list_partition_reassignments)
        assert arrived.wait(PATIENCE_S)
        client.close()
        assert isinstance(hanging.exception(PATIENCE_S), Unreachable)
    node.wait_until_left()


# Versions


def test_the_highest_version_of_both_is_spoken_with_each_node(listen: Listen, connect: Connect) -> None:
    old, new = joined(listen)
    old.offer({LOG_DIRS: (0, 2)})
    new.offer({LOG_DIRS: (1, 9)})
    old.answers[LOG_DIRS], new.answers[LOG_DIRS] = log_dirs("/old"), log_dirs("/new")
    batch = connect(old, new).describe_log_dirs()
    assert (batch[0][0].total_bytes, batch[1][0].total_bytes) == (None, 10)
    assert [asked.version for node in (old, new) for asked in node.asked if asked.api is LOG_DIRS] == [2, 5]


def test_a_node_that_does_not_know_our_api_versions_is_asked_in_version_0(node: Listener, connect: Connect) -> None:
    node.answers[LIST] = LISTED
    offered = {3: (0, 12), 18: (0, 2), 46: (0, 0)}
    node.answers[api.API_VERSIONS] = in_turn(
        answers.api_versions({18: (0, 2)}, error_code=35), answers.api_versions(offered)
    )
    assert connect(node).list_partition_reassignments() == MOVES
    assert [asked.version for asked in node.asked if asked.api is api.API_VERSIONS] == [3, 0]


def test_who_refuses_to_tell_versions_is_not_talked_to(node: Listener, connect: Connect) -> None:
    node.answers[api.API_VERSIONS] = answers.api_versions({}, error_code=31)
    with pytest.raises(Rejected) as refused:
        connect(node).list_topics()
    assert (refused.value.api, refused.value.code) == ("ApiVersions", 31)


def test_a_missing_api_is_named_and_nothing_is_sent(node: Listener, connect: Connect) -> None:
    node.offer({ALTER: None})
    with pytest.raises(Unsupported) as missing:
        alter(connect(node))
    assert str(missing.value) == f"{node.address} does not offer AlterPartitionReassignments (API 45)"
    assert node.times_asked(ALTER) == 0


def test_a_missing_version_is_named_with_what_both_sides_speak(node: Listener, connect: Connect) -> None:
    node.offer({api.CREATE_TOPICS: (0, 3)})
    with pytest.raises(Unsupported) as missing:
        connect(node).create_topics([model.NewTopic("t")])
    assert str(missing.value) == (f"{node.address} offers CreateTopics (API 19) in versions 0-3, kreassign speaks 4-7")


def test_versions_are_asked_again_after_a_broker_came_back(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = DONE
    node.offer({ALTER: (0, 0)})
    client = connect(node)
    alter(client)
    node.offer({})  # It was upgraded.
    node.close_connections()
    alter(client)
    assert [asked.version for asked in node.asked if asked.api is ALTER] == [0, 1]


# Addresses that another cluster has now


def taken_over(node: Listener, cluster_id: str = "other") -> None:
    """From now on the address of this node belongs to another cluster, which would do what it is asked."""
    node.close_connections()
    cluster = model.Cluster(cluster_id, 0, (model.Broker(0, *node.address),))
    node.answers |= {
        api.METADATA: answers.metadata(cluster),
        api.DESCRIBE_CLUSTER: answers.cluster_nodes(cluster),
        ALTER: DONE,
        LIST: LISTED,
    }


@pytest.mark.parametrize("ask", [alter, lambda client, **options: client.list_partition_reassignments(**options)])
def test_nothing_is_sent_to_an_address_that_belongs_to_another_cluster_now(
    ask: Callable[..., object], node: Listener, connect: Connect
) -> None:
    node.answers[LIST] = LISTED
    client = connect(node)
    client.list_partition_reassignments()
    taken_over(node)
    with pytest.raises(Unreachable, match="belongs to cluster other, not to id as expected"):
        ask(client)
    assert (node.times_asked(ALTER), node.times_asked(LIST)) == (0, 1)


def test_a_broker_of_another_cluster_is_found_out_on_its_first_connection(listen: Listen, connect: Connect) -> None:
    ours, strange = joined(listen, controller=1)
    taken_over(strange)
    ours.answers[ALTER] = answers.altered({}, top=(NOT_CONTROLLER, None))
    with pytest.raises(Unreachable, match="belongs to cluster other"):
        alter(connect(ours))
    assert not strange.times_asked(ALTER)


def test_a_connection_of_an_unknown_cluster_is_not_used_later(listen: Listen, connect: Connect) -> None:
    """Its address answered the first question with a refusal, and is listed by the cluster that another one named."""
    strange, ours = joined(listen)
    taken_over(strange)
    strange.answers[api.DESCRIBE_CLUSTER] = in_turn(
        api.DESCRIBE_CLUSTER.response(error_code=NOT_CONTROLLER, cluster_id="", brokers=[]),
        strange.answers[api.DESCRIBE_CLUSTER],
    )
    client = connect(bootstrap_servers=(), bootstrap_controllers=(strange.address, ours.address))
    with pytest.raises(Unreachable, match="belongs to cluster other, not to id as expected"):
        alter(client)
    assert not strange.times_asked(ALTER)


def test_other_nodes_are_asked_meanwhile(listen: Listen, connect: Connect) -> None:
    ours, strange = joined(listen)
    client = connect(ours, strange)
    client.describe_cluster()
    taken_over(strange)
    ours.answers[api.DESCRIBE_CLUSTER] = in_turn(Deed.HANG_UP, ours.answers[api.DESCRIBE_CLUSTER])
    assert client.describe_cluster().cluster_id == "id"


def test_an_address_that_comes_back_to_its_cluster_is_used_again(node: Listener, connect: Connect) -> None:
    node.answers[LIST] = LISTED
    client = connect(node)
    client.list_partition_reassignments()
    right = node.answers[api.METADATA]
    taken_over(node)
    node.answers[api.METADATA] = in_turn(node.answers[api.METADATA], right)
    assert len(alter(client).ok) == 1


def test_a_client_of_controllers_does_not_follow_them_into_another_cluster(node: Listener, connect: Connect) -> None:
    node.answers[LIST] = LISTED
    client = connect(bootstrap_servers=(), bootstrap_controllers=(node.address,))
    client.list_partition_reassignments()
    taken_over(node)
    with pytest.raises(Unreachable, match="belongs to cluster other"):
        alter(client)
    assert not node.times_asked(ALTER)


def test_a_client_that_is_told_its_cluster_sends_nothing_to_another_one(node: Listener, connect: Connect) -> None:
    node.answers[ALTER] = DONE
    client = connect(bootstrap_servers=(), bootstrap_controllers=(node.address,))
    client.expect_cluster("ours")
    with pytest.raises(Unreachable, match="belongs to cluster id, not to ours as expected"):
        alter(client)
    assert not node.times_asked(ALTER)


def test_a_client_of_one_cluster_cannot_become_one_of_another(node: Listener, connect: Connect) -> None:
    client = connect(node)
    client.describe_cluster()
    client.expect_cluster("id")
    with pytest.raises(InputError, match="the client is one of cluster id, not of ours"):
        client.expect_cluster("ours")


# Brokers compare the node that a call is for (KIP-1242)


def as_node(node_id: int, cluster_id: str = "id") -> Callable[[Asked], Reply]:
    """ApiVersions as a broker of Kafka 4.4 answers it."""

    def reply(asked: Asked) -> Reply:
        named = (asked.message.cluster_id, asked.message.node_id)
        is_refused = asked.version >= 5 and named not in {(None, -1), (cluster_id, node_id)}
        return answers.api_versions({} if is_refused else EVERYTHING, error_code=129 if is_refused else 0)

    return reply


def test_a_call_for_a_broker_names_it_and_its_cluster(listen: Listen, connect: Connect) -> None:
    one, other = joined(listen)
    for number, node in enumerate((one, other)):
        node.answers[api.API_VERSIONS] = as_node(number)
        node.answers[LOG_DIRS] = log_dirs(f"/{number}")
    assert set(connect(one).describe_log_dirs().ok) == {0, 1}
    (asked,) = [asked for asked in other.asked if asked.api is api.API_VERSIONS]
    assert (asked.version, asked.message.cluster_id, asked.message.node_id) == (5, "id", 1)


def test_a_broker_that_is_not_the_listed_one_gets_no_call(listen: Listen, connect: Connect) -> None:
    one, other = joined(listen)
    one.answers[api.API_VERSIONS], other.answers[api.API_VERSIONS] = as_node(0), as_node(7)
    one.answers[LOG_DIRS] = other.answers[LOG_DIRS] = log_dirs("/a")
    batch = connect(one).describe_log_dirs([0, 1], timeout_ms=30_000)
    assert set(batch.ok) == {0}
    assert isinstance(batch.failed[1], Unreachable)
    assert "is not broker 1 of cluster id, which lists it there; nothing was sent to it" in str(batch.failed[1])
    assert not other.times_asked(LOG_DIRS)


def test_an_older_broker_among_newer_ones_is_asked_as_before(listen: Listen, connect: Connect) -> None:
    new, old = joined(listen)
    new.answers[api.API_VERSIONS] = as_node(0)
    offered = EVERYTHING | {18: (0, 4)}
    old.answers[api.API_VERSIONS] = lambda asked: answers.api_versions(
        offered if asked.version <= 4 else {18: (0, 4)}, error_code=35 if asked.version > 4 else 0
    )
    new.answers[LOG_DIRS] = old.answers[LOG_DIRS] = log_dirs("/a")
    with_both = connect(new)
    for _ in range(2):
        assert set(with_both.describe_log_dirs().ok) == {0, 1}
    assert [asked.version for asked in old.asked if asked.api is api.API_VERSIONS] == [5, 0]
