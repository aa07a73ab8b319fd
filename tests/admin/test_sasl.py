"""Logins: what a client proves to whom, and that it does so again before its session ends (KIP-368)."""

from __future__ import annotations

import itertools
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from kreassign.admin import AdminClient, ClientSettings, Connection, SecurityProtocol, TcpTransport
from kreassign.admin.sasl import LEAST_ITERATIONS
from kreassign.admin.settings import (
    ClientSecret,
    Credentials,
    Kerberos,
    MskIam,
    OAuth,
    Sasl,
    Secret,
    TokenEndpoint,
    UnsecuredToken,
)
from kreassign.clock import VirtualClock
from kreassign.errors import KreassignError, Unauthenticated, Unreachable
from kreassign.wire import api
from kreassign.wire.codec import encode_request
from testbed.waiting import PATIENCE_S
from tests.admin.listener import Answer, Deed, Listener, in_turn
from tests.admin.token_server import Reply, TokenServer, granted
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
    node.answers |= {
        HANDSHAKE: HANDSHAKE.response(error_code=0, mechanisms=["PLAIN", "OAUTHBEARER", *SCRAM]),
        AUTHENTICATE: answer,
    }


def challenge(iterations: str) -> Answer:
    """The first answer of SCRAM, which says how often the password is to be hashed."""

    def reply(asked: Asked) -> object:
        nonce = bytes(asked.message.auth_bytes).rpartition(b"r=")[2]
        return step(b"r=" + nonce + b"server,s=c2FsdA==,i=" + iterations.encode())

    return reply


@pytest.fixture
def dial(stack: ExitStack) -> Dial:
    def connect(
        node: Listener, mechanism: str = "PLAIN", clock: VirtualClock | None = None, own: Credentials | None = None
    ) -> Connection:
        sasl = own or Sasl(mechanism, "alice", Secret("pa55-w0rd"))
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


def test_an_idle_connection_logs_in_again_before_it_sends_anything(
    node: Listener, dial: Dial, clock: VirtualClock
) -> None:
    believing(node, step(lifetime_ms=round(LIFETIME_S * 1000)))
    connection = dial(node, clock=clock)
    clock.sleep(10 * LIFETIME_S)
    assert connection.is_usable()
    connection.exchange(FRAME, PATIENCE_S)
    assert [asked.api for asked in node.asked] == 2 * [HANDSHAKE, AUTHENTICATE] + [api.API_VERSIONS]


def test_a_session_of_less_than_a_second_needs_a_new_connection(
    node: Listener, dial: Dial, clock: VirtualClock
) -> None:
    believing(node, step(lifetime_ms=500))
    connection = dial(node, clock=clock)
    connection.exchange(FRAME, PATIENCE_S)
    assert connection.is_usable()
    clock.sleep(0.6)
    assert not connection.is_usable()
    clock.sleep(0.6)
    assert connection.is_usable()
    connection.exchange(FRAME, PATIENCE_S)
    assert node.times_asked(HANDSHAKE) == 2


def test_a_refused_later_login_sends_nothing_and_disconnects(node: Listener, dial: Dial, clock: VirtualClock) -> None:
    believing(node, in_turn(step(lifetime_ms=1000), step(error_code=58)))
    connection = dial(node, clock=clock)
    clock.sleep(1)
    with pytest.raises(Unauthenticated, match="SASL PLAIN as alice was refused"):
        connection.exchange(FRAME, PATIENCE_S)
    assert not node.times_asked(api.API_VERSIONS)
    assert not connection.is_usable()


def test_an_unanswered_later_login_leaves_nothing_sent(node: Listener, dial: Dial, clock: VirtualClock) -> None:
    believing(node, in_turn(step(lifetime_ms=1000), Deed.HANG_UP))
    connection = dial(node, clock=clock)
    clock.sleep(1)
    with pytest.raises(Unreachable):
        connection.exchange(FRAME, PATIENCE_S)
    assert not node.times_asked(api.API_VERSIONS)


# Bearer tokens

UNSECURED = OAuth(UnsecuredToken((("sub", "alice"),)), extensions=(("zone", "x"),))
ENDED = step(b'{"status":"invalid_token"}')
REFUSED = step(error_code=58)


@pytest.fixture
def issuer(stack: ExitStack) -> TokenServer:
    """An endpoint whose tokens t1, t2 … last an hour."""
    numbers = itertools.count(1)
    server = TokenServer(lambda: granted(f"pa55-t{next(numbers)}", expires_in=3600))
    return stack.enter_context(closing(server))


def fetched(issuer: TokenServer) -> OAuth:
    return OAuth(TokenEndpoint(issuer.url, ClientSecret("alice", Secret("pa55-client"))))


def sent(node: Listener) -> list[bytes]:
    return [bytes(message.auth_bytes) for message in node.messages(AUTHENTICATE)]


