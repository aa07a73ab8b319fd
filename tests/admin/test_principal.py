"""Principal of a client for brokers, by its settings: the name in the doctor's grants."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kreassign.admin import client_settings
from kreassign.admin.sasl import principal_of
from kreassign.admin.settings import Kerberos, SecurityProtocol, Tls

_SECURITY = "org.apache.kafka.common.security"
PLAIN = f'{_SECURITY}.plain.PlainLoginModule required username="ann" password="x";'
SCRAM = f'{_SECURITY}.scram.ScramLoginModule required username="ann,=" password="x";'
UNSECURED = f'{_SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="ann";'


def certificate(**names: str) -> str:
    """A certificate of its own authority for this subject."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(getattr(NameOID, one), value) for one, value in names.items()])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_a_certificate_is_named_as_java_names_it() -> None:
    chain = certificate(ORGANIZATION_NAME="Example", COMMON_NAME="ann")
    settings = replace(client_settings(bootstrap_servers="broker-0:9092"), security_protocol=SecurityProtocol.SSL)
    assert principal_of(replace(settings, tls=Tls(certificate_chain=chain))) == "User:CN=ann,O=Example"


@pytest.mark.parametrize(
    ("principal", "name"), [("ann@EXAMPLE.COM", "User:ann"), ("ann/host.example@EXAMPLE.COM", "User:ann"), (None, None)]
)
def test_kerberos_makes_the_first_part_of_a_principal_the_name(principal: str | None, name: str | None) -> None:
    settings = client_settings(bootstrap_servers="broker-0:9092")
    sasl = Kerberos("kafka", principal)
    assert principal_of(replace(settings, security_protocol=SecurityProtocol.SASL_SSL, sasl=sasl)) == name


@pytest.mark.parametrize(("properties", "principal"), [
    ({}, "User:ANONYMOUS"),
    ({"security.protocol": "SSL"}, "User:ANONYMOUS"),
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}, "User:ann"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM}, "User:ann,="),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": UNSECURED}, "User:ann"),
])  # fmt: skip
def test_the_principal_is_the_one_of_kafkas_own_builder(properties: dict[str, str], principal: str) -> None:
    assert principal_of(client_settings(properties, bootstrap_servers="broker-0:9092")) == principal


def test_only_the_brokers_know_whose_token_a_file_holds(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a.b.c")
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
    }
    assert principal_of(client_settings(properties, bootstrap_servers="broker-0:9092")) is None
