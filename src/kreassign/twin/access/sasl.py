"""The broker's side of SASL/PLAIN (RFC 4616), without the messages around it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

MECHANISM = "PLAIN"


class Verdict(NamedTuple):
    """The authenticated user, or Kafka's message for a client that failed; exactly one of the two."""

    user: str | None
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Users:
    """User names with their passwords. Passwords do not show when this is printed."""

    passwords: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Users({sorted(self.passwords)})"

    def judge(self, token: bytes) -> Verdict:
        """Check a PLAIN token: identity, name and password, separated by zeros."""
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            return Verdict(None, f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        identity, name, password = parts
        refusal = self._refusal(identity, name, password)
        return Verdict(None if refusal else name, refusal)

    def _refusal(self, identity: str, name: str, password: str) -> str | None:
        if not name:
            return "Authentication failed: username not specified"
        if not password:
            return "Authentication failed: password not specified"
        known = self.passwords.get(name)
        if known is None or not hmac.compare_digest(known.encode(), password.encode()):
            return "Authentication failed: Invalid username or password"
        if identity not in {"", name}:
            return "Authentication failed: Client requested an authorization id that is different from username"
        return None
