"""TLS: client properties (`ssl.…`) → `Tls`, `Tls` → an OpenSSL context, and advice on its errors.

Key and trust stores are PEM text in the properties, or files: PEM, and Java's JKS and PKCS12 (`java_stores.py`,
loaded only where such a store is used).
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kreassign.admin.settings import TLS_VERSIONS, Secret, Tls
from kreassign.certificates import mistake_in
from kreassign.errors import InputError, Unauthenticated
from kreassign.model.text import shortened

if TYPE_CHECKING:
    from kreassign.admin.java_stores import JavaStore


# PEM text: extract certificates and keys, in the form that OpenSSL reads.

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([\x00-\x7f]*?)-----END \1-----")
_LINE_LENGTH = 64


def pem_certificates(text: str) -> str:
    """All certificates in their order, without any text in between; empty if there is none."""
    return _pem_blocks(text, "CERTIFICATE")


def pem_private_keys(text: str) -> str:
    """All private keys, encrypted or not; empty if there is none."""
    return _pem_blocks(text, "PRIVATE KEY")


def _pem_blocks(text: str, kind: str) -> str:
    found = [_formatted_pem(label, body) for label, body in _BLOCK.findall(text) if label.endswith(kind)]
    return "\n".join(found)


def _formatted_pem(label: str, body: str) -> str:
    # Kafka also reads a body whose lines are joined by spaces, like a value in a properties file (KIP-651).
    # A body with headers (an old format of encrypted keys) cannot have been joined.
    lines = body.strip() if ":" in body else textwrap.fill("".join(body.split()), _LINE_LENGTH)
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"


# Convert properties to `Tls`.

_JAVA_TYPES = ("JKS", "PKCS12")


def tls_settings(properties: Mapping[str, str]) -> Tls:
    """TLS settings from client properties. Raises InputError, which names the property."""
    chain, key, password = _key_store(properties)
    return Tls(
        trusted_certificates=_trust_store(properties),
        certificate_chain=chain,
        private_key=key,
        key_password=password,
        verifies_host_name=properties.get("ssl.endpoint.identification.algorithm", "https").strip() != "",
        versions=_tls_versions(properties.get("ssl.enabled.protocols", ",".join(TLS_VERSIONS))),
    )


def _tls_versions(text: str) -> tuple[str, ...]:
    enabled = {name.strip() for name in text.split(",")}
    versions = tuple(version for version in TLS_VERSIONS if version in enabled)
    if not versions:
        raise InputError(f"ssl.enabled.protocols={text} names none of {', '.join(TLS_VERSIONS)}")
    return versions


def _trust_store(properties: Mapping[str, str]) -> str | None:
    inline = properties.get("ssl.truststore.certificates")
    if inline is not None:
        return _require_pem("certificate", "ssl.truststore.certificates", pem_certificates(inline))
    is_pem = _is_pem(properties, "truststore")
    content = _store_content(properties, "truststore")
    if content is None:
        return None
    if is_pem:
        where = f"ssl.truststore.location {properties['ssl.truststore.location']}"
        return _require_pem("certificate", where, pem_certificates(content.decode("iso-8859-1")))
    return _java_store(properties, "truststore", content).trusted_certificates()


def _key_store(properties: Mapping[str, str]) -> tuple[str | None, Secret | None, Secret | None]:
    """Certificate chain, private key and key password."""
    chain, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if (chain is None) != (key is None):
        raise InputError("ssl.keystore.certificate.chain and ssl.keystore.key go together; one of them is missing")
    where = "the key store"
    if chain is None or key is None:
        is_pem = _is_pem(properties, "keystore")
        content = _store_content(properties, "keystore")
        if content is None:
            return None, None, None
        if not is_pem:
            entry = _java_store(properties, "keystore", content).key_entry()
            return entry.chain, entry.key, None
        chain = key = content.decode("iso-8859-1")
        where = f"ssl.keystore.location {properties['ssl.keystore.location']}"
    # Split the text, so that the key is kept as a secret and only the certificates are shown.
    return (
        _require_pem("certificate", where, pem_certificates(chain)),
        Secret(_require_pem("private key", where, pem_private_keys(key))),
        _secret(properties, "ssl.key.password"),
    )


def _require_pem(what: str, where: str, blocks: str) -> str:
    if not blocks:
        raise InputError(f"{where} holds no {what} in PEM form")
    return blocks


def _store_content(properties: Mapping[str, str], store: str) -> bytes | None:
    location = properties.get(f"ssl.{store}.location")
    if location is None:
        return None
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read ssl.{store}.location {location}: {error.strerror}") from None


def _is_pem(properties: Mapping[str, str], store: str) -> bool:
    given = properties.get(f"ssl.{store}.type", _JAVA_TYPES[0]).strip()
    kind = given.upper()
    if kind not in ("PEM", *_JAVA_TYPES):
        raise InputError(
            f"ssl.{store}.type={shortened(given)} is not one of PEM, {', '.join(_JAVA_TYPES)}. Convert the store: "
            f"keytool -importkeystore -srcstoretype TYPE -deststoretype PKCS12"
        )
    return kind == "PEM"


def _java_store(properties: Mapping[str, str], store: str, content: bytes) -> JavaStore:
    from kreassign.admin.java_stores import JavaStore

    return JavaStore(
        name=f"ssl.{store}.location {properties[f'ssl.{store}.location']}",
        property=f"ssl.{store}",
        content=content,
        password=_secret(properties, f"ssl.{store}.password"),
        key_password=_secret(properties, "ssl.key.password") if store == "keystore" else None,
    )


def _secret(properties: Mapping[str, str], key: str) -> Secret | None:
    value = properties.get(key)
    return None if value is None else Secret(value)


# Convert `Tls` to an OpenSSL context, and explain OpenSSL's errors.


def tls_context(tls: Tls) -> ssl.SSLContext:
    """An OpenSSL context with these settings. Raises InputError if OpenSSL cannot use them."""
    context = ssl.create_default_context()
    context.check_hostname = tls.verifies_host_name
    if tls.trusted_certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = tls.verifies_host_name
        # Like Java, trust every certificate of the store, also an intermediate or the server's own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=tls.trusted_certificates)
        except (ssl.SSLError, ValueError):
            raise InputError("the trust store holds a PEM certificate that is damaged. Export it again") from None
    context.minimum_version, context.maximum_version = (
        ssl.TLSVersion[version.replace(".", "_")] for version in (tls.versions[0], tls.versions[-1])
    )
    if tls.certificate_chain is not None and tls.private_key is not None:
        _load_certificate(context, tls)
    return context


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Hand chain and key to OpenSSL, which reads only files: use a private one and delete it at once."""
    assert tls.certificate_chain is not None
    assert tls.private_key is not None
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    asked = []

    def password() -> str:
        """Without this function OpenSSL asks on the terminal for the password of an encrypted key."""
        asked.append(name)
        return "" if tls.key_password is None else tls.key_password.reveal()

    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{tls.private_key.reveal()}\n{tls.certificate_chain}\n")
        context.load_cert_chain(name, password=password)
    except (ssl.SSLError, ValueError, OSError) as error:
        unread = (
            "ssl.key.password is missing or wrong" if asked else "its certificate or key is damaged. Export it again"
        )
        raise InputError(f"the key store cannot be used: {mistake_in(error) or unread}") from None
    finally:
        Path(name).unlink()


