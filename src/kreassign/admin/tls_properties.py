"""TLS of client properties, the keys `ssl.…` → `Tls`: stores as PEM text, PEM, JKS and PKCS12 files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kreassign.admin import pem
from kreassign.admin.settings import TLS_VERSIONS, Secret, Tls
from kreassign.errors import InputError
from kreassign.model.printable import shortened

if TYPE_CHECKING:
    from kreassign.admin.java_stores import JavaStore

_JAVA_TYPES = ("JKS", "PKCS12")


def tls(properties: Mapping[str, str]) -> Tls:
    """What TLS trusts and presents, as client properties say. InputError, which names the property, if it is wrong."""
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
        return _holding("certificate", "ssl.truststore.certificates", pem.certificates(inline))
    is_pem = _is_pem(properties, "truststore")
    content = _content(properties, "truststore")
    if content is None:
        return None
    if is_pem:
        where = f"ssl.truststore.location {properties['ssl.truststore.location']}"
        return _holding("certificate", where, pem.certificates(content.decode("iso-8859-1")))
    return _java_store(properties, "truststore", content).trusted_certificates()


def _key_store(properties: Mapping[str, str]) -> tuple[str | None, Secret | None, Secret | None]:
    """Certificate chain, private key and the password of that."""
    chain, key = properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")
    if (chain is None) != (key is None):
        raise InputError("ssl.keystore.certificate.chain and ssl.keystore.key go together; one of them is missing")
    where = "the key store"
    if chain is None or key is None:
        is_pem = _is_pem(properties, "keystore")
        content = _content(properties, "keystore")
        if content is None:
            return None, None, None
        if not is_pem:
            entry = _java_store(properties, "keystore", content).key_entry()
            return entry.chain, entry.key, None
        chain = key = content.decode("iso-8859-1")
        where = f"ssl.keystore.location {properties['ssl.keystore.location']}"
    # Split, so that the key is kept as a secret and the certificates alone are shown.
    return (
        _holding("certificate", where, pem.certificates(chain)),
        Secret(_holding("private key", where, pem.private_keys(key))),
        _secret(properties, "ssl.key.password"),
    )


def _holding(what: str, where: str, blocks: str) -> str:
    if not blocks:
        raise InputError(f"{where} holds no {what} in PEM form")
    return blocks


def _content(properties: Mapping[str, str], store: str) -> bytes | None:
    location = properties.get(f"ssl.{store}.location")
    if location is None:
        return None
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read ssl.{store}.location {location}: {error.strerror}") from None


def _is_pem(properties: Mapping[str, str], store: str) -> bool:
    kind = properties.get(f"ssl.{store}.type", _JAVA_TYPES[0]).strip().upper()
    if kind not in ("PEM", *_JAVA_TYPES):
        raise InputError(
            f"ssl.{store}.type={shortened(kind)} is not one of PEM, {', '.join(_JAVA_TYPES)}. Convert the store: "
            f"keytool -importkeystore -srcstoretype TYPE -deststoretype PKCS12"
        )
    return kind == "PEM"


def certificates() -> ModuleType:
    """The module that reads certificates."""
    from kreassign.admin import java_stores  # noqa: PLC0415 - slow to load, and few clients have certificates

    return java_stores


def _java_store(properties: Mapping[str, str], store: str, content: bytes) -> JavaStore:
    found: JavaStore = certificates().JavaStore(
        name=f"ssl.{store}.location {properties[f'ssl.{store}.location']}",
        property=f"ssl.{store}",
        content=content,
        password=_secret(properties, f"ssl.{store}.password"),
        key_password=_secret(properties, "ssl.key.password") if store == "keystore" else None,
    )
    return found


def _secret(properties: Mapping[str, str], key: str) -> Secret | None:
    value = properties.get(key)
    return None if value is None else Secret(value)
