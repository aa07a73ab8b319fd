"""Bearer tokens of one client: fetched once for all its connections, renewed before they expire.

- A token's age is measured on the monotonic clock from before the request, so that a wall clock that jumps, or
  differs from the issuer's, neither ends a token early nor keeps it too long.
- After `refresh_factor` of its lifetime the next login renews a token. While the issuer gives no new token, the old
  one is used until it expires: an issuer that is down for a while stops no run.
- A token that a broker refuses is dropped and replaced once: the issuer may have withdrawn it, and a machine that
  slept did not see it expire.
- An issuer that is down or slow is `NoToken`, a kind of `Unreachable`: nothing was sent to a broker, and the issuer is
  asked again until the deadline. An issuer that refuses is `Unauthenticated`, at once.
- No message shows a token or a secret.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import logging
import math
import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from urllib.parse import quote_plus, urlencode, urlsplit

from kreassign.admin.assertions import assertion
from kreassign.admin.settings import (
    ClientAssertion,
    ClientSecret,
    OAuth,
    Secret,
    TokenEndpoint,
    TokenFile,
    UnsecuredToken,
)
from kreassign.admin.tls import distrust, tls_context
from kreassign.clock import Clock
from kreassign.errors import ClusterError, Unauthenticated, Unreachable, machine_reason
from kreassign.model.listeners import is_readable
from kreassign.model.text import printable

log = logging.getLogger(__name__)

# After a failed renewal, wait this long before asking again while the last token is still valid.
_PAUSE_S = 10.0
# Longest wait of a login for a renewal that is not urgent.
_SHORT_S = 3.0
_MOMENT_S = 1.0
# Syntax of a bearer token in Kafka (RFC 6750, section 2.1).
_SPELT = re.compile(r"[-_~+/.A-Za-z0-9]+=*")


class NoToken(Unreachable):
    """No token is available now, so no broker was asked; a retry may help."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, and its lifetime in seconds from its request on; None if unknown."""

    text: Secret
    lifetime_s: float | None = None

    @classmethod
    def checked(cls, text: str, who: object, lifetime_s: float | None) -> Token:
        """Check a token from `who`. Raises Unauthenticated if it is malformed or expired; the token is not shown."""
        if not _SPELT.fullmatch(text):
            raise Unauthenticated(
                f"SASL OAUTHBEARER: {who} gave what is no bearer token: a token has letters, digits and -_~+/. only"
            )
        if lifetime_s is not None and lifetime_s <= 0:
            raise Unauthenticated(
                f"SASL OAUTHBEARER: {who} gave a token that has expired already; have it issue another"
            )
        return cls(Secret(text), lifetime_s)


class LateToken(NoToken):
    """The issuer did not answer in the time left."""


Fetch = Callable[[float], Token]
"""Gets a new token, with a timeout in seconds. Raises NoToken or Unauthenticated."""


