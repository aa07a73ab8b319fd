"""Log in by SASL (KIP-152) on an open connection; compute the principal that brokers see.

The only module that imports kafka.net, for its password mechanisms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Protocol

from kreassign.admin.settings import (
    Address,
    ClientSettings,
    Credentials,
    Kerberos,
    MskIam,
    OAuth,
    Sasl,
    SecurityProtocol,
    Tls,
    TokenEndpoint,
    TokenFile,
    UnsecuredToken,
)
from kreassign.admin.tokens import EndpointClient, Fetch, Token, TokenSource, token_from_file, unsecured_token
from kreassign.clock import Clock
from kreassign.errors import OutcomeUnknown, Unauthenticated, Unreachable, requires
from kreassign.model.error_codes import NONE, UNSUPPORTED_SASL_MECHANISM, error_code
from kreassign.model.text import printable
from kreassign.wire import api
from kreassign.wire.codec import decode_response, encode_request

LEAST_ITERATIONS = 4096
"""Kafka's own clients require this of both SCRAM mechanisms (ScramMechanism.java), after RFC 7677, section 4."""

Exchange = Callable[[bytes, float], bytes]
"""Sends a frame and returns the payload of the answer, with a timeout in seconds."""


class Mechanism(Protocol):
    """One login: makes messages and processes answers; raises ValueError or KeyError for a malformed answer."""

    def auth_bytes(self) -> bytes:
        """The next message to the broker."""

    def receive(self, auth_bytes: bytes) -> object:
        """Process the broker's answer."""

    def is_done(self) -> bool:
        """True when no more messages are to be sent."""

    def is_authenticated(self) -> bool:
        """True when both sides have authenticated each other."""


class Login:
    """Logs in the connections of one client. Safe for use by several threads."""

    def __init__(self, credentials: Credentials, settings: ClientSettings, clock: Clock) -> None:
        self._credentials = credentials
        self._client_id = settings.client_id
        self._tokens: TokenSource | None = None
        if isinstance(credentials, OAuth):
            fetch = _fetch(credentials, settings.bootstrap[0].host, clock)
            self._tokens = TokenSource(credentials, fetch, clock)
        elif isinstance(credentials, Kerberos):
            _kerberos()  # Fail on a missing extra before connecting.

    def log_in(self, exchange: Exchange, address: Address, timeout_s: float) -> float | None:
        """SaslHandshake, then as many SaslAuthenticate rounds as the mechanism needs, of `timeout_s` seconds each.

        Returns how many seconds the broker accepts requests without another login (KIP-368); None for no limit.
        Raises Unauthenticated, or Unreachable when an answer is missing: a login changes nothing on the broker.
        """
        mechanism = self._credentials.mechanism
        if self._tokens is None:
            return _log_in(exchange, mechanism, self._mechanism(address), self._who, self._client_id, timeout_s)
        assert isinstance(self._credentials, OAuth)
        token = self._tokens.get(timeout_s)
        bearer = _Bearer(token, self._credentials)
        try:
            lifetime_s = _log_in(exchange, mechanism, bearer, self._who, self._client_id, timeout_s)
        except Unauthenticated as error:
            if self._tokens.refused(token):
                raise Unreachable(f"{address} takes a token no more, so that another is fetched: {error}") from None
            raise Unauthenticated(f"{error}{bearer.advice}") from None
        self._tokens.accepted(token)
        return lifetime_s

    @property
    def _who(self) -> str:
        match self._credentials:
            case OAuth(tokens=tokens):
                return f"with {tokens}"
            case Kerberos(principal=None):
                return "with the tickets of kinit"
            case Kerberos(principal=principal):
                return f"as {principal}"
            case Sasl(username=username):
                return f"as {username}"

    def _mechanism(self, address: Address) -> Mechanism:
        credentials = self._credentials
        if isinstance(credentials, Kerberos):
            return _kerberos()(credentials, address.host)
        assert isinstance(credentials, Sasl)
        return _Password(credentials)


