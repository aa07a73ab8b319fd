"""Bearer tokens of one client: fetched once for all its connections, renewed before they end.

- How long a token lasts is measured on the monotonic clock from before it was asked for, so that a wall clock that
  jumps, or differs from the issuer's, ends none early and keeps none for too long.
- After `refresh_factor` of its lifetime a token is renewed by the next login. While the issuer does not give a new
  one, the old one is used to its end: an issuer that is away for a while stops no run.
- A token that a broker refuses is dropped, and another one fetched, once: the issuer may have withdrawn it, and a
  machine that slept did not see it end.
- An issuer that is away or slow is `NoToken`, which is `Unreachable`: nothing was sent to a broker, and it is asked
  again until the deadline. One that says no is `Unauthenticated`, at once.
- A token and a secret appear in no message.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from kreassign.admin.settings import OAuth, Secret, TokenFile, UnsecuredToken
from kreassign.clock import Clock
from kreassign.errors import ClusterError, Unauthenticated, Unreachable

log = logging.getLogger(__name__)

# While the issuer fails, and the last token is still good, it is left alone for so long.
_PAUSE_S = 10.0
# A renewal that can wait keeps no login waiting for longer.
_SHORT_S = 3.0
_MOMENT_S = 1.0
# What Kafka takes as a bearer token (RFC 6750, section 2.1).
_SPELT = re.compile(r"[-_~+/.A-Za-z0-9]+=*")


class NoToken(Unreachable):
    """No token can be had now, so that no broker was asked; it may be tried again."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, and for how many seconds from its request on it lasts; None if nobody says."""

    text: Secret
    lifetime_s: float | None = None

    @classmethod
    def checked(cls, text: str, who: object, lifetime_s: float | None) -> Token:
        """A token that `who` gave. Unauthenticated if it is none, or has ended already; it is not shown."""
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
    """The issuer did not answer in the time that was left."""


Fetch = Callable[[float], Token]
"""Gets a new token within so many seconds. Raises NoToken or Unauthenticated."""


class TokenSource:
    """The token of a client. Safe for use by several threads: one of them fetches.

    The others wait for it only while there is no token that lasts.
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
        """The token to log in with now. NoToken or Unauthenticated if there is none."""
        if (token := self._unless_due()) is not None:
            return token
        lasting = self._while_it_lasts()
        if not self._fetching.acquire(timeout=0.0 if lasting else max(0.0, timeout_s)):
            if lasting is None:
                raise NoToken(f"another login still waits for {self._settings.tokens}")
            return lasting
        try:
            # Another login may have fetched it just now.
            return self._unless_due() or self._renewed(timeout_s)
        finally:
            self._fetching.release()

    def accepted(self, token: Token) -> None:
        """A broker took this token."""
        with self._state:
            if self._held is not None and self._held.token is token:
                self._held = replace(self._held, is_accepted=True)

    def refused(self, token: Token) -> bool:
        """A broker refused this token. Whether the next login gets another that may fare better.

        A token that was good once, a while ago, may have been withdrawn. A new one that is refused is refused for good.
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
        """What to tell of a failure: the last moment of a call says nothing of an issuer; what it said before does."""
        with self._state:
            if self._trouble is not None and isinstance(error, LateToken) and timeout_s < _MOMENT_S:
                return self._trouble
            self._trouble = error if isinstance(error, NoToken) else None
        return error

    def _unless_due(self) -> Token | None:
        """The token, unless it is to be renewed; also while its issuer is left alone."""
        with self._state:
            held = self._held
        # Of a token whose end is unknown the issuer knows more: it is asked at each login.
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
    """A token since its request, whether a broker took it, and when its renewal last failed."""

    token: Token
    fetched_s: float
    is_accepted: bool = False
    failed_s: float | None = None


def from_file(file: TokenFile, clock: Clock) -> Token:
    """The token that a file holds now. Unauthenticated if it is missing, no text or has expired."""
    try:
        text = Path(file.path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise Unauthenticated(f"SASL OAUTHBEARER: {file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Unauthenticated(f"SASL OAUTHBEARER: {file} holds no bearer token: it is not ASCII text") from None
    lifetime_s = remaining_s(text, clock)
    if lifetime_s is not None and lifetime_s <= 0:
        # Whose clock is right the broker decides; but most often nobody has renewed the file.
        log.warning("%s expired %.0f s ago by the clock of this machine; have it renewed", file, -lifetime_s)
    return Token.checked(text, file, None)


def unsecured(source: UnsecuredToken, clock: Clock) -> Token:
    """An unsigned token as Kafka's own client makes it for tests (`OAuthBearerUnsecuredLoginCallbackHandler`)."""
    now_s = clock.now_ms() / 1000
    claims = {"exp": now_s + source.lifetime_s, "iat": now_s, **dict(source.claims)}
    return Token(Secret(f"{_segment({'alg': 'none'})}.{_segment(claims)}."), float(source.lifetime_s))


def _segment(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def lifetime_s(text: str, expires_in: object, clock: Clock) -> float | None:
    """For how long a token that was just issued lasts: what its issuer says of it, and what it says itself."""
    claims = _claims(text)
    end_s, begin_s, said_s = _number(claims.get("exp")), _number(claims.get("iat")), _number(expires_in)
    if end_s is not None:
        # Both are of the issuer's clock. Without the second, ours has to do.
        own_s = end_s - (clock.now_ms() / 1000 if begin_s is None else begin_s)
        return own_s if said_s is None else min(own_s, said_s)
    return said_s


def remaining_s(text: str, clock: Clock) -> float | None:
    """How long a token still lasts by the clock of this machine; None if it does not say."""
    end_s = _number(_claims(text).get("exp"))
    return None if end_s is None else end_s - clock.now_ms() / 1000


def _number(value: object) -> float | None:
    """A number of seconds; also as text, as some issuers write it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _claims(text: str) -> dict[str, object]:
    """What a JSON Web Token says, unchecked: that is for the broker. Empty for any other token."""
    parts = text.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
