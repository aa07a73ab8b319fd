"""Java's key and trust stores, JKS and PKCS12, as PEM text. Pure: content in, text out.

Java reads either format whatever the type says (`keystore.type.compat`), and keytool writes PKCS12 by default since
Java 9; so the content decides here as well. Java protects the integrity of a JKS store and its keys by SHA-1 and
the password (sun.security.provider.JavaKeyStore and KeyProtector); a trust store is read without a password, unchecked,
as Java does. Certificates and keys themselves, and all of PKCS12, are read by `cryptography`.

Kafka has no property that names one of several keys. Java's key manager (SunX509) takes the first, in the order of its
hash table, of a type and an issuer that the broker asks for. The same key is taken here if all have one type and
issuer; otherwise the choice depends on the broker's request, and the store is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    pkcs12,
)

from kreassign.admin.settings import Secret
from kreassign.errors import InputError
from kreassign.model.text import hash_map_bucket

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_DER_SEQUENCE = 0x30
_KEY_ENTRY, _CERTIFICATE_ENTRY = 1, 2
_DIGEST_BYTES = 20
# Object identifiers of RFC 7292, sections 4.2 and appendix D, and of RFC 2985, in DER.
_DATA = bytes.fromhex("06092a864886f70d010701")
_KEY_BAG, _SHROUDED_KEY_BAG = bytes.fromhex("060b2a864886f70d010c0a0101"), bytes.fromhex("060b2a864886f70d010c0a0102")
_FRIENDLY_NAME = bytes.fromhex("06092a864886f70d010914")
_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | dsa.DSAPrivateKey
# Java mixes this into the digest of a store, besides the password.
_WHITENER = b"Mighty Aphrodite"


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key with its certificate chain, both as PEM text."""

    alias: str
    chain: str
    key: Secret


@dataclass(frozen=True, slots=True)
class JavaStore:
    """A store and its passwords; `name` and `property` (the prefix of its properties) are for errors."""

    name: str
    property: str
    content: bytes
    password: Secret | None = None
    key_password: Secret | None = None

    def trusted_certificates(self) -> str:
        """Every certificate of a trust store, as PEM text. Raises InputError if none can be read."""
        with _explained(self):
            # Like Java, trust the first certificate of a key's chain, and no other of it.
            found = [chain[0] for _, _, chain in _jks_entries(self)] if _is_jks(self) else _pkcs12_trusted(self)
            if not found:
                how = "Import the authority of the brokers: keytool -importcert"
                raise InputError(f"{self.name} holds no trusted certificate. {how}")
            return _pem(found)

    def key_entry(self) -> KeyEntry:
        """The private key that Java would use, decrypted. Raises InputError if there is none or the broker decides."""
        with _explained(self):
            alias, key, chain = _jks_key(self) if _is_jks(self) else _pkcs12_key(self)
            text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode().strip()
            return KeyEntry(alias, _pem(chain), Secret(text))


@contextmanager
def _explained(store: JavaStore) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, struct.error, IndexError, UnicodeDecodeError):
        # The library's error about unreadable bytes may show them.
        raise InputError(f"{store.name} is damaged or holds what cannot be read; look at it: keytool -list") from None


def _is_jks(store: JavaStore) -> bool:
    """True for JKS, False for PKCS12. Raises InputError for anything else, with what to do."""
    if store.content.startswith(_JKS):
        return True
    if store.content.startswith(_JCEKS):
        raise InputError(
            f"{store.name} is of the form JCEKS, which is not supported. Convert it: keytool -importkeystore "
            f"-srcstoretype JCEKS -deststoretype PKCS12, and set {store.property}.location to the result"
        )
    if store.content.lstrip().startswith(b"-----BEGIN"):
        raise InputError(f"{store.name} is PEM text: set {store.property}.type=PEM")
    if not store.content or store.content[0] != _DER_SEQUENCE:
        raise InputError(f"{store.name} is neither JKS nor PKCS12; look at it: keytool -list")
    return False


def _pem(certificates: list[bytes]) -> str:
    # Not parsed here: OpenSSL accepts old authorities whose certificates break the rules a little.
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates)).strip()


def subject_of(certificate_chain: str) -> str:
    """The subject of the first certificate of a PEM chain, as Java writes it (RFC 2253). Raises ValueError."""
    return x509.load_pem_x509_certificate(certificate_chain.encode()).subject.rfc4514_string()


def _der(certificates: list[x509.Certificate]) -> list[bytes]:
    return [one.public_bytes(Encoding.DER) for one in certificates]


