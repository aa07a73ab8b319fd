"""Over real HTTP: what is sent to a token endpoint, what is made of its answers, and what is never shown."""

from __future__ import annotations

import base64
import datetime as dt
import socket
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
import trustme

from kreassign.admin.settings import AssertionFile, ClientAssertion, ClientSecret, JwtBearer, Secret, Tls, TokenEndpoint
from kreassign.admin.tokens import EndpointClient, NoToken, Token
from kreassign.clock import SystemClock
from kreassign.errors import ClusterError, Unauthenticated
from testbed.waiting import PATIENCE_S
from tests.admin.token_server import Reply, TokenServer, granted, refused
from tests.logs import Logged

SECRET = "pa55/w+rd ü"
SHAPES = (SECRET, "pa55%2Fw%2Brd+%C3%BC", base64.b64encode(f"alice:{SECRET}".encode()).decode())
ASSERTION = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
SHORT_S = 0.3

Serve = Callable[..., TokenServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(closing(TokenServer(*arguments)))


ALICE = ClientSecret("alice", Secret(SECRET))


def ask(url: str, timeout_s: float = PATIENCE_S, **fields: object) -> Token:
    endpoint = TokenEndpoint(url, **{"grant": ALICE, **fields})
    return EndpointClient(endpoint, SystemClock()).fetch(timeout_s)


def failure(url: str, timeout_s: float = PATIENCE_S, **fields: object) -> ClusterError:
    """The error, whose text, repr and traceback hold no secret in any shape."""
    with pytest.raises(ClusterError) as failed:
        ask(url, timeout_s, **fields)
    shown = "".join([*traceback.format_exception(failed.value), repr(failed.value)])
    assert not [shape for shape in (*SHAPES, ASSERTION) if shape in shown]
    return failed.value


# What is sent


def test_id_and_secret_are_sent_as_the_client_credentials_grant(serve: Serve) -> None:
    server = serve(granted("abc", expires_in=60))
    token = ask(f"{server.url}?tenant=7", scope="a b&c")
    assert token == Token(Secret("abc"), 60)
    (asked,) = server.asked
    assert asked.path == "/token?tenant=7"
    assert asked.body == "grant_type=client_credentials&scope=a+b%26c"
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert base64.b64decode(asked.headers["Authorization"].removeprefix("Basic ")).decode() == f"alice:{SECRET}"


@pytest.mark.parametrize(("url", "host", "port"), [
    ("http://[::1]/token", "::1", 80),
    ("https://[::1]/token", "::1", 443),
    ("https://[::1]:8443/token", "::1", 8443),
    ("https://issuer.example", "issuer.example", 443),
])  # fmt: skip
def test_the_port_is_that_of_the_address_or_of_its_scheme(url: str, host: str, port: int) -> None:
    connection = EndpointClient(TokenEndpoint(url, ALICE), SystemClock())._connection(1.0)
    assert (connection.host, connection.port) == (host, port)


def test_id_and_secret_are_encoded_once_more_if_asked_for(serve: Serve) -> None:
    server = serve(granted("abc"))
    ask(server.url, grant=ClientSecret("alice", Secret(SECRET), is_url_encoded=True))
    sent = base64.b64decode(server.asked[0].headers["Authorization"].removeprefix("Basic ")).decode()
    assert sent == "alice:pa55%2Fw%2Brd+%C3%BC"
    assert server.asked[0].body == "grant_type=client_credentials"


@pytest.fixture
def signed(tmp_path: Path) -> AssertionFile:
    (tmp_path / "assertion").write_text(f"{ASSERTION}\n")
    return AssertionFile(str(tmp_path / "assertion"))


def test_an_assertion_is_sent_as_the_grant_itself(serve: Serve, signed: AssertionFile) -> None:
    server = serve(granted("abc"))
    ask(server.url, grant=JwtBearer(signed), scope="kafka")
    (asked,) = server.asked
    assert dict(parse_qsl(asked.body)) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": ASSERTION,
        "scope": "kafka",
    }
    assert "Authorization" not in asked.headers


