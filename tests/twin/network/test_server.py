"""The twin over TCP: what clients may do to it, and to nobody else."""

from __future__ import annotations

import random
import socket
import struct
from contextlib import closing

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import InputError
from kreassign.model import ConfigChange, ConfigResource, TopicPartition
from kreassign.model.requests import GroupCandidate
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from kreassign.twin.access import HostPort
from kreassign.twin.cluster import Twin
from kreassign.twin.server import MAX_REQUEST_BYTES, ListenerConfig, ServerThread, TimeScale, serving
from kreassign.wire import api
from kreassign.wire.api import Api, Message
from kreassign.wire.codec import PREFIX_BYTES, decode_response, encode_request, framed
from testbed.waiting import PATIENCE_S, wait_until
from tests.twin.asking import cluster, twin


class Client:
    """A socket that speaks frames."""

    def __init__(self, address: HostPort) -> None:
        self.socket = socket.create_connection(address, PATIENCE_S)

    def close(self) -> None:
        self.socket.close()

    def send(self, asked: Api, version: int, correlation_id: int = 7, **fields: object) -> None:
        self.socket.sendall(encode_request(version, asked.request(**fields), correlation_id, "tests"))

    def receive(self, asked: Api, version: int, correlation_id: int = 7) -> Message:
        return decode_response(asked, version, self.payload(), correlation_id)

    def payload(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(PREFIX_BYTES))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            chunk = self.socket.recv(size - len(received))
            assert chunk, "the twin hung up"
            received += chunk
        return received

    def is_closed(self) -> bool:
        """True if nothing more comes but the end of the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def connect(server: ServerThread, node: int = 0) -> closing[Client]:
    return closing(Client(server.server.addresses()[node]))


def is_alive(server: ServerThread) -> bool:
    """True if another client is answered."""
    with connect(server) as client:
        client.send(api.METADATA, 12, topics=None)
        return len(client.receive(api.METADATA, 12).brokers) == 4


def test_a_client_is_told_the_addresses_of_all_brokers(server: ServerThread) -> None:
    with connect(server) as client:
        client.send(api.METADATA, 12, topics=None)
        brokers = client.receive(api.METADATA, 12).brokers
    told = {broker.node_id: HostPort(broker.host, broker.port) for broker in brokers}
    assert told == {node: address for node, address in server.server.addresses().items() if node != 100}


def test_requests_sent_together_are_answered_one_by_one_in_order(server: ServerThread) -> None:
    with connect(server) as client:
        for number in range(50):
            client.send(api.METADATA, 12, number, topics=None)
        for number in range(50):
            assert client.receive(api.METADATA, 12, number).cluster_id == "twin"


def test_a_request_that_arrives_byte_by_byte_is_answered(server: ServerThread) -> None:
    frame = encode_request(0, api.API_VERSIONS.request(), 7, "tests")
    with connect(server) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(len(frame)):
            client.socket.sendall(frame[place : place + 1])
        assert client.receive(api.API_VERSIONS, 0).error_code == 0


# Nonsense costs a client its connection, and nobody else anything


def _header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 7, -1)


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">i", -1),
        struct.pack(">i", MAX_REQUEST_BYTES + 1),
        struct.pack(">i", 2**31 - 1),
        framed(b""),
        framed(b"\x00\x03\x00\x0c\x00"),
        framed(_header(3, 99)),
        framed(_header(0, 9)),
        framed(_header(56, 2)),
        framed(_header(-1, -1)),
        framed(_header(46, 0) + b"\xff" * 20),
        framed(_header(37, 0) + struct.pack(">iiB", -1, 1, 0)),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303") + bytes(300),
    ],
    ids=[
        "negative length", "length over the limit", "greatest length", "no header", "half a header", "unknown version",
        "API that brokers have and the twin has not", "API that only controllers have", "API that nobody has",
        "body that makes no sense", "null where there must be a list", "HTTP", "TLS",
    ],
)  # fmt: skip
def test_nonsense_closes_the_connection(server: ServerThread, sent: bytes) -> None:
    with connect(server) as client:
        client.socket.sendall(sent)
        assert client.is_closed()
    assert is_alive(server)


def test_what_was_asked_before_the_nonsense_is_answered(server: ServerThread) -> None:
    with connect(server) as client:
        client.send(api.METADATA, 12, topics=None)
        client.socket.sendall(struct.pack(">i", -5))
        assert client.receive(api.METADATA, 12).cluster_id == "twin"
        assert client.is_closed()


def test_random_bytes_harm_nobody(server: ServerThread) -> None:
    rng = random.Random(4)
    for _ in range(200):
        key, version = rng.choice([*server.server.twin.version.offered]), rng.randrange(-1, 14)
        body = _header(key, version) + rng.randbytes(rng.randrange(60))
        with connect(server) as client:
            client.socket.sendall(framed(body))
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(1 << 16):
                pass
    assert is_alive(server)


def test_an_unknown_version_of_api_versions_keeps_the_connection(
    server: ServerThread,
) -> None:
    with connect(server) as client:
        client.socket.sendall(framed(_header(18, 99) + b"\x00"))
        answer = client.receive(api.API_VERSIONS, 3)
        assert answer.error_code == 35
        assert [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys] == [(18, 0, 5)]
        client.send(api.API_VERSIONS, 3, client_software_name="tests", client_software_version="1")
        assert client.receive(api.API_VERSIONS, 3).error_code == 0


# Slow and silent clients


def test_a_client_that_has_said_everything_still_gets_its_answers(server: ServerThread) -> None:
    with connect(server) as client:
        for number in range(20):
            client.send(api.METADATA, 12, number, topics=None)
        client.socket.shutdown(socket.SHUT_WR)
        for number in range(20):
            assert client.receive(api.METADATA, 12, number).cluster_id == "twin"
        assert client.is_closed()


def test_a_client_that_stops_in_the_middle_of_a_frame_holds_up_nobody(server: ServerThread) -> None:
    with connect(server) as client:
        client.socket.sendall(struct.pack(">i", 1000) + b"half")
        assert is_alive(server)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()


def test_a_client_that_does_not_read_is_not_read_from_and_holds_up_nobody(server: ServerThread) -> None:
    """Its answers pile up to the size of a few buffers, not to that of all that it asked for."""
    frame = encode_request(12, api.METADATA.request(topics=None), 7, "tests")
    with connect(server) as client:
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.socket.sendall(frame * 1_000_000)
        assert is_alive(server)
    assert is_alive(server)


def test_many_clients_come_and_go(server: ServerThread) -> None:
    clients = [Client(server.server.addresses()[0]) for _ in range(200)]
    for client in clients:
        client.send(api.METADATA, 12, topics=None)
    assert all(client.receive(api.METADATA, 12).cluster_id == "twin" for client in clients)
    for client in clients:
        client.close()
    wait_until(lambda: server.do(lambda _: not server.server.connection_count), what="no connections")


def test_a_port_that_cannot_be_had_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port} for node 0: address already in use"),
            serving(twin(), (ListenerConfig(first_port=port),)),
        ):
            pass
    with (
        pytest.raises(InputError, match=r"cannot listen on 127\.0\.0\.1:65536 for node 1: there is no such port"),
        serving(twin(), (ListenerConfig(first_port=65_535),)),
    ):
        pass


# Brokers that stop, and time


def admin_of(server: ServerThread) -> AdminClient:
    servers = ",".join(f"{host}:{port}" for node, (host, port) in server.server.addresses().items() if node < 100)
    return AdminClient.connect(client_settings(bootstrap_servers=servers))


def test_a_broker_that_is_down_cannot_be_reached_until_it_is_back(server: ServerThread) -> None:
    address = server.server.addresses()[3]
    with closing(Client(address)) as client:
        server.do(lambda asked: asked.crash(3))
        assert client.is_closed()
    with pytest.raises(ConnectionRefusedError):
        Client(address)
    server.do(lambda asked: asked.start(3))
    assert server.server.addresses()[3] == address
    with closing(Client(address)) as client:
        client.send(api.API_VERSIONS, 0)
        assert client.receive(api.API_VERSIONS, 0).error_code == 0


def test_a_twin_that_leaps_does_an_hour_of_copying_at_once() -> None:
    """The session of a member passes in the time of the client meanwhile."""
    asked = Twin(cluster({"orders": [[0, 1], [1, 2]]}, size_bytes=200_000_000))
    started_ms = asked.now_ms
    lists = [ConfigChange.set(name, "*") for name in (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)]
    rates = [ConfigChange.set(name, "5000") for name in (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)]
    with serving(asked, speed=None) as server, admin_of(server) as admin:
        changes = {ConfigResource.topic("orders"): lists} | {ConfigResource.broker(one): rates for one in range(4)}
        admin.incremental_alter_configs(changes).raise_if_any()
        member = admin.join_group(GroupCandidate("group", "one", "test", "one", b"", 60_000))
        admin.alter_partition_reassignments({TopicPartition("orders", 0): (2, 3)}).raise_if_any()
        wait_until(lambda: not admin.list_partition_reassignments(), what="no moves")
        admin.heartbeat(member)
        assert not server.server.failures
    assert asked.now_ms - started_ms > 1_800_000


def test_time_runs_beside_the_machine_at_its_speed() -> None:
    pace = TimeScale(speed=10.0, real_start_s=100.0, twin_start_ms=5_000)
    assert pace.twin_ms(100.0) == 5_000
    assert pace.twin_ms(102.5) == 30_000


def test_an_event_is_waited_for_as_long_as_it_takes_at_that_speed() -> None:
    pace = TimeScale(speed=10.0, real_start_s=100.0, twin_start_ms=5_000)
    assert pace.real_s_until(30_000, 100.0) == pytest.approx(2.5)
    assert pace.real_s_until(30_000, 102.0) == pytest.approx(0.5)
    assert pace.real_s_until(30_000, 103.0) == 0.0
