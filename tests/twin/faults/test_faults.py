"""Effects of every fault on a twin, and its healing."""

from __future__ import annotations

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import InputError, OutcomeUnknown, ProtocolViolation
from kreassign.model import TopicPartition
from kreassign.twin import Twin, TwinTransport
from kreassign.twin.core import TwinSettings
from kreassign.twin.faults import read_fault, schedule_faults
from tests.twin.asking import cluster, partition

ORDERS = TopicPartition("orders", 0)
GIGABYTES = 1_000_000_000


def broken(*faults: str, controllers: int = 1, size: int = 10 * GIGABYTES) -> Twin:
    """A twin with partition orders-0 on brokers 0 and 1, to which this happens."""
    blueprint = cluster({"orders": [[0, 1]]}, size_bytes=size)
    twin = Twin(blueprint, TwinSettings(controller_count=controllers))
    schedule_faults(twin, map(read_fault, faults))
    return twin


def client(transport: TwinTransport, **settings: str) -> AdminClient:
    found = settings or {"bootstrap_servers": "broker-2:9092"}
    return AdminClient.connect(
        client_settings({"request.timeout.ms": "2000"}, **found), clock=transport, transport=transport
    )


# Brokers


@pytest.mark.parametrize("kind", ["crash", "stop", "freeze"])
def test_a_broker_goes_and_comes_back(kind: str) -> None:
    twin = broken(f"{kind}:0@1s+60s")
    twin.advance(30_000)
    assert partition(twin, "orders") == ((0, 1), {1}, 1)
    assert twin.metadata.brokers[0].fenced
    twin.advance(60_000)
    assert partition(twin, "orders") == ((0, 1), {0, 1}, 1)
    assert not twin.metadata.brokers[0].fenced


def test_a_fault_without_an_end_lasts() -> None:
    twin = broken("crash:0@1s")
    twin.advance(3_600_000)
    assert not twin.is_running(0)


def test_a_broker_that_is_frozen_for_less_than_its_session_is_never_missed() -> None:
    twin = broken("freeze:0@1s+8s")
    offset = twin.metadata.offset
    twin.advance(60_000)
    assert twin.metadata.offset == offset


def test_a_frozen_broker_answers_when_it_is_thawed() -> None:
    twin = broken("freeze:2@1s+4s")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        assert admin.list_topics() == ("orders",)
        transport.sleep(2.0)
        assert admin.list_topics() == ("orders",)
        # Given up after two seconds and asked again, of the only broker that the client knows to answer.
        assert twin.now_ms == 5_000


def test_requests_that_wait_long_enough_are_answered_after_the_thaw() -> None:
    twin = broken("freeze:2@1s+1s")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.5)
        assert admin.list_topics() == ("orders",)
    assert twin.now_ms == 2_000


def test_a_thawed_broker_knows_what_it_knew_until_it_has_caught_up() -> None:
    twin = broken("freeze:2@1s+30s")
    twin.advance(5_000)
    twin.stop(1)
    twin.advance_to(31_000)
    shown = twin.metadata_of(2).partition(ORDERS)
    assert shown is not None
    assert set(shown.isr) == {0, 1}
    twin.advance(500)
    assert twin.metadata_of(2) is twin.metadata
    assert not twin.metadata.brokers[2].fenced


def test_an_unregistered_broker_has_no_directory_that_could_fail() -> None:
    twin = broken("unregister:2@1s")
    twin.advance(2_000)
    with pytest.raises(InputError, match="log directory /data/2/d0 of broker 2, which has"):
        schedule_faults(twin, [read_fault("fail:2:/data/2/d0@1s")])


def test_a_frozen_broker_cannot_be_frozen_or_stopped_but_killed() -> None:
    twin = broken()
    twin.freeze(0)
    with pytest.raises(InputError, match="frozen already"):
        twin.freeze(0)
    with pytest.raises(InputError, match="unfreeze it first"):
        twin.stop(0)
    twin.crash(0)
    with pytest.raises(InputError, match="is not frozen"):
        twin.unfreeze(0)
    with pytest.raises(InputError, match="down already"):
        twin.freeze(0)
    twin.start(0)
    twin.advance(30_000)
    assert partition(twin, "orders")[1] == {0, 1}


