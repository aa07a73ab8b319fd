"""Certificates and private keys of TLS: load those of a listener, and say which file is wrong, and what to do.

OpenSSL reads both files in one call, and its errors name neither: `[SSL] PEM lib (_ssl.c:4149)`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from kreassign.errors import InputError, machine_reason

_CERTIFICATE, _KEY = b"CERTIFICATE-----", b"PRIVATE KEY-----"

_OF_ANOTHER = (
    "the private key does not belong to the first certificate. Use the key of that certificate, and put the "
    "certificates of its chain after it"
)
_MISTAKES = {
    "KEY_VALUES_MISMATCH": _OF_ANOTHER,
    "NO_CERTIFICATE_ASSIGNED": _OF_ANOTHER,  # the key of another algorithm
    "EE_KEY_TOO_SMALL": "the key of the certificate is too short. Issue one of 2,048 bits or more",
    "CA_KEY_TOO_SMALL": "the key of an authority in the chain is too short. Issue one of 2,048 bits or more",
    "CA_MD_TOO_WEAK": "a signature in the chain is too weak. Sign with SHA-256",
}


def mistake_in(error: Exception) -> str | None:
    """Say what is wrong with a pair of certificate and key, and what to do; None if one of them cannot be read."""
    return _MISTAKES.get(getattr(error, "reason", None) or "")


def listener_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """The TLS context of a listener, from PEM files. Raises InputError, which names the file."""
    _check(certificate, _CERTIFICATE, "certificate", f"openssl x509 -inform der -in {certificate} -out FILE")
    _check(key, _KEY, "private key", f"openssl pkey -inform der -in {key} -out FILE")
    context, asked = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []

    def no_password() -> str:
        """Without this function OpenSSL asks on the terminal."""
        asked.append(key)
        return ""

    try:
        context.load_cert_chain(certificate, key, no_password)
    except (OSError, ValueError) as error:
        if mistake := mistake_in(error):
            raise InputError(f"certificate {certificate} cannot be used with key {key}: {mistake}") from None
        if asked:
            raise InputError(
                f"key {key} is encrypted, and no password can be given here. Write it without: `openssl pkey -in "
                f"{key} -out FILE`"
            ) from None
        raise InputError(_damaged(certificate, key)) from None
    return context


def _check(path: Path, mark: bytes, what: str, conversion: str) -> None:
    """Raise InputError unless the file has a PEM block of this kind."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {machine_reason(error)}") from None
    if mark in content:
        return
    if _KEY in content or _CERTIFICATE in content:
        other = "a private key" if _KEY in content else "a certificate"
        raise InputError(f"{path} holds no {what}, but {other}: name the file of the {what}")
    raise InputError(f"{path} holds no {what} in PEM form. Convert it from DER with `{conversion}`")


def _damaged(certificate: Path, key: Path) -> str:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
    except (OSError, ValueError):
        return f"certificate {certificate} is damaged: OpenSSL cannot read it. Copy it again from where it was issued"
    return f"key {key} is damaged: OpenSSL cannot read it. Copy it again from where it was made"
