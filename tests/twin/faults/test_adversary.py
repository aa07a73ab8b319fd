"""Effects of other operators, lagging controllers and bad clocks on the clients of a cluster."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import InputError, OutcomeUnknown
from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.error_codes import has_code
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import inject, read_fault, recover, schedule_faults
from kreassign.twin.faults.schedule import obey
from kreassign.wire import api
from tests.twin.asking import ask, cluster, partition
from tests.twin.memory_log import MemoryLog

ORDERS = TopicPartition("orders", 0)
RATE = 1_000_000


def broken(*faults: str, controllers: int = 1, size: int = 1_000_000_000) -> Twin:
    """A twin with partition orders-0 on brokers 0 and 1, to which this happens."""
    twin = Twin(cluster({"orders": [[0, 1]]}, size_bytes=size), TwinSettings(controller_count=controllers))
    schedule_faults(twin, map(read_fault, faults))
    return twin


def client(transport: TwinTransport, *, bootstrap: str = "broker-2:9092", controllers: str = "") -> AdminClient:
    found = {"bootstrap_controllers": controllers} if controllers else {"bootstrap_servers": bootstrap}
    return AdminClient.connect(
        client_settings({"request.timeout.ms": "2000"}, **found), clock=transport, transport=transport
    )


def throttled(twin: Twin) -> TwinTransport:
    """A cluster in which orders-0 is being moved to broker 2 under a throttle of its own."""
    transport = TwinTransport(twin)
    with client(transport) as admin:
        rates = [ConfigChange.set(name, str(RATE)) for name in BROKER_THROTTLES[:2]]
        lists = [ConfigChange.set(name, "0:0,0:1,0:2") for name in TOPIC_THROTTLES]
        changes: Mapping[ConfigResource, list[ConfigChange]] = {
            ConfigResource.topic("orders"): lists, **{ConfigResource.broker(broker): rates for broker in range(4)}
        }  # fmt: skip
        admin.incremental_alter_configs(changes).raise_if_any()
        admin.alter_partition_reassignments({ORDERS: (0, 2)}).raise_if_any()
    return transport


def rates(twin: Twin) -> dict[int, str]:
    """The rate that each broker has, for what it sends."""
    found = {broker: twin.metadata.config(ConfigResource.broker(broker), BROKER_THROTTLES[0]) for broker in range(4)}
    return {broker: value for broker, value in found.items() if value is not None}


def lists(twin: Twin) -> list[str | None]:
    return [twin.metadata.config(ConfigResource.topic("orders"), name) for name in TOPIC_THROTTLES]


# A second operator


def test_somebody_clears_every_throttle_as_kafkas_cancel_does() -> None:
    twin = broken("clear-throttles@5s")
    transport = throttled(twin)
    assert len(rates(twin)) == 4
    transport.sleep(6.0)
    assert rates(twin) == {}
    assert lists(twin) == [None, None]
    assert twin.metadata.reassigning == {ORDERS}


def test_somebody_takes_the_rates_of_one_broker_off() -> None:
    twin = broken("clear-throttles:2@5s")
    throttled(twin).sleep(6.0)
    assert sorted(rates(twin)) == [0, 1, 3]
    assert lists(twin) == ["0:0,0:1,0:2"] * 2


def test_another_tool_sets_its_own_rates_and_removes_them() -> None:
    twin = broken("set-throttles:500@5s+5s")
    transport = throttled(twin)
    transport.sleep(6.0)
    assert set(rates(twin).values()) == {"500"}
    transport.sleep(6.0)
    assert rates(twin) == {}


def test_another_tool_adds_a_replica_to_the_lists_and_takes_only_that_off() -> None:
    twin = broken("list-replica:orders:0:3@5s+5s")
    transport = throttled(twin)
    transport.sleep(6.0)
    assert lists(twin) == ["0:0,0:1,0:2,0:3"] * 2
    transport.sleep(6.0)
    assert lists(twin) == ["0:0,0:1,0:2"] * 2


def test_somebody_cancels_every_move() -> None:
    twin = broken("cancel-moves@5s")
    throttled(twin).sleep(6.0)
    assert twin.metadata.reassigning == set()
    assert partition(twin, "orders")[0] == (0, 1)


def test_somebody_sends_a_partition_elsewhere() -> None:
    twin = broken("move:orders:0:3,1@5s")
    throttled(twin).sleep(60.0)
    state = twin.metadata.partition(ORDERS)
    assert state is not None
    assert (set(state.adding), set(state.removing)) == ({3}, {0, 2})


def test_a_recreated_topic_differs_only_in_its_id() -> None:
    twin = broken("recreate:orders@5s")
    before = twin.metadata.topics["orders"].topic_id
    throttled(twin).sleep(10.0)
    assert twin.metadata.topics["orders"].topic_id != before
    assert partition(twin, "orders") == ((0, 1), {0, 1}, 0)
    assert lists(twin) == [None, None]


def test_a_topic_can_be_gone_in_the_middle_of_a_move() -> None:
    twin = broken("delete:orders@5s", "recreate:orders@6s", "list-replica:orders:0:3@7s+1s")
    throttled(twin).sleep(20.0)
    assert twin.metadata.topics == {}


# Requests that get lost, answers that are wrong


def test_a_request_that_is_lost_on_its_way_was_not_executed() -> None:
    twin = broken("drop:AlterPartitionReassignments@0")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        with pytest.raises(OutcomeUnknown):
            admin.alter_partition_reassignments({ORDERS: (0, 2)})
        assert admin.list_partition_reassignments() == {}
        admin.alter_partition_reassignments({ORDERS: (0, 2)}).raise_if_any()


@pytest.mark.parametrize(("kind", "is_moving"), [("refuse", False), ("refuse-after", True)])
@pytest.mark.parametrize("error", ["-1", "THROTTLING_QUOTA_EXCEEDED"])
def test_an_error_may_come_whether_the_request_was_executed_or_not(kind: str, error: str, *, is_moving: bool) -> None:
    twin = broken(f"{kind}:{error}:AlterPartitionReassignments@0")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        batch = admin.alter_partition_reassignments({ORDERS: (0, 2)})
        assert has_code(batch.failed[ORDERS], -1 if error == "-1" else 89)
        assert bool(twin.metadata.reassigning) is is_moving
        admin.alter_partition_reassignments({ORDERS: (0, 2)}).raise_if_any()


def test_what_is_only_asked_can_be_refused_too() -> None:
    twin = broken(
        "refuse:29:DescribeTopicPartitions@0+60s", "refuse:29:Metadata@0+60s", "refuse:31:DescribeConfigs@0+60s"
    )
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        owner = ConfigResource.topic("orders")
        assert has_code(admin.describe_topics(["orders"]).failed["orders"], 29)
        assert has_code(admin.describe_configs([owner]).failed[owner], 31)
        assert admin.describe_cluster().broker_ids == (0, 1, 2, 3)


def test_only_requests_of_items_can_be_refused() -> None:
    with pytest.raises(InputError, match="cannot be refused item by item"):
        broken("refuse:29:JoinGroup@0")


# What answers are made from


def listed(twin: Twin, node: int) -> int:
    """Number of topics that a node lists as being reassigned; it reports no error."""
    answer = ask(twin, api.LIST_PARTITION_REASSIGNMENTS, 0, node=node, topics=None)
    assert answer.error_code == 0
    return len(answer.topics)


def cancel(transport: TwinTransport) -> None:
    with client(transport) as admin:
        admin.alter_partition_reassignments({ORDERS: None}).raise_if_any()


def test_a_controller_that_is_not_active_lists_what_it_has_read() -> None:
    twin = broken("stale:102@0+60s", controllers=3)
    transport = TwinTransport(twin)
    transport.sleep(1.0)
    throttled(twin)
    # Node 0 is a broker, which forwards to the active controller.
    assert {node: listed(twin, node) for node in (0, 100, 101, 102)} == {0: 1, 100: 1, 101: 1, 102: 0}
    transport.sleep(60.0)
    cancel(transport)
    assert {node: listed(twin, node) for node in (0, 100, 101, 102)} == {0: 0, 100: 0, 101: 0, 102: 0}


def test_a_list_may_be_empty_without_an_error_and_everything_else_be_right() -> None:
    twin = broken("empty-lists:2@1s+10s")
    transport = throttled(twin)
    transport.sleep(2.0)
    assert {node: listed(twin, node) for node in (0, 2, 100)} == {0: 1, 2: 0, 100: 1}
    with client(transport) as admin:
        assert admin.describe_topics()["orders"].partitions[0].replicas == (0, 2, 1)
    transport.sleep(10.0)
    assert listed(twin, 2) == 1


def test_answers_of_one_api_can_be_old() -> None:
    twin = broken("stale-answers:DescribeConfigs:any@0+10s")
    transport = TwinTransport(twin)
    transport.sleep(1.0)
    throttled(twin)
    with client(transport) as admin:
        owner = ConfigResource.broker(1)
        assert BROKER_THROTTLES[0] not in admin.describe_configs([owner])[owner]
        assert admin.list_partition_reassignments().keys() == {ORDERS}
        transport.sleep(10.0)
        assert admin.describe_configs([owner])[owner][BROKER_THROTTLES[0]].value == str(RATE)


def test_answers_can_be_some_records_late() -> None:
    twin = broken("stale-answers:ListPartitionReassignments:0:2@0")
    transport = TwinTransport(twin)
    transport.sleep(1.0)
    seen = []
    for target in ((0, 2), None, (0, 3), None):
        with client(transport) as admin:
            admin.alter_partition_reassignments({ORDERS: target}).raise_if_any()
        seen.append(listed(twin, 0))
    assert seen == [0, 0, 1, 0]


# Brokers that are gone


def test_an_unregistered_broker_registers_again_at_its_start() -> None:
    twin = broken("unregister:1@1s+60s")
    twin.advance(5_000)
    assert sorted(twin.metadata.brokers) == [0, 2, 3]
    assert partition(twin, "orders") == ((0, 1), {0}, 0)
    twin.advance(120_000)
    assert sorted(twin.metadata.brokers) == [0, 1, 2, 3]
    assert partition(twin, "orders") == ((0, 1), {0, 1}, 0)


def test_a_move_to_an_unregistered_broker_stays_open() -> None:
    twin = broken("unregister:2@5s")
    transport = throttled(twin)
    transport.sleep(10.0)
    with client(transport, bootstrap="broker-3:9092") as admin:
        assert admin.list_partition_reassignments()[ORDERS].adding == (2,)
        error = admin.alter_partition_reassignments({ORDERS: (1, 2)}).failed[ORDERS]
        assert has_code(error, 39)
        rate = [ConfigChange.delete(BROKER_THROTTLES[0])]
        with client(transport, controllers="controller-100:9093") as controllers:
            owner = ConfigResource.broker(2)
            assert has_code(controllers.incremental_alter_configs({owner: rate}).failed[owner], 102)


def test_a_broker_can_be_unregistered_while_it_runs() -> None:
    twin = broken()
    assert ask(twin, api.UNREGISTER_BROKER, 0, node=0, broker_id=1).error_code == 0
    again = ask(twin, api.UNREGISTER_BROKER, 0, node=0, broker_id=1)
    assert (again.error_code, again.error_message) == (102, "Broker ID 1 is not currently registered")
    twin.advance(30_000)
    assert 1 not in twin.metadata.brokers
    twin.stop(1)
    twin.start(1)
    twin.advance(60_000)
    assert partition(twin, "orders") == ((0, 1), {0, 1}, 0)


def test_a_twin_that_is_opened_again_knows_who_was_unregistered() -> None:
    log = MemoryLog()
    blueprint = cluster({"orders": [[0, 1]]})
    Twin(blueprint, log=log).unregister(1)
    twin = Twin(blueprint, log=log)
    assert sorted(twin.metadata.brokers) == [0, 2, 3]
    assert not twin.is_running(1)
    twin.start(1)
    twin.advance(60_000)
    assert partition(twin, "orders") == ((0, 1), {0, 1}, 0)


# The machine of the client


def test_the_wall_clock_of_a_client_jumps_and_time_goes_on_as_before() -> None:
    twin = broken("step-clock:-1h@10s+10s")
    transport = TwinTransport(twin)
    seen = []
    for _ in range(3):
        transport.sleep(9.0)
        seen.append((transport.now_ms(), transport.monotonic_s()))
    assert seen == [(9_000, 9.0), (18_000 - 3_600_000, 18.0), (27_000, 27.0)]


def test_a_suspended_client_misses_what_happens_and_its_clocks_go_on() -> None:
    twin = broken("suspend:2m@5s")
    transport = throttled(twin)
    transport.sleep(10.0)
    assert (twin.now_ms, transport.now_ms(), transport.monotonic_s()) == (130_000, 130_000, 130.0)


# By hand


def test_a_fault_can_be_injected_and_recovered_at_once() -> None:
    twin = broken()
    inject(twin, "crash:1")
    assert not twin.is_running(1)
    recover(twin, "crash:1")
    assert twin.is_running(1)
    inject(twin, "isolate:2@5s+5s")
    twin.advance(6_000)
    assert twin.is_frozen(2)
    twin.advance(6_000)
    assert not twin.is_frozen(2)


@pytest.mark.parametrize("order", ["kill 1", "stop 1", "inject crash:1"])
def test_an_order_does_what_it_says(order: str) -> None:
    twin = broken()
    assert obey(twin, order)
    assert not twin.is_running(1)
    assert obey(twin, "restart 1") == "restart 1: done"
    twin.advance(30_000)
    assert partition(twin, "orders")[1] == {0, 1}


def test_an_order_can_be_for_a_while() -> None:
    twin = broken()
    assert obey(twin, "isolate 1 30s") == "isolate 1: done, for 30s"
    twin.advance(20_000)
    assert twin.metadata.brokers[1].fenced
    twin.advance(60_000)
    assert not twin.metadata.brokers[1].fenced


@pytest.mark.parametrize(("order", "message"), [
    ("kill", "cannot read the order 'kill'"),
    ("GET / HTTP/1.1", "cannot read the order"),
    ("kill 9", "a fault names broker 9"),
    ("kill 1 soon", "'soon' is no time"),
    ("restart 1 5s", "takes no time"),
    ("inject quake:1", "is of no kind"),
    ("recover crash:9", "a fault names broker 9"),
])  # fmt: skip
def test_an_order_that_makes_no_sense_is_refused(order: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        obey(broken(), order)


def test_what_is_down_already_cannot_be_killed_by_hand() -> None:
    twin = broken()
    obey(twin, "kill 1")
    with pytest.raises(InputError, match="down already"):
        obey(twin, "kill 1")


def test_a_broker_that_is_behind_still_shows_an_unregistered_one() -> None:
    twin = broken("stale-answers:Metadata:1@1s+100s", "unregister:2@5s")
    twin.advance(20_000)
    shown = {one.node_id: (one.host, one.port) for one in ask(twin, api.METADATA, 12, node=1, topics=None).brokers}
    assert shown[2] == ("", -1)
    assert shown.keys() == {0, 1, 2, 3}
