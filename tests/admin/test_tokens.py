"""Tokens of a client in virtual time: how long each is used, when another is fetched, and when none can be."""

from __future__ import annotations

import base64
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kreassign.admin.settings import OAuth, Secret, TokenFile, UnsecuredToken
from kreassign.admin.tokens import (
    LateToken,
    NoToken,
    Token,
    TokenSource,
    lifetime_s,
    remaining_s,
    token_from_file,
    unsecured_token,
)
from kreassign.clock import VirtualClock
from kreassign.errors import ClusterError, Unauthenticated, Unreachable
from testbed.waiting import PATIENCE_S
from tests.logs import Logged

HOUR_S = 3600.0


def jwt(**claims: object) -> str:
    """A token as issuers write them; nobody checks its signature here."""
    segments = (json.dumps(part).encode() for part in ({"alg": "RS256"}, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in segments), "c2lnbmVk"])


class Issuer:
    """Gives tokens t1, t2, … of a lifetime, or fails."""

    def __init__(self, lifetime_s: float | None = HOUR_S) -> None:
        self.lifetime_s = lifetime_s
        self.failure: ClusterError | None = None
        self.times_asked = 0

    def __call__(self, _timeout_s: float) -> Token:
        self.times_asked += 1
        if self.failure is not None:
            raise self.failure
        return Token(Secret(f"t{self.times_asked}"), self.lifetime_s)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_800_000_000_000)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def source(issuer: Issuer, clock: VirtualClock) -> TokenSource:
    return TokenSource(OAuth(TokenFile("/t")), issuer, clock)


def test_the_end_of_a_call_does_not_hide_the_trouble_of_the_issuer(source: TokenSource, issuer: Issuer) -> None:
    issuer.failure = NoToken("it answered 503")
    with pytest.raises(NoToken, match="503"):
        source.get(PATIENCE_S)
    issuer.failure = LateToken("it did not answer within 0.0 s")
    with pytest.raises(NoToken, match="503"):
        source.get(0.01)
    with pytest.raises(NoToken, match="did not answer"):
        source.get(PATIENCE_S)


def used(source: TokenSource) -> str:
    return source.get(PATIENCE_S).text.reveal()


# How long a token is used


def test_a_token_is_shared_until_most_of_its_lifetime_has_passed(source: TokenSource, clock: VirtualClock) -> None:
    seen = []
    for _ in range(20):
        seen.append(used(source))
        clock.sleep(HOUR_S / 10)
    assert seen == ["t1"] * 8 + ["t2"] * 8 + ["t3"] * 4


def test_a_wall_clock_that_jumps_ends_no_token_and_keeps_none(source: TokenSource, clock: VirtualClock) -> None:
    used(source)
    for jump_ms in (10**12, -(10**12)):
        clock._start_ms += jump_ms
        assert used(source) == "t1"
    clock.sleep(HOUR_S)
    assert used(source) == "t2"


def test_a_token_that_does_not_say_its_end_is_fetched_at_each_login(clock: VirtualClock) -> None:
    source = TokenSource(OAuth(TokenFile("/t")), Issuer(lifetime_s=None), clock)
    assert [used(source), used(source)] == ["t1", "t2"]


def test_many_logins_at_once_fetch_one_token(source: TokenSource, issuer: Issuer) -> None:
    with ThreadPoolExecutor(16) as threads:
        assert set(threads.map(lambda _: used(source), range(64))) == {"t1"}
    assert issuer.times_asked == 1


def test_who_waits_for_a_fetch_that_hangs_is_told_in_time(clock: VirtualClock) -> None:
    begun, over = threading.Event(), threading.Event()

    def hang(_timeout_s: float) -> Token:
        begun.set()
        over.wait(PATIENCE_S)
        return Token(Secret("late"), HOUR_S)

    source = TokenSource(OAuth(TokenFile("/t")), hang, clock)
    with ThreadPoolExecutor(1) as threads:
        fetching = threads.submit(source.get, PATIENCE_S)
        assert begun.wait(PATIENCE_S)
        with pytest.raises(NoToken, match="another login still waits for the token file /t"):
            source.get(0.01)
        over.set()
        assert fetching.result().text == Secret("late")


def test_while_a_token_lasts_nobody_waits_for_who_renews_it(clock: VirtualClock) -> None:
    begun, over = threading.Event(), threading.Event()
    timeouts = []

    def fetch(timeout_s: float) -> Token:
        timeouts.append(timeout_s)
        if len(timeouts) == 2:
            begun.set()
            over.wait(PATIENCE_S)
        return Token(Secret(f"t{len(timeouts)}"), HOUR_S)

    source = TokenSource(OAuth(TokenFile("/t")), fetch, clock)
    used(source)
    clock.sleep(0.9 * HOUR_S)
    with ThreadPoolExecutor(1) as threads:
        renewing = threads.submit(used, source)
        assert begun.wait(PATIENCE_S)
        assert used(source) == "t1"
        source.accepted(source.get(0.0))
        over.set()
        assert renewing.result() == "t2"
    assert timeouts == [PATIENCE_S, 3.0]


# An issuer in trouble


@pytest.mark.parametrize("failure", [NoToken("it is down"), Unauthenticated("invalid_client")])
def test_an_issuer_in_trouble_is_only_warned_of_while_a_token_lasts(
    failure: ClusterError, source: TokenSource, issuer: Issuer, clock: VirtualClock, logged: Logged
) -> None:
    used(source)
    clock.sleep(0.9 * HOUR_S)
    issuer.failure = failure
    assert {used(source) for _ in range(50)} == {"t1"}
    assert issuer.times_asked == 2
    assert [record.levelno for record in logged.warnings] == [logging.WARNING]
    assert str(failure) in logged.text
    clock.sleep(60)
    issuer.failure = None
    assert used(source) == "t3"