class TokenSource:
    """The token of a client. Safe for use by several threads: one of them fetches.

    The others wait for it only while there is no valid token.
    """

    def __init__(self, settings: OAuth, fetch: Fetch, clock: Clock) -> None:
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._fetching = Lock()
        self._state = Lock()
        self._held: _Held | None = None
        self._trouble: NoToken | None = None

    def get(self, timeout_s: float) -> Token:
        """Return the token to log in with now. Raises NoToken or Unauthenticated."""
        if (token := self._unless_due()) is not None:
            return token
        lasting = self._while_it_lasts()
        if not self._fetching.acquire(timeout=0.0 if lasting else max(0.0, timeout_s)):
            if lasting is None:
                raise NoToken(f"another login still waits for {self._settings.tokens}")
            return lasting
        try:
            # Another login may have fetched a token just now.
            return self._unless_due() or self._renewed(timeout_s)
        finally:
            self._fetching.release()

    def accepted(self, token: Token) -> None:
        """Note that a broker accepted this token."""
        with self._state:
            if self._held is not None and self._held.token is token:
                self._held = replace(self._held, is_accepted=True)

    def refused(self, token: Token) -> bool:
        """Note that a broker refused this token; True if the next login gets another that may be accepted.

        A token that was accepted before may have been withdrawn. The refusal of a new token is final.
        """
        with self._state:
            held = self._held
            if held is None or held.token is not token:
                return held is not None
            self._held = None
            return held.is_accepted and self._age_s(held) >= _PAUSE_S

    def _renewed(self, timeout_s: float) -> Token:
        lasting = self._while_it_lasts()
        began_s = self._clock.monotonic_s()
        try:
            token = self._fetch(timeout_s if lasting is None else min(timeout_s, _SHORT_S))
        except ClusterError as error:
            if lasting is None:
                raise self._told(error, timeout_s) from None
            log.warning("the token could not be renewed, and is used as long as it lasts: %s", error)
            with self._state:
                if self._held is not None:
                    self._held = replace(self._held, failed_s=self._clock.monotonic_s())
            return lasting
        with self._state:
            self._held = _Held(token, began_s)
            self._trouble = None
        return token

    def _told(self, error: ClusterError, timeout_s: float) -> ClusterError:
        """Choose the failure to report: prefer the issuer's last answer over a timeout at the end of a call."""
        with self._state:
            if self._trouble is not None and isinstance(error, LateToken) and timeout_s < _MOMENT_S:
                return self._trouble
            self._trouble = error if isinstance(error, NoToken) else None
        return error

    def _unless_due(self) -> Token | None:
        """The token, or None if it is due for renewal; also the old token during the pause after a failed renewal."""
        with self._state:
            held = self._held
        # The issuer knows more about a token of unknown lifetime: ask at each login.
        if held is None or held.token.lifetime_s is None:
            return None
        is_young = self._age_s(held) < held.token.lifetime_s * self._settings.refresh_factor
        has_failed_now = held.failed_s is not None and self._clock.monotonic_s() < held.failed_s + _PAUSE_S
        return held.token if is_young or (has_failed_now and self._lasts(held)) else None

    def _while_it_lasts(self) -> Token | None:
        with self._state:
            held = self._held
        return held.token if held is not None and self._lasts(held) else None

    def _lasts(self, held: _Held) -> bool:
        return held.token.lifetime_s is not None and self._age_s(held) < held.token.lifetime_s

    def _age_s(self, held: _Held) -> float:
        return self._clock.monotonic_s() - held.fetched_s


@dataclass(frozen=True, slots=True)
class _Held:
    """A token, the time of its request, whether a broker accepted it, and when its renewal last failed."""

    token: Token
    fetched_s: float
    is_accepted: bool = False
    failed_s: float | None = None


