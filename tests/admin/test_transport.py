"""Over real sockets: what is known about a request after the connection failed."""

from __future__ import annotations

import datetime as dt
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kreassign.admin import Address, ClientSettings, Connection, SecurityProtocol, TcpTransport
from kreassign.admin.settings import Sasl, Secret, Tls
from kreassign.errors import ClusterError, InputError, OutcomeUnknown, ProtocolViolation, Unauthenticated, Unreachable
from kreassign.wire import api
from kreassign.wire.codec import decode_response, encode_request
from testbed.ports import HOST, reserved_ports
from testbed.waiting import PATIENCE_S
from tests.admin.listener import Deed, Listener, Reply

SHORT_S = 0.2
# More than the kernel takes while the other side does not read.
LARGE_FRAME = bytes(64 * 1024 * 1024)
FRAME = encode_request(0, api.API_VERSIONS.request(), 7, "us")
PASSWORD = "pa55-w0rd"
Dial, Listen = Callable[..., Connection], Callable[..., Listener]


class RawServer:
    """Accepts one connection at a time and hands it to the test."""

    def __init__(self, port: int) -> None:
        self._server = socket.create_server((HOST, port))
        self._server.settimeout(PATIENCE_S)
        self.address = Address(*self._server.getsockname())
        self._accepted: list[socket.socket] = []

    def accept(self) -> socket.socket:
        connection, _ = self._server.accept()
        connection.settimeout(PATIENCE_S)
        self._accepted.append(connection)
        return connection

    def close(self) -> None:
        for opened in [self._server, *self._accepted]:
            opened.close()


@pytest.fixture
def server() -> Iterator[RawServer]:
    with reserved_ports() as ports, closing(RawServer(ports.take())) as server:
        yield server


@pytest.fixture
def dial(stack: ExitStack) -> Dial:
    """Open a connection that is closed when the test ends."""

    def connect(address: Address, timeout_s: float = PATIENCE_S, **fields: object) -> Connection:
        settings = ClientSettings(bootstrap_servers=(address,), **fields)
        return stack.enter_context(closing(TcpTransport(settings).connect(address, timeout_s)))

    return connect


# Connecting


def test_a_refused_connection_is_unreachable(server: RawServer, dial: Dial) -> None:
    server.close()
    with pytest.raises(Unreachable, match=f"could not connect to {server.address}: connection refused"):
        dial(server.address)


def test_a_name_that_does_not_resolve_is_unreachable(dial: Dial) -> None:
    with pytest.raises(Unreachable, match=r"the host name of no-such-host.invalid:9092 does not resolve"):
        dial(Address("no-such-host.invalid", 9092))


@pytest.mark.parametrize("host", ["a..example", f"{'a' * 64}.example"])
def test_a_name_that_no_host_can_have_is_explained(host: str, dial: Dial) -> None:
    with pytest.raises(Unreachable, match="cannot be one: a part between its dots is empty or longer than 63 characte"):
        dial(Address(host, 9092))


def test_a_backlog_that_is_full_costs_the_timeout(stack: ExitStack, dial: Dial) -> None:
    full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    address = Address(*full.getsockname())
    for _ in range(4):
        waiting = stack.enter_context(socket.socket())
        waiting.setblocking(False)
        waiting.connect_ex(address)
    with pytest.raises(Unreachable, match=r"could not connect to .*: timed out"):
        dial(address, SHORT_S)


# Exchanging


def test_a_frame_is_answered(node: Listener, dial: Dial) -> None:
    connection = dial(node.address)
    response = decode_response(api.API_VERSIONS, 0, connection.exchange(FRAME, PATIENCE_S), 7)
    assert response.error_code == 0
    assert connection.is_usable()


def test_an_answer_in_many_pieces_is_put_together(server: RawServer, dial: Dial) -> None:
    connection = dial(server.address)
    peer = server.accept()
    payload = bytes(range(256)) * 20_000

    def send() -> None:
        for piece in (b"\x00", struct.pack(">i", len(payload))[1:], payload[:5], payload[5:]):
            peer.sendall(piece)

    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(send)
        assert connection.exchange(FRAME, PATIENCE_S) == payload
        sending.result()