@pytest.mark.parametrize(("client_id", "more"), [(None, {}), ("alice", {"client_id": "alice"})])
def test_an_assertion_is_sent_in_the_place_of_a_secret(
    client_id: str | None, more: dict[str, str], serve: Serve, signed: AssertionFile
) -> None:
    server = serve(granted("abc"))
    ask(server.url, grant=ClientAssertion(signed, client_id))
    (asked,) = server.asked
    assert dict(parse_qsl(asked.body)) == {
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": ASSERTION,
        **more,
    }
    assert "Authorization" not in asked.headers


def test_a_repeated_assertion_is_hidden_and_the_checks_are_told(serve: Serve, signed: AssertionFile) -> None:
    said = str(failure(serve(refused("invalid_grant", f"not {ASSERTION}")).url, grant=JwtBearer(signed)))
    assert "answered 400 (invalid_grant: not [hidden]). Check the key, iss, sub and aud of the assertion" in said
    assert "clientSecret" not in said


def test_no_proxy_of_the_environment_gets_the_secret(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, server = serve(granted("stolen")), serve(granted("abc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(server.url).text == Secret("abc")
    assert not proxy.asked


def test_an_endpoint_elsewhere_without_tls_is_warned_of(logged: Logged) -> None:
    for url in ("http://issuer.example/token", "http://127.0.0.1:1/token", "https://issuer.example/token"):
        EndpointClient(TokenEndpoint(url, ALICE), SystemClock())
    assert len(logged.messages) == 1
    assert "the token endpoint http://issuer.example/token is asked without TLS" in logged.text


# What comes back: refused for good


@pytest.mark.parametrize(("reply", "words"), [
    (refused("invalid_client", status=401), "answered 401 (invalid_client). Check clientId, clientSecret and"),
    (refused("invalid_scope", "no scope x here"), "answered 400 (invalid_scope: no scope x here). Check clientId"),
    (Reply(400, b'{"errorCode": "E1", "errorSummary": "no"}'), "answered 400 (E1: no)"),
    (Reply(404, b"<html>"), "answered 404. Check"),
    (Reply(200, b"<!DOCTYPE html><p>Sign in"), "answered with an HTML page in place of a token. Check whether"),
    (Reply(200, b""), "answered with no JSON in place of a token"),
    (Reply(200, b"[" * 100_000), "answered with no JSON"),
    (Reply(200, b'["abc"]'), "answered with no JSON"),
    (Reply(200, b"{}"), "answered without an access_token. Is this its address?"),
    (Reply(200, b'{"access_token": 7}'), "answered without an access_token"),
    (Reply(200, b'{"access_token": "a b"}'), "gave what is no bearer token"),
    (granted("abc", expires_in=0), "gave a token that has expired already"),
    (Reply(200, b" " * (1 << 21)), "answered with more than 1048576 bytes: is this its address?"),
    (Reply(302, b"", {"Location": "http://127.0.0.1:1/"}), "it redirects, and a secret is not sent elsewhere"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_an_answer_that_more_asking_does_not_better_is_final(reply: Reply, words: str, serve: Serve) -> None:
    server = serve(reply)
    error = failure(f"{server.url}?key=pa55-query")
    assert isinstance(error, Unauthenticated)
    assert words in str(error)
    assert f"the token endpoint {server.url}" in str(error)
    assert "pa55-query" not in str(error)
    assert len(server.asked) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_that_the_endpoint_repeats_is_hidden(shape: str, serve: Serve) -> None:
    server = serve(refused("invalid_client", f"{shape} is wrong \x1b[2J"))
    error = failure(server.url)
    assert "(invalid_client: [hidden] is wrong \\u001b[2J)" in str(error)


def test_what_is_said_at_length_is_cut(serve: Serve) -> None:
    assert len(str(failure(serve(refused("invalid_client", "x" * 10_000)).url))) < 600


# In trouble: it may be asked again


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_a_server_in_trouble_may_be_asked_again(status: int, serve: Serve) -> None:
    error = failure(serve(Reply(status, b"<html>oops")).url)
    assert isinstance(error, NoToken)
    assert f"answered {status}. It may be over soon; look at that server" in str(error)


def test_an_endpoint_that_is_down_may_be_asked_again() -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        error = failure(f"http://127.0.0.1:{placeholder.getsockname()[1]}/token")
    assert isinstance(error, NoToken)
    assert "connection refused. Check that it is up, and sasl.oauthbearer.token.endpoint.url" in str(error)


def test_a_name_that_does_not_resolve_is_said() -> None:
    error = failure("http://no-such-host.invalid/token")
    assert isinstance(error, NoToken)
    assert "its host name does not resolve" in str(error)


def test_silence_costs_its_deadline(serve: Serve) -> None:
    error = failure(serve(None).url, SHORT_S)
    assert isinstance(error, NoToken)
    assert "it did not answer within 0.3 s" in str(error)
    assert "it did not answer within 0.2 s" in str(failure(serve(None).url, timeout_ms=200))


@pytest.mark.parametrize("sent", [
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
    b"",
])  # fmt: skip
def test_an_answer_that_breaks_off_may_be_asked_for_again(sent: bytes) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1 << 16)
                peer.sendall(sent)

        thread = threading.Thread(target=answer)
        thread.start()
        error = failure(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join(PATIENCE_S)
    assert isinstance(error, NoToken)


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def context(authority: trustme.CA, name: str = "127.0.0.1", **fields: object) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **fields).configure_cert(made)
    return made


def trusting(authority: trustme.CA) -> Tls:
    return Tls(trusted_certificates=authority.cert_pem.bytes().decode())


def test_the_authority_of_the_endpoint_is_its_own(serve: Serve, authority: trustme.CA) -> None:
    server = serve(granted("abc"), context(authority))
    assert ask(server.url, tls=trusting(authority)).text == Secret("abc")


@pytest.mark.parametrize(
    ("header", "is_encrypted"),
    [(b"Content-Length: 1000000", False), (b"Connection: close", True), (b"X-Drips: ", False)],
)
def test_an_answer_that_drips_does_not_move_the_deadline(
    header: bytes, is_encrypted: bool, authority: trustme.CA
) -> None:
    over, tls = threading.Event(), context(authority)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def drip() -> None:
            plain, _ = server.accept()
            with suppress(OSError), tls.wrap_socket(plain, server_side=True) if is_encrypted else plain as peer:
                peer.recv(1 << 16)
                peer.sendall(b"HTTP/1.1 200 OK\r\n" + header + (b"" if header.endswith(b" ") else b"\r\n\r\n"))
                while not over.wait(SHORT_S / 10):
                    peer.sendall(b" ")

        thread = threading.Thread(target=drip)
        thread.start()
        scheme = "https" if is_encrypted else "http"
        error = failure(f"{scheme}://127.0.0.1:{server.getsockname()[1]}/", SHORT_S, tls=trusting(authority))
        over.set()
        thread.join(PATIENCE_S)
    assert isinstance(error, NoToken)
    assert "it did not answer within 0.3 s" in str(error)


YESTERDAY = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)


def test_an_endpoint_that_is_not_believed_gets_no_secret(serve: Serve, authority: trustme.CA, logged: Logged) -> None:
    before = YESTERDAY - dt.timedelta(days=1)
    cases = (
        (context(trustme.CA()), "unable to get local issuer certificate. Import the authority that signed it"),
        (context(authority, "elsewhere.example"), "IP address mismatch"),
        (
            context(authority, not_before=before, not_after=YESTERDAY),
            "certificate has expired. Renew it on that server",
        ),
    )
    for tls, words in cases:
        server = serve(granted("abc"), tls)
        error = failure(server.url, tls=trusting(authority))
        assert isinstance(error, Unauthenticated)
        assert f"the certificate of the token endpoint {server.url} is not trusted" in str(error)
        assert words in str(error)
        assert not server.asked
    assert SECRET not in logged.text


def test_http_where_https_is_wanted_is_no_answer(serve: Serve) -> None:
    error = failure(serve(granted("abc")).url.replace("http:", "https:"))
    assert isinstance(error, NoToken)
