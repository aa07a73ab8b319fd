"""PEM text: finding its certificates and keys, and putting them into the form that OpenSSL reads. Pure."""

from __future__ import annotations

import re
import textwrap

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([\x00-\x7f]*?)-----END \1-----")
_LINE_LENGTH = 64


def certificates(text: str) -> str:
    """All certificates in their order, without anything else that stands between them; empty if there is none."""
    return _blocks(text, "CERTIFICATE")


def private_keys(text: str) -> str:
    """All private keys, encrypted or not; empty if there is none."""
    return _blocks(text, "PRIVATE KEY")


def _blocks(text: str, kind: str) -> str:
    found = [_written(label, body) for label, body in _BLOCK.findall(text) if label.endswith(kind)]
    return "\n".join(found)


def _written(label: str, body: str) -> str:
    # Kafka also reads a body whose lines were joined by spaces, as a value in a properties file is (KIP-651).
    # A body with headers (an old form of encrypted keys) cannot have been joined.
    lines = body.strip() if ":" in body else textwrap.fill("".join(body.split()), _LINE_LENGTH)
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"