def test_an_answer_ends_where_its_length_says(node: Listener, dial: Dial) -> None:
    node.answers[api.API_VERSIONS] = b"\x00\x00\x00\x04four and more"
    connection = dial(node.address)
    assert connection.exchange(FRAME, PATIENCE_S) == b"four"
    assert not connection.is_usable()


def test_closed_before_the_frame_was_whole_means_it_never_arrived(server: RawServer, dial: Dial) -> None:
    connection = dial(server.address)
    peer = server.accept()
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(connection.exchange, LARGE_FRAME, PATIENCE_S)
        peer.recv(10)
        peer.close()  # With data unread this is a reset.
        with pytest.raises(Unreachable, match="could not send to"):
            sending.result()
    assert not connection.is_usable()


def test_a_frame_that_the_other_side_does_not_take_never_arrived(server: RawServer, dial: Dial) -> None:
    connection = dial(server.address)
    server.accept()
    with pytest.raises(Unreachable, match=r"could not send to .*: timed out"):
        connection.exchange(LARGE_FRAME, SHORT_S)
    assert not connection.is_usable()


@pytest.mark.parametrize(("deed", "error", "said"), [
    (Deed.HANG_UP, OutcomeUnknown, "broke before the answer came: closed by the broker"),
    (Deed.STAY_SILENT, OutcomeUnknown, "ADDRESS did not answer within 0.2 s"),
    (b"HTTP", ProtocolViolation, "it looks like HTTP"),
], ids=["closed", "silence", "another protocol"])  # fmt: skip
def test_a_request_without_an_answer_is_sent_once_and_ends_the_connection(
    deed: Reply, error: type[ClusterError], said: str, node: Listener, dial: Dial
) -> None:
    node.answers[api.API_VERSIONS] = deed
    connection = dial(node.address)
    with pytest.raises(error, match=said.replace("ADDRESS", str(node.address))):
        connection.exchange(FRAME, SHORT_S if deed is Deed.STAY_SILENT else PATIENCE_S)
    assert node.times_asked(api.API_VERSIONS) == 1
    assert not connection.is_usable()


@pytest.mark.parametrize("part", [b"\x00", b"\x00\x00\x00\x08", b"\x00\x00\x00\x08half"])
def test_half_an_answer_is_none(part: bytes, node: Listener, dial: Dial) -> None:
    node.answers[api.API_VERSIONS] = part
    connection = dial(node.address)
    with pytest.raises(OutcomeUnknown, match="did not answer"):
        connection.exchange(FRAME, SHORT_S)


def test_bytes_that_keep_dripping_do_not_move_the_deadline(server: RawServer, dial: Dial) -> None:
    connection = dial(server.address)
    peer = server.accept()
    done = threading.Event()

    def drip() -> None:
        peer.sendall(struct.pack(">i", 1_000_000))
        while not done.wait(SHORT_S / 10):
            peer.sendall(b"x")

    with ThreadPoolExecutor(1) as threads:
        dripping = threads.submit(drip)
        with pytest.raises(OutcomeUnknown, match="did not answer within"):
            connection.exchange(FRAME, SHORT_S)
        done.set()
        assert dripping.exception(PATIENCE_S) is None or isinstance(dripping.exception(), OSError)


def test_an_idle_connection_that_the_other_side_closed_is_not_usable(server: RawServer, dial: Dial) -> None:
    connection = dial(server.address)
    peer = server.accept()
    assert connection.is_usable()
    peer.close()
    watched = select.poll()
    watched.register(connection._socket, select.POLLIN)
    assert watched.poll(PATIENCE_S * 1000), "the close did not arrive"
    assert not connection.is_usable()


def test_closing_ends_an_exchange_that_hangs_in_another_thread(node: Listener, dial: Dial) -> None:
    arrived = threading.Event()

    def silence(_asked: object) -> Deed:
        arrived.set()
        return Deed.STAY_SILENT

    node.answers[api.API_VERSIONS] = silence
    connection = dial(node.address)
    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(connection.exchange, FRAME, 2 * PATIENCE_S)
        assert arrived.wait(PATIENCE_S)
        connection.close()
        assert isinstance(hanging.exception(PATIENCE_S), OutcomeUnknown)
    connection.close()


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def pem(*blobs: trustme.Blob) -> str:
    return "\n".join(blob.bytes().decode() for blob in blobs)