def test_a_token_is_sent_with_its_extensions(node: Listener, dial: Dial, clock: VirtualClock) -> None:
    believing(node, step())
    dial(node, clock=clock, own=UNSECURED)
    assert [message.mechanism for message in node.messages(HANDSHAKE)] == ["OAUTHBEARER"]
    (first,) = sent(node)
    assert re.fullmatch(rb"n,,\x01auth=Bearer [-\w.]+\x01zone=x\x01\x01", first)


def test_logins_share_a_token_and_renew_it_in_a_long_run(
    node: Listener, dial: Dial, clock: VirtualClock, issuer: TokenServer
) -> None:
    believing(node, step(lifetime_ms=600_000))
    connection = dial(node, clock=clock, own=fetched(issuer))
    for _ in range(12 * 60):
        clock.sleep(60)
        connection.exchange(FRAME, PATIENCE_S)
    assert len(node.connections) == 1
    assert len(issuer.asked) == len(set(sent(node)))
    assert 12 <= len(issuer.asked) <= 18


def test_a_refused_token_is_acknowledged_and_the_wanted_scope_told(
    node: Listener, dial: Dial, issuer: TokenServer
) -> None:
    said = b'{"status":"insufficient_scope", "scope":"kafka\\u001b[2J"}'
    believing(node, in_turn(step(said), REFUSED))
    with pytest.raises(Unauthenticated) as refused:
        dial(node, own=fetched(issuer))
    assert sent(node)[1] == b"\x01"
    assert f"SASL OAUTHBEARER with the token endpoint {issuer.url} was refused" in str(refused.value)
    assert "a token of the scope kafka\\u001b[2J: set scope in sasl.jaas.config" in str(refused.value)
    assert "pa55" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("after", [step(), step(b"more")])
def test_a_refusal_is_none_the_less_one_if_the_broker_then_says_yes(
    after: object, node: Listener, dial: Dial, issuer: TokenServer
) -> None:
    believing(node, in_turn(ENDED, after))
    with pytest.raises(
        Unauthenticated, match=r"was refused. Have the issuer, audience and expiry of the token compared"
    ):
        dial(node, own=fetched(issuer))


@pytest.mark.parametrize("answer", [b"nonsense", b"\xff", b"[]"])
def test_an_answer_that_is_no_refusal_is_none_of_yes(
    answer: bytes, node: Listener, dial: Dial, issuer: TokenServer
) -> None:
    believing(node, in_turn(step(answer), REFUSED))
    with pytest.raises(Unauthenticated, match=r"SASL OAUTHBEARER with .* (failed|was refused)"):
        dial(node, own=fetched(issuer))


def test_a_withdrawn_token_is_replaced_by_the_next_try(
    node: Listener, dial: Dial, clock: VirtualClock, issuer: TokenServer
) -> None:
    believing(node, in_turn(step(lifetime_ms=60_000), ENDED, REFUSED, step()))
    oauth = fetched(issuer)
    settings = ClientSettings((node.address,), security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=oauth)
    transport = TcpTransport(settings, clock)
    with closing(transport.connect(node.address, PATIENCE_S)) as connection:
        clock.sleep(60)
        with pytest.raises(Unreachable, match="takes a token no more, so that another is fetched"):
            connection.exchange(FRAME, PATIENCE_S)
        assert not node.times_asked(api.API_VERSIONS)
    with closing(transport.connect(node.address, PATIENCE_S)) as connection:
        connection.exchange(FRAME, PATIENCE_S)
    assert len(issuer.asked) == 2


def test_an_endpoint_that_is_down_is_said_in_place_of_a_cluster_that_is(
    node: Listener, connect: Callable[..., AdminClient], issuer: TokenServer
) -> None:
    believing(node, step())
    issuer.reply = Reply(503, b"")
    with connect(node, security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=fetched(issuer)) as client:
        with pytest.raises(Unreachable) as failed:
            client.describe_cluster(timeout_ms=1_000)
        assert str(failed.value).startswith(
            f"no token for SASL OAUTHBEARER: the token endpoint {issuer.url} answered 503"
        )
        issuer.reply = granted("abc", expires_in=60)
        assert client.describe_cluster().cluster_id == "id"


# What is not installed


def test_the_extra_that_kerberos_needs_is_named(monkeypatch: pytest.MonkeyPatch, node: Listener, dial: Dial) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "kreassign.admin.kerberos", raising=False)
    with pytest.raises(KreassignError, match=r"sasl.mechanism=GSSAPI needs .*pip install .*\[kerberos\]'"):
        dial(node, own=Kerberos("kafka"))


def test_the_extra_that_msk_needs_is_named(monkeypatch: pytest.MonkeyPatch, node: Listener, dial: Dial) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    monkeypatch.delitem(sys.modules, "kreassign.admin.msk", raising=False)
    with pytest.raises(KreassignError, match=r"Amazon MSK needs .*pip install .*\[msk\]'"):
        dial(node, own=OAuth(MskIam()))
