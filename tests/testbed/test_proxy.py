"""The proxy before the brokers: what passes, and what is spoiled, of messages in Kafka's frames."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from testbed.ports import HOST, ReservedPorts
from testbed.proxy import Deed, Interference, Proxy
from testbed.waiting import PATIENCE_S, wait_until

METADATA, WRITE = 3, 45


def message(key: int, text: str) -> bytes:
    body = struct.pack(">h", key) + text.encode()
    return struct.pack(">i", len(body)) + body


class Echo(socketserver.StreamRequestHandler):
    """A broker that answers with what it was asked, and remembers that."""

    def handle(self) -> None:
        assert isinstance(self.server, Broker)
        while prefix := self.rfile.read(4):
            body = self.rfile.read(int.from_bytes(prefix, "big"))
            self.server.asked.append(body[2:].decode())
            self.wfile.write(prefix + body)


class Broker(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), Echo)
        self.asked: list[str] = []

    @property
    def port(self) -> int:
        port: int = self.server_address[1]
        return port


class Between:
    """A client, a proxy and a broker."""

    def __init__(self, proxy: Proxy, broker: Broker, port: int) -> None:
        self.proxy = proxy
        self.broker = broker
        self._port = port
        self.client = self.connected()

    def connected(self) -> socket.socket:
        return socket.create_connection((HOST, self._port), timeout=PATIENCE_S)

    def ask(self, key: int, text: str) -> bytes:
        """Send a request; return the answer up to the end of the message or of the connection."""
        wanted = message(key, text)
        self.client.sendall(wanted)
        answer = b""
        while len(answer) < len(wanted) and (chunk := self.client.recv(len(wanted) - len(answer))):
            answer += chunk
        return answer


@pytest.fixture
def between() -> Iterator[Between]:
    ports = ReservedPorts()
    with Broker() as broker:
        thread = threading.Thread(target=broker.serve_forever, args=(0.01,))
        thread.start()
        proxy = Proxy()
        try:
            port = ports.take()
            proxy.stand_before(broker.port, port)
            made = Between(proxy, broker, port)
            with made.client:
                yield made
        finally:
            proxy.close()
            ports.release()
            broker.shutdown()
            thread.join(PATIENCE_S)


def test_messages_pass_unchanged_in_both_directions(between: Between) -> None:
    texts = ["short", "long" * 100_000, ""]
    assert [between.ask(METADATA, text) for text in texts] == [message(METADATA, text) for text in texts]
    assert between.broker.asked == texts


def test_of_an_answer_that_is_cut_one_half_arrives(between: Between) -> None:
    between.proxy.interfere(Interference(Deed.CUT_ANSWER))
    whole = message(METADATA, "0123456789")
    assert between.ask(METADATA, "0123456789") == whole[: len(whole) // 2]
    assert between.client.recv(1) == b""


@pytest.mark.parametrize(("deed", "asked"), [(Deed.LOSE_ANSWER, ["it"]), (Deed.LOSE_REQUEST, [])])
def test_a_request_without_an_answer_was_carried_out_or_not_as_was_wanted(
    between: Between, deed: Deed, asked: list[str]
) -> None:
    between.proxy.interfere(Interference(deed))
    assert between.ask(METADATA, "it") == b""
    assert between.broker.asked == asked


def test_only_named_apis_are_struck_after_the_spared_requests(
    between: Between,
) -> None:
    struck = Interference(Deed.LOSE_ANSWER, frozenset({WRITE}), spared=1, times=2)
    between.proxy.interfere(struck)

    def is_answered(key: int) -> bool:
        with between.connected() as between.client:
            return bool(between.ask(key, "it"))

    between.client.close()
    assert [is_answered(key) for key in (METADATA, WRITE, WRITE, METADATA, WRITE, WRITE)] == [
        True, True, False, True, False, True,
    ]  # fmt: skip
    assert struck.strikes == 2


def test_an_answer_that_is_delayed_arrives_whole(between: Between) -> None:
    struck = Interference(Deed.DELAY_ANSWER, times=1, delay_s=0.01)
    between.proxy.interfere(struck)
    assert between.ask(METADATA, "it") == message(METADATA, "it")
    assert struck.strikes == 1


def test_what_was_said_in_a_silence_arrives_after_it(between: Between) -> None:
    silence = Interference(Deed.SILENCE)
    between.proxy.interfere(silence)
    between.client.sendall(message(METADATA, "it"))
    wait_until(lambda: silence.strikes > 0, what="the request at the proxy")
    assert between.broker.asked == []
    between.proxy.interfere(None)
    assert between.client.recv(100) == message(METADATA, "it")


def test_a_broker_that_is_down_closes_the_connection(between: Between) -> None:
    port, ports = between.broker.port, ReservedPorts()
    between.broker.shutdown()
    between.broker.server_close()
    at = ports.take()
    between.proxy.stand_before(port, at)
    with socket.create_connection((HOST, at), timeout=PATIENCE_S) as client:
        assert client.recv(1) == b""
    ports.release()


def test_where_all_is_severed_no_connection_lives_until_it_is_over(between: Between) -> None:
    severed = Interference(Deed.SEVER)
    between.proxy.interfere(severed)
    assert between.client.recv(1) == b""
    with between.connected() as client:
        assert client.recv(1) == b""
    assert severed.strikes == 2
    between.proxy.interfere(None)
    with between.connected() as between.client:
        assert between.ask(METADATA, "it") == message(METADATA, "it")


def test_an_address_leads_elsewhere_until_it_does_not(between: Between) -> None:
    with Broker() as other:
        thread = threading.Thread(target=other.serve_forever, args=(0.01,))
        thread.start()
        try:
            # What the proxy has not accepted yet it would lead to the other broker, and not end.
            assert between.ask(METADATA, "first") == message(METADATA, "first")
            between.proxy.lead_to({between.broker.port: other.port})
            assert between.client.recv(1) == b""
            with between.connected() as between.client:
                assert between.ask(METADATA, "there") == message(METADATA, "there")
                between.proxy.lead_to({})
                assert between.client.recv(1) == b""
        finally:
            other.shutdown()
            thread.join(PATIENCE_S)
        with between.connected() as between.client:
            assert between.ask(METADATA, "here") == message(METADATA, "here")
    assert (other.asked, between.broker.asked) == (["there"], ["first", "here"])


def test_a_slow_line_carries_requests_and_answers_at_its_rate(between: Between) -> None:
    text = "x" * 10_000
    between.proxy.interfere(Interference(Deed.SLOW, bytes_per_s=100_000))
    began_s = time.monotonic()
    assert between.ask(METADATA, text) == message(METADATA, text)
    assert time.monotonic() - began_s >= 2 * len(text) / 100_000