def server_context(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def over_tls(authority: trustme.CA, **fields: object) -> dict[str, object]:
    tls = Tls(trusted_certificates=pem(authority.cert_pem), **fields)
    return {"security_protocol": SecurityProtocol.SSL, "tls": tls}


def test_a_trusted_broker_is_talked_to_over_tls(listen: Listen, dial: Dial, authority: trustme.CA) -> None:
    node = listen(server_context(authority))
    connection = dial(node.address, **over_tls(authority))
    for _ in range(3):
        decode_response(api.API_VERSIONS, 0, connection.exchange(FRAME, PATIENCE_S), 7)
        assert connection.is_usable()
    assert len(node.connections) == 1


def test_a_broker_of_another_authority_is_not_trusted(listen: Listen, dial: Dial, authority: trustme.CA) -> None:
    node = listen(server_context(trustme.CA()))
    with pytest.raises(Unauthenticated, match=f"the certificate of {node.address} is not trusted: unable to get"):
        dial(node.address, **over_tls(authority))


def test_a_certificate_must_have_the_name_if_names_are_checked(
    listen: Listen, dial: Dial, authority: trustme.CA
) -> None:
    node = listen(server_context(authority, "elsewhere.example"))
    with pytest.raises(Unauthenticated, match="is not trusted: IP address mismatch"):
        dial(node.address, **over_tls(authority))
    assert dial(node.address, **over_tls(authority, verifies_host_name=False)).exchange(FRAME, PATIENCE_S)


@pytest.mark.parametrize(("answer", "error"), [
    (lambda peer: peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), Unauthenticated),
    (lambda peer: peer.shutdown(socket.SHUT_RDWR), ClusterError),
], ids=["speaks in plain text", "closes on TLS"])  # fmt: skip
def test_a_listener_without_tls_is_told_from_one_that_is_not_trusted(
    answer: Callable[[socket.socket], None],
    error: type[ClusterError],
    server: RawServer,
    dial: Dial,
    authority: trustme.CA,
) -> None:
    with ThreadPoolExecutor(1) as threads:
        answering = threads.submit(lambda: answer(server.accept()))
        with pytest.raises(error, match=r"no TLS connection with .*in plain text\? Then set security.protocol"):
            dial(server.address, **over_tls(authority))
        answering.result()


def test_silence_in_the_handshake_is_unreachable_after_one_timeout(
    server: RawServer, dial: Dial, authority: trustme.CA
) -> None:
    with pytest.raises(Unreachable, match=r"no TLS connection with .*timed out"):
        dial(server.address, SHORT_S, **over_tls(authority))


def test_only_the_enabled_versions_are_spoken(listen: Listen, dial: Dial, authority: trustme.CA) -> None:
    context = server_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    node = listen(context)
    assert dial(node.address, **over_tls(authority, versions=("TLSv1.2",))).is_usable()
    with pytest.raises(Unauthenticated, match="no TLS connection with"):
        dial(node.address, **over_tls(authority, versions=("TLSv1.3",)))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_broker_that_wants_a_certificate_gets_one_or_refuses(
    version: ssl.TLSVersion, listen: Listen, dial: Dial, authority: trustme.CA
) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = version
    authority.configure_trust(context)
    node = listen(context)
    ours = authority.issue_cert("client.example")
    keys = {
        "certificate_chain": pem(*ours.cert_chain_pems),
        "private_key": Secret(pem(ours.private_key_pem)),
    }
    assert dial(node.address, **over_tls(authority, **keys)).exchange(FRAME, PATIENCE_S)
    with pytest.raises(Unauthenticated, match="alert"):
        dial(node.address, **over_tls(authority)).exchange(FRAME, PATIENCE_S)


