"""Logins: what a client proves to whom, and that it does so again before its session ends (KIP-368)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from kreassign.admin import ClientSettings, Connection, SecurityProtocol, TcpTransport
from kreassign.admin.sasl import LEAST_ITERATIONS
from kreassign.admin.settings import Sasl, Secret
from kreassign.clock import VirtualClock
from kreassign.errors import Unauthenticated, Unreachable
from kreassign.wire import api
from kreassign.wire.codec import encode_request
from tests.admin.listener import PATIENCE_S, Answer, Deed, Listener, in_turn
from tests.wire.peer import Asked

HANDSHAKE, AUTHENTICATE = api.SASL_HANDSHAKE, api.SASL_AUTHENTICATE
FRAME = encode_request(0, api.API_VERSIONS.request(), 7, "us")
LIFETIME_S = 100.0
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")

Dial = Callable[..., Connection]


def step(auth_bytes: bytes = b"", error_code: int = 0, lifetime_ms: int = 0) -> object:
    return AUTHENTICATE.response(error_code=error_code, auth_bytes=auth_bytes, session_lifetime_ms=lifetime_ms)


def believing(node: Listener, answer: Answer) -> None:
    """A node that accepts every mechanism, and goes on as told."""
    node.answers |= {HANDSHAKE: HANDSHAKE.response(error_code=0, mechanisms=["PLAIN", *SCRAM]), AUTHENTICATE: answer}


def challenge(iterations: str) -> Answer:
    """The first answer of SCRAM, which says how often the password is to be hashed."""

    def reply(asked: Asked) -> object:
        nonce = bytes(asked.message.auth_bytes).rpartition(b"r=")[2]
        return step(b"r=" + nonce + b"server,s=c2FsdA==,i=" + iterations.encode())

    return reply


@pytest.fixture
def dial(stack: ExitStack) -> Dial:
    def connect(node: Listener, mechanism: str = "PLAIN", clock: VirtualClock | None = None) -> Connection:
        sasl = Sasl(mechanism, "alice", Secret("pa55-w0rd"))
        settings = ClientSettings((node.address,), security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
        return stack.enter_context(closing(TcpTransport(settings, clock).connect(node.address, PATIENCE_S)))

    return connect


# How well the password is hashed


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("iterations", ["1", "+1", "0", "4095"])
def test_a_broker_that_wants_a_proof_which_is_easily_guessed_gets_none(
    mechanism: str, iterations: str, node: Listener, dial: Dial
) -> None:
    believing(node, in_turn(challenge(iterations), step()))
    with pytest.raises(Unauthenticated, match=rf"{mechanism}: the broker requested \d+ iterations, fewer than .* 4096"):
        dial(node, mechanism)
    assert len(node.messages(AUTHENTICATE)) == 1


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_proof_with_the_least_iterations_is_sent(mechanism: str, node: Listener, dial: Dial) -> None:
    believing(node, in_turn(challenge(str(LEAST_ITERATIONS)), step(b"v=bm90IG91cnM=")))
    with pytest.raises(Unauthenticated, match="Server sent wrong signature"):
        dial(node, mechanism)
    assert b",p=" in bytes(node.messages(AUTHENTICATE)[1].auth_bytes)


# How long a login lasts


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_a_login_without_an_end_is_made_once(node: Listener, dial: Dial, clock: VirtualClock) -> None:
    believing(node, step())
    connection = dial(node, clock=clock)
    clock.sleep(1e9)
    connection.exchange(FRAME, PATIENCE_S)
    assert node.times_asked(AUTHENTICATE) == 1


def test_a_busy_connection_logs_in_again_before_its_session_ends(
    node: Listener, dial: Dial, clock: VirtualClock
) -> None:
    believing(node, step(lifetime_ms=round(LIFETIME_S * 1000)))
    connection = dial(node, clock=clock)
    logins = []
    for _ in range(30):
        clock.sleep(LIFETIME_S / 10)
        connection.exchange(FRAME, PATIENCE_S)
        logins.append(node.times_asked(AUTHENTICATE))
    assert logins[7:9] == [1, 2]
    assert logins[-1] == 4
    assert len(node.connections) == 1


def test_a_connection_that_was_idle_beyond_its_session_logs_in_before_it_sends_anything(
    node: Listener, dial: Dial, clock: VirtualClock
) -> None:
    believing(node, step(lifetime_ms=round(LIFETIME_S * 1000)))
    connection = dial(node, clock=clock)
    clock.sleep(10 * LIFETIME_S)
    assert connection.is_usable()
    connection.exchange(FRAME, PATIENCE_S)
    assert [asked.api for asked in node.asked] == 2 * [HANDSHAKE, AUTHENTICATE] + [api.API_VERSIONS]


def test_a_login_that_is_refused_later_sends_nothing_and_ends_the_connection(
    node: Listener, dial: Dial, clock: VirtualClock
) -> None:
    believing(node, in_turn(step(lifetime_ms=1000), step(error_code=58)))
    connection = dial(node, clock=clock)
    clock.sleep(1)
    with pytest.raises(Unauthenticated, match="SASL PLAIN as alice was refused"):
        connection.exchange(FRAME, PATIENCE_S)
    assert not node.times_asked(api.API_VERSIONS)
    assert not connection.is_usable()


def test_a_login_that_is_not_answered_later_is_unreachable_because_nothing_was_sent(
    node: Listener, dial: Dial, clock: VirtualClock
) -> None:
    believing(node, in_turn(step(lifetime_ms=1000), Deed.HANG_UP))
    connection = dial(node, clock=clock)
    clock.sleep(1)
    with pytest.raises(Unreachable):
        connection.exchange(FRAME, PATIENCE_S)
    assert not node.times_asked(api.API_VERSIONS)
