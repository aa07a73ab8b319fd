"""Assertions as Kafka's own client makes them (KIP-1139): what they say, and that their signatures hold."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from kreassign.admin.assertions import assertion
from kreassign.admin.settings import AssertionFile, Secret, SignedAssertion
from kreassign.clock import VirtualClock
from kreassign.errors import Unauthenticated

NOW_S = 1_800_000_000
CLOCK = VirtualClock(NOW_S * 1000)
CLAIMS = (("iss", "us"), ("sub", "alice"), ("aud", "issuer"))
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
PEM, DER, PKCS8 = Encoding.PEM, Encoding.DER, PrivateFormat.PKCS8
LOCKED = BestAvailableEncryption(b"pa55-key")
PASSPHRASE = Secret("pa55-key")


def kept(folder: Path, content: bytes) -> str:
    (folder / "key").write_bytes(content)
    return str(folder / "key")


def read(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def said(text: Secret) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, _ = text.reveal().split(".")
    return json.loads(read(header)), json.loads(read(claims))


def refusal(source: AssertionFile | SignedAssertion) -> str:
    with pytest.raises(Unauthenticated) as refused:
        assertion(source, CLOCK)
    assert "pa55" not in f"{refused.value} {refused.value!r}"
    return str(refused.value)


def test_an_assertion_says_who_signs_it_and_for_how_long_it_holds(tmp_path: Path) -> None:
    key = kept(tmp_path, RSA_KEY.private_bytes(PEM, PKCS8, NoEncryption()))
    text = assertion(SignedAssertion(key, CLAIMS), CLOCK)
    header, claims = said(text)
    assert header == {"alg": "RS256", "typ": "JWT"}
    assert claims == {**dict(CLAIMS), "iat": NOW_S, "exp": NOW_S + 300, "nbf": NOW_S - 60}
    content, _, signature = text.reveal().rpartition(".")
    RSA_KEY.public_key().verify(read(signature), content.encode(), padding.PKCS1v15(), SHA256())


def test_an_elliptic_signature_is_two_numbers_side_by_side(tmp_path: Path) -> None:
    key = kept(tmp_path, EC_KEY.private_bytes(PEM, PKCS8, LOCKED))
    text = assertion(SignedAssertion(key, CLAIMS, "ES256", PASSPHRASE), CLOCK).reveal()
    content, _, signature = text.rpartition(".")
    raw = read(signature)
    assert len(raw) == 64
    numbers = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    EC_KEY.public_key().verify(encode_dss_signature(*numbers), content.encode(), ec.ECDSA(SHA256()))


@pytest.mark.parametrize(("form", "lock"), [("der", NoEncryption()), ("der", LOCKED), ("base64", NoEncryption())])
def test_a_key_may_be_in_any_form_that_java_takes(form: str, lock: Any, tmp_path: Path) -> None:
    content = RSA_KEY.private_bytes(DER, PKCS8, lock)
    key = kept(tmp_path, base64.encodebytes(content) if form == "base64" else content)
    assert assertion(SignedAssertion(key, passphrase=PASSPHRASE if lock is LOCKED else None), CLOCK)


@pytest.mark.parametrize("end", [b" ", b"\n", b"\r"])
def test_a_key_in_der_may_end_in_what_looks_like_white_space(end: bytes, tmp_path: Path) -> None:
    """The last byte is that of a number, so one key in fifty ends so."""
    content = Ed25519PrivateKey.from_private_bytes(bytes(31) + end).private_bytes(DER, PKCS8, NoEncryption())
    assert content.endswith(end)
    with pytest.raises(Unauthenticated, match=r"needs an RSA key, and .* is another one"):
        assertion(SignedAssertion(kept(tmp_path, content)), CLOCK)


def test_a_template_wins_over_the_properties_and_the_times_over_both(tmp_path: Path) -> None:
    template = {"header": {"kid": "k1", "alg": "none"}, "payload": {"sub": "bob", "groups": ["a"], "exp": 1}}
    (tmp_path / "template").write_text(json.dumps(template))
    key = kept(tmp_path, RSA_KEY.private_bytes(PEM, PKCS8, NoEncryption()))
    source = SignedAssertion(key, CLAIMS, template_file=str(tmp_path / "template"), valid_s=10, has_id=True)
    header, claims = said(assertion(source, CLOCK))
    assert header == {"kid": "k1", "alg": "RS256", "typ": "JWT"}
    assert (claims["sub"], claims["groups"], claims["iss"], claims["exp"]) == ("bob", ["a"], "us", NOW_S + 10)
    assert claims["jti"] != said(assertion(source, CLOCK))[1]["jti"]


def test_a_file_is_read_again_at_each_request(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    for text in ("a.b.c", "d.e.f"):
        file.write_text(f"{text}\n")
        assert assertion(AssertionFile(str(file)), CLOCK) == Secret(text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"pa55-no-key", "private.key.file={key} cannot be read: check that it is a private key in PKCS#8 form"),
        (EC_KEY.private_bytes(PEM, PKCS8, NoEncryption()), "algorithm=RS256 needs an RSA key"),
        (RSA_KEY.private_bytes(PEM, PKCS8, LOCKED), "private.key.file={key} cannot be read"),
    ],
    ids=["no key", "another kind", "encrypted"],
)
def test_a_key_that_cannot_sign_is_named(content: bytes, words: str, tmp_path: Path) -> None:
    key = kept(tmp_path, content)
    assert words.format(key=key) in refusal(SignedAssertion(key))


def test_files_that_are_missing_or_hold_something_else_are_named(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    assert f"assertion.file={absent} cannot be read" in refusal(AssertionFile(absent))
    assert f"private.key.file={absent} cannot be read" in refusal(SignedAssertion(absent))
    other = kept(tmp_path, b"pa55-word")
    assert f"assertion.file={other} holds no assertion" in refusal(AssertionFile(other))
    for wrong in (b"pa55-word", b"[]", b'{"header": 1}', b"[" * 100_000):
        other = kept(tmp_path, wrong)
        assert f"template.file={other} is no template" in refusal(SignedAssertion(other, template_file=other))