@pytest.mark.parametrize("trusts", ["root", "intermediate", "the server itself"])
def test_whatever_is_in_the_trust_store_is_trusted_as_in_java(trusts: str, listen: Listen, dial: Dial) -> None:
    root = trustme.CA()
    between = root.create_child_ca()
    server = between.issue_cert("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.configure_cert(context)
    trusted = {"root": root.cert_pem, "intermediate": between.cert_pem, "the server itself": server.cert_chain_pems[0]}
    tls = Tls(trusted_certificates=pem(trusted[trusts]))
    connection = dial(listen(context).address, security_protocol=SecurityProtocol.SSL, tls=tls)
    assert connection.exchange(FRAME, PATIENCE_S)


DAY = dt.timedelta(days=1)
NOW = dt.datetime.now(dt.UTC)


@pytest.mark.parametrize(
    ("signed_by_us", "days", "words"),
    [
        (True, (-2, -1), "certificate expired. Renew the certificate of this client"),
        (False, (-1, 1), "unknown ca. Have the brokers trust who signed the certificate of this client"),
        (None, (-1, 1), "set ssl.keystore.location"),
    ],
)
def test_a_broker_that_refuses_our_certificate_is_heard_with_what_helps(
    signed_by_us: bool | None,
    days: tuple[int, int],
    words: str,
    listen: Listen,
    dial: Dial,
    authority: trustme.CA,
) -> None:
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    node = listen(context)
    keys: dict[str, object] = {}
    if signed_by_us is not None:
        signer = authority if signed_by_us else trustme.CA()
        ours = signer.issue_cert("client.example", not_before=NOW + days[0] * DAY, not_after=NOW + days[1] * DAY)
        keys = {"certificate_chain": pem(*ours.cert_chain_pems), "private_key": Secret(pem(ours.private_key_pem))}
    with pytest.raises(Unauthenticated) as refused:
        dial(node.address, **over_tls(authority, **keys)).exchange(FRAME, PATIENCE_S)
    assert words in str(refused.value)


DAMAGED = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(("mistake", "said"), [
    ("key", "cannot be used: the private key does not belong to the first certificate. Use the key of that"),
    ("password", "cannot be used: ssl.key.password is missing or wrong"),
    ("no password", "cannot be used: ssl.key.password is missing or wrong"),
    ("certificate", "cannot be used: its certificate or key is damaged. Export it again"),
])  # fmt: skip
def test_a_key_store_that_openssl_refuses_is_explained(authority: trustme.CA, mistake: str, said: str) -> None:
    ours, other = authority.issue_cert("a.example"), authority.issue_cert("b.example")
    key = pem((other if mistake == "key" else ours).private_key_pem)
    if "password" in mistake:
        plain = load_pem_private_key(key.encode(), None)
        key = plain.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"right")).decode()
    tls = Tls(
        None,
        DAMAGED if mistake == "certificate" else pem(*ours.cert_chain_pems),
        Secret(key),
        Secret("wrong") if mistake == "password" else None,
    )
    with pytest.raises(InputError, match=said):
        TcpTransport(ClientSettings((Address("a", 1),), security_protocol=SecurityProtocol.SSL, tls=tls))


def test_a_trust_store_that_holds_nonsense_is_the_users_mistake() -> None:
    tls = Tls(trusted_certificates=DAMAGED)
    with pytest.raises(InputError, match=r"^the trust store holds a PEM certificate that is damaged. Export it again$"):
        TcpTransport(ClientSettings((Address("a", 1),), security_protocol=SecurityProtocol.SSL, tls=tls))


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_a_refused_login_leaves_no_connection_open(
    is_encrypted: bool, listen: Listen, dial: Dial, authority: trustme.CA
) -> None:
    node = listen(server_context(authority) if is_encrypted else None)
    node.answers |= {api.SASL_HANDSHAKE: handshake(), api.SASL_AUTHENTICATE: authentication(b"", 58)}
    protocol = SecurityProtocol.SASL_SSL if is_encrypted else SecurityProtocol.SASL_PLAINTEXT
    with pytest.raises(Unauthenticated) as refused:
        dial(node.address, **over_tls(authority) | as_alice() | {"security_protocol": protocol})
    node.wait_until_left()
    assert refused.traceback  # It is still alive, and so would be a socket that it holds.


# SASL


def as_alice(mechanism: str = "PLAIN") -> dict[str, object]:
    return {"security_protocol": SecurityProtocol.SASL_PLAINTEXT, "sasl": Sasl(mechanism, "alice", Secret(PASSWORD))}


def handshake(error_code: int = 0) -> object:
    return api.SASL_HANDSHAKE.response(error_code=error_code, mechanisms=["PLAIN", "SCRAM-SHA-512"])


def authentication(auth_bytes: bytes, error_code: int = 0, message: str | None = None) -> object:
    return api.SASL_AUTHENTICATE.response(error_code=error_code, error_message=message, auth_bytes=auth_bytes)