def _wrong_password(store: JavaStore) -> InputError:
    said = "is wrong" if store.password is not None else "is missing"
    return InputError(f"{store.name} cannot be opened: {store.property}.password {said}")


# --- PKCS12 -----------------------------------------------------------------------------------------------------


def _pkcs12(store: JavaStore) -> pkcs12.PKCS12KeyAndCertificates:
    password = None if store.password is None else store.password.reveal().encode()
    try:
        with warnings.catch_warnings():
            # Old tools write BER, which is read as well but with a warning to programmers.
            warnings.simplefilter("ignore", UserWarning)
            return pkcs12.load_pkcs12(store.content, password)
    except ValueError as error:
        if "assword" in str(error):
            raise _wrong_password(store) from None
        raise


def _pkcs12_trusted(store: JavaStore) -> list[bytes]:
    found = _pkcs12(store)
    others = [one.certificate for one in found.additional_certs]
    if found.cert is None:
        return _der(others)
    chain = _chain(found.cert.certificate, others)
    return _der([chain[0], *(one for one in others if one not in chain)])


def _chain(first: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """A certificate and its issuers in TLS order (RFC 8446, section 4.4.2); stores may have any order and extras."""
    chain = [first]
    while (issuer := next((one for one in others if one.subject == chain[-1].issuer), None)) and issuer not in chain:
        chain.append(issuer)
    return chain


def _pkcs12_key(store: JavaStore) -> tuple[str, PrivateKeyTypes, list[bytes]]:
    found = _pkcs12(store)
    if found.key is None or found.cert is None:
        raise _no_key(store, [(one.friendly_name or b"?").decode(errors="replace") for one in found.additional_certs])
    others = [one.certificate for one in found.additional_certs]
    keys: dict[str, _Key] = {}
    with suppress(ValueError, IndexError, TypeError, UnsupportedAlgorithm):  # stores of old tools, in BER, have one
        keys = _pkcs12_keys(store)
    if len(keys) < 2:
        alias = (found.cert.friendly_name or b"").decode(errors="replace")
        return alias, found.key, _der(_chain(found.cert.certificate, others))
    by_key = {_public(one.public_key()): one for one in (found.cert.certificate, *others)}
    certificates = list(by_key.values())
    chains = {alias: _der(_chain(by_key[_public(key.public_key())], certificates)) for alias, key in keys.items()}
    alias = _chosen(store, chains)
    return alias, keys[alias], chains[alias]


def _pkcs12_keys(store: JavaStore) -> dict[str, _Key]:
    """Every private key by alias, in store order: `cryptography` returns only the first (RFC 7292, section 4)."""
    password = None if store.password is None else store.password.reveal().encode()
    found: dict[str, _Key] = {}
    # PFX: version, ContentInfo of AuthenticatedSafe, which is a sequence of ContentInfo; those of type data hold keys.
    for kind, content in map(_members, _members(_octets(_members(_members(store.content)[1])[1]))):
        for bag in _members(_octets(content)) if kind == _DATA else []:
            bag_kind, value, *attributes = _members(bag)
            if bag_kind in (_KEY_BAG, _SHROUDED_KEY_BAG):
                key = load_der_private_key(_value(value, 0)[0], password if bag_kind == _SHROUDED_KEY_BAG else None)
                if not isinstance(key, _Key):
                    raise TypeError(type(key))
                found[_friendly_name(attributes) or str(len(found) + 1)] = key
    return found


def _friendly_name(attributes: list[bytes]) -> str:
    for attribute in (one for each in attributes for one in _members(each)):
        name, values = _members(attribute)
        if name == _FRIENDLY_NAME:
            return _value(_members(values)[0], 0)[0].decode("utf-16-be")
    return ""


def _public(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


# --- which key ----------------------------------------------------------------------------------------------------


def _chosen(store: JavaStore, chains: Mapping[str, list[bytes]]) -> str:
    """The alias of the key that Java takes. Raises InputError if that depends on the broker's request."""
    read = x509.load_der_x509_certificate
    kinds = {(type(read(chain[0]).public_key()), read(chain[-1]).issuer) for chain in chains.values()}
    if len(kinds) > 1:
        raise InputError(
            f"{store.name} holds private keys of several aliases ({', '.join(chains)}), of different kinds or issuers, "
            "and Kafka has no property that names one. Make a store of one: keytool -importkeystore -srcalias ALIAS"
        )
    return min(chains, key=lambda alias: hash_map_bucket(alias.lower(), len(chains)))


def _no_key(store: JavaStore, aliases: list[str]) -> InputError:
    only = f"; it has only certificates ({', '.join(aliases)})" if aliases else ""
    return InputError(
        f"{store.name} holds no private key{only}. Name the store that has the key and certificate of this client"
    )


# --- JKS --------------------------------------------------------------------------------------------------------

_Entry = tuple[str, bytes | None, list[bytes]]


def _jks_key(store: JavaStore) -> tuple[str, PrivateKeyTypes, list[bytes]]:
    entries = list(_jks_entries(store))
    keys = [entry for entry in entries if entry[1] is not None]
    if not keys:
        raise _no_key(store, [alias for alias, _, _ in entries])
    chosen = _chosen(store, {alias: chain for alias, _, chain in keys})
    alias, protected, chain = next(entry for entry in keys if entry[0] == chosen)
    assert protected is not None
    password = store.key_password if store.key_password is not None else store.password
    plain = _unprotected(protected, password.reveal() if password else "")
    if plain is None:
        wrong = (
            "ssl.key.password" if store.key_password is not None else f"ssl.key.password ({store.property}.password)"
        )
        raise InputError(f"the private key {alias!r} of {store.name} cannot be decrypted: {wrong} is wrong")
    return alias, load_der_private_key(plain, password=None), chain


def _jks_entries(store: JavaStore) -> Iterator[_Entry]:
    """Alias, protected key (None for a trusted certificate) and certificates of every entry."""
    body, digest = store.content[:-_DIGEST_BYTES], store.content[-_DIGEST_BYTES:]
    if store.password is not None:
        # The format prescribes SHA-1; it detects damage only, the file itself is trusted.
        expected = hashlib.sha1(_utf16(store.password.reveal()) + _WHITENER + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise _wrong_password(store)
    reader = _Reader(body, len(_JKS))
    version, count = reader.number(4), reader.number(4)
    for _ in range(count):
        tag, alias = reader.number(4), reader.text()
        reader.number(8)
        if tag == _KEY_ENTRY:
            protected = reader.block(4)
            yield alias, protected, [_certificate(reader, version) for _ in range(reader.number(4))]
        elif tag == _CERTIFICATE_ENTRY:
            yield alias, None, [_certificate(reader, version)]
        else:
            raise ValueError(tag)


def _certificate(reader: _Reader, version: int) -> bytes:
    kind = reader.text() if version > 1 else "X.509"
    if kind != "X.509":
        raise ValueError(kind)
    return reader.block(4)


class _Reader:
    """Reads integers and strings like Java's DataInputStream."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._at = at

    def _take(self, size: int) -> bytes:
        taken = self._content[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError(size)
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def block(self, prefix: int) -> bytes:
        return self._take(self.number(prefix))

    def text(self) -> str:
        return self.block(2).decode()


def _unprotected(protected: bytes, password: str) -> bytes | None:
    """The key in PKCS#8 form, None if the password is wrong. Layout: salt, key ⊕ chain of SHA-1, SHA-1 of the key."""
    secret = _utf16(password)
    content = _octets_of_second(protected)
    salt, encrypted, check = (
        content[:_DIGEST_BYTES],
        content[_DIGEST_BYTES:-_DIGEST_BYTES],
        content[-_DIGEST_BYTES:],
    )
    stream, last = bytearray(), salt
    while len(stream) < len(encrypted):
        last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
        stream += last
    plain = bytes(one ^ other for one, other in zip(encrypted, stream, strict=False))
    found = hashlib.sha1(secret + plain, usedforsecurity=False).digest()
    return plain if hmac.compare_digest(found, check) else None


def _octets_of_second(der: bytes) -> bytes:
    """The second member of a DER sequence: the encrypted data of EncryptedPrivateKeyInfo (RFC 5208, section 6)."""
    sequence = _value(der, 0)[0]
    return _value(sequence, _value(sequence, 0)[1])[0]


def _members(der: bytes) -> list[bytes]:
    """The members of a constructed DER value, each with its header."""
    content, found, at = _value(der, 0)[0], [], 0
    while at < len(content):
        end = _value(content, at)[1]
        found.append(content[at:end])
        at = end
    return found


def _octets(content: bytes) -> bytes:
    """The content of an octet string in an explicit tag."""
    return _value(_value(content, 0)[0], 0)[0]


def _value(der: bytes, at: int) -> tuple[bytes, int]:
    """The content of the member at an offset, and the offset after it."""
    size, start = der[at + 1], at + 2
    if size >= 0x80:
        count = size - 0x80
        size, start = int.from_bytes(der[start : start + count], "big"), start + count
    return der[start : start + size], start + size


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
