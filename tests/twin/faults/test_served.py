"""Faults as clients on sockets meet them."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import OutcomeUnknown, Unreachable
from kreassign.model import TopicPartition
from kreassign.twin.faults import read_fault, schedule_faults
from kreassign.twin.server import ServerThread
from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, encode_request, frame_length
from testbed.waiting import PATIENCE_S, wait_until

ORDERS = TopicPartition("orders", 0)


def client(server: ServerThread, *nodes: int, **properties: str) -> AdminClient:
    addresses = [server.server.addresses()[node] for node in nodes or (2,)]
    shown = ",".join(f"{host}:{port}" for host, port in addresses)
    return AdminClient.connect(client_settings(properties, bootstrap_servers=shown))


def let_happen(server: ServerThread, *faults: str) -> None:
    server.do(lambda box: schedule_faults(box, map(read_fault, faults)))


def test_a_lost_answer_ends_the_connection_after_the_change(server: ServerThread) -> None:
    with client(server) as admin:
        admin.list_topics()
        let_happen(server, "lose:AlterPartitionReassignments@0")
        with pytest.raises(OutcomeUnknown):
            admin.alter_partition_reassignments({ORDERS: (3, 2)})
        assert server.do(lambda box: box.metadata.offset) > 0
        wait_until(
            lambda: admin.describe_topics()["orders"].partitions[0].replicas == (3, 2), what="the end of the move"
        )


def test_a_delayed_answer_holds_up_the_connection_and_no_other(server: ServerThread) -> None:
    with client(server) as slow, client(server, 3) as quick, ThreadPoolExecutor(1) as threads:
        slow.list_topics()
        let_happen(server, "delay:300ms:any:2@0")
        started_ms = server.do(lambda box: box.now_ms)
        answer = threads.submit(slow.list_topics)
        while not answer.done():
            quick.list_topics()
        assert answer.result() == ("orders",)
        assert server.do(lambda box: box.now_ms) - started_ms >= 300


def test_an_answer_that_comes_twice_is_there_twice(server: ServerThread) -> None:
    let_happen(server, "duplicate:any:2@0+60s")
    frame = encode_request(0, api.LIST_PARTITION_REASSIGNMENTS.request(topics=None), 7, "tests")
    with socket.create_connection(server.server.addresses()[2], PATIENCE_S) as connection:
        connection.sendall(frame)
        received = connection.recv(10_000)
        while len(received) < 2 * (PREFIX_BYTES + frame_length(received[:PREFIX_BYTES])):
            received += connection.recv(10_000)
    half = len(received) // 2
    assert received[:half] == received[half:]


def test_requests_to_a_frozen_broker_hang_until_it_goes_on(server: ServerThread) -> None:
    with client(server) as admin, ThreadPoolExecutor(1) as threads:
        admin.list_topics()
        server.do(lambda box: box.freeze(2))
        answer = threads.submit(admin.list_topics)
        with client(server, 3) as other:
            assert other.list_topics() == ("orders",)
        assert not answer.done()
        server.do(lambda box: box.unfreeze(2))
        assert answer.result(PATIENCE_S) == ("orders",)


def test_a_frozen_broker_takes_connections_and_says_nothing(server: ServerThread) -> None:
    server.do(lambda box: box.freeze(2))
    impatient = {"request.timeout.ms": "500", "default.api.timeout.ms": "1000"}
    with client(server, **impatient) as admin, pytest.raises(Unreachable, match=r"did not answer within [01]\.\d s"):
        admin.list_topics()


def test_a_killed_frozen_broker_closes_its_connections(server: ServerThread) -> None:
    with client(server, 2, 3) as admin, ThreadPoolExecutor(1) as threads:
        admin.list_topics()
        server.do(lambda box: box.freeze(2))
        answer = threads.submit(admin.list_topics)
        assert not answer.done()
        server.do(lambda box: box.crash(2))
        assert answer.result(PATIENCE_S) == ("orders",)