def token_from_file(file: TokenFile, clock: Clock) -> Token:
    """Read the token of a file. Raises Unauthenticated if the file is missing or no text, or the token has expired."""
    try:
        text = Path(file.path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise Unauthenticated(f"SASL OAUTHBEARER: {file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Unauthenticated(f"SASL OAUTHBEARER: {file} holds no bearer token: it is not ASCII text") from None
    lifetime_s = remaining_s(text, clock)
    if lifetime_s is not None and lifetime_s <= 0:
        # The broker's clock decides, but most often the file was not renewed.
        log.warning("%s expired %.0f s ago by the clock of this machine; have it renewed", file, -lifetime_s)
    return Token.checked(text, file, None)


def unsecured_token(source: UnsecuredToken, clock: Clock) -> Token:
    """An unsigned token as Kafka's own client makes it for tests (`OAuthBearerUnsecuredLoginCallbackHandler`)."""
    now_s = clock.now_ms() / 1000
    claims = {"exp": now_s + source.lifetime_s, "iat": now_s, **dict(source.claims)}
    return Token(Secret(f"{_segment({'alg': 'none'})}.{_segment(claims)}."), float(source.lifetime_s))


def _segment(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def lifetime_s(text: str, expires_in: object, clock: Clock) -> float | None:
    """Lifetime of a new token in seconds: the shorter of the issuer's `expires_in` and the token's own claims."""
    claims = _claims(text)
    end_s, begin_s, said_s = _number(claims.get("exp")), _number(claims.get("iat")), _number(expires_in)
    if end_s is not None:
        # Both claims are by the issuer's clock. Without the second, use ours.
        own_s = end_s - (clock.now_ms() / 1000 if begin_s is None else begin_s)
        return own_s if said_s is None else min(own_s, said_s)
    return said_s


def remaining_s(text: str, clock: Clock) -> float | None:
    """Remaining lifetime of a token in seconds by the clock of this machine; None if it has no expiry."""
    end_s = _number(_claims(text).get("exp"))
    return None if end_s is None else end_s - clock.now_ms() / 1000


def _number(value: object) -> float | None:
    """A number of seconds, also as text, as some issuers write it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _claims(text: str) -> dict[str, object]:
    """Claims of a JSON Web Token, unverified: the broker verifies it. Empty for any other token."""
    parts = text.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


# Ask a token endpoint once: a secret or an assertion in, a bearer token out (RFC 6749, 4.4 and 5; RFC 7523).
#
# The proof of identity goes only to the configured address: redirects are not followed and proxies not used. The
# whole request ends by its deadline, however slowly the answer drips. Of the endpoint's text only the error of
# section 5.2 is shown, without a secret that it may repeat.

_MOST_BYTES = 1 << 20
_SHOWN = 200
# Refusals with these codes may be temporary; others are final (as in Kafka's own client).
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_BY_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class EndpointClient:
    """Asks one endpoint, with a new connection each time."""

    def __init__(self, endpoint: TokenEndpoint, clock: Clock) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._parts = urlsplit(endpoint.url)
        self._tls = tls_context(endpoint.tls) if self._parts.scheme == "https" else None
        if is_readable(self._parts):
            log.warning("%s is asked without TLS: %s can be read on the way; use https", endpoint, endpoint.grant)

    def fetch(self, timeout_s: float) -> Token:
        """Fetch a new token. Raises NoToken if the endpoint is down, slow or failing, Unauthenticated if it refuses."""
        timeout_s = min(timeout_s, self._endpoint.timeout_ms / 1000)
        if timeout_s <= 0:
            raise LateToken(f"no time is left to ask {self._endpoint}")
        proof = _proof(self._endpoint, self._clock)
        status, content = self._posted(timeout_s, proof)
        return self._read(status, content, proof)

    # --- asking ---------------------------------------------------------------------------------------------------

    def _posted(self, timeout_s: float, proof: Secret) -> tuple[int, bytes]:
        connection = self._connection(timeout_s)
        # Socket timeouts restart with each byte; this one does not.
        late = threading.Event()
        opened: list[socket.socket] = []
        watch = threading.Timer(timeout_s, _shut, (opened, late))
        watch.daemon = True
        watch.start()
        try:
            connection.connect()
            # Kept, since the connection drops its socket if the answer is the last on it.
            opened.append(connection.sock)
            if late.is_set():
                raise TimeoutError  # The timer fired before there was a socket to shut down.
            connection.request("POST", self._path, self._body(proof), self._headers(proof))
            with connection.getresponse() as answer:
                content = answer.read(_MOST_BYTES + 1)
                is_cut = len(content) <= _MOST_BYTES and bool(answer.length)
        except ssl.SSLCertVerificationError as error:
            raise Unauthenticated(f"SASL OAUTHBEARER: {distrust(self._endpoint, error)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            # A TLS socket raises ValueError when it is read while being shut down.
            raise self._away(error, timeout_s, is_late=late.is_set()) from None
        finally:
            watch.cancel()
            connection.close()
        if is_cut or late.is_set():
            raise self._away(http.client.IncompleteRead(b""), timeout_s, is_late=late.is_set())
        return answer.status, content

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        # Given a port, http.client does not search the digits of an IPv6 address for one.
        port = self._parts.port or (http.client.HTTP_PORT if self._tls is None else http.client.HTTPS_PORT)
        host = self._parts.hostname or ""
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)

    def _away(self, error: Exception, timeout_s: float, *, is_late: bool) -> NoToken:
        kind = NoToken
        if is_late or isinstance(error, TimeoutError):
            kind, why = LateToken, f"it did not answer within {timeout_s:.1f} s"
        elif isinstance(error, socket.gaierror):
            why = "its host name does not resolve"
        elif isinstance(error, http.client.HTTPException):
            why = "it does not speak HTTP, or ended in the middle of its answer"
        else:
            why = machine_reason(error) if isinstance(error, OSError) else type(error).__name__.lower()
        return kind(
            f"no token for SASL OAUTHBEARER from {self._endpoint}: {why}. Check that it is up, and "
            "sasl.oauthbearer.token.endpoint.url"
        )

    @property
    def _path(self) -> str:
        query = f"?{self._parts.query}" if self._parts.query else ""
        return f"{self._parts.path or '/'}{query}"

    def _body(self, proof: Secret) -> bytes:
        scope = {"scope": self._endpoint.scope} if self._endpoint.scope else {}
        return urlencode({**self._granted(proof.reveal()), **scope}).encode()

    def _granted(self, proof: str) -> Mapping[str, str]:
        grant = self._endpoint.grant
        if isinstance(grant, ClientSecret):
            return {"grant_type": "client_credentials"}
        if isinstance(grant, ClientAssertion):
            named = {"client_id": grant.client_id} if grant.client_id else {}
            proven = {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": proof}
            return {**proven, "grant_type": "client_credentials", **named}
        return {"grant_type": _BY_ASSERTION, "assertion": proof}

    def _headers(self, proof: Secret) -> Mapping[str, str]:
        is_secret = isinstance(self._endpoint.grant, ClientSecret)
        return {
            "Accept": "application/json",
            **({"Authorization": f"Basic {proof.reveal()}"} if is_secret else {}),
            "Cache-Control": "no-cache",
            "Connection": "close",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    # --- the answer -----------------------------------------------------------------------------------------------

    def _read(self, status: int, content: bytes, proof: Secret) -> Token:
        answer = _json_object(content)
        if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise self._refusal(status, answer, proof)
        if len(content) > _MOST_BYTES:
            raise Unauthenticated(
                f"SASL OAUTHBEARER: {self._endpoint} answered with more than {_MOST_BYTES} bytes: is this its address?"
            )
        if answer is None:
            kind = "an HTML page" if content.lstrip()[:1] == b"<" else "no JSON"
            raise Unauthenticated(
                f"SASL OAUTHBEARER: {self._endpoint} answered with {kind} in place of a token. Check whether a proxy "
                "stands between, and sasl.oauthbearer.token.endpoint.url"
            )
        text = answer.get("access_token") or answer.get("id_token")
        if not isinstance(text, str):
            raise Unauthenticated(
                f"SASL OAUTHBEARER: {self._endpoint} answered without an access_token. Is this its address?"
            )
        return Token.checked(text, self._endpoint, lifetime_s(text, answer.get("expires_in"), self._clock))

    def _refusal(self, status: int, answer: Mapping[str, object] | None, proof: Secret) -> Unauthenticated | NoToken:
        said = f"{self._endpoint} answered {status}{self._explained(answer, proof)}"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING:
            return NoToken(f"no token for SASL OAUTHBEARER: {said}. It may be over soon; look at that server")
        if status < HTTPStatus.BAD_REQUEST:
            return Unauthenticated(
                f"SASL OAUTHBEARER: {said}: it redirects, and a secret is not sent elsewhere. Set "
                "sasl.oauthbearer.token.endpoint.url to where tokens are issued"
            )
        is_secret = isinstance(self._endpoint.grant, ClientSecret)
        what = (
            "clientId, clientSecret and scope in sasl.jaas.config"
            if is_secret
            else (
                "the key, iss, sub and aud of the assertion (sasl.oauthbearer.assertion.…), the clock of this machine"
            )
        )
        return Unauthenticated(f"SASL OAUTHBEARER: {said}. Check {what}, and the address")

    def _explained(self, answer: Mapping[str, object] | None, proof: Secret) -> str:
        """The error of RFC 6749, section 5.2, without a secret that it may repeat."""
        named = answer or {}
        texts = [
            named.get("error") or named.get("errorCode"),
            named.get("error_description") or named.get("errorSummary"),
        ]
        text = ": ".join(text for text in texts if isinstance(text, str))
        grant = self._endpoint.grant
        secrets = [proof.reveal()]
        if isinstance(grant, ClientSecret):
            secrets += [grant.secret.reveal(), quote_plus(grant.secret.reveal())]
        for shape in secrets:
            text = text.replace(shape, "[hidden]") if shape else text
        return f" ({printable(text[:_SHOWN])})" if text else ""


def _proof(endpoint: TokenEndpoint, clock: Clock) -> Secret:
    """The client's proof of identity: id and secret for HTTP Basic (RFC 7617), or an assertion."""
    grant = endpoint.grant
    if not isinstance(grant, ClientSecret):
        return assertion(grant.assertion, clock)
    who = (grant.client_id, grant.secret.reveal())
    if grant.is_url_encoded:
        who = (quote_plus(who[0]), quote_plus(who[1]))
    return Secret(base64.b64encode(":".join(who).encode()).decode())


def _json_object(content: bytes) -> Mapping[str, object] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _shut(opened: Sequence[socket.socket], late: threading.Event) -> None:
    late.set()
    for one in opened:
        with suppress(OSError):  # The connection may have ended just now.
            one.shutdown(socket.SHUT_RDWR)