def _fetch(oauth: OAuth, host: str, clock: Clock) -> Fetch:
    tokens = oauth.tokens
    match tokens:
        case TokenEndpoint():
            return EndpointClient(tokens, clock).fetch
        case TokenFile():
            return lambda _timeout_s: token_from_file(tokens, clock)
        case MskIam():
            with requires("a login at Amazon MSK", "AWS's signer", "msk"):
                from kreassign.admin.msk import signed_tokens
            return signed_tokens(tokens, host, clock)
        case _:
            return lambda _timeout_s: unsecured_token(tokens, clock)


def _kerberos() -> Callable[[Kerberos, str], Mechanism]:
    with requires("sasl.mechanism=GSSAPI", "python-gssapi", "kerberos"):
        from kreassign.admin.kerberos import Gssapi
    return Gssapi


def _log_in(
    exchange: Exchange, name: str, mechanism: Mechanism, who: str, client_id: str, timeout_s: float
) -> float | None:
    def ask(asked: api.Api, request: api.Message) -> api.Message:
        return _ask(exchange, asked, request, client_id, timeout_s)

    _agree_on(name, ask(api.SASL_HANDSHAKE, api.SASL_HANDSHAKE.request(mechanism=name)))
    lifetime_ms = 0
    while not mechanism.is_done():
        answer = ask(api.SASL_AUTHENTICATE, api.SASL_AUTHENTICATE.request(auth_bytes=mechanism.auth_bytes()))
        if answer.error_code != NONE:
            reason = answer.error_message or error_code(answer.error_code).text
            raise Unauthenticated(f"SASL {name} {who} was refused: {reason}")
        try:
            mechanism.receive(answer.auth_bytes)
        except (ValueError, KeyError) as error:
            raise Unauthenticated(f"SASL {name} {who} failed: {error}") from None
        lifetime_ms = answer.session_lifetime_ms
    if not mechanism.is_authenticated():
        raise Unauthenticated(f"SASL {name} {who} was refused")
    return lifetime_ms / 1000 if lifetime_ms > 0 else None


def _agree_on(mechanism: str, answer: api.Message) -> None:
    if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
        raise Unauthenticated(
            f"the broker does not accept SASL mechanism {mechanism}; it offers {', '.join(answer.mechanisms)}"
        )
    if answer.error_code != NONE:
        reason = error_code(answer.error_code).text
        raise Unauthenticated(f"the broker refused SASL: {reason} Check that security.protocol fits the listener")


class _Password:
    """PLAIN and SCRAM by kafka.net."""

    def __init__(self, sasl: Sasl) -> None:
        from kafka.net.sasl import get_sasl_mechanism

        self._name = sasl.mechanism
        self._is_scram = sasl.mechanism.startswith("SCRAM")
        self._mechanism: Mechanism = get_sasl_mechanism(sasl.mechanism)(
            sasl_mechanism=sasl.mechanism,
            sasl_plain_username=_name_in_scram(sasl.username) if self._is_scram else sasl.username,
            sasl_plain_password=sasl.password.reveal(),
        )
        self.auth_bytes = self._mechanism.auth_bytes
        self.is_done = self._mechanism.is_done
        self.is_authenticated = self._mechanism.is_authenticated

    def receive(self, auth_bytes: bytes) -> object:
        if self._is_scram:
            _refuse_weak_proof(self._name, auth_bytes)
        return self._mechanism.receive(auth_bytes)


def _refuse_weak_proof(mechanism: str, answer: bytes) -> None:
    """Refuse few iterations before sending a proof: a false broker could find the password from it by brute force."""
    try:
        # Parsed as kafka.net does it, which refuses malformed answers by itself.
        iterations = int(dict(pair.split("=", 1) for pair in bytes(answer).decode().split(","))["i"])
    except (ValueError, KeyError):
        return
    if iterations < LEAST_ITERATIONS:
        raise Unauthenticated(
            f"{mechanism}: the broker requested {iterations} iterations, fewer than the minimum of "
            f"{LEAST_ITERATIONS}; no proof of the password was sent. If it is your broker, set the user's password "
            f"again: kafka-configs --alter --add-config '{mechanism}=[iterations={LEAST_ITERATIONS},password=...]'"
        )


