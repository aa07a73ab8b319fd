"""One request to a token endpoint: a secret or an assertion in, bearer token out (RFC 6749, 4.4 and 5; RFC 7523).

What proves who we are goes to the address that is configured and nowhere else: no redirection is followed and no proxy
asked. The whole request ends by its deadline, however the answer drips. What an endpoint says is shown only as far as
it is the error of section 5.2, and never a secret that it repeats.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import quote_plus, urlencode, urlsplit

from kreassign.admin.assertions import assertion
from kreassign.admin.settings import ClientAssertion, ClientSecret, Secret, TokenEndpoint
from kreassign.admin.tls import distrust, tls_context
from kreassign.admin.tokens import LateToken, NoToken, Token, lifetime_s
from kreassign.clock import Clock
from kreassign.errors import Unauthenticated
from kreassign.model.printable import printable

log = logging.getLogger(__name__)

_MOST_BYTES = 1 << 20
_SHOWN = 200
# A refusal by one of these may be over soon; by any other it is final (as in Kafka's own client).
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_LOCAL = ("localhost", "127.0.0.1", "::1")
_BY_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class EndpointClient:
    """Asks one endpoint, with a new connection each time."""

    def __init__(self, endpoint: TokenEndpoint, clock: Clock) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._parts = urlsplit(endpoint.url)
        self._tls = tls_context(endpoint.tls) if self._parts.scheme == "https" else None
        if self._tls is None and self._parts.hostname not in _LOCAL:
            log.warning("%s is asked without TLS: %s can be read on the way; use https", endpoint, endpoint.grant)

    def fetch(self, timeout_s: float) -> Token:
        """A new token. NoToken if the endpoint is away, slow or in trouble; Unauthenticated if it says no."""
        timeout_s = min(timeout_s, self._endpoint.timeout_ms / 1000)
        if timeout_s <= 0:
            raise LateToken(f"no time is left to ask {self._endpoint}")
        proof = _proof(self._endpoint, self._clock)
        status, content = self._posted(timeout_s, proof)
        return self._read(status, content, proof)

    # --- asking ---------------------------------------------------------------------------------------------------

    def _posted(self, timeout_s: float, proof: Secret) -> tuple[int, bytes]:
        connection = self._connection(timeout_s)
        # Time-outs of sockets start again with each byte; this one does not.
        late = threading.Event()
        opened: list[socket.socket] = []
        watch = threading.Timer(timeout_s, _shut, (opened, late))
        watch.daemon = True
        watch.start()
        try:
            connection.connect()
            # Kept, since the connection forgets its socket where the answer is the last on it.
            opened.append(connection.sock)
            if late.is_set():
                raise TimeoutError  # The watch found nothing to shut yet.
            connection.request("POST", self._path, self._body(proof), self._headers(proof))
            with connection.getresponse() as answer:
                content = answer.read(_MOST_BYTES + 1)
                is_cut = len(content) <= _MOST_BYTES and bool(answer.length)
        except ssl.SSLCertVerificationError as error:
            raise Unauthenticated(f"SASL OAUTHBEARER: {distrust(self._endpoint, error)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError is what a TLS socket makes of being read while it is shut down.
            raise self._away(error, timeout_s, is_late=late.is_set()) from None
        finally:
            watch.cancel()
            connection.close()
        if is_cut or late.is_set():
            raise self._away(http.client.IncompleteRead(b""), timeout_s, is_late=late.is_set())
        return answer.status, content

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        # With a port, http.client does not look for one in the digits of an IPv6 address.
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
            why = (getattr(error, "strerror", None) or type(error).__name__).lower()
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
    """What proves to the endpoint who we are: id and secret as HTTP wants them (RFC 7617), or an assertion."""
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
        with suppress(OSError):  # It may have ended just now.
            one.shutdown(socket.SHUT_RDWR)
