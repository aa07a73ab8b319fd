"""An issuer of signed tokens: what a broker checks them by, and the tokens themselves (RFC 7515, 7517 and 7519)."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER, AUDIENCE, SCOPE = "https://issuer.example", "kafka", "admin"
_KEY_BITS, _EXPONENT = 2048, 65537


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(_EXPONENT, _KEY_BITS)


@dataclass(frozen=True, slots=True)
class Issuer:
    """Signs tokens with a key of its own."""

    key: rsa.RSAPrivateKey = field(default_factory=_new_key)

    def write_keys(self, path: Path) -> None:
        """Write the public key as brokers read it, a JSON Web Key Set."""
        public = self.key.public_key().public_numbers()
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": _number(public.n), "e": _number(public.e)}
        path.write_text(json.dumps({"keys": [key]}))

    def token(self, subject: str = "admin", *, lifetime_s: float = 300, **claims: object) -> str:
        """A token that the brokers of the testbed accept, unless claims say otherwise."""
        now_s = time.time()
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "scope": SCOPE, "iat": now_s, "exp": now_s + lifetime_s}
        signed = f"{_segment({'alg': 'RS256', 'kid': 'one'})}.{_segment(said | claims)}"
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"


def _segment(content: object) -> str:
    return _encoded(json.dumps(content).encode())


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