def _name_in_scram(username: str) -> str:
    """Escape commas and equal signs, which separate fields in RFC 5802."""
    return username.replace("=", "=3D").replace(",", "=2C")


class _Bearer:
    """OAUTHBEARER (RFC 7628): a token with extensions; after a refusal is acknowledged, the broker repeats it."""

    def __init__(self, token: Token, oauth: OAuth) -> None:
        self._token = token
        self._extensions = oauth.extensions
        self._refusal: dict[str, object] | None = None
        self._is_done = False

    def auth_bytes(self) -> bytes:
        if self._refusal is not None:
            return b"\x01"
        pairs = (("auth", f"Bearer {self._token.text.reveal()}"), *self._extensions)
        return "n,,\x01{}\x01\x01".format("\x01".join(f"{name}={value}" for name, value in pairs)).encode()

    def receive(self, auth_bytes: bytes) -> object:
        # No later answer turns a refusal into success.
        self._is_done = self._refusal is not None or not auth_bytes
        if not self._is_done:
            refusal = json.loads(bytes(auth_bytes))
            self._refusal = refusal if isinstance(refusal, dict) else {}
        return None

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_done and self._refusal is None

    @property
    def advice(self) -> str:
        """Advice for a refusal; the broker names the scope that it wants."""
        scope = (self._refusal or {}).get("scope")
        if isinstance(scope, str) and scope:
            # Kafka writes the scope like a Java list.
            wanted = printable(scope[:80].strip("[]").replace(", ", " "))
            return f". The broker wants a token of the scope {wanted}: set scope in sasl.jaas.config"
        return ". Have the issuer, audience and expiry of the token compared with what the brokers expect"


def _ask(exchange: Exchange, asked: api.Api, request: api.Message, client_id: str, timeout_s: float) -> api.Message:
    # Both versions 1 exist since Kafka 1.0 and 2.2; ApiVersions cannot be asked before authentication.
    frame = encode_request(1, request, correlation_id=0, client_id=client_id)
    try:
        return decode_response(asked, 1, exchange(frame, timeout_s), correlation_id=0)
    except OutcomeUnknown as error:
        raise Unreachable(str(error)) from error


# Compute a client's principal by Kafka's own rules (`DefaultKafkaPrincipalBuilder`).
#
# Brokers may have rules of their own (principal.builder.class, ssl.principal.mapping.rules,
# sasl.kerberos.principal.to.local.rules); no client can know those.

ANONYMOUS = "User:ANONYMOUS"


def principal_of(settings: ClientSettings) -> str | None:
    """`User:name`; None if only the brokers know it, such as the subject of a fetched token."""
    if settings.security_protocol is SecurityProtocol.SSL:
        return _certificate_principal(settings.tls)
    if not settings.security_protocol.uses_sasl:
        return ANONYMOUS
    match settings.sasl:
        case Sasl(username=name):
            return f"User:{name}"
        case Kerberos(principal=str(principal)):
            return f"User:{re.split('[/@]', principal)[0]}"
        case OAuth(tokens=UnsecuredToken(claims=claims)):
            subject = dict(claims).get("sub")
            return f"User:{subject}" if subject else None
        case _:
            return None


def _certificate_principal(tls: Tls) -> str | None:
    """The subject of the client certificate, as Java writes it (RFC 2253); ANONYMOUS without a key store."""
    if tls.certificate_chain is None:
        return ANONYMOUS
    from kreassign.admin.java_stores import subject_of

    try:
        return f"User:{subject_of(tls.certificate_chain)}"
    except ValueError:
        return None
