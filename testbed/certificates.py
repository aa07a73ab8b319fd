"""PEM files for TLS: an authority, a certificate for the brokers and one per user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from testbed.ports import HOST


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in Kafka's PEM form: a trust store is certificates, a key store a PKCS#8 key and its certificate chain."""

    folder: Path

    @property
    def trust_store(self) -> Path:
        """The authority that signed everything."""
        return self.folder / "authority.pem"

    @property
    def broker_key_store(self) -> Path:
        """Key and certificate of the brokers, valid for 127.0.0.1 and localhost."""
        return self.folder / "broker.pem"

    def bad_key_store(self, why: str) -> Path:
        """Another key of the brokers: `expired` yesterday, or `misnamed`, with the certificate of another host."""
        return self.folder / f"broker-{why}.pem"

    @property
    def foreign_trust_store(self) -> Path:
        """An authority that signed nothing here: who trusts only it must refuse the brokers."""
        return self.folder / "foreign-authority.pem"

    def user_key_store(self, user: str) -> Path:
        """Key and certificate of a user; the common name is the user's name."""
        return self.folder / f"user-{user}.pem"


def make_certificates(folder: Path, users: Iterable[str]) -> Certificates:
    """Write a new authority and the certificates that it signs."""
    folder.mkdir(parents=True)
    files = Certificates(folder)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(files.trust_store))
    trustme.CA().cert_pem.write_to_path(str(files.foreign_trust_store))
    _write_key_store(files.broker_key_store, authority.issue_cert(HOST, "localhost", common_name="broker"))
    day, now = timedelta(days=1), datetime.now(UTC)
    expired = authority.issue_cert(
        HOST, "localhost", common_name="broker", not_before=now - 2 * day, not_after=now - day
    )
    _write_key_store(files.bad_key_store("expired"), expired)
    _write_key_store(files.bad_key_store("misnamed"), authority.issue_cert("elsewhere.example", common_name="broker"))
    for user in users:
        _write_key_store(files.user_key_store(user), authority.issue_cert(f"{user}@example.org", common_name=user))
    return files


def _write_key_store(path: Path, certificate: trustme.LeafCert) -> None:
    # Kafka reads PKCS#8 only; trustme writes the older form.
    key = load_pem_private_key(certificate.private_key_pem.bytes(), password=None)
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(key_pem + b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