def test_faults_that_overlap_do_not_trip_over_each_other() -> None:
    twin = broken(*(f"{kind}:0@{at}s+7s" for at in range(9) for kind in ("crash", "stop", "freeze")))
    twin.advance(120_000)
    assert partition(twin, "orders")[1] == {0, 1}


# What brokers know, and the lines between them


def test_a_stale_broker_answers_from_what_it_knew() -> None:
    twin = broken("stale:2@1s+60s", size=0)
    transport = TwinTransport(twin)

    def seen_by_broker_2() -> tuple[int, ...]:
        with client(transport) as fresh:
            return fresh.describe_topics()["orders"].partitions[0].replicas

    transport.sleep(2.0)
    with client(transport) as admin:
        admin.alter_partition_reassignments({ORDERS: (3, 2)}).raise_if_any()
    transport.sleep(10.0)
    assert partition(twin, "orders")[0] == (3, 2)
    assert seen_by_broker_2() == (0, 1)
    transport.sleep(60.0)
    assert seen_by_broker_2() == (3, 2)


def test_a_broker_can_be_a_number_of_records_behind() -> None:
    twin = broken("stale:2:3@1s", size=0)
    twin.advance(2_000)
    seen = []
    twin.watch(lambda box, _step: seen.append(box.metadata.offset - box.metadata_of(2).offset))
    for broker in (0, 1):
        twin.stop(broker)
    assert seen[-1] == 3
    assert set(seen) <= {2, 3}


def test_a_cut_line_stops_a_copy_until_it_is_repaired() -> None:
    twin = broken("cut:0:2@0+60s", "cut:1:2@0+60s", size=1_000_000)
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        admin.alter_partition_reassignments({ORDERS: (0, 2)}).raise_if_any()
        transport.sleep(50.0)
        assert admin.list_partition_reassignments().keys() == {ORDERS}
        transport.sleep(20.0)
        assert admin.list_partition_reassignments() == {}


# Log directories


def test_a_slow_directory_takes_longer() -> None:
    def took(*faults: str) -> int:
        twin = broken(*faults)
        transport = TwinTransport(twin)
        with client(transport) as admin:
            admin.alter_partition_reassignments({ORDERS: (0, 2)}).raise_if_any()
            while twin.metadata.reassigning:
                transport.sleep(1.0)
        return twin.now_ms // 1_000

    healthy = took()
    assert took("slow:2:/data/2/d0:0.5@0") == 2 * healthy - 1
    assert healthy < took("slow:2:/data/2/d0:0.5@0+10s") < 2 * healthy - 1


@pytest.mark.parametrize("kind", ["fail", "fill"])
def test_a_directory_that_broke_is_given_up_and_comes_back_with_a_restart(kind: str) -> None:
    twin = broken(f"{kind}:0:/data/0/d0@1s+60s")
    twin.advance(2_000)
    assert twin.is_running(0)
    assert len(twin.metadata.brokers[0].failed_dirs) == 1
    assert partition(twin, "orders") == ((0, 1), {1}, 1)
    twin.advance(90_000)
    assert not twin.metadata.brokers[0].failed_dirs
    assert partition(twin, "orders") == ((0, 1), {0, 1}, 1)


def test_a_broker_tells_at_its_start_which_directory_broke() -> None:
    twin = broken("crash:0@1s+20s", "fail:0:/data/0/d0@10s")
    twin.advance_to(20_999)
    assert not twin.metadata.brokers[0].failed_dirs
    twin.advance(30_000)
    assert len(twin.metadata.brokers[0].failed_dirs) == 1
    assert partition(twin, "orders")[1:] == ({1}, 1)


