"""Assertions: signed claims of a client for a token endpoint, in place of a secret (RFC 7521, 7523).

Made as Kafka's own client makes them (KIP-1139): claims of the properties, then those of a template, then times and
algorithm; later ones win. Or read from a file that another program signs and renews. Files are read again at each
request. An ECDSA signature is two numbers side by side (RFC 7518, section 3.4).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key

from kreassign.admin.settings import AssertionFile, Secret, SignedAssertion
from kreassign.clock import Clock
from kreassign.errors import Unauthenticated

_KEYS = "sasl.oauthbearer.assertion."
_SPELT = re.compile(r"[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+")
_ES256_BYTES = 32


def assertion(source: AssertionFile | SignedAssertion, clock: Clock) -> Secret:
    """Return an assertion for one request. Raises Unauthenticated, which names the file, if none can be made."""
    return _read(source) if isinstance(source, AssertionFile) else _signed(source, clock)


def _read(source: AssertionFile) -> Secret:
    text = _content(source.path, f"{_KEYS}file").strip()
    if not _SPELT.fullmatch(text.decode("latin-1")):
        raise Unauthenticated(
            f"SASL OAUTHBEARER: {_KEYS}file={source.path} holds no assertion: it is not three parts of a JSON Web Token"
        )
    return Secret(text.decode())


def _signed(source: SignedAssertion, clock: Clock) -> Secret:
    header, claims = _template(source.template_file) if source.template_file else ({}, {})
    now_s = clock.now_ms() // 1000
    identity = {"jti": str(uuid.uuid4())} if source.has_id else {}
    times = {"iat": now_s, "exp": now_s + source.valid_s, "nbf": now_s - source.valid_before_s}
    content = ".".join((
        _segment(json.dumps({**header, "alg": source.algorithm, "typ": "JWT"})),
        _segment(json.dumps({**dict(source.claims), **claims, **times, **identity})),
    ))  # fmt: skip
    return Secret(f"{content}.{_segment(_signature(source, content.encode()))}")


def _segment(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _template(path: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Header and claims of a template; either may be empty."""
    try:
        found = json.loads(_content(path, f"{_KEYS}template.file"))
        parts = [found.get(name, {}) for name in ("header", "payload")]
    except (ValueError, RecursionError, AttributeError):
        parts = []
    if not parts or not all(isinstance(part, dict) for part in parts):
        raise Unauthenticated(
            f"SASL OAUTHBEARER: {_KEYS}template.file={path} is no template: write a JSON object with objects "
            '"header" and "payload", either may be missing'
        )
    return parts[0], parts[1]


def _signature(source: SignedAssertion, content: bytes) -> bytes:
    key = _key(source)
    if source.algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), SHA256())
    if source.algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1":
        numbers = decode_dss_signature(key.sign(content, ec.ECDSA(SHA256())))
        return b"".join(number.to_bytes(_ES256_BYTES, "big") for number in numbers)
    wanted = "an RSA key" if source.algorithm == "RS256" else "a key of the curve P-256"
    raise Unauthenticated(
        f"SASL OAUTHBEARER: {_KEYS}algorithm={source.algorithm} needs {wanted}, and {_KEYS}private.key.file="
        f"{source.key_file} is another one"
    )


def _key(source: SignedAssertion) -> PrivateKeyTypes:
    """The private key: PKCS#8 as PEM, as DER, or as the base64 of DER that Java takes too."""
    content = _content(source.key_file, f"{_KEYS}private.key.file")
    password = None if source.passphrase is None else source.passphrase.reveal().encode()
    try:
        # What looks like white space at the end of DER is part of the key.
        if content.lstrip().startswith(b"-----BEGIN"):
            return load_pem_private_key(content.strip(), password)
        is_text = not set(content) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \t\r\n")
        return load_der_private_key(base64.b64decode(content) if is_text else content, password)
    except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
        # The library's error about unreadable bytes may show them.
        passphrase = "the passphrase fits" if password else "no passphrase is needed"
        raise Unauthenticated(
            f"SASL OAUTHBEARER: {_KEYS}private.key.file={source.key_file} cannot be read: check that it is a private "
            f"key in PKCS#8 form, and that {passphrase} ({_KEYS}private.key.passphrase)"
        ) from None


def _content(path: str, key: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Unauthenticated(f"SASL OAUTHBEARER: {key}={path} cannot be read: {error.strerror}") from None