# OpenSSL's complaints about a certificate (X509_V_ERR_…), with a remedy each.
_ADVICE = {
    9: "It is not valid yet: compare the clocks",
    10: "Renew it on that server, or compare the clocks",
    18: "Import the authority that signed it into the trust store",
    19: "Import the authority that signed it into the trust store",
    20: "Import the authority that signed it into the trust store",
    21: "Import the authority that signed it into the trust store",
    62: "Use a name that is in its certificate, or issue one for this name",
    64: "Use a name that is in its certificate, or issue one for this address",
}


# A server's alerts about our side (RFC 8446, section 6.2), with a remedy each.
_ADVICE_ON_ALERTS = {
    "certificate expired": "Renew the certificate of this client (ssl.keystore.location)",
    "unknown ca": "Have the brokers trust who signed the certificate of this client (ssl.keystore.location)",
    "certificate required": "It wants a certificate of this client: set ssl.keystore.location",
    "handshake failure": "It may want a certificate of this client (ssl.keystore.location), or another version of TLS",
    "bad certificate": "It may want another certificate of this client (ssl.keystore.location)",
}

# What a listener without TLS makes of our first message: it closes the connection, or answers in its own protocol.
_IN_PLAIN_TEXT = ("unexpected eof", "reset by peer", "wrong version number", "record layer failure", "packet length")
_ADVICE_ON_PLAIN_TEXT = "Is it a listener in plain text? Then set security.protocol to PLAINTEXT or SASL_PLAINTEXT"


class NoTls(Unauthenticated):
    """The handshake of TLS failed at this address."""


def advice_on_failure(reason: str) -> str:
    """Advice for the reason why TLS failed, an alert or a connection that broke; empty if the reason is unknown."""
    advice = {**_ADVICE_ON_ALERTS, **dict.fromkeys(_IN_PLAIN_TEXT, _ADVICE_ON_PLAIN_TEXT)}
    return next((f". {advice[sign]}" for sign in advice if sign in reason), "")


def distrust(who: object, error: ssl.SSLCertVerificationError) -> str:
    """Why the certificate of a server is not trusted, and what to do."""
    said = f"the certificate of {who} is not trusted: {error.verify_message or error.reason}"
    advice = _ADVICE.get(error.verify_code)
    return f"{said}. {advice}" if advice else said