def test_a_restart_alone_repairs_no_directory() -> None:
    twin = broken("fail:0:/data/0/d0@1s", "stop:0@10s+10s")
    twin.advance(60_000)
    assert len(twin.metadata.brokers[0].failed_dirs) == 1


# Answers and controllers


def test_a_lost_answer_leaves_the_change_and_the_client_in_doubt() -> None:
    twin = broken("lose:AlterPartitionReassignments@0")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        with pytest.raises(OutcomeUnknown, match="closed the connection before it answered"):
            admin.alter_partition_reassignments({ORDERS: (0, 2)})
        assert admin.list_partition_reassignments().keys() == {ORDERS}
        admin.alter_partition_reassignments({ORDERS: None}).raise_if_any()


def test_answers_are_lost_for_as_long_as_is_said() -> None:
    twin = broken("lose:ListPartitionReassignments@1s+60s")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(2.0)
        with pytest.raises(OutcomeUnknown):
            admin.list_partition_reassignments(timeout_ms=5_000)
        assert admin.list_topics() == ("orders",)
        transport.sleep(60.0)
        assert admin.list_partition_reassignments() == {}


def test_a_delayed_answer_comes_later_or_too_late() -> None:
    twin = broken("delay:1500ms:ListPartitionReassignments@0", "delay:1m:AlterPartitionReassignments@0")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        assert admin.list_partition_reassignments() == {}
        assert twin.now_ms == 2_500
        with pytest.raises(OutcomeUnknown, match="did not answer in time"):
            admin.alter_partition_reassignments({ORDERS: (0, 2)})
        assert twin.now_ms == 4_500
        assert admin.list_partition_reassignments().keys() == {ORDERS}


def test_the_second_of_two_answers_is_not_taken_for_another_one() -> None:
    twin = broken("duplicate:ListPartitionReassignments@0")
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        assert admin.list_partition_reassignments() == {}
        with pytest.raises(ProtocolViolation, match="expected the answer to request"):
            admin.alter_partition_reassignments({ORDERS: (0, 2)}, warns_of_overrides=False)
        assert admin.list_partition_reassignments().keys() == {ORDERS}


def test_a_controller_that_is_replaced_in_a_request_has_written_it() -> None:
    twin = broken("failover-in:AlterPartitionReassignments@0", controllers=3)
    transport = TwinTransport(twin)
    with client(transport) as admin:
        transport.sleep(1.0)
        with pytest.raises(OutcomeUnknown):
            admin.alter_partition_reassignments({ORDERS: (0, 2)})
        assert twin.controller_id == 101
        assert admin.list_partition_reassignments().keys() == {ORDERS}


def test_a_client_of_controllers_follows_the_active_one() -> None:
    twin = broken("failover@10s", "failover@20s", "failover@30s", controllers=3)
    transport = TwinTransport(twin)
    with client(transport, bootstrap_controllers="controller-100:9093") as admin:
        for active in (100, 101, 102, 100):
            assert twin.controller_id == active
            assert admin.describe_cluster().broker_ids == (100, 101, 102)
            assert admin.list_partition_reassignments() == {}
            admin.alter_partition_reassignments({ORDERS: (1, 0)}).raise_if_any()
            transport.sleep(10.0)
    assert twin.controller.epoch == 4


# Before anything happens


@pytest.mark.parametrize(("text", "message"), [
    ("crash:9@1s", "a fault names broker 9; the cluster has"),
    ("cut:0:9@1s", "a fault names broker 9"),
    ("cut:0:0@1s", "no link between broker 0 and itself"),
    ("slow:1:/data/1/d9:0.5@1s", r"log directory /data/1/d9 of broker 1, which has \['/data/1/d0'"),
    ("slow:1:/data/1/d0:0@1s", "cannot run at 0.0 times"),
    ("lose:any:9@1s", "a fault names broker 9"),
])  # fmt: skip
def test_faults_that_cannot_befall_a_cluster_are_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        broken(text)