def test_when_the_token_has_ended_the_trouble_is_the_answer(
    source: TokenSource, issuer: Issuer, clock: VirtualClock
) -> None:
    used(source)
    clock.sleep(HOUR_S)
    issuer.failure = NoToken("it is down")
    with pytest.raises(Unreachable, match="it is down"):
        used(source)
    issuer.failure = None
    assert used(source) == "t3"


# A broker that refuses


def test_a_token_that_was_good_for_a_while_and_is_refused_is_replaced(source: TokenSource, clock: VirtualClock) -> None:
    token = source.get(PATIENCE_S)
    source.accepted(token)
    clock.sleep(60)
    assert source.refused(token)
    assert used(source) == "t2"


def test_a_token_that_no_broker_ever_took_is_refused_for_good(source: TokenSource, clock: VirtualClock) -> None:
    token = source.get(PATIENCE_S)
    clock.sleep(60)
    assert not source.refused(token)
    assert used(source) == "t2"


def test_a_client_does_not_fetch_tokens_for_ever(source: TokenSource) -> None:
    token = source.get(PATIENCE_S)
    source.accepted(token)
    assert not source.refused(token)


def test_a_login_with_a_replaced_token_tries_again(source: TokenSource, clock: VirtualClock) -> None:
    old = source.get(PATIENCE_S)
    clock.sleep(HOUR_S)
    source.accepted(source.get(PATIENCE_S))
    assert source.refused(old)
    assert used(source) == "t2"


# What tokens say of themselves


def test_a_lifetime_is_what_issuer_and_token_say_whichever_is_shorter(clock: VirtualClock) -> None:
    assert lifetime_s("opaque", 60, clock) == 60
    assert lifetime_s("opaque", "60", clock) == 60
    assert lifetime_s("opaque", None, clock) is None
    assert lifetime_s(jwt(iat=100, exp=400), None, clock) == 300
    assert lifetime_s(jwt(iat=100, exp=400), 60, clock) == 60
    assert lifetime_s(jwt(iat=100, exp=400), 3600, clock) == 300


def test_a_token_without_its_beginning_began_now(clock: VirtualClock) -> None:
    assert lifetime_s(jwt(exp=1_800_000_300), None, clock) == 300
    assert remaining_s(jwt(exp=1_800_000_300), clock) == 300


ODD = [True, None, [], {}, "x", "", "inf", "nan", 1e308 * 10]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_lifetime_that_is_no_number_is_none(odd: object, clock: VirtualClock) -> None:
    assert lifetime_s("opaque", odd, clock) is None
    assert lifetime_s(jwt(exp=odd), None, clock) is None


@given(st.text() | st.binary().map(lambda raw: f"a.{base64.urlsafe_b64encode(raw).decode()}.c"))
def test_whatever_a_token_is_its_lifetime_is_a_number_or_none(text: str) -> None:
    found = lifetime_s(text, None, VirtualClock())
    assert found is None or isinstance(found, float)


@pytest.mark.parametrize("text", ["", " ", "two words", "a\x01auth=Bearer b", "a\nb", "gr\u00fc\u00dfe", "a=b"])
def test_what_is_no_token_is_not_sent_and_not_shown(text: str) -> None:
    with pytest.raises(Unauthenticated, match="the issuer gave what is no bearer token") as no:
        Token.checked(text, "the issuer", None)
    assert not text.strip() or text not in str(no.value)


def test_a_token_that_has_ended_when_it_is_issued_is_refused() -> None:
    with pytest.raises(Unauthenticated, match="has expired already; have it issue another"):
        Token.checked("abc", "the issuer", 0.0)


def test_a_token_is_in_no_text() -> None:
    assert "pa55" not in repr(Token(Secret("pa55"), 1.0))


# Files and unsecured tokens


def test_a_file_is_read_at_each_login_so_that_a_renewed_one_is_used(tmp_path: Path, clock: VirtualClock) -> None:
    file = tmp_path / "token"
    source = TokenSource(OAuth(TokenFile(str(file))), lambda _: token_from_file(TokenFile(str(file)), clock), clock)
    for text in ("one\n", "two"):
        file.write_text(text)
        assert used(source) == text.strip()


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), (b"\xff", "not ASCII"), (b"", "no bearer token")]
)
def test_a_file_without_a_token_is_named(
    content: bytes | None, words: str, tmp_path: Path, clock: VirtualClock
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Unauthenticated, match=rf"the token file {file} .*{words}"):
        token_from_file(TokenFile(str(file)), clock)


def test_an_ended_token_in_a_file_is_warned_of_and_used(tmp_path: Path, clock: VirtualClock, logged: Logged) -> None:
    text = jwt(sub="pa55", exp=1_799_999_940)
    (tmp_path / "token").write_text(text)
    assert token_from_file(TokenFile(str(tmp_path / "token")), clock).text == Secret(text)
    assert logged.messages == [
        f"the token file {tmp_path}/token expired 60 s ago by the clock of this machine; have it renewed"
    ]


def test_an_unsecured_token_says_what_it_is_told_and_is_not_signed(clock: VirtualClock) -> None:
    token = unsecured_token(UnsecuredToken((("sub", "alice"), ("scope", ("a", "b")))), clock)
    header, claims, signature = token.text.reveal().split(".")
    read = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
    assert read == [{"alg": "none"}, {"exp": 1_800_003_600, "iat": 1_800_000_000, "sub": "alice", "scope": ["a", "b"]}]
    assert signature == ""