def test_plain_sends_name_and_password_once(node: Listener, dial: Dial) -> None:
    node.answers |= {api.SASL_HANDSHAKE: handshake(), api.SASL_AUTHENTICATE: authentication(b"")}
    assert dial(node.address, **as_alice()).is_usable()
    assert [asked.message.mechanism for asked in node.asked if asked.api is api.SASL_HANDSHAKE] == ["PLAIN"]
    (message,) = node.messages(api.SASL_AUTHENTICATE)
    assert bytes(message.auth_bytes).split(b"\0")[1:] == [b"alice", PASSWORD.encode()]


def refused_login(node: Listener, dial: Dial, mechanism: str = "PLAIN") -> ClusterError:
    with pytest.raises(Unauthenticated) as refused:
        dial(node.address, **as_alice(mechanism))
    assert PASSWORD not in str(refused.value)
    return refused.value


def test_a_wrong_password_is_refused_in_the_brokers_words(node: Listener, dial: Dial) -> None:
    node.answers |= {
        api.SASL_HANDSHAKE: handshake(),
        api.SASL_AUTHENTICATE: authentication(b"", 58, "Authentication failed: Invalid username or password"),
    }
    text = "SASL PLAIN as alice was refused: Authentication failed: Invalid username or password"
    assert str(refused_login(node, dial)) == text
    node.answers[api.SASL_AUTHENTICATE] = authentication(b"", 58)
    assert str(refused_login(node, dial)) == "SASL PLAIN as alice was refused: SASL Authentication failed."


def test_a_mechanism_that_the_broker_lacks_is_refused_with_those_it_has(node: Listener, dial: Dial) -> None:
    node.answers[api.SASL_HANDSHAKE] = handshake(33)
    text = "the broker does not accept SASL mechanism SCRAM-SHA-256; it offers PLAIN, SCRAM-SHA-512"
    assert str(refused_login(node, dial, "SCRAM-SHA-256")) == text


def test_a_listener_without_sasl_is_told_from_a_missing_mechanism(node: Listener, dial: Dial) -> None:
    node.answers[api.SASL_HANDSHAKE] = handshake(34)
    error = refused_login(node, dial)
    assert "Request is not valid given the current SASL state." in str(error)
    assert "security.protocol" in str(error)


@pytest.mark.parametrize("answer", [b"", b"nonsense", b"e=other-error", b"r=x,s=y,i=z", b"\xff"])
def test_a_broker_that_cannot_scram_is_not_believed(answer: bytes, node: Listener, dial: Dial) -> None:
    node.answers |= {api.SASL_HANDSHAKE: handshake(), api.SASL_AUTHENTICATE: authentication(answer)}
    assert "SASL SCRAM-SHA-512 as alice failed" in str(refused_login(node, dial, "SCRAM-SHA-512"))


def test_a_broker_that_answers_plain_with_more_than_yes_is_not_believed(node: Listener, dial: Dial) -> None:
    node.answers |= {api.SASL_HANDSHAKE: handshake(), api.SASL_AUTHENTICATE: authentication(b"what?")}
    assert str(refused_login(node, dial)) == "SASL PLAIN as alice was refused"


def test_names_in_scram_are_spelled_by_its_rules(node: Listener, dial: Dial) -> None:
    node.answers |= {api.SASL_HANDSHAKE: handshake(), api.SASL_AUTHENTICATE: authentication(b"")}
    sasl = Sasl("SCRAM-SHA-512", "CN=alice,O=us", Secret(PASSWORD))
    with pytest.raises(Unauthenticated):
        dial(node.address, security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    (message,) = node.messages(api.SASL_AUTHENTICATE)
    assert bytes(message.auth_bytes).startswith(b"n,,n=CN=3Dalice=2CO=3Dus,r=")


@pytest.mark.parametrize("silent", [api.SASL_HANDSHAKE, api.SASL_AUTHENTICATE])
def test_an_unanswered_login_is_unreachable_because_it_changes_nothing(
    silent: api.Api, node: Listener, dial: Dial
) -> None:
    node.answers |= {api.SASL_HANDSHAKE: handshake(), silent: Deed.STAY_SILENT}
    with pytest.raises(Unreachable, match="did not answer within"):
        dial(node.address, SHORT_S, **as_alice())
